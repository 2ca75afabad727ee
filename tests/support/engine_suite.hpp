// SPDX-License-Identifier: Apache-2.0
#pragma once
// ENGINE_SUITE (a name the including file defines): no bit of any result depends on the pack width, the
// threads, the driver, the split of iterations into launches or of chains into engines. The including file
// says which models: it defines `make_test_engine` by `engine_of_any_width`, and `cases`. Everything is local to that
// file, whose fused engines are compiled in other widths than the library's.
#define LOCKSTEP_ALL_WIDTHS
#include <gtest/gtest.h>

#include "targets/engine_cpu.hpp"
#include "targets/gaussian.hpp"
#include "tests/support/lane_engines.hpp"
#include "tests/support/parity.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

/// A Gaussian with two modes to count, two expectations of its own, and NaN beyond a wall where asked.
struct TestDensity : Gaussian {
  using SpecialisedDims = std::integer_sequence<int>;
  double wall = 1e30;
  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const L l = Gaussian::template log_density<D, L>(x, g);
    return select(x[0] > L(R(wall)), L(std::numeric_limits<R>::quiet_NaN()), l);
  }
  LOCKSTEP_FN int quantities() const { return 2; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X& x, Put&& put) const {
    put(0, select(x[0] > L(0), L(1), L(0)));
    put(1, x[0] * x[1]);
  }
  template <int D, class L, class X>
  LOCKSTEP_FN L mode(const X& x) const {
    return select(x[0] > L(0), L(1), L(0));
  }
};

std::unique_ptr<Engine> make_test_engine(const TestDensity& density, const EngineSpec& spec);

/// The fused driver, in any width; or by blocks.
template <class Model>
std::unique_ptr<Engine> engine_of_any_width(const TestDensity& density, const EngineSpec& spec) {
  if (!spec.blocks && spec.transition == nullptr)
    return std::make_unique<EngineOf<FusedCpu, Model, float, double>>(make_model<Model>(density, spec.model),
                                                                      spec);
  return blocks_of_any_width(density, spec, library_transitions<float, double>(spec));
}

struct Fixture {
  ParameterPool pool;
  TestDensity density;
  Fixture(int dim = 3, double wall = 1e30) {
    std::vector<double> mean, inv_sd;
    for (int i = 0; i < dim; ++i) {
      mean.push_back(0.2 * i - 0.1);
      inv_sd.push_back(1 / (0.8 + 0.3 * i));
      density.log_norm += std::log(inv_sd.back()) - 0.5 * std::log(2 * kPi);
    }
    density.dim = dim;
    density.wall = wall;
    density.mean = pool.add(mean);
    density.inv_sd = pool.add(inv_sd);
  }
  EngineFactory factory() const {
    return [this](const EngineSpec& spec) { return make_test_engine(density, spec); };
  }
};

struct Named {
  const char* name;
  BatchCase batch;
};
std::vector<Named> cases();  // 75 chains: two tiles and a part that is a multiple of no width

void expect_same(const BatchResult& a, const BatchResult& b, const std::string& what) {
  EXPECT_EQ(a.position, b.position) << what;
  EXPECT_EQ(a.gradient, b.gradient) << what;
  EXPECT_EQ(a.cache, b.cache) << what;
  EXPECT_EQ(a.stats, b.stats) << what;
  EXPECT_EQ(a.moments, b.moments) << what;
  EXPECT_EQ(a.draws, b.draws) << what;
}

TEST(ENGINE_SUITE, NoBitDependsOnTheDivisionOfTheWork) {
  const Fixture f;
  for (const auto& [name, batch] : cases()) {
    const BatchResult whole = run_batch(f.factory(), batch);
    auto same = [&](const char* what, const Split& split) {
      expect_same(run_batch(f.factory(), batch, split), whole, std::string(name) + ": " + what);
    };
    const bool fused = batch.transition == nullptr;  // in more widths
    for (int width : fused ? std::vector<int>{4, 8, 16, 32} : std::vector<int>{4, 32})
      same(("width " + std::to_string(width)).c_str(), {.pack_width = width});
    same("2 threads", {.threads = 2});
    same("7 threads", {.threads = 7});
    same("three launches", {.launches = {1, 4}});
    same("three engines", {.engines = {7, 40}});
    same("three engines at once", {.engines = {7, 40}, .at_once = true});
    same("engines, launches, threads and width",
         {.pack_width = 4, .threads = 2, .launches = {3}, .engines = {33}});
    const BatchResult resumed = run_batch(f.factory(), batch, {.launches = {2, 4}, .resumed = true});
    EXPECT_EQ(resumed.position, whole.position) << name;
    EXPECT_EQ(resumed.gradient, whole.gradient) << name;
    EXPECT_EQ(resumed.cache, whole.cache) << name;
    EXPECT_EQ(resumed.draws, whole.draws) << name;
    same("blocks", {.blocks = true});
    same("blocks, width 32", {.pack_width = 32, .blocks = true});
    same("blocks, width 4, 3 threads", {.pack_width = 4, .threads = 3, .blocks = true});
    same("blocks, launches, engines", {.blocks = true, .launches = {2}, .engines = {32}});
  }
}

