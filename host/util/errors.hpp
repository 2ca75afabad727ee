// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>

namespace lockstep {

/// A message as one line of at most `most` bytes, whatever stands in it: control characters become blanks,
/// and in a longer one the longest words (names, values and paths of the user) lose their middle first, to
/// "...".
std::string one_line(std::string text, std::size_t most = 280);

/// A mistake in what the user gave us. The text is one line, `what is wrong (why it matters). what to do`;
/// the command line prints it and exits with status 2, having written nothing. It passes through one_line.
struct UserError : std::runtime_error {
  explicit UserError(const std::string& text) : std::runtime_error(one_line(text)) {}
};

}  // namespace lockstep
