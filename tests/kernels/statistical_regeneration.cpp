// SPDX-License-Identifier: Apache-2.0
// Draws of mixtures of known modes leave the target where it is, whole or cut off at ellipsoids; the states with which
// chains begin anew are those of Q whatever was before; tours are independent, and so are errors right.
#include "kernels/regeneration.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "host/estimators/tours.hpp"
#include "kernels/darting.hpp"
#include "kernels/mode_mixture.hpp"
#include "tests/support/invariance.hpp"
#include "tests/support/known_mixtures.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

double limit() { return family_quantile(1e-4, 1000); }

template <class Transition>
Moved moved_alone(const InvarianceCase& c, std::uint64_t seed) {
  return moved<Transition, OpaquePlain, OpaquePath>(c, seed);
}

template <class Transition>
struct AlwaysTaken : Transition {
  template <class Model, class P, class W>
  LOCKSTEP_FN static void end(const Model&, P& r, const W&) {
    using E = std::remove_cvref_t<decltype(r.log_ratio)>;
    r.log_ratio = E(scalar_t<E>(1e30));
  }
};
/// Without the ratio of the densities of proposals, and with that of whole components in place of ellipsoids.
template <class Transition>
struct WithoutRatio : Transition {
  template <class Model, class P, class W>
  LOCKSTEP_FN static void end(const Model&, P& r, const W&) {
    using E = std::remove_cvref_t<decltype(r.log_ratio)>;
    r.log_ratio = select(is_finite(r.log_ratio), E(0), r.log_ratio);
  }
};
struct WholeDensities : Darting {
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    const V count = components<V>(model, w), before = log_mixture<V>(w, model.dim(), count, V(kAll), w.x);
    auto r = Darting::begin<L, E>(model, spec, draw, w);
    const V after = log_mixture<V>(w, model.dim(), count, V(kAll), w.x);
    r.log_ratio = select(is_finite(r.log_ratio), cast<E>(before - after), r.log_ratio);
    return r;
  }
};

template <class Transition>
void expect_found(const InvarianceCase& c, std::uint64_t seed, const char* what) {
  EXPECT_GT(judge(moved_alone<Transition>(c, seed)).worst, limit())
      << what << ", model " << int(c.model.kind);
}

TEST(Regeneration, ItAndDartsLeaveTheTargetInvariant) {
  std::uint64_t seed = 1101;
  for (const ModelKind kind : {ModelKind::plain, ModelKind::path}) {
    InvarianceCase c;
    c.model.kind = kind;
    const auto expect = [&](const char* name, const Moved& m) {
      const Verdict v = judge(m);
      EXPECT_LT(v.worst, limit()) << name << ", model " << int(kind) << ": " << v.where;
      EXPECT_GT(m.acceptance, 0.2) << name;
      EXPECT_LT(m.acceptance, 0.99) << name;
      EXPECT_GT(m.jump, 0.02) << name;
      EXPECT_GT(paired(m.before, m.stretched()).worst, limit()) << name << ": no power";
    };
    for (const int iterations : {1, 3}) {
      c.iterations = iterations;
      expect("regeneration", moved_alone<Library<OfKnownModes<Regeneration>>>(c, seed++));
      expect("darting", moved_alone<Library<OfKnownModes<Darting>>>(c, seed++));
    }
    expect("after trajectories",
           moved_alone<Sequence<Library<Hmc>, Library<OfKnownModes<Regeneration>>>>(c, seed++));
    expect("darts after trajectories",
           moved_alone<Sequence<Library<Hmc>, Library<OfKnownModes<Darting>>>>(c, seed++));
    expect_found<OfKnownModes<AlwaysTaken<Regeneration>>>(c, seed++, "always taken");
    expect_found<OfKnownModes<WithoutRatio<Regeneration>>>(c, seed++, "no ratio");
    expect_found<OfKnownModes<WithoutRatio<Darting>>>(c, seed++, "darts without ratio");
    expect_found<OfKnownModes<WholeDensities>>(c, seed++, "ellipsoids left out of the ratio");
  }
}

