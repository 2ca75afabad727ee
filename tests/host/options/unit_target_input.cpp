// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>

#include <fstream>

#include "host/options/target_input.hpp"
#include "host/util/errors.hpp"

namespace lockstep {
namespace {

class TargetInputTest : public ::testing::Test {
 protected:
  TargetInputTest()
      : folder_(std::filesystem::path(::testing::TempDir()) / ("target_input_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TargetInputTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static RunOptions run_of(const std::string& target, Settings settings = Settings::object()) {
    RunOptions run;
    run.target = target;
    run.target_settings = std::move(settings);
    return run;
  }
  RunOptions with_data(const std::string& text) const {
    RunOptions run = run_of("mixture");
    run.data = write("data.json", text);
    return run;
  }
  static std::string complaint(const RunOptions& run, const std::filesystem::path& beside = {}) {
    try {
      build_target(run, beside);
    } catch (const UserError& e) {
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
      return e.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }
  std::filesystem::path folder_;
};

using ::testing::Test;
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(TargetInputTest, SettingsReachTheTarget) {
  EXPECT_EQ(build_target(run_of("gaussian"))->dim(), 10);
  const auto target = build_target(run_of("gaussian", {{"dim", 3}, {"ratio", 4}}));
  EXPECT_EQ(target->dim(), 3);
  EXPECT_NEAR(target->truth().covariance[8], 16, 1e-12);
  EXPECT_NE(build_target(run_of("mixture20", {{"scenario", "b"}}))->truth().mean[0],
            build_target(run_of("mixture20"))->truth().mean[0]);
}

TEST_F(TargetInputTest, EveryTargetWithoutDataBuildsByItself) {
  for (const auto& entry : target_registry()) {
    const TargetInfo info = entry.info();
    const bool complete = std::none_of(info.settings.begin(), info.settings.end(), [](const auto& setting) {
      return setting.second.find("no default") != std::string::npos;
    });
    if (!info.data.empty() || !complete) continue;
    const auto target = build_target(run_of(info.name));
    std::vector<double> x(target->dim(), 0.3), g(target->dim());
    EXPECT_TRUE(std::isfinite(target->log_density(x.data(), g.data()))) << info.name;
  }
}

TEST_F(TargetInputTest, BadSettingsAreNamed) {
  EXPECT_SAYS(complaint(run_of("gaussian", {{"dims", 3}})), "dim");
  EXPECT_SAYS(complaint(run_of("gaussian", {{"dim", 0}})), "dim");
  EXPECT_SAYS(complaint(run_of("gaussian", {{"dim", 2.5}})), "dim");
  EXPECT_SAYS(complaint(run_of("gaussian", {{"ratio", -1}})), "ratio");
  EXPECT_SAYS(complaint(run_of("mixture20", {{"scenario", "c"}})), "scenario");
  EXPECT_SAYS(complaint(run_of("gaussian", {{"dim", "three"}})), "dim");
}

TEST_F(TargetInputTest, UnknownTargetsNameTheNearOnes) {
  EXPECT_SAYS(complaint(run_of("mixture2O")), "mixture20");
  EXPECT_SAYS(complaint(run_of("gausian")), "gaussian");
  EXPECT_SAYS(complaint(run_of("zzz")), "lockstep targets");
  EXPECT_EQ(require_target("banana").info().name, "banana");
}

TEST_F(TargetInputTest, DataOfEveryDepth) {
  const auto spherical =
      build_target(with_data(R"({"means": [[0, 0], [4, 2]], "weights": [1, 3], "sds": [1, 0.5]})"));
  EXPECT_EQ(spherical->dim(), 2);
  EXPECT_NEAR(spherical->truth().mean[0], 3, 1e-12);
  EXPECT_NEAR(spherical->truth().mean[1], 1.5, 1e-12);
  const auto full = build_target(with_data(
      R"({"means": [[0, 0], [4, 2]], "weights": [1, 1], "covariances": [[[1, 0.5], [0.5, 2]], [[3, 0], [0, 1]]]})"));
  EXPECT_NEAR(full->truth().covariance[0], 2 + 4, 1e-12);
  EXPECT_NEAR(full->truth().covariance[1], 0.25 + 2, 1e-12);
  EXPECT_NEAR(full->truth().covariance[3], 1.5 + 1, 1e-12);
}

TEST_F(TargetInputTest, DataAreFoundBesideTheFileThatNamesThem) {
  RunOptions run = run_of("mixture");
  run.data = "beside.json";
  write("beside.json", R"({"means": [[1]], "weights": [1], "sds": [2]})");
  EXPECT_EQ(build_target(run, folder_)->dim(), 1);
  run.data_dir = folder_;
  EXPECT_EQ(build_target(run)->dim(), 1);
  run.data = "nowhere.json";
  EXPECT_SAYS(complaint(run), "nowhere.json");
}

TEST_F(TargetInputTest, BadDataAreOneLine) {
  EXPECT_SAYS(complaint(with_data(R"({"weights": [1], "sds": [2]})")), "means");
  EXPECT_SAYS(complaint(with_data(R"({"means": [[1, 2], [3]], "weights": [1, 1], "sds": [2, 2]})")), "means");
  EXPECT_SAYS(complaint(with_data(R"({"means": [[1], [3]], "weights": [1], "sds": [2, 2]})")), "weights");
  EXPECT_SAYS(complaint(with_data(R"({"means": [[1]], "weights": [1], "sds": ["x"]})")), "sds");
  complaint(with_data(R"({"means": [[1]], "weights": [1], "sds": [0]})"));
  complaint(with_data(R"({"means": [], "weights": [], "sds": []})"));
  complaint(with_data(R"({"means": [[1]], "weights": [-1], "sds": [1]})"));
  complaint(with_data(R"({"means": [[1]])"));
  complaint(run_of("mixture"));  // needs data
}

TEST_F(TargetInputTest, MisspeltEntriesAreRefusedOthersAllowed) {
  const std::string good = R"("means": [[1], [3]], "weights": [1, 1], "sds": [2, 2])";
  for (const char* extra : {"source", "N", "county", "x"})
    EXPECT_NO_THROW(build_target(with_data("{" + good + ", \"" + extra + "\": 1}"))) << extra;
  EXPECT_SAYS(
      complaint(with_data("{" + good + R"(, "wieghts": [1, 2]})")),
      "the data give 'wieghts', which target mixture does not read (it would have no effect). Did you "
      "mean weights?");
  EXPECT_SAYS(complaint(with_data("{" + good + R"(, "covariance": [1, 2]})")), "Did you mean covariances?");
  EXPECT_SAYS(complaint(with_data(R"({"means": [[1]], "weights": [1], "sd": [2]})")), "Did you mean sds?");
  EXPECT_SAYS(complaint(with_data(R"({"means": [[1]], "weights": [1]})")),
              "give neither of sds and covariances");
  EXPECT_SAYS(
      complaint(with_data(R"({"means": [[1]], "weight": [1], "sds": [2]})")),
      "lack 'weights' (the density is not defined without it); entry 'weight' is unknown: did you mean "
      "'weights'? Rename it.");
  EXPECT_SAYS(complaint(with_data(R"({"y": [[1]]})")), "Add it; they give y.");
  // A folder of tables may hold others.
  const auto folder = write("data.json", "").parent_path() / "tables";
  std::filesystem::create_directories(folder);
  for (const char* name : {"weights", "sds", "wieghts"})
    std::ofstream(folder / (std::string(name) + ".csv")) << "1,1\n";
  std::ofstream(folder / "means.csv") << "0,0\n4,4\n";
  RunOptions run = run_of("mixture");
  run.data = folder;
  EXPECT_EQ(build_target(run)->dim(), 2);
}

TEST_F(TargetInputTest, DataForATargetThatTakesNone) {
  RunOptions run = run_of("gaussian");
  run.data = write("unused.json", "{}");
  EXPECT_SAYS(complaint(run), "takes no data");
}

}  // namespace
}  // namespace lockstep
