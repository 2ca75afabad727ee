// SPDX-License-Identifier: Apache-2.0
// A run that is stopped at any of its launches, in scout, warm-up or sampling, and gone on with, gives the bits
// of one that was never stopped: for every loop that a run may have.
#include <gtest/gtest.h>

#include <functional>

#include "host/modes/mode_search.hpp"
#include "host/options/evidence_config.hpp"
#include "host/paths/annealing.hpp"
#include "host/paths/evidence_methods.hpp"
#include "host/paths/parallel_tempering.hpp"
#include "host/runs/chain_run.hpp"
#include "host/runs/run_context.hpp"
#include "host/util/interrupt.hpp"
#include "targets/registry.hpp"
#include "targets/transitions.hpp"
#include "tests/support/own_data.hpp"
#include "tests/support/run_python.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using Numbers = std::vector<double>;

template <class... More>
Numbers joined(Numbers first, const More&... more) {
  (first.insert(first.end(), more.begin(), more.end()), ...);
  return first;
}

/// Counts the calls, and stops a run at one of them.
struct Stopper : Progress {
  int called = 0, stop_after = 0;
  bool tell(const std::string&, double) override {
    if (++called == stop_after) throw Interrupted();
    return false;
  }
};

class StoppedAnywhere : public testing::FolderTest {
 protected:
  /// The numbers of `run` in a context that stops it after so many calls of progress (0: never), saving
  /// between all launches; how many there were.
  Numbers numbers(RunContext context, int stop_after, bool resume, int* calls = nullptr) {
    const auto stopper = std::make_shared<Stopper>();
    stopper->stop_after = stop_after;
    context.stages = std::make_shared<Stages>(
        CheckpointPlan{folder_ / "checkpoint", "this run", stop_after > 0 ? 1e-9 : 0, resume});
    context.progress = stopper;
    const Numbers all = run_(context);
    if (calls != nullptr) *calls = stopper->called;
    return all;
  }

  void agrees(const RunContext& context, std::function<Numbers(const RunContext&)> run) {
    run_ = std::move(run);
    int calls = 0;
    const Numbers whole = numbers(context, 0, false, &calls);
    ASSERT_GT(calls, 10);
    for (const double v : whole) ASSERT_FALSE(std::isnan(v));
    int tried = 0;
    // The last ones too: they are of the sampling, which is a few launches.
    for (int stop = 1; stop < calls; stop += std::max(1, std::min(1 + stop / 4, calls - 4 - stop))) {
      std::filesystem::remove(folder_ / "checkpoint");
      EXPECT_THROW(numbers(context, stop, false), Interrupted);
      const bool saved = std::filesystem::exists(folder_ / "checkpoint");
      int again = 0;
      EXPECT_EQ(numbers(context, 0, saved, &again), whole)
          << "stopped after call " << stop << " of " << calls;
      if (saved) {
        EXPECT_LT(again, calls) << "nothing was done twice";
        ++tried;
      }
    }
    EXPECT_GT(tried, 3);
  }

 private:
  std::function<Numbers(const RunContext&)> run_;
};

void sampler_agrees(
    const testing::Job& job, const std::function<void(ChainRunOptions&)>& change,
    const std::function<void(const RunContext&, std::function<Numbers(const RunContext&)>)>& test,
    const Transitions& transitions = transition_registry()) {
  const RunOptions run = testing::run_of(job);
  const auto target = build_target(run);
  const SamplerConfig config = sampler_config(run, target->dim(), target->tails(), transitions);
  ChainRunOptions options{run, {0, 1}};
  change(options);
  test(make_context(run, *target, "stops"), [&](const RunContext& context) {
    const ChainRunResult r = run_chains(context, config, options);
    Numbers all = joined(r.frozen.step_size, r.frozen.trajectory_time, r.frozen.scale,
                         r.frozen.warmup_gradients, r.frozen.search_gradients);
    for (const UnitMoments& u : r.units) all = joined(all, u.sums, u.stats);
    for (const LogZ& z : r.log_z) all = joined(all, Numbers{z.estimate, z.se});
    return joined(all, r.draws.x(), r.warmup.x(), r.warmup_step_size);
  });
}

TEST_F(StoppedAnywhere, PseudoExtended) {
  sampler_agrees(
      {.target = "mixture20", .iterations = 300, .chains = 8, .warmup = 60},
      [](ChainRunOptions& o) { o.draws = 200; }, [&](const RunContext& c, auto run) { agrees(c, run); });
}