/// Chains are where they are put: a batch of any size gives the first chains of a larger one.
TEST(ENGINE_SUITE, AnyNumberOfChains) {
  const Fixture f;
  for (const auto& named : cases()) {
    BatchCase batch = named.batch;
    batch.chains = 66;
    const BatchResult large = run_batch(f.factory(), batch);
    for (int chains : {1, 17, 31, 32, 33, 64, 65}) {
      batch.chains = chains;
      const BatchResult small = run_batch(f.factory(), batch);
      for (int r = 0; r < small.rows; ++r)
        for (int i = 0; i < chains; ++i)
          ASSERT_EQ(small.position[r * chains + i], large.position[r * 66 + i])
              << named.name << " " << chains;
      ASSERT_EQ(small.stats.size() / chains, large.stats.size() / 66);  // and counters
      for (int threads : {2, 3})
        expect_same(run_batch(f.factory(), batch, {.threads = threads}), small,
                    std::string(named.name) + ": " + std::to_string(chains) + " chains, " +
                        std::to_string(threads) + " threads");
    }
  }
}

/// The results are different where they should be: a test that compares constants would see nothing.
TEST(ENGINE_SUITE, ChainsKeysAndIterationsMatter) {
  const Fixture f;
  for (const auto& named : cases()) {
    const BatchResult a = run_batch(f.factory(), named.batch);
    BatchCase other = named.batch;
    other.key.k0 ^= 1;
    EXPECT_NE(run_batch(f.factory(), other).position, a.position) << named.name;
    const int n = named.batch.chains;
    int equal = 0;
    for (int i = 1; i < n; ++i) equal += a.position[i] == a.position[i - 1];
    EXPECT_EQ(equal, 0) << named.name;
  }
}

/// The scalar reference takes the C library's functions: its transitions are the packs' to float rounding.
TEST(ENGINE_SUITE, ScalarReferenceTakesThePacksTransitions) {
  const Fixture f;
  const EngineFactory scalar = [&f](EngineSpec spec) {
    spec.pack_width = 1;
    return f.factory()(spec);
  };
  for (const auto& [name, batch] : cases()) {
    const Parity p = compare_transitions(f.factory(), scalar, batch);
    EXPECT_LE(p.position, 1e-5) << name;
    EXPECT_LE(p.cache, 5e-4) << name;
    EXPECT_LE(p.closest, 1e-4) << name << ": " << p.apart << " decisions differ";
    EXPECT_EQ(p.other_lengths, 0) << name;
    EXPECT_GT(p.accepted, 0) << name;
    EXPECT_LT(p.equal, p.numbers) << name << ": are these two kinds of lanes?";
  }
}

/// Gradients and energies kept from iteration to iteration are those of the present position.
TEST(ENGINE_SUITE, CacheAndGradientBelongToThePosition) {
  const Fixture f;
  for (const auto& named : cases()) {
    const BatchCase& c = named.batch;
    if (c.transition != nullptr && !c.transition->gradients) continue;  // keeps none
    EngineSpec spec;
    spec.model = c.model;
    spec.transition = c.transition;
    for (int i = 0; i < c.chains; ++i) spec.chain.push_back(i), spec.unit.push_back(0);
    const auto e = f.factory()(spec);
    set_parameters(*e, c, 0);
    e->set_position(std::vector<double>(std::size_t(e->rows()) * c.chains, 0.25));
    e->initialize();
    LaunchSpec launch;
    launch.end = 5;
    e->advance(launch);
    const auto gradient = e->gradient(), cache = e->cache();
    e->initialize();
    EXPECT_EQ(e->gradient(), gradient) << named.name;
    EXPECT_EQ(e->cache(), cache) << named.name;
  }
}

