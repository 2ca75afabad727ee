// SPDX-License-Identifier: Apache-2.0
// Evidence item by item: bounds hold and cover where log Z is known, whatever the split into batches.
#include <gtest/gtest.h>

#include <cmath>

#include "host/commands/item_evidence.hpp"
#include "tests/support/decoder.hpp"
#include "tests/support/statistics.hpp"
#include "tests/support/subject.hpp"

namespace lockstep::items_test {
namespace {

using namespace testing;
using Json = nlohmann::ordered_json;

Json run(const TargetInstance& target, const std::string& method, Settings settings, std::uint64_t seed,
         int threads = 1) {
  RunOptions r;
  r.command = "evidence";
  r.target = "decoder";
  r.sampler = method;
  r.sampler_settings = std::move(settings);
  r.chains = 0;
  r.seed = seed;
  r.device = "cpu";
  r.threads = threads;
  r.quiet = r.unbounded = true;
  return to_json(item_evidence(r, target, ""));
}

/// One linear layer with normal noise: the posterior is normal and the evidence known. Twenty seeds of six
/// images each: the truth lies between the bounds on average, and estimates are within their errors: z =
/// error / se is about Student's t with 15 degrees of freedom, whose rms over 120 draws lies in [0.77, 1.31]
/// with probability 0.999, and of which 112 are expected within 2 (standard deviation 2.7).
TEST(ItemEvidence, CoversTheEvidenceOfALinearDecoder) {
  RunningMean lower, upper, error;
  double squares = 0;
  int inside = 0, count = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    MemoryInput in = decoder_input(random_decoder({4, 9}, 1.5, seed), 6, "gaussian", 0.6);
    in.numbers["seed"] = double(seed);
    const SubjectOf<DecoderTarget> s(in);
    const Json j = run(*s.target, "bdmc", {{"temperatures", 60}, {"num_leapfrog", 5}}, seed);
    for (int i = 0; i < 6; ++i) {
      const Json& z = j["items"][i]["log_z"];
      const double truth = s.target->items()->log_z[i], e = z["estimate"].get<double>() - truth, se = z["se"];
      lower.add(z["lower"].get<double>() - truth);
      upper.add(z["upper"].get<double>() - truth);
      error.add(e);
      squares += e * e / (se * se);
      inside += std::abs(e) < 2 * se;
      ++count;
    }
  }
  EXPECT_LT(lower.mean(), 3 * lower.standard_error());
  EXPECT_GT(upper.mean(), -3 * upper.standard_error());
  EXPECT_LT(std::abs(error.z()), 4);
  EXPECT_GT(std::sqrt(squares / count), 0.77);
  EXPECT_LT(std::sqrt(squares / count), 1.31);
  EXPECT_GE(inside, 101) << "of " << count;
}

/// Every method, against the same truths: means of 12 images over 4 seeds.
TEST(ItemEvidence, EveryMethodFindsIt) {
  const SubjectOf<DecoderTarget> s(decoder_input(random_decoder({3, 8}), 12, "gaussian", 0.6));
  for (const char* method : {"ais", "bdmc", "st", "ct-gibbs", "ct-joint", "bound"}) {
    RunningMean error;
    double gradients = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const bool bound = std::string(method) == "bound";
      const Json j = run(*s.target, method,
                         bound ? Settings{{"bound_draws", 20000}}
                               : Settings{{"temperatures", 400}, {"num_leapfrog", 5}, {"runs", 8}},
                         seed);
      for (int i = 0; i < 12; ++i)
        error.add(j["items"][i]["log_z"]["estimate"].get<double>() - s.target->items()->log_z[i]);
      gradients = j["cost"]["gradients"];
    }
    EXPECT_LT(std::abs(error.z()), 4.5) << method << ' ' << error.mean();
    EXPECT_LT(error.standard_error(), 0.05) << method;
    EXPECT_GT(gradients, 0);
  }
}

/// An encoder that says little: paths from its bases and from the prior are different ones with the same
/// ends.
TEST(ItemEvidence, PathsBeginWhereAsked) {
  auto tensors = random_decoder({3, 8});
  tensors["encoder_mean_W0"] = {std::vector<double>(24, 0.1), {8, 3}};
  tensors["encoder_mean_b0"] = {{0.3, -0.3, 0}, {3}};
  tensors["encoder_std_W0"] = {std::vector<double>(24, 0), {8, 3}};
  tensors["encoder_std_b0"] = {std::vector<double>(3, std::log(0.7)), {3}};
  const SubjectOf<DecoderTarget> s(decoder_input(tensors, 24, "gaussian", 0.6));
  const auto from = [&](const char* base) {
    return run(*s.target, "bdmc", {{"temperatures", 100}, {"num_leapfrog", 5}, {"base", base}}, 6);
  };
  const Json encoder = from("encoder"), prior = from("prior");
  EXPECT_EQ(from("auto")["items"], encoder["items"]);
  for (const Json& j : {encoder, prior}) {
    RunningMean error;
    for (int i = 0; i < 24; ++i)
      error.add(j["items"][i]["log_z"]["estimate"].get<double>() - s.target->items()->log_z[i]);
    EXPECT_LT(std::abs(error.z()), 4.5) << j["diagnostics"]["base"];
  }
  EXPECT_NE(encoder["items"], prior["items"]);
}

