// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "host/formats/numeric_array.hpp"
#include "host/util/errors.hpp"

namespace lockstep {

/// The bytes of one array in the .npy format, from a file of their own or out of an archive.
struct NpyStream {
  std::string name;     // for messages: the file, or "means" in FILE
  std::uint64_t bytes;  // all of them, header included
  /// The next `count` bytes; fewer (their number is returned) only at the end.
  std::function<std::size_t(char* to, std::size_t count)> read;
};

/// Reads an array and, one byte beyond it, the end of its stream. Throws UserError as load_npy does.
NumericArray read_npy(const NpyStream& stream);

/// Throws the UserError of this text.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw UserError(fmt::format(text, std::forward<Args>(args)...));
}

/// Throws UserError unless there is memory for so many numbers as doubles, and for a target's copies of them.
/// For before anything is allocated that a header asks for.
void require_memory_of(const std::string& name, std::uint64_t numbers);

/// IEEE half precision: 1 bit of sign, 5 of exponent, 10 of fraction.
float from_half(std::uint16_t bits);

/// Throws the UserError of a file whose parts contradict each other; `how` is a clause such as "it ends
/// early".
[[noreturn]] void refuse_damaged(const std::string& name, const std::string& how);

}  // namespace lockstep
