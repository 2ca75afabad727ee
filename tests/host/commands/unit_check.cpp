// SPDX-License-Identifier: Apache-2.0
// `lockstep check` passes right targets, however narrow or stretched.
#include <gtest/gtest.h>

#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

using Args = std::vector<std::string>;

class Check : public testing::ProgramTest {
 protected:
  void passes(const Args& more) {
    Args args = {"check", "--device", "cpu", "--threads", "1"};
    args.insert(args.end(), more.begin(), more.end());
    const testing::ProgramResult result = run(args);
    EXPECT_EQ(result.status, 0) << more[0] << "\n" << result.out << result.err;
    for (const char* transition : {"hmc", "rwm", "mala", "wormhole", "wormhole_metric"})
      EXPECT_NE(result.out.find(std::string("invariance   ok    20 transitions ") + transition),
                std::string::npos)
          << result.out;
    const auto at = result.out.find("acceptance ");
    ASSERT_NE(at, std::string::npos);
    EXPECT_GT(std::stod(result.out.substr(at + 11)), 0.4) << result.out;
  }
};

TEST_F(Check, ShippedTargets) {
  for (const char* target : {"gaussian", "mixture20", "bimodal_ct", "two_modes", "banana"}) passes({target});
}

TEST_F(Check, NarrowModesFarApart) {
  put("narrow.json", R"({"means": [[0, 0], [8, 8]], "weights": [0.3, 0.7], "sds": [1e-4, 1e-4]})");
  passes({"mixture", "--data", "narrow.json"});
  // Wormholes lead between the modes that a short search finds.
  const auto found = run({"check", "mixture", "--data", "narrow.json", "--device", "cpu", "--threads", "1"});
  for (const char* transition : {"wormhole", "wormhole_metric"})
    EXPECT_NE(
        found.out.find(std::string("ok    20 transitions ") + transition + " along a network of 1 from"),
        std::string::npos)
        << found.out;
  put("mixed.json", R"({"means": [[0, 0], [8, 8]], "weights": [0.3, 0.7], "sds": [1, 1e-4]})");
  passes({"mixture", "--data", "mixed.json"});
}

TEST_F(Check, StretchedAxes) {
  passes({"gaussian", "--set", "target.ratio=1e5"});
  passes({"gaussian", "--set", "target.ratio=1e-5", "--precision", "double"});
}

}  // namespace
}  // namespace lockstep
