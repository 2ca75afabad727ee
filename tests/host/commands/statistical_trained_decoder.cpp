// SPDX-License-Identifier: Apache-2.0
// A trained decoder from its files (tests/data, made by bench/data/train_decoder.py): bounds hold, its
// encoder helps, methods agree, and it describes images that it was not trained on.
#include <gtest/gtest.h>

#include <cmath>

#include "host/commands/item_evidence.hpp"
#include "host/options/target_input.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::trained_decoder_test {
namespace {

using namespace testing;
using Json = nlohmann::ordered_json;

const std::string kFolder = LOCKSTEP_SOURCE_DIR "/tests/data/", kSimulated = "simulate:40";

struct Outcome {
  std::unique_ptr<TargetInstance> target;
  Json summary;
  const Json& items() const { return summary["items"]; }
};

Outcome run(const std::string& images, const std::string& method, Settings settings) {
  RunOptions r;
  r.command = "evidence";
  r.target = "decoder";
  r.target_settings = {{"weights", kFolder + "small_decoder.npz"}, {"images", images}};
  r.sampler = method;
  r.sampler_settings = std::move(settings);
  r.device = "cpu";
  r.threads = 2;
  r.chains = 0;
  r.quiet = r.unbounded = true;
  Outcome done{build_target(r), {}};
  done.summary = to_json(item_evidence(r, *done.target, ""));
  return done;
}

Outcome annealed_both_ways() {
  return run(kSimulated, "bdmc", {{"temperatures", 200}, {"num_leapfrog", 5}, {"runs", 32}});
}

TEST(TrainedDecoder, BoundsEncloseTheEvidence) {
  const Outcome r = annealed_both_ways();
  ASSERT_EQ(r.items().size(), 40u);
  const Json& z = r.summary["log_z"];
  EXPECT_GT(z["gap"].get<double>(), -3 * z["gap_se"].get<double>());
  EXPECT_LT(z["gap"], 0.3);
  EXPECT_EQ(r.summary["verdict"], "pass");
  RunningMean lost;  // by the importance-weighted bound
  for (const Json& item : r.items())
    lost.add(item["log_z"]["upper"].get<double>() - item["importance_bound"].get<double>());
  EXPECT_GT(lost.mean(), -3 * lost.standard_error());
}

/// The importance-weighted bound of 100 draws loses less where they come from the encoder.
TEST(TrainedDecoder, EncoderIsABetterBaseThanThePrior) {
  const Outcome encoder = run("simulate:400", "bound", {{"base", "encoder"}}),
                prior = run("simulate:400", "bound", {{"base", "prior"}});
  ASSERT_EQ(encoder.target->items()->values, prior.target->items()->values);
  RunningMean gain;
  for (int i = 0; i < 400; ++i)
    gain.add(encoder.items()[i]["importance_bound"].get<double>() -
             prior.items()[i]["importance_bound"].get<double>());
  EXPECT_GT(gain.z(), 4);
}

/// Image by image against annealing both ways, by the spread of the differences and by the errors claimed.
TEST(TrainedDecoder, TemperedMethodsAgreeWithAnnealing) {
  const Outcome annealed = annealed_both_ways();
  for (const char* method : {"st", "ct-gibbs", "ct-joint"}) {
    const Outcome tempered =
        run(kSimulated, method, {{"temperatures", 1000}, {"num_leapfrog", 5}, {"runs", 32}});
    ASSERT_EQ(tempered.target->items()->values, annealed.target->items()->values);
    RunningMean difference;
    double claimed = 0;
    for (int i = 0; i < 40; ++i) {
      const Json &a = tempered.items()[i]["log_z"], &b = annealed.items()[i]["log_z"];
      difference.add(a["estimate"].get<double>() - b["estimate"].get<double>());
      claimed += std::pow(a["se"].get<double>(), 2) + std::pow(b["se"].get<double>(), 2);
    }
    claimed = std::sqrt(claimed) / 40;
    EXPECT_LT(std::abs(difference.z()), 4) << method << ' ' << difference.mean();
    EXPECT_LT(std::abs(difference.mean()), 4 * claimed) << method;
    EXPECT_LT(claimed, 0.01) << method;
  }
}

/// Above independent pixels with the frequencies of these very images.
TEST(TrainedDecoder, DescribesImagesItWasNotTrainedOn) {
  const Outcome r =
      run(kFolder + "small_images.npy", "ais", {{"temperatures", 200}, {"num_leapfrog", 5}, {"runs", 8}});
  const Items& images = *r.target->items();
  ASSERT_EQ(images.count, 200);
  ASSERT_EQ(images.rows, 8);
  ASSERT_EQ(images.columns, 8);
  std::vector<double> frequency(64, 0);
  for (int k = 0; k < 200 * 64; ++k) frequency[k % 64] += images.values[k] / 200;
  RunningMean gain;
  for (int i = 0; i < 200; ++i) {
    double independent = 0;
    for (int p = 0; p < 64; ++p)
      independent += std::log(images.values[i * 64 + p] > 0.5 ? frequency[p] : 1 - frequency[p]);
    gain.add(r.items()[i]["log_z"]["estimate"].get<double>() - independent);
  }
  EXPECT_GT(gain.z(), 4);
  EXPECT_GT(gain.mean(), 10);  // nats an image
}

}  // namespace
}  // namespace lockstep::trained_decoder_test
