// SPDX-License-Identifier: Apache-2.0
// Mixtures of known modes as transitions read them; and no bit of what goes by them depends on the division of the work.
#include "kernels/mode_mixture.hpp"

#include <gtest/gtest.h>

#include "targets/engine_cpu.hpp"
#include "targets/gaussian.hpp"
#include "tests/support/engines.hpp"
#include "tests/support/invariance.hpp"
#include "tests/support/known_mixtures.hpp"
#include "tests/support/lane_engines.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

TEST(ModeMixture, DensitiesAreThoseOfTheList) {
  const KnownMixture q(3, 0);
  const auto list = q.list(7);
  const std::int32_t places[] = {0, std::int32_t(list.size())};
  struct {
    SharedLists<double> shared;
  } const w{{list.data(), places, 1}};
  EXPECT_EQ(ModeMixture::number<double>(w), 7);
  for (int t = 0; t < 20; ++t) {
    const Eigen::Vector3d x(2 * std::sin(t), 1.5 * std::cos(3 * t), std::sin(5 * t));
    for (const double most : {2.0, 5.0, ModeMixture::kAll}) {
      const double known = q.density(x, most), log_q = ModeMixture::log_mixture<double>(w, 3, 3.0, most, x);
      if (known > 0) {
        EXPECT_NEAR(log_q, std::log(known), 1e-12);
      } else {
        EXPECT_LT(log_q, -0.5 * ModeMixture::kAll);
      }
    }
  }
}

struct Normal {
  ParameterPool pool;
  Gaussian density;
  Normal() {
    density.dim = 3;
    density.log_norm = std::log(1.25 * 0.9 * 0.7) - 1.5 * std::log(2 * M_PI);
    density.mean = pool.add({-0.1, 0.1, 0.3});
    density.inv_sd = pool.add({1.25, 0.9, 0.7});
  }
};

/// Trajectories, darts and tours in each iteration, of units of five chains with mixtures of their own.
using All = Sequence<Library<Hmc>, Library<OfKnownModes<Regeneration>>>;
using Darts = Sequence<Library<OfKnownModes<Darting>>, Library<Hmc>>;

template <class Transition>
BatchResult expect_same_bits(ModelKind kind) {
  BatchCase c;
  c.model.kind = kind;
  c.model.pseudo_samples = kind == ModelKind::pseudo_extended ? 2 : 1;
  EngineSpec spec;
  name_transitions<Transition>(spec);
  c.transition = spec.transition;
  c.then = spec.then;
  c.chains = 75;
  c.iterations = 20;
  const bool second = std::is_same_v<Transition, All>;
  c.prepare = [=](Engine& e) {
    UnitList lists;
    for (int u = 0; u < 15; ++u) {
      auto& list = lists[std::uint32_t(u)] = KnownMixture(3, u).list(second ? kKnownLevel : kKnownRadius);
      if (!second || u % 3 > 0) continue;  // of some units chains are to take up what was learned
      const auto before = KnownMixture(3, u + 1).list(kKnownLevel);
      list.insert(list.end(), before.begin(), before.end());
      list.push_back(1);
    }
    e.set_shared(0, lists);
  };
  static const Normal normal;
  const EngineFactory make = [&](const EngineSpec& s) {
    return with_opaque_model(s.model, [&]<class Model>() {
      return blocks_of_any_width(normal.density, s, block_transitions<Transition, Model>());
    });
  };
  const BatchResult whole = run_batch(make, c);
  EXPECT_EQ(run_batch(make, c, {.threads = 2}), whole);
  EXPECT_EQ(run_batch(make, c, {.pack_width = 4, .launches = {1, 5}}), whole);
  EXPECT_EQ(run_batch(make, c, {.threads = 2, .engines = {7, 40}}), whole);
  BatchResult resumed = run_batch(make, c, {.launches = {2, 9}, .resumed = true});
  resumed.stats = whole.stats, resumed.moments = whole.moments;
  EXPECT_EQ(resumed, whole);
  return whole;
}

TEST(ModeMixture, NoBitDependsOnTheDivisionOfTheWork) {
  for (const ModelKind kind : {ModelKind::plain, ModelKind::path}) {
    const BatchResult r = expect_same_bits<All>(kind);
    const auto field = [&](int row, int chain) { return r.fields[std::size_t(row) * 75 + chain]; };
    double tours = 0;
    for (int i = 0; i < 75; ++i) {
      const bool knows = (i / 5 + 3) % 4 > 0;
      tours += field(Regeneration::closed, i);
      EXPECT_EQ(field(Regeneration::made, i), 20);
      if (!knows) {
        EXPECT_EQ(field(Regeneration::begun, i), 0) << "nothing is known here";
      }
      EXPECT_LE(field(Regeneration::sum_n, i) + field(Regeneration::length, i), 20);
    }
    EXPECT_GT(tours, 0);
    expect_same_bits<Darts>(kind);
  }
}

TEST(ModeMixture, SeveralSamplesAreLeftWhereTheyAre) {
  const BatchResult r = expect_same_bits<All>(ModelKind::pseudo_extended);
  for (int i = 0; i < 75; ++i) {
    EXPECT_EQ(r.stats[std::size_t(int(kStatRows) + Regeneration::accepted) * 75 + i], 0);
    EXPECT_EQ(r.fields[std::size_t(Regeneration::begun) * 75 + i], 0);
  }
}

}  // namespace
