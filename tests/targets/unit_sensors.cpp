// SPDX-License-Identifier: Apache-2.0
// Target sensors: its density held to the model pair by pair, also where sensors nearly coincide; published networks.
#include "targets/sensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "host/formats/data.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/points.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

/// log density and gradient, each pair by itself.
double by_pair(const MemoryInput& in, const Point& x, Point& g, double range, double sd, double prior) {
  const int n = int(in.arrays.at("sensors").values[0]);
  const auto &anchor = in.arrays.at("anchors").values, &rows = in.arrays.at("distances").values;
  std::map<std::pair<int, int>, double> seen;
  for (std::size_t r = 0; r < rows.size(); r += 3)
    seen[std::minmax(int(rows[r]), int(rows[r + 1]))] = rows[r + 2];
  double value = 0;
  g.assign(x.size(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    value += -0.5 * std::log(2 * kPi) - std::log(prior) - 0.5 * x[i] * x[i] / prior / prior;
    g[i] -= x[i] / prior / prior;
  }
  auto at = [&](int i, int c) { return i < n ? x[2 * i + c] : anchor[2 * (i - n) + c]; };
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n + int(anchor.size() / 2); ++j) {
      const double dx = at(i, 0) - at(j, 0), dy = at(i, 1) - at(j, 1), d = std::hypot(dx, dy);
      const double u = d * d / (2 * range * range);
      double slope;  // of the term, in d
      if (const auto y = seen.find({i + 1, j + 1}); y != seen.end()) {
        const double z = (y->second - d) / sd;
        value += -u - 0.5 * std::log(2 * kPi) - std::log(sd) - 0.5 * z * z;
        slope = z / sd - d / range / range;
      } else {
        value += std::log(-std::expm1(-u));
        slope = d / range / range / std::expm1(u);
      }
      const double pull[] = {slope * dx / d, slope * dy / d};
      for (int c = 0; c < 2; ++c) {
        g[2 * i + c] += pull[c];
        if (j < n) g[2 * j + c] -= pull[c];
      }
    }
  return value;
}

TEST(Sensors, EqualsTheModelPairByPair) {
  MemoryInput in = three_sensors();
  in.numbers = {{"R", 0.3}, {"sd", 0.02}, {"prior_sd", 10}};
  const SubjectOf<SensorsTarget> s(in);
  ExactDraw random(3);
  for (double scale : {0.01, 0.3, 1.0, 3.0})
    for (int k = 0; k < 50; ++k) {
      Point x(6), g, expected;
      for (double& v : x) v = 0.5 + scale * random.normal();
      const double f = s.log_density(x, &g), value = by_pair(in, x, expected, 0.3, 0.02, 10);
      ASSERT_NEAR(f, value, 1e-14 * value_condition(f, g, x));
      const Point condition = gradient_condition(s, x);
      for (int i = 0; i < 6; ++i) ASSERT_NEAR(g[i], expected[i], 1e-14 * condition[i]) << i;
      EXPECT_EQ(f, s.value(x));
    }
}

/// A pair that is not seen, ever closer: log(d^2 / (2 R^2)) with slope 2 / d, to rounding of the positions; one place
/// for both is a density of next to nothing, finite in double and no obstacle to the other coordinates.
TEST(Sensors, HasTheRightSlopeWhereSensorsNearlyCoincide) {
  MemoryInput in = three_sensors();
  in.arrays["distances"] = {{1, 4, 0.5}, {1, 3}};  // sensors 2 and 3 see nobody
  in.numbers = {{"R", 0.3}, {"sd", 0.02}};
  const SubjectOf<SensorsTarget> s(in);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  double before = 0;
  for (double d : {1e-1, 1e-2, 1e-4, 1e-8, 1e-12, 1e-100}) {
    const Point x = {0.7, 0.2, 0, 0, d, 0};
    Point g, expected;
    const double f = s.log_density(x, &g), value = by_pair(in, x, expected, 0.3, 0.02, 10);
    EXPECT_NEAR(f, value, 1e-14 * (1 + std::abs(f)));
    EXPECT_NEAR(g[4] / expected[4], 1, 1e-14) << d;
    EXPECT_NEAR(g[2] / expected[2], 1, 1e-14) << d;
    EXPECT_LT(f, before);
    before = f;
  }
  Point g;
  const double together = s.log_density({0.7, 0.2, 0, 0, 0, 0}, &g);
  EXPECT_LT(together, before);
  EXPECT_TRUE(std::isfinite(together));
  for (double v : g) EXPECT_TRUE(std::isfinite(v));
  EXPECT_TRUE(std::isnan(s.value({0.7, 0.2, 0, 0, nan, 0})));
}

TEST(Sensors, SimulatedNetworksFollowTheModel) {
  // Shares of pairs seen, and residuals at the true positions, are not known from outside: the count is.
  MemoryInput in;
  in.numbers = {{"sensors", 150}, {"anchors", 50}, {"R", 0.3}};
  const auto built = SensorsTarget::build(in);
  const double pairs = built.facts[0].second, seen = built.facts[1].second;
  EXPECT_EQ(pairs, 150 * 149 / 2 + 150 * 50);
  EXPECT_EQ(built.names[3], "y[1]");
  // E exp(-d^2 / 0.18) of two uniform points in the square: (integral of 2 (1 - t) exp(-t^2 / 0.18) dt)^2.
  double one = 0;
  for (int k = 0; k < 100000; ++k) {
    const double t = (k + 0.5) / 100000;
    one += 2 * (1 - t) * std::exp(-t * t / 0.18) / 100000;
  }
  // Pairs share sensors: the share's sd is near that of 200 independent ones, 0.35 / sqrt(200).
  EXPECT_NEAR(seen / pairs, one * one, 4 * 0.025);
}