// Of few particles some axes come out too narrow: bases are widened.
TEST_F(StoppedAnywhere, BasesThatAreWidened) {
  const testing::Job job{.target = "gaussian",
                         .target_settings = {{"dim", 20}},
                         .sampler_settings = {{"scout_particles", 16}},
                         .iterations = 200,
                         .chains = 8,
                         .warmup = 100,
                         .replicates = 2};
  EXPECT_TRUE(std::isfinite(testing::run(job).result.frozen.warmup_log_z[0]));
  sampler_agrees(
      job, [](ChainRunOptions&) {}, [&](const RunContext& c, auto run) { agrees(c, run); });
}

TEST_F(StoppedAnywhere, LearnedMetricWithDrawsOfTheWarmUp) {
  sampler_agrees(
      {.target = "banana",
       .sampler = "hmc",
       .sampler_settings = {{"metric", "dense"}},
       .iterations = 200,
       .chains = 8,
       .warmup = 300},
      [](ChainRunOptions& o) {
        o.units = {0};
        o.draws = 400;
        o.warmup_draws = true;
      },
      [&](const RunContext& c, auto run) { agrees(c, run); });
}

TEST_F(StoppedAnywhere, ABudgetThatIsSpentAsItComes) {  // of three units, at a boundary each
  sampler_agrees(
      {.target = "banana", .sampler = "implicit midpoint", .chains = 8, .warmup = 60},
      [](ChainRunOptions& o) {
        o.gradients = 5e4, o.units = {0, 1, 2};
      },
      [&](const RunContext& c, auto run) { agrees(c, run); },
      {find_transition("hmc"), &cpu_transitions<testing::ImplicitMidpoint>()});
}

TEST_F(StoppedAnywhere, RegenerationsThatLearn) {
  sampler_agrees(
      {.target = "two_modes",
       .sampler = "hmc",
       .sampler_settings = {{"regeneration", true}, {"mode_jumps", false}, {"adaptations", 2}},
       .iterations = 400,
       .chains = 8,
       .warmup = 60},
      [](ChainRunOptions& o) { o.searches = true, o.planned = 4e4; },
      [&](const RunContext& c, auto run) { agrees(c, run); });
}

SearchResult modes_of(const testing::Job& job, const std::function<void(ChainRunOptions&)>& change) {
  const RunOptions run = testing::run_of(job);
  const auto target = build_target(run);
  ChainRunOptions options{run, {0}};
  change(options);
  const SamplerConfig config = sampler_config(run, target->dim(), target->tails());
  return run_chains(make_context(run, *target, "stops"), config, options).modes[0];
}

// The search may spend next to nothing: chains come upon more, and are warmed up again.
TEST_F(StoppedAnywhere, WarmUpsThatCameUponModes) {
  const testing::Job job{.target = "mixture20", .iterations = 200, .chains = 32, .warmup = 60};
  const auto change = [](ChainRunOptions& o) {
    o.units = {0}, o.searches = true, o.planned = 100, o.init_scale = 0.3, o.overview = 100;
  };
  EXPECT_GT(modes_of(job, change).met, 0);
  sampler_agrees(job, change, [&](const RunContext& c, auto run) { agrees(c, run); });
}

// What iterations cost is known after the warm-up: the search goes on.
TEST_F(StoppedAnywhere, SearchesThatGoOn) {
  const testing::Job job{.target = "mixture20",
                         .sampler_settings = {{"num_leapfrog", 256}},
                         .iterations = 200,
                         .chains = 8,
                         .warmup = 20};
  const auto change = [](ChainRunOptions& o) { o.units = {0}, o.searches = true, o.overview = 100; };
  EXPECT_GT(modes_of(job, change).starts, 5000);  // 2,048 by what a descent costs
  sampler_agrees(job, change, [&](const RunContext& c, auto run) { agrees(c, run); });
}

Numbers of_search(const SearchResult& r) {
  Numbers all = {r.starts, r.ended, r.rejected, r.gradients, double(r.library.size())};
  for (int k = 0; k < r.library.size(); ++k)
    all = joined(all, r.library[k].place, Numbers{r.library[k].log_mass, r.library[k].hits});
  return all;
}

