// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

namespace lockstep {

/// A dense array of numbers in the element type of its file, row by row (the last index runs fastest).
struct NumericArray {
  /// Booleans are bytes of 0 and 1.
  using Values = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int8_t>,
                              std::vector<std::int16_t>, std::vector<std::int32_t>, std::vector<std::int64_t>,
                              std::vector<std::uint8_t>, std::vector<std::uint16_t>,
                              std::vector<std::uint32_t>, std::vector<std::uint64_t>>;

  std::vector<std::size_t> shape;  // empty: a plain number, one value
  Values values;

  /// Entry number `index` of the values.
  double number(std::size_t index) const {
    return std::visit([index](const auto& v) { return static_cast<double>(v[index]); }, values);
  }
};

}  // namespace lockstep