/// Chains of the independence sampler alone on a normal of two axes, all of one list of three components.
struct Chains {
  ParameterPool pool;
  Gaussian density;
  std::unique_ptr<Engine> engine;
  LaunchSpec launch;
  const int units, per;
  static constexpr double mean[] = {0.6, -0.4}, inv_sd[] = {1.4, 0.8};

  Chains(int unit_count, int chains, std::uint32_t seed, double start = 0) : units(unit_count), per(chains) {
    density.dim = 2;
    density.log_norm = log_density(mean[0], mean[1]);
    density.mean = pool.add({mean[0], mean[1]});
    density.inv_sd = pool.add({inv_sd[0], inv_sd[1]});
    EngineSpec spec;
    name_transitions<Regeneration>(spec);
    UnitList lists;
    for (int u = 0; u < units; ++u) {
      lists[std::uint32_t(u)] = known().list(log_level());
      for (int c = 0; c < per; ++c) {
        spec.chain.push_back(std::uint32_t(c));
        spec.unit.push_back(std::uint32_t(u));
      }
    }
    using Model = Path<Gaussian, 0, false>;
    engine = std::make_unique<EngineOf<OneTransition<Regeneration>, Model, float, double>>(
        make_model<Model>(density, spec.model), spec);
    engine->set_shared(0, lists);
    engine->set_position(std::vector<double>(2 * std::size_t(units) * per, start));
    engine->initialize();
    launch.key = {seed, 5};
    launch.record = true;
  }
  static double log_density(double x, double y) {
    const double a = (x - mean[0]) * inv_sd[0], b = (y - mean[1]) * inv_sd[1];
    return -0.5 * (a * a + b * b) + std::log(inv_sd[0] * inv_sd[1] / (2 * M_PI));
  }
  static double log_level() { return 0.1; }
  /// Wider than the target: narrow ones have tours without a variance.
  static KnownMixture known() { return {2, 0, 1.4}; }
  /// Of each unit, in the place of what it has.
  void set(const UnitList& lists) { engine->set_shared(0, lists); }
  void advance(int iterations) {
    launch.end = launch.begin + std::uint32_t(iterations);
    engine->advance(launch);
    launch.begin = launch.end;
  }
};

/// Draws of Q by rejection.
std::array<std::vector<double>, 2> draws_of_q(const KnownMixture& q, std::uint32_t seed) {
  RandomStream random(Purpose::start, {seed, 9}, 1);
  std::array<std::vector<double>, 2> known;
  while (known[0].size() < 60000) {
    const double u = random.uniform();
    const std::size_t k = u < q.weight[0] ? 0 : u < q.weight[0] + q.weight[1] ? 1 : 2;
    const Eigen::Vector2d z(random.normal(), random.normal()), y = q.mean[k] + q.factor[k] * z;
    const double log_w = Chains::log_density(y[0], y[1]) - std::log(q.density(y));
    if (std::log(random.uniform()) > log_w - Chains::log_level()) continue;
    known[0].push_back(y[0]);
    known[1].push_back(y[1]);
  }
  return known;
}

TEST(Regeneration, BegunAnewIsADrawOfQWhateverWasBefore) {
  constexpr int kChains = 1 << 17;
  const auto known = draws_of_q(Chains::known(), 3);
  // From where w is far below c, and from where it is far above; likelier from there.
  double share[2];
  for (const int from : {0, 1}) {
    Chains chains(1, kChains, 17 + std::uint32_t(from), from == 0 ? 1.8 : -1.1);
    const double at = from == 0 ? 1.8 : -1.1;
    chains.advance(1);
    const auto fields = chains.engine->fields(), x = chains.engine->position();
    std::array<std::vector<double>, 2> begun, others;
    for (int c = 0; c < kChains; ++c)
      for (int i = 0; i < 2; ++i)
        if (fields[std::size_t(Regeneration::begun) * kChains + c] > 0)
          begun[i].push_back(x[std::size_t(i) * kChains + c]);
        else if (x[std::size_t(i) * kChains + c] != double(float(at)))
          others[i].push_back(x[std::size_t(i) * kChains + c]);
    share[from] = double(begun[0].size()) / kChains;
    for (int i = 0; i < 2; ++i) EXPECT_LT(z_of_p(ks_test(begun[i], known[i])), 4) << from << " " << i;
    if (!others[0].empty()) {
      EXPECT_GT(z_of_p(ks_test(others[0], known[0])), 6) << "other accepted draws are not of Q";
    }
  }
  EXPECT_GT(share[0], 0.2);
  EXPECT_NE(share[0], share[1]);
}

