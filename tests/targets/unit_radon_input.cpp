// SPDX-License-Identifier: Apache-2.0
// Settings and data of target radon: what each does, every mistake, and the published data where they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "host/options/target_input.hpp"
#include "targets/radon.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/points.hpp"
#include "tests/support/radon.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

TEST(RadonInput, SettingsSimulateHouseholds) {
  MemoryInput in;
  const Built<Radon> standard = RadonTarget::build(in);
  EXPECT_EQ(standard.density.counties, 8);
  EXPECT_EQ(standard.density.households, 60);
  EXPECT_TRUE(std::isfinite(standard.truth.log_z));
  in.numbers["seed"] = 2;
  EXPECT_NE(RadonTarget::build(in).truth.log_z, standard.truth.log_z);
  in.numbers = {{"counties", 3}, {"households", 3}};
  EXPECT_EQ(RadonTarget::build(in).density.dim, 10);
}

std::string radon_complaint(const MemoryInput& in) { return build_complaint<RadonTarget>(in); }

TEST(RadonInput, EveryMistakeIsNamed) {
  const MemoryInput good = radon_input(households(3, 12, 1));
  auto with = [&](const std::string& name, std::size_t i, double value) {
    MemoryInput in = good;
    in.arrays[name].values[i] = value;
    return in;
  };
  auto shaped = [&](const std::string& name, DataArray array) {
    MemoryInput in = good;
    in.arrays[name] = std::move(array);
    return in;
  };
  EXPECT_THAT(radon_complaint(with("county", 2, 0)), HasSubstr("entry 3 of county is 0"));
  EXPECT_THAT(radon_complaint(with("county", 2, -4)), HasSubstr("entry 3 of county is -4"));
  EXPECT_THAT(radon_complaint(with("county", 0, 1.5)), HasSubstr("entry 1 of county is 1.5"));
  EXPECT_THAT(radon_complaint(with("county", 0, 1e9)), HasSubstr("at most 10000 counties"));
  EXPECT_THAT(radon_complaint(with("county", 0, 5)),
              HasSubstr("county 4 has no household, and county 5 has"));
  EXPECT_THAT(radon_complaint(with("floor", 11, 2)), HasSubstr("entry 12 of floor is 2"));
  EXPECT_THAT(radon_complaint(with("floor", 11, 0.5)), HasSubstr("entry 12 of floor is 0.5"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* name : {"y", "county", "floor", "log_uranium"}) {
    EXPECT_THAT(radon_complaint(with(name, 1, nan)),
                HasSubstr("entry 2 of " + std::string(name) + " is no finite"));
    EXPECT_THAT(radon_complaint(shaped(name, {std::vector<double>(12, 1.0), {3, 4}})),
                HasSubstr(std::string(name) + " is no plain list"));
    if (std::string(name) != "y") {
      EXPECT_THAT(radon_complaint(shaped(name, {std::vector<double>(11, 1.0), {11}})),
                  HasSubstr(std::string(name) + " has 11 entries and y has 12"));
    }
    MemoryInput in = good;
    in.arrays.erase(name);
    EXPECT_THROW(RadonTarget::build(in), UserError) << name;
  }
  EXPECT_THAT(radon_complaint(shaped("y", {{}, {0}})), HasSubstr("y is no plain list"));
  EXPECT_THAT(radon_complaint(shaped("y", {std::vector<double>(12, 1.0), {12}})),
              HasSubstr("y is fitted exactly"));
  for (const char* key : {"counties", "households", "seed"}) {
    MemoryInput in = good;
    in.numbers[key] = 20;
    EXPECT_THAT(radon_complaint(in), HasSubstr("target." + std::string(key) + " is given beside data"));
  }
  MemoryInput in;
  in.numbers = {{"counties", 9}, {"households", 8}};
  EXPECT_THAT(radon_complaint(in), HasSubstr("target.households is below target.counties"));
}

class RadonFiles : public FolderTest {
 protected:
  std::unique_ptr<TargetInstance> target(const std::filesystem::path& data) const {
    RunOptions run;
    run.target = "radon";
    run.data = data;
    return build_target(run);
  }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
};

TEST_F(RadonFiles, JsonAndCsvAreReadAlike) {
  const auto json = write("radon.json", R"({"y": [1, 0.5, 2, 1, 0.2, 3], "county": [1, 2, 2, 1, 1, 2],
    "floor": [0, 1, 0, 0, 1, 0], "log_uranium": [0.1, -0.2, -0.2, 0.1, 0.1, -0.2], "source": "nobody reads this"})");
  const auto csv = write("radon.csv",
                         "county,floor,log_uranium,y\n1,0,0.1,1\n2,1,-0.2,0.5\n2,0,-0.2,2\n1,0,0.1,1\n"
                         "1,1,0.1,0.2\n2,0,-0.2,3\n");
  const auto from_json = target(json), from_csv = target(csv);
  EXPECT_EQ(from_json->dim(), 9);
  const Point x(9, 0.4);
  EXPECT_EQ(from_json->log_density(x.data(), nullptr), from_csv->log_density(x.data(), nullptr));
  EXPECT_TRUE(std::isfinite(from_json->truth().log_z));
  EXPECT_EQ(from_json->truth().log_z, from_csv->truth().log_z);
  try {
    target(write("short.csv", "county,floor,log_radon\n1,0,1\n"));
    ADD_FAILURE() << "no error";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("lack 'y'"));
  }
}