/// Far from their bases, with few transitions, they must not pass.
TEST(ItemEvidence, TemperedRunsThatAreTooShortFail) {
  MemoryInput in = decoder_input(random_decoder({8, 20, 60}, 4), 24);
  const SubjectOf<DecoderTarget> s(in);
  for (const char* method : {"st", "ct-gibbs", "ct-joint"}) {
    EXPECT_EQ(run(*s.target, method, {{"temperatures", 1}, {"num_leapfrog", 2}}, 2)["verdict"], "fail");
    const Json j = run(*s.target, method, {{"temperatures", 12}, {"num_leapfrog", 2}}, 2);
    EXPECT_EQ(j["verdict"], "fail") << method;
    EXPECT_NE(j["failed_gates"].dump().find("round_trips"), std::string::npos) << j["failed_gates"];
  }
}

/// Too few temperatures, and steps far too long: each gate is one that can fail.
TEST(ItemEvidence, BadRunsFailTheirGates) {
  const SubjectOf<DecoderTarget> s(decoder_input(random_decoder({8, 20, 60}, 4), 24));
  const auto failed = [&](const char* method, Settings settings) {
    const Json j = run(*s.target, method, std::move(settings), 2);
    EXPECT_EQ(j["verdict"], "fail");
    return j["failed_gates"].dump();
  };
  const std::string few = failed("bdmc", {{"temperatures", 2}, {"num_leapfrog", 2}});
  EXPECT_NE(few.find("gap"), std::string::npos) << few;
  EXPECT_NE(few.find("weight_ess"), std::string::npos) << few;
  EXPECT_NE(failed("bound", {}).find("weight_ess"), std::string::npos);
  const std::string far = failed("ais", {{"temperatures", 30}, {"step_size", 20}});
  EXPECT_NE(far.find("acceptance"), std::string::npos) << far;
}

/// Every schedule is an annealing between the same ends, and its ladder is in the report.
TEST(ItemEvidence, SchedulesAgree) {
  const SubjectOf<DecoderTarget> s(decoder_input(random_decoder({3, 8}), 24, "gaussian", 0.6));
  std::vector<Json> ladders;
  for (const Settings& schedule : std::vector<Settings>{
           Settings("barrier"), Settings("linear"), Settings("sigmoid"), Settings("quadratic"),
           Settings::array({0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1})}) {
    Settings settings = {{"num_leapfrog", 5}, {"schedule", schedule}};
    if (!schedule.is_array()) settings["temperatures"] = 100;
    const Json j = run(*s.target, "bdmc", settings, 6);
    RunningMean error;
    for (int i = 0; i < 24; ++i)
      error.add(j["items"][i]["log_z"]["estimate"].get<double>() - s.target->items()->log_z[i]);
    EXPECT_LT(std::abs(error.z()), 4.5) << schedule;
    ladders.push_back(j["diagnostics"]["schedule"]);
    EXPECT_EQ(ladders.back().size(), schedule.is_array() ? 9u : 101u);
    EXPECT_EQ(std::count(ladders.begin(), ladders.end(), ladders.back()), 1);
  }
}

TEST(ItemEvidence, GapsShrinkWithTemperatures) {
  const SubjectOf<DecoderTarget> s(decoder_input(random_decoder({8, 20, 40}, 3), 24));
  double gap[2];
  int k = 0;
  for (int temperatures : {20, 640}) {
    const Json j = run(*s.target, "bdmc", {{"temperatures", temperatures}, {"num_leapfrog", 5}}, 3);
    gap[k++] = j["log_z"]["gap"];
    EXPECT_LT(j["log_z"]["lower"].get<double>(), j["log_z"]["upper"].get<double>() + 0.05);
  }
  EXPECT_LT(gap[1], 0.5 * gap[0]);
}

/// Threads decide how many items run at a time.
TEST(ItemEvidence, SplitsChangeNothing) {
  const SubjectOf<DecoderTarget> s(decoder_input(small_decoder(), 70));
  for (const char* method : {"bdmc", "st"}) {
    const Settings settings = {{"temperatures", 12}, {"num_leapfrog", 2}};
    const Json a = run(*s.target, method, settings, 5, 1), b = run(*s.target, method, settings, 5, 3);
    EXPECT_EQ(a["items"].size(), 70u);
    EXPECT_EQ(a["items"], b["items"]);
    EXPECT_EQ(a["log_z"], b["log_z"]);
  }
}

}  // namespace
}  // namespace lockstep::items_test