/// The ratio of sums over closed tours alone, without what open ones are expected to hold.
double plain_ratio(const std::vector<double>& fields, int axis, int unit, int per, std::size_t total) {
  double s = 0, n = 0;
  for (int c = unit * per; c < (unit + 1) * per; ++c) {
    s += fields[std::size_t(Regeneration::kNumbers + Regeneration::sum_s * 2 + axis) * total + c];
    n += fields[std::size_t(Regeneration::sum_n) * total + c];
  }
  return s / n;
}

/// Chains of 1000 iterations, and many of 250: some tours are of 80.
TEST(Regeneration, MeansOverToursHaveTheErrorsThatTheyClaim) {
  constexpr int kRuns = 200;
  for (const int per : {8, 32}) {
    const int iterations = 8000 / per;
    Chains chains(kRuns, per, 91);
    chains.advance(iterations);
    const auto fields = chains.engine->fields();
    const auto tours = tours_of(fields, kRuns, per, 2);
    for (int i = 0; i < 2; ++i) {
      double square = 0;
      RunningMean z, plain;
      for (int u = 0; u < kRuns; ++u) {
        EXPECT_GT(tours[u].number, 1000);
        const double se = tours[u].mean_se[i], error = (tours[u].mean[i] - Chains::mean[i]) / se;
        EXPECT_LT(std::abs(error), 4) << u;
        z.add(error);
        plain.add((plain_ratio(fields, i, u, per, std::size_t(kRuns) * per) - Chains::mean[i]) / se);
        square += error * error;
      }
      EXPECT_LT(std::abs(z.z()), 4) << iterations << " iterations, axis " << i << ": mean " << z.mean();
      // Sum of squares: chi-square of 200 degrees of freedom.
      EXPECT_LT(std::abs(square - kRuns) / std::sqrt(2.0 * kRuns), 4) << iterations << ", " << square / kRuns;
      if (per == 32 && i == 1) {
        EXPECT_GT(std::abs(plain.z()), 4) << "open tours left out are not found: " << plain.mean();
      }
    }
  }
}

TEST(Regeneration, ToursAreIndependent) {
  constexpr int kChains = 512, kIterations = 400;
  Chains chains(1, kChains, 23);
  std::vector<double> before(std::size_t(kChains) * 30, 0.0), last(kChains, NAN);
  double product = 0, square = 0;
  std::int64_t pairs = 0, tours = 0;
  for (int t = 0; t < kIterations; ++t) {
    chains.advance(1);
    const auto now = chains.engine->fields();
    before.resize(now.size(), 0.0);
    const auto change = [&](int row, int c) {
      return now[std::size_t(row) * kChains + c] - before[std::size_t(row) * kChains + c];
    };
    for (int c = 0; c < kChains; ++c) {
      if (change(Regeneration::closed, c) < 0.5) continue;
      const double s = change(Regeneration::kNumbers + Regeneration::sum_s * 2, c),
                   n = change(Regeneration::sum_n, c), off = s - n * Chains::mean[0];
      ++tours;
      square += off * off;
      if (!std::isnan(last[c])) product += off * last[c], ++pairs;
      last[c] = off;
    }
    before = now;
  }
  const double correlation = product / double(pairs) / (square / double(tours));
  EXPECT_GT(pairs, 10000);
  EXPECT_LT(std::abs(correlation) * std::sqrt(double(pairs)), 4) << correlation;
}

/// What the next tours go by, where the present ones go by something else.
std::vector<double> learned(const KnownMixture& newest, const KnownMixture& before, double epoch) {
  auto list = newest.list(Chains::log_level());
  const auto last = before.list(Chains::log_level());
  list.insert(list.end(), last.begin(), last.end());
  list.push_back(epoch);
  return list;
}