// --- shared data (radon-mn: 919 households in 85 counties) ----------------------------------------------

/// The published households, by the converter.
class PublishedRadon : public RadonFiles {
 protected:
  void SetUp() override {
    RadonFiles::SetUp();
    const char* root = std::getenv("LOCKSTEP_DATA");
    if (root == nullptr)
      GTEST_SKIP() << "LOCKSTEP_DATA is not set: the published households are not compared";
    const auto table = std::filesystem::path(root) / "radon-mn" / "radon.csv";
    if (!std::filesystem::exists(table)) GTEST_SKIP() << table << " does not exist";
    json_ = folder_ / "radon.json";
    const std::string command = std::string(LOCKSTEP_PYTHON) +
                                " " LOCKSTEP_SOURCE_DIR "/bench/data/radon.py '" + table.string() + "' '" +
                                json_.string() + "'";
    ASSERT_EQ(std::system(command.c_str()), 0);
    std::ifstream rows(table);
    std::string line;
    std::getline(rows, line);
    while (std::getline(rows, line)) {
      int county;
      double floor, uranium, y;
      ASSERT_EQ(std::sscanf(line.c_str(), "%d,%lf,%lf,%lf", &county, &floor, &uranium, &y), 4) << line;
      data_.county.push_back(county);
      data_.floor.push_back(floor);
      data_.log_uranium.push_back(uranium);
      data_.y.push_back(y);
    }
    data_.counties = 85;
  }
  RadonData data_;
  std::filesystem::path json_;
};

TEST_F(PublishedRadon, HasTheDensityOfEveryHousehold) {
  const auto t = target(json_);
  ASSERT_EQ(t->dim(), 92);
  ExactDraw random(1);
  Point x(92), g(92);
  for (int k = 0; k < 20; ++k) {
    if (k < 10)
      t->draw(random, x.data());
    else
      for (double& v : x) v = random.normal();
    const double f = t->log_density(x.data(), g.data());
    const RadonByHousehold expected = by_household(data_, x);
    EXPECT_NEAR(f, expected.value, 1e-9 * std::abs(expected.value));
    double largest = 0;
    for (double v : expected.gradient) largest = std::max(largest, std::abs(v));
    for (int i = 0; i < 92; ++i) EXPECT_NEAR(g[i], expected.gradient[i], 1e-9 * largest) << i;
  }
}

TEST_F(PublishedRadon, HasTheMarginalOfDenseAlgebra) {
  const RadonMarginal marginal(data_);
  DenseRadon dense(data_);
  for (const Eigen::Vector3d& x : {Eigen::Vector3d(-1.9, 0.3, -0.275), Eigen::Vector3d(-4, 2, -0.3),
                                   Eigen::Vector3d(0, -2, 0.5), Eigen::Vector3d(-9, -8, -1)}) {
    const double expected = dense.solve(x);
    EXPECT_NEAR(marginal.log_density(x), expected, 1e-9 * std::abs(expected));
  }
}

TEST_F(PublishedRadon, HasATruthThatDoesNotDependOnTheLattice) {
  const RadonMarginal marginal(data_);
  const auto coarse = integrate(marginal), fine = integrate(marginal, 0.35);
  ASSERT_TRUE(coarse && fine);
  EXPECT_NEAR(coarse->truth.log_z, fine->truth.log_z, 1e-6);
  for (int i = 0; i < 92; ++i) {
    EXPECT_NEAR(coarse->truth.mean[i], fine->truth.mean[i], 1e-6) << i;
    EXPECT_NEAR(coarse->truth.variance(i), fine->truth.variance(i), 1e-6) << i;
  }
}

TEST_F(PublishedRadon, HasTheTruthComputedApart) {
  // By DenseRadon on a lattice with steps (0.2, 0.3, 0.016) from -18 <= log s_a and -12 <= log s_b: what is
  // cut off below is exp(-16) of the mass, at 16 from the mean and times the ratio of the densities, about
  // 1e-2.
  const auto t = target(json_);
  const Truth& truth = t->truth();
  EXPECT_NEAR(truth.log_z, -1081.02169, 1e-6);
  const double mean[] = {-1.904525, 0.288122, -0.275047}, sd[] = {0.398806, 0.630027, 0.024309};
  const double scale[] = {0.158607, 1.670928, 0.759761};
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(truth.mean[2 + k], mean[k], 1e-6) << k;
    EXPECT_NEAR(std::sqrt(truth.variance(2 + k)), sd[k], 2e-6) << k;
    EXPECT_NEAR(truth.quantities[k], scale[k], 1e-6) << k;
  }
}

}  // namespace
}  // namespace lockstep::testing
