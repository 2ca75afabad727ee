// SPDX-License-Identifier: Apache-2.0
// The draws behind a study's picture are those behind its results.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "host/studies/config_plot.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::contents;

/// Labels that differ in a blank and an underscore, settings that share a target and not its density,
/// replicates that adapt together, and a budget of gradients.
constexpr const char* kStudy = R"(name = "small"
replicates = 3
seed = 5
warmup = 60
chains = 2
iterations = 150
[plot]
kind = "scatter"
[[setting]]
label = "one two"
target = "gaussian"
target_settings = { dim = 2 }
sampler = "hmc"
adaptation = "pooled"
[[setting]]
label = "one_two"
target = "gaussian"
target_settings = { dim = 2, ratio = 30 }
sampler = "hmc"
gradients = 2000
)";

class StudyPictures : public testing::ProgramTest {
 protected:
  /// mean[axis] of replicate 0 in results.csv.
  double in_results(const std::string& label, int axis) {
    std::istringstream lines(contents(folder_ / "out/results.csv"));
    const std::string start = label + ",0,mean[" + std::to_string(axis) + "],";
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(start)) return std::stod(line.substr(start.size()));
    ADD_FAILURE() << "no row " << start;
    return 0;
  }
};

TEST_F(StudyPictures, HaveDrawsWhereTheyShowSome) {
  for (const char* kind : {"scatter", "trace", "density", "beta", "places"}) {
    EXPECT_TRUE(wants_draws({{"kind", kind}})) << kind;
    EXPECT_TRUE(wants_draws({{"panels", {"rmse", kind}}})) << kind;
  }
  EXPECT_FALSE(wants_draws(Settings::object()));
  EXPECT_FALSE(wants_draws({{"kind", "sandwich"}}));
  EXPECT_FALSE(wants_draws({{"panels", {"rmse", "cost"}}}));
}

TEST_F(StudyPictures, ShowTheChainsBehindTheResults) {
  if (!can_draw()) GTEST_SKIP() << "pictures need matplotlib and netCDF4";
  put("study.toml", kStudy);
  const auto result = run({"study", "study.toml", "--out", "out", "--quiet", "--threads", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(fs::exists(folder_ / "out/small.png"));
  for (const auto& [label, key] : {std::pair{"one two", "one_two"}, {"one_two", "one%5Ftwo"}}) {
    EXPECT_TRUE(fs::exists(folder_ / "out/contours" / (std::string(key) + ".json"))) << key;
    const std::string text =
        testing::run_python("read_draws.py", folder_ / "out/draws" / (std::string(key) + ".nc"));
    ASSERT_NE(text, "") << key;
    const auto x = nlohmann::json::parse(text)["posterior"]["variables"]["x"]["values"];
    for (int axis : {0, 1}) {
      double sum = 0;
      for (std::size_t i = axis; i < x.size(); i += 2) sum += x[i].get<double>();
      EXPECT_NEAR(in_results(label, axis), sum / (double(x.size()) / 2), 1e-5) << label;
    }
  }
}

/// Three axes have no grid of the density: what stands behind the draws are exact ones.
TEST_F(StudyPictures, ProjectionsStandBeforeExactDraws) {
  if (!can_draw()) GTEST_SKIP() << "pictures need matplotlib and netCDF4";
  put("study.toml", R"(name = "small"
replicates = 2
warmup = 60
chains = 1
iterations = 150
[plot]
kind = "scatter"
dims = [1, 2]
[[setting]]
label = "one"
target = "gaussian"
target_settings = { dim = 3 }
sampler = "hmc"
)");
  const auto result = run({"study", "study.toml", "--out", "out", "--quiet", "--threads", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(fs::exists(folder_ / "out/small.png"));
  EXPECT_FALSE(fs::exists(folder_ / "out/contours/one.json"));
  const std::string text = testing::run_python("read_draws.py", folder_ / "out/contours/one.nc");
  ASSERT_NE(text, "");
  const auto dims = nlohmann::json::parse(text)["posterior"]["dims"];
  EXPECT_EQ(dims["chain"], 1);
  EXPECT_EQ(dims["x_dim_0"], 3);
}

/// Many chains: four of them are kept for the picture, and the file says of how many.
TEST_F(StudyPictures, ShowAFewOfManyChains) {
  if (!can_draw()) GTEST_SKIP() << "pictures need matplotlib and netCDF4";
  put("study.toml", R"(name = "many"
replicates = 2
warmup = 60
chains = 64
iterations = 3000
[plot]
panels = ["scatter", "trace", "density"]
[[setting]]
label = "one"
target = "gaussian"
target_settings = { dim = 2 }
sampler = "hmc"
)");
  const auto result = run({"study", "study.toml", "--out", "out", "--quiet", "--threads", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(fs::exists(folder_ / "out/many.png"));
  const std::string text = testing::run_python("read_draws.py", folder_ / "out/draws/one.nc");
  ASSERT_NE(text, "");
  const auto file = nlohmann::json::parse(text);
  EXPECT_EQ(file["posterior"]["dims"], (nlohmann::json{{"chain", 4}, {"draw", 2500}, {"x_dim_0", 2}}));
  EXPECT_EQ(file["posterior"]["attributes"]["chains_of_replicate"], 64);
  // Four chains, not one four times.
  const auto& x = file["posterior"]["variables"]["x"]["values"];
  for (int chain : {1, 2, 3}) EXPECT_NE(x[0], x[chain * 2500 * 2]) << chain;
}

}  // namespace
}  // namespace lockstep
