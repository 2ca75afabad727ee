// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdexcept>
#include <string>

namespace lockstep {

/// A mistake in what the user gave us. The text is one line, `what is wrong (why it matters). what to do`;
/// the command line prints it and exits with status 2, having written nothing.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lockstep
