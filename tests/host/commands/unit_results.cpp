// SPDX-License-Identifier: Apache-2.0
// Results of real runs are read back from their summaries to the letter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/commands/evidence.hpp"
#include "host/commands/item_evidence.hpp"
#include "host/commands/print_result.hpp"
#include "host/commands/sample.hpp"
#include "host/util/files.hpp"
#include "tests/support/decoder.hpp"
#include "tests/support/subject.hpp"

namespace lockstep {
namespace {

RunOptions options(const std::string& command, const std::string& target, const std::string& sampler) {
  RunOptions r;
  r.command = command;
  r.target = target;
  r.sampler = sampler;
  r.device = "cpu";
  r.quiet = true;
  return r;
}

template <class Result>
void expect_same_when_read(const Result& result) {
  const std::string text = summary_text(to_json(result));
  const auto again = from_json<Result>(nlohmann::ordered_json::parse(text));
  EXPECT_EQ(summary_text(to_json(again)), text);
}

TEST(SampleResult, IsReadBack) {
  for (const char* sampler : {"hmc", "pe"}) {
    RunOptions r = options("sample", "mixture20", sampler);
    r.chains = 8;
    r.warmup = r.iterations = 100;
    const SampleResult result = sample(r);
    expect_same_when_read(result);
    EXPECT_EQ(result.estimates.mean.size(), 2u);
    EXPECT_EQ(std::isnan(result.log_z.estimate), sampler == std::string("hmc"));
    EXPECT_EQ(result.diagnostics.of_draws.rhat.size(), 2u);
  }
}

TEST(EvidenceResult, IsReadBack) {
  for (const char* method : {"auto", "pt", "smc", "bdmc", "pe"}) {
    RunOptions r = options("evidence", "two_modes", method);
    r.gradients = method == std::string("pe") ? 1e6 : 2e5;  // whose scout and warm-up take a third
    r.chains = 0;
    const auto result = std::get<EvidenceResult>(evidence(r));
    expect_same_when_read(result);
    EXPECT_TRUE(std::isfinite(result.log_z.estimate)) << method;
    EXPECT_EQ(result.diagnostics.base.empty(), method == std::string("pe"));
    EXPECT_EQ(result.items.empty(), method != std::string("pt"));
  }
}

TEST(EvidenceResult, SaysWhichBudgetWouldDo) {
  for (const char* method : {"st", "smc"}) {
    RunOptions r = options("evidence", "two_modes", method);
    r.gradients = 100;
    r.chains = 0;
    const auto result = std::get<EvidenceResult>(evidence(r));
    EXPECT_EQ(result.verdict, "not established");
    EXPECT_THAT(result.warnings,
                ::testing::Contains(::testing::AllOf(::testing::HasSubstr("100 gradients are not enough"),
                                                     ::testing::HasSubstr("give --gradients"))));
  }
}

TEST(EvidenceResult, SpeaksOfOneModeInTheSingular) {
  EvidenceResult r;
  r.diagnostics.modes.base = true;
  r.diagnostics.modes.shares = {{{1, 2}, 0.25, NAN, NAN, 12}, {{3, 4}, 0.75, 0.01, 0.7, 0}};
  for (const int found : {1, 2}) {
    r.diagnostics.modes.found = found;
    ::testing::internal::CaptureStdout();
    print_result(r);
    std::fflush(stdout);
    EXPECT_THAT(::testing::internal::GetCapturedStdout(),
                ::testing::HasSubstr(found == 1 ? "1 mode found, the base made of it"
                                                : "2 modes found, a mixture of them the base"));
  }
}

TEST(ItemResult, IsReadBack) {
  const testing::SubjectOf<DecoderTarget> s(testing::decoder_input(testing::small_decoder(), 5));
  for (const char* method : {"bdmc", "st", "bound"}) {
    RunOptions r = options("evidence", "decoder", method);
    if (method != std::string("bound")) r.sampler_settings = {{"temperatures", 20}, {"num_leapfrog", 2}};
    r.chains = 0;
    r.unbounded = true;
    const ItemResult result = item_evidence(r, *s.target, "");
    expect_same_when_read(result);
    EXPECT_EQ(result.items.size(), 5u);
  }
}

}  // namespace
}  // namespace lockstep