TEST(ENGINE_SUITE, GradientCountIsStepsTimesSamples) {
  const Fixture f;
  for (const auto& named : cases()) {
    const BatchCase& c = named.batch;
    const BatchResult r = run_batch(f.factory(), c);
    const int draw_rows = 3 + kDrawExtraRows;
    const int samples = c.model.kind == ModelKind::pseudo_extended ? c.model.pseudo_samples : 1;
    for (int i = 0; i < c.chains; ++i) {
      double steps = 0, acceptance = 0;
      for (std::uint32_t k = 0; k < c.iterations; ++k) {
        steps += r.draws[(std::size_t(k) * draw_rows + 3 + draw_steps) * c.chains + i];
        acceptance += r.draws[(std::size_t(k) * draw_rows + 3 + draw_acceptance) * c.chains + i];
      }
      EXPECT_EQ(r.stats[stat_gradients * c.chains + i], steps * samples) << named.name;
      EXPECT_EQ(steps > 0, c.transition == nullptr || c.transition->gradients) << named.name;
      EXPECT_NEAR(r.stats[stat_acceptance * c.chains + i], acceptance, 1e-5) << named.name;
      EXPECT_LE(r.stats[stat_accepted * c.chains + i], c.iterations);
    }
  }
}

/// A NaN density never moves a chain, and is counted.
TEST(ENGINE_SUITE, NanDensityNeverMovesAChain) {
  for (const auto& named : cases()) {
    if (named.batch.model.box < 10) continue;
    for (const TransitionInfo* transition : transition_registry()) {
      const Fixture walled(3, 0.4), nowhere(3, -1e30);
      BatchCase c = named.batch;
      c.iterations = 30;
      c.transition = transition;
      BatchCase start = c;
      start.iterations = 0;
      const BatchResult before = run_batch(nowhere.factory(), start), stuck = run_batch(nowhere.factory(), c);
      EXPECT_EQ(stuck.position, before.position);
      for (int i = 0; i < c.chains; ++i) {
        EXPECT_EQ(stuck.stats[stat_accepted * c.chains + i], 0);
        EXPECT_EQ(stuck.stats[stat_acceptance * c.chains + i], 0);
        EXPECT_EQ(stuck.stats[stat_divergences * c.chains + i], c.iterations);
      }
      // With a wall: chains that start on the good side move, and stay there.
      const BatchResult at = run_batch(walled.factory(), start), after = run_batch(walled.factory(), c);
      double divergences = 0;
      int good = 0;
      for (int i = 0; i < c.chains; ++i) {
        bool inside = true;
        for (int s = 0; s < c.model.pseudo_samples; ++s)
          inside = inside && at.position[3 * s * c.chains + i] <= 0.4f;
        divergences += after.stats[stat_divergences * c.chains + i];
        for (int s = 0; s < c.model.pseudo_samples && inside; ++s)
          EXPECT_LE(after.position[3 * s * c.chains + i], 0.4f);
        if (inside) {
          ++good;
          EXPECT_NE(after.position[i], at.position[i]);
        } else {
          EXPECT_EQ(after.position[i], at.position[i]);
        }
      }
      EXPECT_GT(good, 20);
      EXPECT_GT(divergences, 0);
    }
  }
}

