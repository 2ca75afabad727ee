// SPDX-License-Identifier: Apache-2.0
// Transitions that own data (tests/support/own_data.hpp): no bit depends on the division of the work, and what they
// declare is what they find.
#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "kernels/lbfgs.hpp"
#include "targets/engine_cpu.hpp"
#include "tests/support/engines.hpp"
#include "tests/support/invariance.hpp"
#include "tests/support/lane_engines.hpp"
#include "tests/support/own_data.hpp"
#include "tests/support/three_axes.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

/// By blocks where a spec asks for them; else fused.
template <class Transition, class Model, class OpaqueModel>
std::unique_ptr<Engine> make_one(const EngineSpec& spec) {
  if constexpr (std::derived_from<Transition, TransitionDefaults>)
    if (!spec.blocks)
      return std::make_unique<EngineOf<OneTransition<Transition>, Model, float, double>>(
          make_model<Model>(three_axes(), spec.model), spec);
  return blocks_of_any_width(three_axes(), spec, block_transitions<Transition, OpaqueModel>());
}
template <class Transition>
EngineFactory factory() {
  return [](const EngineSpec& spec) {
    if (spec.model.kind == ModelKind::pseudo_extended)
      return make_one<Transition, PseudoExtended<Gaussian, 0, 0>, OpaqueExtended>(spec);
    if (spec.model.kind == ModelKind::path)
      return make_one<Transition, Path<Gaussian, 0, true>, OpaquePath>(spec);
    return make_one<Transition, Path<Gaussian, 0, false>, OpaquePlain>(spec);
  };
}

/// 75 chains in units of five: two tiles and a part that is a multiple of no width.
template <class Transition>
BatchCase make_case(ModelKind kind = ModelKind::plain) {
  BatchCase c;
  c.model.kind = kind;
  c.model.pseudo_samples = kind == ModelKind::pseudo_extended ? 2 : 1;
  c.tempering = kind == ModelKind::path ? Tempering::gibbs : Tempering::fixed;
  EngineSpec spec;
  name_transitions<Transition>(spec);
  c.transition = spec.transition;
  c.then = spec.then;
  // Those that go to draws of a base ask for its density.
  if (std::is_same_v<Transition, KnownModes> && kind == ModelKind::path)
    c.model.base = base_number<NormalMixture>();
  c.chains = 75;
  c.iterations = 8;
  c.chees = true;
  c.prepare = [](Engine& e) { prepare<Transition>(e, 15); };
  return c;
}

TEST(OwnData, NoBitDependsOnTheDivisionOfTheWork) {
  for_each_with_data([]<class Transition>() {
    const EngineFactory make = factory<Transition>();
    for (const ModelKind kind : {ModelKind::plain, ModelKind::path, ModelKind::pseudo_extended}) {
      const BatchCase c = make_case<Transition>(kind);
      const BatchResult fused = run_batch(make, c);
      const auto same = [&](const std::string& what, const Split& split, bool sums = true) {
        BatchResult r = run_batch(make, c, split);
        if (!sums) r.stats = fused.stats, r.moments = fused.moments;
        EXPECT_EQ(r, fused) << c.transition->name << ", model " << int(kind) << ": " << what;
      };
      same("threads", {.threads = 2});
      same("launches", {.launches = {1, 5}});
      same("blocks", {.blocks = true});
      same("blocks of narrow packs", {.pack_width = 4, .blocks = true});
      same("blocks of wide packs", {.pack_width = 32, .blocks = true});
      same("blocks in launches", {.blocks = true, .launches = {1, 5}});
      same("blocks in engines", {.threads = 2, .blocks = true, .engines = {7, 40}});
      same("resumed", {.blocks = true, .launches = {2, 4}, .resumed = true}, false);
      EXPECT_NE(fused.position, run_batch(make,
                                          [&] {
                                            BatchCase other = c;
                                            other.key.k1 ^= 1;
                                            return other;
                                          }())
                                    .position);
    }
  });
}

