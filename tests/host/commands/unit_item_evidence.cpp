// SPDX-License-Identifier: Apache-2.0
// Evidence item by item: settings, files, interruption and resume, through the real program where it matters.
#include "host/commands/item_evidence.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "host/commands/item_report.hpp"
#include "host/commands/item_table.hpp"
#include "host/engines/units.hpp"
#include "host/formats/arrays.hpp"
#include "tests/support/command_line.hpp"
#include "tests/support/decoder.hpp"
#include "tests/support/run_program.hpp"
#include "tests/support/subject.hpp"

namespace lockstep {
namespace {

using namespace testing;
namespace fs = std::filesystem;

/// The weights of a small decoder beside the program, as .npy files in double.
class ItemRun : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    fs::create_directories(folder_ / "weights");
    for (const auto& [name, a] : small_decoder()) {
      const std::string shape = fmt::format("({}, {})", a.shape[0], a.shape[1]);
      std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
      header.append(63 - (header.size() + 10) % 64, ' ');
      header += '\n';
      std::ofstream file(folder_ / "weights" / (name + ".npy"), std::ios::binary);
      file << "\x93NUMPY" << '\x01' << '\0' << char(header.size() & 0xFF) << char(header.size() >> 8)
           << header;
      file.write(reinterpret_cast<const char*>(a.values.data()),
                 std::streamsize(a.values.size() * sizeof(double)));
    }
  }
  static Words command(const Words& more) {
    Words words = {"evidence", "--target",
                   "decoder",  "--device",
                   "cpu",      "--quiet",
                   "--set",    "target.weights=weights",
                   "--set",    "sampler.num_leapfrog=2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string file(const std::string& name) const { return contents(folder_ / name); }
  std::string summary_without_times(const std::string& run) const {
    auto j = nlohmann::json::parse(file(run + "/summary.json"));
    for (const char* key : {"wall_s", "sampling_s", "gradients_per_s"}) j["cost"].erase(key);
    return j.dump();
  }
};

TEST_F(ItemRun, FilesSayWhatWasFound) {
  const auto r =
      run(command({"--set", "target.images=simulate:7", "--set", "sampler.temperatures=20", "--out", "out"}));
  ASSERT_EQ(r.status, 0) << r.err;
  const auto j = nlohmann::json::parse(file("out/summary.json"));
  EXPECT_EQ(j["sampler"]["name"], "bdmc");  // exact draws are at hand
  ASSERT_EQ(j["items"].size(), 7u);
  EXPECT_NEAR(j["log_z"]["gap"], j["log_z"]["upper"].get<double>() - j["log_z"]["lower"].get<double>(), 1e-9);
  EXPECT_EQ(j["log_z"]["df"], 6);
  for (const auto& item : j["items"]) {  // each by Student's t with as many degrees as it has runs, but one
    const auto& z = item["log_z"];
    EXPECT_EQ(z["df"], 15);
    EXPECT_NEAR(z["interval95"][1].get<double>() - z["estimate"].get<double>(),
                2.1314 * z["se"].get<double>(), 1e-3);
    EXPECT_LT(z["interval997"][0], z["interval95"][0]);
  }
  EXPECT_NEAR(j["log_z"]["interval95"][1].get<double>() - j["log_z"]["estimate"].get<double>(),
              2.4469 * j["log_z"]["se"].get<double>(), 1e-3);  // Student's with six degrees of freedom
  EXPECT_EQ(load_npy(folder_ / "out/images.npy").shape, (std::vector<std::size_t>{7, 1, 11}));
  const auto real = run(command({"--set", "target.images=simulate:1", "--set", "target.likelihood=gaussian",
                                 "--set", "sampler.temperatures=20", "--out", "real"}));
  EXPECT_FALSE(nlohmann::json::parse(file("real/summary.json"))["log_z"].contains("interval")) << real.err;
  EXPECT_TRUE(std::holds_alternative<std::vector<float>>(load_npy(folder_ / "real/images.npy").values));
  const std::string table = file("out/items.csv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 8);
  const auto repeated = run({"evidence", "--config", "out/run.toml", "--out", "again"});
  ASSERT_EQ(repeated.status, 0) << repeated.err;
  EXPECT_EQ(file("again/items.csv"), table);
}

TEST_F(ItemRun, ResumeGivesTheSame) {
  const Words job = {"--set", "target.images=simulate:300", "--set", "sampler.temperatures=200", "--threads",
                     "1"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), job.begin(), job.end());
    return command(more);
  };
  ASSERT_EQ(run(with({"--out", "whole"})).status, 0);
  {
    Program program(folder_, with({"--out", "part", "--checkpoint", "0.001"}));
    ASSERT_TRUE(program.wait_for([&] { return fs::exists(folder_ / "part/checkpoint"); }));
  }  // killed
  EXPECT_FALSE(fs::exists(folder_ / "part/summary.json"));
  const auto resumed = run({"evidence", "--out", "part", "--resume"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(file("part/items.csv"), file("whole/items.csv"));
  EXPECT_EQ(summary_without_times("part"), summary_without_times("whole"));
  EXPECT_FALSE(fs::exists(folder_ / "part/checkpoint"));
}

TEST_F(ItemRun, BadInputIsOneLine) {
  refuses(command({"--method", "bdcm"}), "Did you mean bdmc?");
  refuses(command({"--gradients", "1e6"}), "many items");
  refuses(command({"--se", "0.1"}), "many items");
  refuses(command({"--chains", "64"}), "--chains");
  refuses(command({"--draws"}), "--draws");
  refuses(command({"--set", "sampler.step_size=0.3", "--set", "sampler.target_acceptance=0.7"}),
          "target_acceptance of method bdmc has no effect");
  refuses(command({"--set", "sampler.base=mixture"}), "encoder");
  refuses(command({"--set", "sampler.runs=1"}), "runs");
  refuses(command({"--set", "sampler.schedule=[0,0.5]"}), "ladder");
  refuses(command({"--set", "target.images=nowhere.npy"}), "nowhere.npy");
  refuses({"sample", "--target", "decoder", "--sampler", "hmc", "--set", "target.weights=weights"},
          "100 items");
  refuses({"evidence", "--target", "gaussian", "--method", "bound"}, "many items");
  refuses({"evidence", "--target", "decoder"}, "no weights");
  refuses(
      {"evidence", "--target", "decoder", "--set", "target.weights=weights", "--set", "sampler.base=encoder"},
      "no encoder");
}

TEST(ItemEvidence, MeansOverItemsAreJudgedByResampling) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back(std::sin(1.7 * i));
  double mean = 0, square = 0;
  for (double v : values) mean += v / 200;
  for (double v : values) square += (v - mean) * (v - mean) / 199;
  const LogZ z = mean_over_items(values);
  EXPECT_NEAR(z.estimate, mean, 1e-12);
  EXPECT_NEAR(z.se, std::sqrt(square / 200), 1e-12);
  // Ends of the percentile interval: each with a standard error of 2.7 se / sqrt(1000).
  const auto [low, high] = interval_over_items(values);
  EXPECT_NEAR(low, mean - 1.96 * z.se, 0.35 * z.se);
  EXPECT_NEAR(high, mean + 1.96 * z.se, 0.35 * z.se);
  EXPECT_TRUE(std::isnan(mean_over_items({1.0}).se));
}

TEST(ItemPilot, AimsAtTheAcceptanceAndMeasuresTheBarrier) {
  const SubjectOf<DecoderTarget> s(decoder_input(random_decoder({8, 20, 40}, 2), 30));
  RunContext context;
  context.target = s.target.get();
  context.key = make_stream_key(1, "pilot");
  const ItemPilot p = run_item_pilot(context, false, 5, 0.8, 0);
  EXPECT_NEAR(p.acceptance, 0.8, 0.1);
  EXPECT_EQ(p.step_size.size(), p.ladder.size());
  EXPECT_EQ(p.rates.size() + 1, p.ladder.size());
  EXPECT_GT(p.barrier().global(), 0.5);
  EXPECT_NEAR(p.log_z.front(), 0, 1e-12);
  EXPECT_NEAR(p.log_z.back(), 0, 1e-9);  // the guess of log Z taken out
  // The path is convex in between: d^2 log z / d beta^2 = Var Delta.
  for (std::size_t k = 1; k + 1 < p.log_z.size(); ++k) EXPECT_LT(p.log_z[k], 0.1);  // and the noise of 8 runs
  const ItemSchedule at = p.on({0, 0.25, 1}, 5);
  EXPECT_EQ(at.step_size.front(), p.step_size.front());
  EXPECT_EQ(at.step_size.back(), p.step_size.back());
  const ItemPilot fixed = run_item_pilot(context, false, 5, 0.8, 0.123);
  for (double step : fixed.step_size) EXPECT_NEAR(step, 0.123, 1e-12);
}

}  // namespace
}  // namespace lockstep