/// Draws of some chains, from a later iteration on: the columns of those chains among all draws. The overview
/// holds the x and acceptance of all of them. Neither changes a moment.
TEST(ENGINE_SUITE, StoredChainsAndOverviewAreAmongAllDraws) {
  const Fixture f;
  for (const auto& named : cases()) {
    BatchCase c = named.batch;
    c.iterations = 10;
    const BatchResult all = run_batch(f.factory(), c);
    for (bool blocks : {false, true}) {
      const std::vector<int> stored = {3, 17, 70};
      const EngineFactory some = [&](EngineSpec spec) {
        spec.stored_chains = stored;
        spec.overview = 5;
        return f.factory()(spec);
      };
      Split split;
      split.blocks = blocks;
      auto e = make_engine(some, c, split);
      LaunchSpec launch = make_launch(c, 0, 10);
      launch.thin = 2;
      launch.store_from = 3;  // iterations 3, 5, 7, 9
      launch.overview_thin = 4;
      launch.overview_from = 1;  // 1, 5, 9
      e->advance(launch);
      const int rows = 3 + kDrawExtraRows, padded = e->padded_chains();
      const auto of_all = [&](int iteration, int row, int chain) {
        return all.draws[(std::size_t(iteration) * rows + row) * c.chains + chain];
      };
      const auto draws = e->draws(4);
      const auto overview = e->overview();
      ASSERT_EQ(draws.size(), std::size_t(4) * rows * 3);
      for (int k = 0; k < 4; ++k)
        for (int r = 0; r < rows; ++r)
          for (int s = 0; s < 3; ++s)
            ASSERT_EQ(draws[(k * rows + r) * 3 + s], of_all(3 + 2 * k, r, stored[s])) << named.name;
      for (int k = 0; k < 3; ++k)
        for (int j = 0; j < 3 + kOverviewExtraRows; ++j)
          for (int i = 0; i < c.chains; ++i)
            ASSERT_EQ(overview[(k * (3 + kOverviewExtraRows) + j) * padded + i],
                      of_all(1 + 4 * k, j < 3 ? j : 3 + draw_acceptance, i))
                << named.name;
      EXPECT_EQ(e->take_moments(), all.moments) << named.name;
    }
  }
}

/// The energy of a draw is that of its density and of a momentum with as many normal coordinates as the state
/// has; divergent draws are those that the statistics count.
TEST(ENGINE_SUITE, EnergiesAndDivergencesOfDraws) {
  const Fixture f, walled(3, 0.4);
  for (const auto& named : cases()) {
    BatchCase c = named.batch;
    if (c.transition != nullptr || c.tempering != Tempering::fixed) continue;
    c.iterations = 200;
    c.step_size = 0.05;  // so that hardly anything is refused, which would favour low momenta
    c.trajectory_time = 0.3;
    const BatchResult r = run_batch(f.factory(), c);
    const int draw_rows = 3 + kDrawExtraRows;
    double sum = 0;
    for (std::uint32_t k = 0; k < c.iterations; ++k)
      for (int i = 0; i < c.chains; ++i) {
        const auto of = [&](int row) {
          return r.draws[(std::size_t(k) * draw_rows + 3 + row) * c.chains + i];
        };
        const double kinetic = double(of(draw_energy)) + of(draw_log_density);
        EXPECT_GT(kinetic, -1e-4) << named.name;
        sum += kinetic;
        ASSERT_EQ(of(draw_diverging), 0) << named.name;
      }
    // |p|^2 / 2 of n normal coordinates has mean n / 2 and variance n / 2, the last kinetic energy of a
    // trajectory alike; iterations are independent of one another but for the positions'.
    const double n = r.rows, draws = double(c.iterations) * c.chains;
    EXPECT_NEAR(sum / draws, n / 2, 0.1 * n / 2) << named.name;
    const BatchResult stopped = run_batch(walled.factory(), c);
    for (int i = 0; i < c.chains; ++i) {
      double diverging = 0;
      for (std::uint32_t k = 0; k < c.iterations; ++k)
        diverging += stopped.draws[(std::size_t(k) * draw_rows + 3 + draw_diverging) * c.chains + i];
      EXPECT_EQ(diverging, stopped.stats[stat_divergences * c.chains + i]) << named.name;
    }
  }
}

/// Draws with thin: every thin-th of those without, counted from the launch's first iteration.
TEST(ENGINE_SUITE, ThinnedDrawsAreAmongAllDraws) {
  const Fixture f;
  for (const auto& named : cases()) {
    BatchCase c = named.batch;
    c.iterations = 10;
    const BatchResult all = run_batch(f.factory(), c);
    c.thin = 3;
    const BatchResult thinned = run_batch(f.factory(), c);
    const std::size_t one = std::size_t(3 + kDrawExtraRows) * c.chains;
    ASSERT_EQ(thinned.draws.size(), 4 * one);
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t i = 0; i < one; ++i)
        ASSERT_EQ(thinned.draws[k * one + i], all.draws[3 * k * one + i]) << named.name;
    EXPECT_EQ(thinned.moments, all.moments) << named.name;
  }
}

}  // namespace
