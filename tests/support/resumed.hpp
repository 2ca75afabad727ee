// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is stopped between two levels and gone on with from a file.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/engines/checkpoint.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep::testing {

template <class T>
void save(const std::filesystem::path& file, T& value) {
  Checkpoint out;
  out("value", value);
  out.write(file, "this run");
}
template <class T>
void load(const std::filesystem::path& file, T& value) {
  Checkpoint in(file, "this run");
  in("value", value);
}

/// Stages that `make` makes are saved after every level; each file, read into a new one, leads to the same
/// bits as the one that was never stopped. Returns its result.
template <class Make>
auto expect_same_from_every_level(const std::filesystem::path& folder, Make&& make) {
  int levels = 0;
  const auto stage = make();
  while (stage->step()) save(folder / std::to_string(levels++), *stage);
  auto whole = stage->finish();
  save(folder / "whole", whole);
  for (int k = 0; k < levels; ++k) {
    const auto again = make();
    load(folder / std::to_string(k), *again);
    int rest = 0;
    while (again->step()) ++rest;
    auto result = again->finish();
    EXPECT_EQ(rest, levels - k - 1);
    save(folder / "resumed", result);
    EXPECT_EQ(contents(folder / "resumed"), contents(folder / "whole")) << "from level " << k;
    decltype(result) read;  // and results come back too
    load(folder / "whole", read);
    save(folder / "read", read);
    EXPECT_EQ(contents(folder / "read"), contents(folder / "whole"));
  }
  EXPECT_GT(levels, 4);
  return whole;
}

}  // namespace lockstep::testing