TEST_F(StoppedAnywhere, SearchForModes) {
  const RunOptions run = testing::run_of({.target = "mixture20"});
  const auto target = build_target(run);
  agrees(make_context(run, *target, "stops"), [&](const RunContext& context) {
    return of_search(search_modes(context, 0, {.gradients = 1.5e6}));
  });
  agrees(make_context(run, *target, "stops"), [&](const RunContext& context) {
    return of_search(search_modes(
        context, 0, {.gradients = 4e5, .first_starts = 4, .residual = ResidualEnergyOf::difference}));
  });
}
/// A normal target of 3 dimensions from a wider base.
struct Path {
  RunOptions run = testing::run_of({.target = "gaussian", .target_settings = {{"dim", 3}}});
  std::unique_ptr<TargetInstance> target = build_target(run);
  RunContext context = make_context(run, *target, "stops");
  PathBase base =
      PathBase::from_moments(Eigen::Vector3d::Ones(), 9 * Eigen::Matrix3d::Identity(), 1, 0.5, "given");
  static Pilot pilot(const RunContext& context, const PathBase& base) {
    PilotOptions p;
    p.particles = p.seeds = 64;
    return pilot_stage(context, "pilot", base, p);
  }
  static Numbers of(const PathRunResult& r) {
    return joined(r.moments.mean, r.moments.mean_se, r.draws.x, r.draws.log_weight,
                  Numbers{r.acceptance, r.gradients, r.round_trips, double(r.iterations)});
  }
};

TEST_F(StoppedAnywhere, TemperedChains) {
  for (const Tempering tempering : {Tempering::levels, Tempering::joint}) {
    const Path path;
    TemperedOptions o;
    o.tempering = tempering;
    o.moves.control = tempering == Tempering::joint ? Control::logistic : Control::none;
    o.chains = 64;
    o.gradients = 64 * 5 * 600;
    o.se = 1e-4;
    o.draw_limit = 16;
    agrees(path.context, [&](const RunContext& context) {
      const TemperedResult r = run_tempered(context, path.base, Path::pilot(context, path.base), o);
      return joined(Path::of(r),
                    Numbers{r.ends.estimate, r.stepping.estimate, r.stepping.se, r.drift.estimate});
    });
  }
}

// Search, scout, pilots, a base of modes with its draws, and chains that jump between them.
TEST_F(StoppedAnywhere, EvidenceFromABaseOfModes) {
  for (const auto& [method, gradients] : {std::pair{"st", 4e5}, {"smc", 6e4}}) {
    RunOptions run;
    run.command = "evidence";
    run.target = "mixture20";
    run.sampler = method;
    run.gradients = gradients;
    run.chains = 0;
    run.device = "cpu";
    run.threads = 1;
    const auto target = build_target(run);
    const EvidenceConfig config = evidence_config(run, target->dim(), target->tails());
    agrees(make_context(run, *target, "stops"), [&](const RunContext& context) {
      const MethodResult f = run_on_path(context, {config, run, true});
      EXPECT_TRUE(f.diagnostics.modes.base);
      return joined(f.moments.mean, f.moments.mean_se, f.draws.x, f.draws.log_weight, f.diagnostics.schedule,
                    Numbers{f.log_z.estimate, f.log_z.se, f.gradients, f.preparation, f.iterations});
    });
  }
}

TEST_F(StoppedAnywhere, ParallelTempering) {
  const Path path;
  ParallelTemperingOptions o;
  o.ladder = {0, 0.2, 0.6, 1};
  o.copies = 16;
  o.gradients = 64 * 5 * 500;
  o.se = 1e-4;
  agrees(path.context, [&](const RunContext& context) {
    const auto r = run_parallel_tempering(context, path.base, Path::pilot(context, path.base), o);
    return joined(Path::of(r), r.samples.ladder, r.samples.delta, r.rejection);
  });
}

TEST_F(StoppedAnywhere, AnnealingBothWays) {
  const Path path;
  agrees(path.context, [&](const RunContext& context) {
    const Pilot pilot = Path::pilot(context, path.base);
    AnnealingOptions o;
    for (int k = 0; k <= 1000; ++k) o.ladder.push_back(k / 1000.0);
    for (const double beta : o.ladder) o.step_size.push_back(pilot.step_size_at(beta, pilot.barriers()));
    o.runs = 32;
    o.linger = 100;  // in two launches
    Numbers all;
    for (const bool reverse : {false, true}) {
      o.reverse = reverse;
      Stage<AnnealingResult> stage(*context.stages, reverse ? "back" : "forward");
      const auto& r = stage.done() ? stage.result() : stage.keep(anneal(context, path.base, o));
      all = joined(all, r.log_weight, r.position, Numbers{r.acceptance, r.gradients});
      for (const auto& row : r.drift) all = joined(all, row);
    }
    return all;
  });
}

}  // namespace
}  // namespace lockstep