/// Counter k of every chain.
std::vector<double> counter(const BatchResult& r, const BatchCase& c, int k) {
  const auto first = r.stats.begin() + std::ptrdiff_t(kStatRows + k) * c.chains;
  return {first, first + c.chains};
}

TEST(OwnData, AListIsThatOfTheUnit) {
  BatchCase c = make_case<ListWalk>();
  c.iterations = 1;
  const BatchResult r = run_batch(factory<ListWalk>(), c, {.blocks = true});
  c.iterations = 0;
  const BatchResult start = run_batch(factory<ListWalk>(), c, {.blocks = true});
  const auto vectors = counter(r, c, 0);
  int moved = 0;
  for (int i = 0; i < c.chains; ++i) {
    const int unit = i / 5, count = (unit + 3) % 4;
    EXPECT_NEAR(vectors[i], count, 1e-12);
    double nearest = 1;  // of the steps that its list allows
    const auto step = [&](int j) { return r.position[j * c.chains + i] - start.position[j * c.chains + i]; };
    if (step(0) == 0) continue;
    for (int k = 0; k < count; ++k)
      for (const double sign : {-1.0, 1.0}) {
        double far = 0;
        for (int j = 0; j < 3; ++j)
          far = std::max(far, std::abs(step(j) - sign * (0.4 + 0.3 * k - 0.5 * ((j + k + unit) % 3))));
        nearest = std::min(nearest, far);
      }
    EXPECT_LT(nearest, 1e-6) << i;
    ++moved;
  }
  EXPECT_GT(moved, 20);
}

TEST(OwnData, AnEmptyOrMissingListIsSeenAsEmpty) {
  BatchCase c = make_case<ListWalk>();
  c.prepare = [](Engine& e) { e.set_shared(0, {{3, {}}}); };
  EXPECT_THAT(counter(run_batch(factory<ListWalk>(), c, {.blocks = true}), c, 0), ::testing::Each(0.0));
  EXPECT_THROW(make_engine(factory<ListWalk>(), c)->set_shared(1, {}), std::out_of_range);
}

TEST(OwnData, ChainsTakeAsManyStepsAsTheyNeed) {
  const BatchCase c = make_case<SliceWalk>();
  const BatchResult r = run_batch(factory<SliceWalk>(), c, {.blocks = true});
  const auto evaluations = counter(r, c, 0);
  EXPECT_GT(*std::max_element(evaluations.begin(), evaluations.end()),
            2 * *std::min_element(evaluations.begin(), evaluations.end()));
  for (int i = 0; i < c.chains; ++i) {
    EXPECT_EQ(r.stats[stat_accepted * c.chains + i], c.iterations);
    EXPECT_EQ(r.stats[stat_gradients * c.chains + i], evaluations[i]);
  }
}

TEST(OwnData, SettingsAreWhatTheUserSets) {
  BatchCase c = make_case<SliceWalk>();
  const auto evaluations = [&](std::vector<std::vector<double>> settings, const Split& split) {
    c.settings = std::move(settings);
    const auto counted = counter(run_batch(factory<SliceWalk>(), c, split), c, 0);
    return std::accumulate(counted.begin(), counted.end(), 0.0);
  };
  const double standard = evaluations({}, {.blocks = true}), wide = evaluations({{60}}, {.blocks = true});
  EXPECT_EQ(evaluations({{6}}, {.blocks = true}), standard);
  EXPECT_EQ(evaluations({{}}, {.pack_width = 4, .blocks = true}), standard);
  EXPECT_EQ(evaluations({{60}}, {}), wide);
  EXPECT_GT(wide, 1.3 * standard);
  EXPECT_THROW(evaluations({{1, 2}}, {.blocks = true}), std::invalid_argument);

  BatchCase tours = make_case<Sequence<ListWalk, Tours>>();
  tours.settings = {{}, {1}};  // each iteration is a tour
  const BatchResult r = run_batch(factory<Sequence<ListWalk, Tours>>(), tours, {.blocks = true});
  EXPECT_THAT(counter(r, tours, 1 + Tours::tours), ::testing::Each(double(tours.iterations)));
}

