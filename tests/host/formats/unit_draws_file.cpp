// SPDX-License-Identifier: Apache-2.0
#include "host/formats/draws_file.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "host/util/files.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// 0.1, 1.1, 2.1, ... so that a wrong order or a wrong type shows.
template <class T>
std::vector<T> ramp(int size) {
  std::vector<T> values;
  for (int i = 0; i < size; ++i) values.push_back(static_cast<T>(i + 0.1));
  return values;
}

DrawsFile example() {
  DrawsFile file;
  file.chains = 2;
  file.draws = 3;
  file.dim = 4;
  file.x = ramp<float>(24);
  file.sample_stats = {{"lp", ramp<double>(6)},
                       {"n_steps", ramp<std::int64_t>(6)},
                       {"step_size", ramp<float>(6)},
                       {"diverging", std::vector<std::uint8_t>{0, 1, 0, 0, 0, 1}}};
  file.attributes = {{"inference_library_version", "1.2"}, {"resampled", "by weight"}};
  return file;
}

class DrawsFileTest : public testing::FolderTest {
 protected:
  Json read(const fs::path& file) { return Json::parse(testing::run_python("read_draws.py", file)); }
};

TEST_F(DrawsFileTest, AnIndependentReaderFindsEveryValueInItsPlace) {
  write_draws(folder_ / "draws.nc", example());
  const Json found = read(folder_ / "draws.nc");
  EXPECT_EQ(found.size(), 3u) << found.dump(1);  // the file itself, posterior, sample_stats
  const Json& posterior = found["posterior"];
  EXPECT_EQ(posterior["dims"], Json({{"chain", 2}, {"draw", 3}, {"x_dim_0", 4}}));
  EXPECT_EQ(posterior["variables"]["x"]["dims"], Json({"chain", "draw", "x_dim_0"}));
  EXPECT_EQ(posterior["variables"]["x"]["dtype"], "float32");
  EXPECT_EQ(posterior["variables"]["x"]["values"], Json(ramp<float>(24)));
  EXPECT_EQ(posterior["variables"]["draw"]["values"], Json({0, 1, 2}));
  EXPECT_EQ(posterior["variables"]["x_dim_0"]["dims"], Json::array({"x_dim_0"}));

  const Json& stats = found["sample_stats"]["variables"];
  EXPECT_EQ(stats["lp"]["dims"], Json({"chain", "draw"}));
  EXPECT_EQ(stats["lp"]["dtype"], "float64");
  EXPECT_EQ(stats["lp"]["values"], Json(ramp<double>(6)));
  EXPECT_EQ(stats["n_steps"]["values"], Json({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(stats["diverging"]["values"], Json({0, 1, 0, 0, 0, 1}));
  EXPECT_TRUE(stats["diverging"]["flag"]);
  EXPECT_FALSE(stats["n_steps"]["flag"]);

  for (const char* group : {"/", "posterior", "sample_stats"}) {
    const Json& attributes = found[group]["attributes"];
    EXPECT_EQ(attributes["inference_library"], "lockstep") << group;
    EXPECT_EQ(attributes["inference_library_version"], "1.2") << group;
    EXPECT_EQ(attributes["resampled"], "by weight") << group;
    EXPECT_FALSE(attributes.contains("created_at")) << group;
  }
}

TEST_F(DrawsFileTest, WeightedAndWarmupGroups) {
  DrawsFile file = example();
  file.pseudo_samples = 5;
  file.weighted_x = ramp<double>(2 * 3 * 5 * 4);
  std::vector<double> log_weight = ramp<double>(2 * 3 * 5);
  log_weight[7] = -std::numeric_limits<double>::infinity();
  file.log_weight = log_weight;
  file.beta = ramp<float>(2 * 3 * 5);
  file.warmup_draws = 1;
  file.warmup_x = ramp<float>(8);
  file.warmup_sample_stats = {{"lp", ramp<double>(2)}};
  write_draws(folder_ / "draws.nc", file);
  const Json found = read(folder_ / "draws.nc");
  const Json& weighted = found["weighted"];
  EXPECT_EQ(weighted["dims"], Json({{"chain", 2}, {"draw", 3}, {"pseudo_sample", 5}, {"x_dim_0", 4}}));
  EXPECT_EQ(weighted["variables"]["x"]["dims"], Json({"chain", "draw", "pseudo_sample", "x_dim_0"}));
  EXPECT_EQ(weighted["variables"]["x"]["values"], Json(ramp<double>(120)));
  EXPECT_EQ(weighted["variables"]["beta"]["dims"], Json({"chain", "draw", "pseudo_sample"}));
  EXPECT_EQ(weighted["variables"]["beta"]["values"], Json(ramp<float>(30)));
  EXPECT_EQ(weighted["variables"]["log_weight"]["values"][7], "-inf");
  EXPECT_EQ(weighted["variables"]["log_weight"]["values"][8], log_weight[8]);
  EXPECT_EQ(found["warmup_posterior"]["dims"], Json({{"chain", 2}, {"draw", 1}, {"x_dim_0", 4}}));
  EXPECT_EQ(found["warmup_posterior"]["variables"]["x"]["values"], Json(ramp<float>(8)));
  EXPECT_EQ(found["warmup_sample_stats"]["variables"]["lp"]["values"], Json(ramp<double>(2)));
}

TEST_F(DrawsFileTest, NamesAndQuantities) {
  DrawsFile file = example();
  file.names = {"mu", "log_tau", "t[0]", "t[1]"};
  file.quantities = {{"tau", 0}, {"theta", 2}};
  file.quantity_values = [](const DrawsPart& part, float* out) {
    for (int c = 0; c < part.chains; ++c)
      for (int t = 0; t < part.draws; ++t) {
        const float draw = float((part.chain + c) * 3 + part.draw + t);
        for (const float value : {draw + 0.1F, 2 * draw + 0.1F, 2 * draw + 1.1F}) *out++ = value;
      }
  };
  file.pseudo_samples = 1;
  file.weighted_x = ramp<float>(24);
  file.log_weight = ramp<double>(6);
  file.warmup_draws = 1;
  file.warmup_x = ramp<float>(8);
  file.warmup_quantity_values = file.quantity_values;
  write_draws(folder_ / "draws.nc", file);
  const Json found = read(folder_ / "draws.nc");
  for (const char* group : {"posterior", "weighted"})
    EXPECT_EQ(found[group]["variables"]["x_dim_0"]["values"], Json({"mu", "log_tau", "t[0]", "t[1]"}))
        << group;
  const Json& variables = found["posterior"]["variables"];
  EXPECT_EQ(variables["x"]["dims"], Json({"chain", "draw", "x_dim_0"}));
  EXPECT_EQ(variables["x"]["values"], Json(ramp<float>(24)));
  EXPECT_EQ(variables["tau"]["dims"], Json({"chain", "draw"}));
  EXPECT_EQ(variables["tau"]["values"], Json(ramp<float>(6)));
  EXPECT_EQ(variables["theta"]["dims"], Json({"chain", "draw", "theta_dim_0"}));
  EXPECT_EQ(variables["theta"]["values"], Json(ramp<float>(12)));
  EXPECT_EQ(variables["theta_dim_0"]["values"], Json({0, 1}));
  EXPECT_EQ(found["warmup_posterior"]["variables"]["tau"]["values"], Json({0.1F, 3.1F}));
  EXPECT_EQ(found["warmup_posterior"]["variables"]["theta"]["dims"], Json({"chain", "draw", "theta_dim_0"}));
  file.names.pop_back();
  EXPECT_THROW(write_draws(folder_ / "draws.nc", file), std::logic_error);
}

TEST_F(DrawsFileTest, ValuesAreCompressed) {
  DrawsFile file = example();
  file.draws = 15000;
  file.x = std::vector<float>(2 * 15000 * 4, 1.5f);
  file.sample_stats = {{"step_size", std::vector<double>(2 * 15000, 0.1)}};
  write_draws(folder_ / "draws.nc", file);
  // 480 kB and 240 kB of equal numbers.
  EXPECT_LT(fs::file_size(folder_ / "draws.nc"), 180000u);
  EXPECT_EQ(read(folder_ / "draws.nc")["posterior"]["variables"]["x"]["values"].size(), 120000u);
}

TEST_F(DrawsFileTest, AnEarlyInterruptLeavesAValidFile) {
  DrawsFile file = example();
  file.draws = 0;
  file.x = std::vector<float>{};
  file.sample_stats = {{"lp", std::vector<double>{}}};
  write_draws(folder_ / "draws.nc", file);
  const Json found = read(folder_ / "draws.nc");
  EXPECT_EQ(found["posterior"]["dims"], Json({{"chain", 2}, {"draw", 0}, {"x_dim_0", 4}}));
  EXPECT_TRUE(found["posterior"]["variables"]["x"]["values"].empty());
}

TEST_F(DrawsFileTest, SameDrawsGiveTheSameBytesAtAnotherTime) {
  write_draws(folder_ / "a.nc", example());
  std::this_thread::sleep_for(
      std::chrono::milliseconds(1100));  // time stamps inside the format count seconds
  write_draws(folder_ / "b.nc", example());
  EXPECT_TRUE(read_text(folder_ / "a.nc") == read_text(folder_ / "b.nc"));
}

// More than a part of them, by chains and by draws.
TEST_F(DrawsFileTest, ValuesThatAreMadeGiveTheSameBytes) {
  DrawsFile whole;
  whole.chains = 17;
  whole.draws = 150000;
  whole.dim = 2;
  const auto number = [](int chain, int draw, int i) { return float((chain * 150000 + draw) * 2 + i); };
  std::vector<float> x;
  std::vector<std::uint8_t> flags;
  for (int c = 0; c < 17; ++c)
    for (int t = 0; t < 150000; ++t) {
      x.insert(x.end(), {number(c, t, 0), number(c, t, 1)});
      flags.push_back((c + t) % 7 == 0);
    }
  whole.x = std::move(x);
  whole.sample_stats["diverging"] = std::move(flags);
  DrawsFile made = whole;
  int parts = 0;
  made.x = DrawsSource<float>([&](const DrawsPart& part, float* out) {
    ++parts;
    for (int c = 0; c < part.chains; ++c)
      for (int t = 0; t < part.draws; ++t)
        for (int i = 0; i < 2; ++i) *out++ = number(part.chain + c, part.draw + t, i);
  });
  made.sample_stats["diverging"] = DrawsSource<std::uint8_t>([](const DrawsPart& part, std::uint8_t* out) {
    for (int c = 0; c < part.chains; ++c)
      for (int t = 0; t < part.draws; ++t) *out++ = (part.chain + c + part.draw + t) % 7 == 0;
  });
  write_draws(folder_ / "whole.nc", whole);
  write_draws(folder_ / "made.nc", made);
  EXPECT_GT(parts, 2);
  EXPECT_TRUE(read_text(folder_ / "made.nc") == read_text(folder_ / "whole.nc"));
}

TEST_F(DrawsFileTest, WrongSizesAreProgrammerErrorsAndWriteNothing) {
  DrawsFile file = example();
  file.x = ramp<float>(23);
  EXPECT_THROW(write_draws(folder_ / "draws.nc", file), std::logic_error);
  file = example();
  file.sample_stats["lp"] = ramp<double>(7);
  EXPECT_THROW(write_draws(folder_ / "draws.nc", file), std::logic_error);
  file = example();
  file.pseudo_samples = 2;
  EXPECT_THROW(write_draws(folder_ / "draws.nc", file), std::logic_error);
  file = example();
  file.chains = 0;
  EXPECT_THROW(write_draws(folder_ / "draws.nc", file), std::logic_error);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(DrawsFileTest, AMissingFolderIsNamed) {
  const fs::path target = folder_ / "missing" / "draws.nc";
  try {
    write_draws(target, example());
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(target.string()), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lockstep