TEST(Regeneration, AfterAChangeToursBeginWithADrawOfTheNewQ) {
  constexpr int kChains = 1 << 16;
  const KnownMixture before = Chains::known(), newest(2, 0, 2.2);
  const auto of_newest = draws_of_q(newest, 4), of_before = draws_of_q(before, 5);
  Chains chains(1, kChains, 77);
  chains.advance(20);
  chains.set({{0, learned(newest, before, 1)}});
  std::array<std::vector<double>, 2> begun;
  std::vector<bool> waited(kChains, false), counted(kChains, false);
  int left = 0;
  for (int t = 0; t < 30; ++t) {
    chains.advance(1);
    const auto fields = chains.engine->fields(), x = chains.engine->position();
    const auto field = [&](int row, int c) { return fields[std::size_t(row) * kChains + c]; };
    for (int c = 0; c < kChains; ++c) {
      if (field(Regeneration::waits, c) > 0) {
        left += !waited[c];
        waited[c] = true;
        EXPECT_EQ(field(Regeneration::begun, c) + field(Regeneration::length, c), 0) << c;
        EXPECT_EQ(field(Regeneration::epoch, c), 0) << c;
      } else if (waited[c] && !counted[c]) {
        counted[c] = true;
        EXPECT_EQ(field(Regeneration::length, c) + field(Regeneration::epoch, c), 2) << c;
        for (int i = 0; i < 2; ++i) begun[i].push_back(x[std::size_t(i) * kChains + c]);
      }
    }
  }
  EXPECT_GT(left, kChains / 2);
  EXPECT_GT(begun[0].size(), std::size_t(kChains) / 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(z_of_p(ks_test(begun[i], of_newest[i])), 4) << i;
    EXPECT_GT(z_of_p(ks_test(begun[i], of_before[i])), 6) << "no power, axis " << i;
  }
}

/// Chains that propose well while they are to the left, and badly to the right: learned at regenerations alone tours keep
/// the target's mean; learned at every iteration they dwell to the right.
TEST(Regeneration, WhatIsLearnedAtRegenerationsLeavesToursExact) {
  constexpr int kUnits = 600, kPer = 4, kIterations = 400;
  const KnownMixture good = Chains::known(), bad(2, 0, 3);
  for (const bool exact : {true, false}) {
    Chains chains(kUnits, kPer, 41);
    std::vector<const KnownMixture*> used(kUnits, &good);
    std::vector<double> epoch(kUnits, 0.0);
    UnitList lists;
    for (int u = 0; u < kUnits; ++u) lists[std::uint32_t(u)] = good.list(Chains::log_level());
    for (int t = 0; t < kIterations; ++t) {
      chains.advance(1);
      const auto fields = chains.engine->fields(), x = chains.engine->position();
      for (int u = 0; u < kUnits; ++u) {
        double mean = 0;
        bool ready = true;
        for (int c = u * kPer; c < (u + 1) * kPer; ++c) {
          mean += x[std::size_t(c)] / kPer;
          const auto field = [&](int row) { return fields[std::size_t(row) * kUnits * kPer + c]; };
          ready = ready && field(Regeneration::waits) == 0 &&
                  (field(Regeneration::begun) == 0 || field(Regeneration::epoch) == epoch[u]);
        }
        const KnownMixture* next = mean > Chains::mean[0] ? &bad : &good;
        if (next == used[u] || (exact && !ready)) continue;
        lists[std::uint32_t(u)] =
            exact ? learned(*next, *used[u], epoch[u] += 1) : next->list(Chains::log_level());
        used[u] = next;
      }
      chains.set(lists);
    }
    if (exact) {
      EXPECT_GT(std::accumulate(epoch.begin(), epoch.end(), 0.0), 10.0 * kUnits) << "seldom learned";
    }
    const auto tours = tours_of(chains.engine->fields(), kUnits, kPer, 2);
    RunningMean off;
    for (const TourMeans& one : tours) off.add((one.mean[0] - Chains::mean[0]) / one.mean_se[0]);
    RecordProperty(exact ? "z_exact" : "z_every_iteration", fmt::format("{:.2f}", off.z()));
    if (exact) {
      EXPECT_LT(std::abs(off.z()), 4) << off.mean();
    } else {
      EXPECT_GT(std::abs(off.z()), 8) << "learned at every iteration is not found: " << off.mean();
    }
  }
}

}  // namespace