/// The minimiser, of one descent for each chain: to the top of the Gaussian, from anywhere and at any width.
TEST(OwnData, DescentsEndAtTheTopWhateverTheDivisionOfTheWork) {
  BatchCase c = make_case<Library<Lbfgs>>();
  c.iterations = 1;
  c.chees = false;
  const BatchResult fused = run_batch(factory<Library<Lbfgs>>(), c);
  for (const Split& split :
       {Split{.blocks = true}, Split{.threads = 2, .blocks = true}, Split{.pack_width = 4, .blocks = true},
        Split{.blocks = true, .engines = {7, 40}}})
    EXPECT_EQ(run_batch(factory<Library<Lbfgs>>(), c, split), fused);
  const auto field = [&](int k, int chain) { return fused.fields[std::size_t(k) * c.chains + chain]; };
  for (int i = 0; i < c.chains; ++i) {
    EXPECT_EQ(field(Lbfgs::converged, i), 1);
    EXPECT_GE(field(Lbfgs::evaluations, i), 1);
    EXPECT_LT(field(Lbfgs::evaluations, i), 30);
    double energy = 0;  // what is left of it
    for (int j = 0; j < 3; ++j) {
      const double z = (fused.position[std::size_t(j) * c.chains + i] - (0.2 * j - 0.1)) * (j == 0   ? 1.25
                                                                                            : j == 1 ? 0.9
                                                                                                     : 0.7);
      energy += 0.5 * z * z;
    }
    EXPECT_LT(energy, 1e-4) << i;
  }
}

TEST(OwnData, PositionsAreInDouble) {
  BatchCase c = make_case<ImplicitMidpoint>();
  const BatchResult r = run_batch(factory<ImplicitMidpoint>(), c, {.blocks = true});
  ASSERT_EQ(r.fields.size(), r.position.size());
  int finer = 0;
  for (std::size_t k = 0; k < r.fields.size(); ++k) {
    EXPECT_EQ(double(float(r.fields[k])), r.position[k]);
    finer += r.fields[k] != r.position[k];
  }
  EXPECT_GT(finer, 200);
  EXPECT_THAT(counter(r, c, ImplicitMidpoint::unsolved), ::testing::Each(0.0));
  EXPECT_THAT(counter(r, c, ImplicitMidpoint::irreversible), ::testing::Each(0.0));
  // Where the iteration does not converge the chain stays.
  c.step_size = 30;
  const BatchResult wild = run_batch(factory<ImplicitMidpoint>(), c, {.blocks = true});
  for (int i = 0; i < c.chains; ++i)
    EXPECT_EQ(counter(wild, c, ImplicitMidpoint::unsolved)[i] + wild.stats[stat_accepted * c.chains + i],
              c.iterations);
  EXPECT_THAT(counter(wild, c, ImplicitMidpoint::unsolved), ::testing::Contains(8.0));
}

TEST(OwnData, ToursCloseWhereTheyCloseAndSumToTheWhole) {
  BatchCase c = make_case<Tours>();
  c.iterations = 40;
  const BatchResult r = run_batch(factory<Tours>(), c, {.blocks = true, .launches = {13}});
  const auto tours = counter(r, c, Tours::tours), length = counter(r, c, Tours::length),
             sum = counter(r, c, Tours::sum);
  std::set<double> lengths;
  for (int i = 0; i < c.chains; ++i) {
    EXPECT_EQ(length[i] + r.fields[i], 40);
    EXPECT_NEAR(sum[i] + r.fields[c.chains + i], r.moments[MomentLayout::first * c.chains + i], 1e-9);
    lengths.insert(length[i]);
  }
  EXPECT_GT(lengths.size(), 5u);
  EXPECT_NEAR(std::accumulate(tours.begin(), tours.end(), 0.0) / (75 * 40), 0.25,
              4 * std::sqrt(0.25 * 0.75 / (75 * 40)));
}

