// SPDX-License-Identifier: Apache-2.0
// Descents on a residual energy: the energy and its gradient are those of the formula; a search with them finds what it
// found, and counts what they cost.
#include "host/modes/mode_descents.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "host/modes/mode_search.hpp"
#include "kernels/residual_lbfgs.hpp"
#include "targets/mixture.hpp"
#include "targets/mixture20.hpp"
#include "tests/support/known_mixtures.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep {
namespace {
using testing::KnownMixture;

struct PlainRows {
  std::vector<double>* values;
  int first = 0;
  double operator[](int k) const { return (*values)[std::size_t(first + k)]; }
  void set(int k, double v) const { (*values)[std::size_t(first + k)] = v; }
  PlainRows from(int k) const { return {values, first + k}; }
};

/// A point of a normal density in three dimensions, as ResidualEnergy finds it.
struct AtPoint {
  std::vector<double> point, of_pi, own = std::vector<double>(6), list, level;
  std::vector<double> settings;
  struct Rows {
    SharedLists<double> shared;
    PlainRows x, g, fields;
    const double* settings;
  };
  struct Model {
    int rows() const { return 3; }
  };
  double log_pi(const Eigen::Vector3d& x) const {
    return 5 - 0.7 * (x - Eigen::Vector3d(1, 0, -1)).squaredNorm();
  }