TEST(Sensors, TheStandardNetworkSeesAsMuchAsThatOfAhnEtAl) {
  MemoryInput in;
  const auto built = SensorsTarget::build(in);
  EXPECT_EQ(built.density.dim, 16);
  EXPECT_EQ(built.facts[0].second, 52);
  EXPECT_EQ(built.facts[1].second, 18);
}

TEST(SensorsInput, EveryMistakeIsNamed) {
  auto complaint = [](const std::string& name, DataArray array) {
    MemoryInput in = three_sensors();
    in.arrays[name] = std::move(array);
    return build_complaint<SensorsTarget>(in);
  };
  EXPECT_THAT(complaint("sensors", {{2.5}, {1}}), HasSubstr("sensors is 2.5"));
  EXPECT_THAT(complaint("sensors", {{1, 2}, {2}}), HasSubstr("no single number"));
  EXPECT_THAT(complaint("anchors", {{1, 2, 3}, {3}}), HasSubstr("anchors is no table of 2 columns"));
  EXPECT_THAT(complaint("distances", {{1, 2}, {1, 2}}), HasSubstr("no table of 3 columns"));
  EXPECT_THAT(complaint("distances", {{1, 6, 0.5}, {1, 3}}), HasSubstr("row 1 of distances: j is 6"));
  EXPECT_THAT(complaint("distances", {{2, 2, 0.5}, {1, 3}}), HasSubstr("i equals j"));
  EXPECT_THAT(complaint("distances", {{4, 5, 0.5}, {1, 3}}), HasSubstr("both are anchors"));
  EXPECT_THAT(complaint("distances", {{1, 2, -0.5}, {1, 3}}), HasSubstr("negative"));
  EXPECT_THAT(complaint("distances", {{1, 2, 0.5, 2, 1, 0.6}, {2, 3}}),
              HasSubstr("row 2 of distances: the pair 2, 1 came before"));
  MemoryInput in = three_sensors();
  in.numbers["anchors"] = 3;
  EXPECT_THAT(build_complaint<SensorsTarget>(in), HasSubstr("beside data"));
  in.numbers = {{"sd", 0}};
  EXPECT_THROW(SensorsTarget::build(in), UserError);
}

// --- shared data (sensor-network: two published networks) -------------------------------------------------

class PublishedNetworks : public FolderTest {
 protected:
  /// The network by the converter, and the true positions of its unknown sensors.
  void convert(const std::string& name) {
    const char* root = std::getenv("LOCKSTEP_DATA");
    if (root == nullptr) GTEST_SKIP() << "LOCKSTEP_DATA is not set: the published networks are not compared";
    const auto folder = std::filesystem::path(root) / "sensor-network";
    const auto sensors = folder / (name + "_sensors.csv"), json = folder_ / "network.json";
    if (!std::filesystem::exists(sensors)) GTEST_SKIP() << sensors << " does not exist";
    const std::string command =
        std::string(LOCKSTEP_PYTHON) + " " LOCKSTEP_SOURCE_DIR "/bench/data/sensors.py '" + sensors.string() +
        "' '" + (folder / (name + "_distances.csv")).string() + "' '" + json.string() + "'";
    ASSERT_EQ(std::system(command.c_str()), 0);
    const DataReader reader(load_data(json), "network");
    in_.arrays["sensors"] = {{reader.number("sensors")}, {1}};
    for (const char* key : {"anchors", "distances"}) {
      const Eigen::MatrixXd m = reader.matrix(key);
      in_.arrays[key] = {{}, {int(m.rows()), int(m.cols())}};
      for (Eigen::Index i = 0; i < m.rows(); ++i)
        for (Eigen::Index j = 0; j < m.cols(); ++j) in_.arrays[key].values.push_back(m(i, j));
    }
    std::ifstream rows(sensors);
    for (std::string line; std::getline(rows, line);) {
      double x, y;
      if (std::sscanf(line.c_str(), "%*d,False,%lf,%lf", &x, &y) == 2) truth_.insert(truth_.end(), {x, y});
    }
  }
  MemoryInput in_;
  Point truth_;
};

TEST_F(PublishedNetworks, OfEightSensorsHasItsPairsAndResiduals) {
  convert("ahn2013");
  if (IsSkipped()) return;
  const SubjectOf<SensorsTarget> s(in_);
  ASSERT_EQ(s.dim(), 16);
  EXPECT_EQ(s.target->facts()[0].second, 52);
  EXPECT_EQ(s.target->facts()[1].second, 18);
  Point g;
  EXPECT_NEAR(s.value(truth_), by_pair(in_, truth_, g, 0.3, 0.02, 10), 1e-10);
  // Standardised residuals at the true positions have an rms of 0.87: a density with sd t times as wide differs by
  // 18 log t - 18 rms^2 (1 - t^-2) / 2.
  MemoryInput wide = in_;
  wide.numbers["sd"] = 0.04;
  const double gain = s.value(truth_) - SubjectOf<SensorsTarget>(wide).value(truth_);
  EXPECT_NEAR(std::sqrt((18 * std::log(2.0) - gain) / (18 * 0.375)), 0.87, 0.005);
}

TEST_F(PublishedNetworks, OfFourSensorsHasItsPairs) {
  convert("tak2018");
  if (IsSkipped()) return;
  const SubjectOf<SensorsTarget> s(in_);
  ASSERT_EQ(s.dim(), 8);
  EXPECT_EQ(s.target->facts()[0].second, 14);
  EXPECT_EQ(s.target->facts()[1].second, 7);
  Point g;
  EXPECT_NEAR(s.value(truth_), by_pair(in_, truth_, g, 0.3, 0.02, 10), 1e-10);
}

}  // namespace
}  // namespace lockstep::testing