/// Walks along lists, then tours: the second's data lies behind the first's.
using Pair = Sequence<ListWalk, Tours>;

TEST(OwnData, SequencesKeepTheirDataApart) {
  for (const ModelKind kind : {ModelKind::plain, ModelKind::path, ModelKind::pseudo_extended}) {
    BatchCase c = make_case<Pair>(kind);
    if (kind == ModelKind::path) c.settings = other_settings<Pair>();
    const BatchResult whole = run_batch(factory<Pair>(), c);
    for (const Split& split :
         {Split{.pack_width = 4, .blocks = true}, Split{.threads = 2, .launches = {1, 5}},
          Split{.blocks = true, .engines = {7, 40}}})
      EXPECT_EQ(run_batch(factory<Pair>(), c, split), whole) << int(kind);
    BatchResult resumed = run_batch(factory<Pair>(), c, {.launches = {2, 4}, .resumed = true});
    resumed.stats = whole.stats, resumed.moments = whole.moments;
    EXPECT_EQ(resumed, whole);
    for (int i = 0; i < c.chains; ++i) {
      EXPECT_NEAR(counter(whole, c, 0)[i], c.iterations * ((i / 5 + 3) % 4), 1e-9);
      EXPECT_EQ(counter(whole, c, 1 + Tours::length)[i] + whole.fields[i], c.iterations);
    }
  }
}

TEST(OwnData, AWalkThatNeverMovesChangesNothingButTheCountOfGradients) {
  BatchCase c = make_case<Sequence<Tours, ListWalk>>(ModelKind::path),
            alone = make_case<Tours>(ModelKind::path);
  c.prepare = {};
  BatchResult r = run_batch(factory<Sequence<Tours, ListWalk>>(), c),
              first = run_batch(factory<Tours>(), alone);
  for (int i = 0; i < c.chains; ++i)
    EXPECT_EQ(r.stats[stat_gradients * c.chains + i],
              first.stats[stat_gradients * c.chains + i] + c.iterations);
  EXPECT_EQ(r.position, first.position);
  EXPECT_EQ(r.gradient, first.gradient);
  EXPECT_EQ(r.moments, first.moments);
}

TEST(OwnData, BackwardsIsTheOtherOrder) {
  const BatchCase c = make_case<Pair>();
  const auto run = [&](auto make, const BatchCase& batch, bool backwards) {
    const auto e = make_engine(make, batch);
    LaunchSpec launch = make_launch(batch, 0, 1);
    launch.backwards = backwards;
    e->advance(launch);
    return e->position();
  };
  const auto forwards = run(factory<Pair>(), c, false), back = run(factory<Pair>(), c, true);
  EXPECT_NE(forwards, back);
  BatchCase first = c;
  first.iterations = 1;
  // In the order of the list, the first transition starts where the chain is.
  int walked = 0;
  const auto start = make_engine(factory<Pair>(), c)->position();
  const auto walk = run(factory<ListWalk>(), make_case<ListWalk>(), false);
  for (int i = 0; i < c.chains; ++i) walked += walk[i] != start[i] && forwards[i] == walk[i];
  EXPECT_LT(walked, 5);  // the tours' trajectory went on from there
}

TEST(OwnData, WhatEndsWhenItSeesFitIsTheOnlyTransition) {
  using Both = Sequence<Library<Hmc>, SliceWalk>;
  EXPECT_THROW(make_engine(factory<Both>(), make_case<Both>()), std::invalid_argument);
}

TEST(OwnData, NewPositionsBeginAnew) {
  const BatchCase c = make_case<Tours>();
  const auto e = make_engine(factory<Tours>(), c);
  e->advance(make_launch(c, 0, 5));
  EXPECT_THAT(e->fields(), ::testing::Contains(::testing::Ne(0.0)));
  e->set_position(e->position());
  EXPECT_THAT(e->fields(), ::testing::Each(0.0));
}

}  // namespace