  /// The energy by the kernel; its gradient.
  double value(const Eigen::Vector3d& x, Eigen::Vector3d& gradient) {
    const Eigen::Vector3d g = -1.4 * (x - Eigen::Vector3d(1, 0, -1));
    point.assign(x.begin(), x.end());
    of_pi.assign(g.begin(), g.end());
    std::vector<double> all = list;
    all.insert(all.end(), level.begin(), level.end());
    const std::int32_t places[] = {0, std::int32_t(list.size()), std::int32_t(list.size()), 1};
    const Rows w{{all.data(), places, 1}, {&point}, {&of_pi}, {&own}, settings.data()};
    const double v = ResidualEnergy::value<double>(Model(), log_pi(x), w, 0);
    for (int j = 0; j < 3; ++j) gradient[j] = ResidualEnergy::slope<double>(w, 0, j);
    return v;
  }
};

TEST(ResidualEnergyTest, IsTheFormulaAndSoIsItsGradient) {
  const KnownMixture q(3, 0);
  AtPoint at;
  at.list = q.list(2.5);
  at.level = {-0.3};
  for (const double temperature : {1.0, 1.05, 1.7})
    for (const double difference : {0.0, 1.0}) {
      at.settings = {1, temperature, difference};
      for (int t = 0; t < 20; ++t) {
        const Eigen::Vector3d x(2 * std::sin(t), 1.5 * std::cos(3 * t), std::sin(5 * t));
        const double pi = std::exp(at.log_pi(x) - 2.5), known = std::pow(q.density(x), 1 / temperature),
                     c = std::exp(-0.3);
        if (difference > 0 && pi - known + c <= 0) continue;  // c is chosen so that there is no such point
        Eigen::Vector3d gradient, ignored;
        const double expected = difference > 0 ? -std::log(pi - known + c) + std::log(c)
                                               : -std::log(pi) + std::log(1 + known / pi);
        EXPECT_NEAR(at.value(x, gradient), expected, 1e-11 * (1 + std::abs(expected)));
        for (int j = 0; j < 3; ++j) {
          const double h = 1e-5;
          Eigen::Vector3d more = x, less = x;
          more[j] += h, less[j] -= h;
          EXPECT_NEAR((at.value(more, ignored) - at.value(less, ignored)) / (2 * h), gradient[j],
                      1e-6 * (1 + gradient.norm()))
              << temperature << " " << difference;
        }
      }
    }
}

struct Twenty {
  explicit Twenty(testing::MemoryInput in = {}) : target(testing::listed_target<Mixture20Target>(in)) {
    context.target = target.get();
    context.key = make_stream_key(5, "residual");
  }
  std::unique_ptr<TargetInstance> target;
  RunContext context;
};

/// Of all modes but the first: ends of descents from near it, from near another and from far away, and how far each
/// descent's end is from that place.
struct Ends {
  double to_unknown, from_known, from_afar;
};
Ends ends_of(const RunContext& context, const ModeLibrary& all, ResidualEnergyOf form) {
  const int d = all.dim();
  ModeLibrary known(d);
  for (int k = 1; k < all.size(); ++k) known.add(all[k]);
  const Eigen::Map<const Eigen::VectorXd> unknown(all[0].place.data(), d), of_known(all[1].place.data(), d);
  PointEngine::Rows from(d, 3);
  from.col(0) = unknown.array() + 0.05;
  from.col(1) = of_known.array() + 0.02;
  from.col(2) = Eigen::VectorXd::Constant(d, 300);
  SearchPlan plan;
  plan.residual = form;
  ResidualDescents descents(context, 0, 4, 0.01, plan);
  descents.set_known(known);
  const DescentEnds ends = descents.run(from);
  EXPECT_FALSE(ends.rested.empty());
  EXPECT_GT(descents.evaluations(), 6);
  return {(ends.place.col(0) - unknown).norm(), (ends.place.col(1) - of_known).norm(),
          (ends.place.col(2) - from.col(2)).norm()};
}

/// The difference has hills where modes are known, and is level far from all of them; in logs it is neither.
TEST(ResidualDescents, LeaveWhatIsKnownAndAreStillWhereItIsLevel) {
  testing::MemoryInput in;
  in.arrays["means"] = {{0, 0, 0, 12, 0, 0}, {2, 3}};
  in.arrays["weights"] = {{0.3, 0.7}, {2}};
  in.arrays["sds"] = {{0.8, 1}, {2}};
  const auto target = testing::listed_target<MixtureTarget>(in);
  RunContext context;
  context.target = target.get();
  context.key = make_stream_key(5, "residual");
  const ModeLibrary all = modes_at(context, 0, {Eigen::Vector3d(0, 0, 0), Eigen::Vector3d(12, 0, 0)}).library;
  ASSERT_EQ(all.size(), 2);
  const Ends difference = ends_of(context, all, ResidualEnergyOf::difference),
             log = ends_of(context, all, ResidualEnergyOf::log);
  EXPECT_LT(difference.to_unknown, 0.05);
  EXPECT_LT(log.to_unknown, 0.05);
  EXPECT_GT(difference.from_known, 0.5);
  EXPECT_LT(log.from_known, 0.02);
  EXPECT_EQ(difference.from_afar, 0);
  EXPECT_GT(log.from_afar, 1);
}

/// q - q^(1/T) rises with q above T^(-T / (T - 1)), .36 for 1.05: in units in which modes are so narrow the difference has no
/// hills either.
TEST(ResidualDescents, HillsDependOnTheUnits) {
  Twenty c;
  const ModeLibrary all = search_modes(c.context, 0, {.gradients = 2e4}).library;
  ASSERT_EQ(all.size(), 20);
  const Ends ends = ends_of(c.context, all, ResidualEnergyOf::difference);
  EXPECT_LT(ends.to_unknown, 0.02);
  EXPECT_LT(ends.from_known, 0.02);
}

TEST(ResidualSearch, FindsModesCountsItsGradientsAndTheDefaultStays) {
  Twenty c;
  SearchPlan plan{.gradients = 2e4};
  const SearchResult plain = search_modes(c.context, 0, plan);
  for (const ResidualEnergyOf form : {ResidualEnergyOf::log, ResidualEnergyOf::difference}) {
    plan.residual = form;
    plan.first_starts = 4;
    const SearchResult r = search_modes(c.context, 0, plan), again = search_modes(c.context, 0, plan);
    EXPECT_EQ(r.library.size(), 20);
    EXPECT_EQ(r.gradients, again.gradients);
    EXPECT_LT(r.gradients, 1.5 * plain.gradients + 20 * 256);
    EXPECT_GE(r.starts, r.ended);
    EXPECT_GT(r.gradients, r.starts);
  }
  plan = {.gradients = 2e4};
  const SearchResult same = search_modes(c.context, 0, plan);
  EXPECT_EQ(same.gradients, plain.gradients);
}

// bench/wormhole_unknown.py at a small size.
TEST(ResidualSearch, TheStudyOfUnknownModesRuns) {
  const auto folder = std::filesystem::temp_directory_path() / "lockstep_unknown_modes";
  std::filesystem::create_directories(folder);
  const std::string script =
                        std::string(LOCKSTEP_PYTHON) + " " LOCKSTEP_SOURCE_DIR "/bench/wormhole_unknown.py ",
                    csv = (folder / "r.csv").string(), out = (folder / "table").string();
  ASSERT_EQ(std::system((script + "run " LOCKSTEP_BINARY_DIR "/lockstep " + csv +
                         " dims=3 modes=3 seeds=2 gradients=1,3000")
                            .c_str()),
            0);
  ASSERT_EQ(std::system((script + "table " + csv + " > " + out).c_str()), 0);
  std::ifstream file(out);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("| 3 | none | 1 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| 3 | difference | 3000 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| 3.0 +- 0.0 | 2 of 2 |"), std::string::npos) << text;
  EXPECT_NE(std::system((script + "run lockstep " + csv + " dim=3 2> /dev/null").c_str()), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep
