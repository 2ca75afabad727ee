// SPDX-License-Identifier: Apache-2.0
#pragma once
// What readers of files with arrays owe: one line for a file that they refuse, else values of its shapes.
#include <gtest/gtest.h>

#include <filesystem>

#include "host/formats/arrays.hpp"
#include "host/util/errors.hpp"

namespace lockstep::testing {

/// The one line by which load(path) refuses the file; empty, with a failure, when it is read.
template <class Load>
std::string file_complaint(const std::filesystem::path& path, Load&& load) {
  try {
    load(path);
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_NE(text.find(path.string()), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(".") && text.find(" (") != std::string::npos &&
                text.find("). ") != std::string::npos)
        << text;
    return text;
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

/// Whether load(path), arrays by name, refuses the file in one line; else its values are of their shapes.
template <class Load>
bool file_is_refused(const std::filesystem::path& path, Load&& load) {
  try {
    for (const auto& [name, array] : load(path)) {
      std::size_t count = 1;
      for (const std::size_t size : array.shape) count *= size;
      std::visit([&](const auto& values) { EXPECT_EQ(values.size(), count); }, array.values);
    }
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return true;
  }
  return false;
}

}  // namespace lockstep::testing
