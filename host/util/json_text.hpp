// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lockstep {

/// So many arrays and tables may stand in each other in what a user gives us, in any format. Data have a
/// few; what walks through values calls itself once for each, so that more of them would end the stack.
inline constexpr int kMostNested = 64;

/// Why a text is not read as JSON.
struct BadJson {
  enum class Fault { syntax, range, nested, repeated } fault;
  std::size_t at = 0;    ///< syntax: bytes before the fault
  std::string key = {};  ///< repeated: the name that an object gives twice
};

/// The value of a JSON text. Throws BadJson: what is not JSON, a number beyond the doubles, more than
/// kMostNested arrays and objects in each other, an object with two values under one name.
nlohmann::json parse_json(std::string_view text);

}  // namespace lockstep
