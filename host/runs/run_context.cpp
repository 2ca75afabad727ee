// SPDX-License-Identifier: Apache-2.0
#include "host/runs/run_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <latch>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "host/modes/mode_base.hpp"
#include "host/modes/search_result.hpp"
#include "host/modes/wormhole_network.hpp"
#include "host/runs/draw_plan.hpp"
#include "host/runs/recording.hpp"
#include "host/runs/scout.hpp"
#include "host/util/errors.hpp"
#include "host/util/memory.hpp"
#include "host/util/peak.hpp"
#include "host/util/processes.hpp"
#include "host/util/program.hpp"
#include "kernels/base.hpp"
#include "targets/registry.hpp"
#ifdef LOCKSTEP_CUDA
#include "targets/cuda_device.hpp"
#endif

namespace lockstep {
namespace {

/// OpenMP ends the program where the system has no room for its threads: whether it has is asked before.
void check_threads(int threads) {
  if (threads <= default_threads()) return;
  std::latch started(1);
  std::vector<std::jthread> all;  // end when the latch opens
  try {
    for (int i = 0; i < threads; ++i) all.emplace_back([&] { started.wait(); });
  } catch (const std::system_error& error) {
    started.count_down();
    throw UserError(fmt::format(
        "--threads is {}, and the system starts {} at most ({}). Give fewer, such as the default, {}",
        threads, all.size(), error.code().message(), default_threads()));
  }
  started.count_down();
}

#ifdef LOCKSTEP_CUDA
/// The GPUs of this process, among those that see the same ones: each its part of them, or several one.
std::vector<int> own_devices(const Processes& processes) {
  std::vector<int> own;
  for (int d = processes.rank_here(); d < cuda_devices(); d += processes.here()) own.push_back(d);
  return own;
}
#endif

}  // namespace

RunContext make_context(const RunOptions& run, const TargetInstance& target, const std::string& label) {
  RunContext c;
  c.target = &target;
  c.key = make_stream_key(run.seed, label);
  c.precision = run.precision == "single"   ? Precision::single
                : run.precision == "double" ? Precision::double_
                                            : Precision::mixed;
  Processes& processes = Processes::all();
  c.threads = run.threads > 0           ? run.threads
              : processes.threads() > 0 ? processes.threads()
                                        : default_threads();
  check_threads(c.threads);
#ifdef LOCKSTEP_CUDA
  if (run.device != "cpu") {
    use_cuda_device(processes.rank_here());
    c.cuda = cuda_available();
    c.devices = own_devices(processes);
  }
  if (run.device == "cuda" && !c.cuda)
    throw UserError(
        "there is no usable CUDA device (--device cuda needs one). Use --device cpu, or auto to take "
        "whichever there is");
#else
  if (run.device == "cuda")
    throw UserError(
        "this build has no CUDA back end (--device cuda needs one). Use --device cpu, or build where "
        "nvcc is installed");
#endif
  // Other bits would come from another device: it is the same in all.
  c.cuda = processes.sum(c.cuda) == processes.size();
  if (!c.cuda) c.devices.clear();
  c.all_threads = int(processes.sum(c.threads));
  c.shards = int(processes.sum(std::max(1, int(c.devices.size()))));
  return c;
}

void say_device(const RunOptions& run, const RunContext& context) {
  static bool said = false;  // once, however many settings a study has
  if (run.device == "auto" && !context.cuda && !run.quiet && !std::exchange(said, true))
    say("no usable GPU: computing on the CPU");
}

void say_simulated(const RunOptions& run) {
  static std::set<std::string> said;
  const TargetEntry* target = find_target(run.target);
  if (run.quiet || !run.data.empty() || target == nullptr) return;
  for (const auto& [key, meaning] : target->info().settings)
    if (meaning.starts_with("seed of simulated data") && said.insert(run.target).second)
      say(fmt::format("data of {}: simulated, for none are given (--data; lockstep targets {})", run.target,
                      run.target));
}

void say_scout(const RunOptions& run, const RunSize& size) {
  if (size.particles == 0 || size.dim <= kMostSearchedDim || run.quiet) return;
  say(fmt::format(
      "a scout goes first, by sequential Monte Carlo in {} dimensions: {:.2g} gradients or several times "
      "that; none is "
      "needed with --init uniform:2 by samplers nuts and hmc, or pe with sampler.instrument=tempered and a "
      "sampler.beta_min",
      size.dim, double(size.adapting_units) * most_scout_gradients(size.particles)));
}

std::string device_name([[maybe_unused]] const RunContext& context) {
#ifdef LOCKSTEP_CUDA
  if (context.cuda) return cuda_device_name();
#endif
  return fmt::format("cpu ({})", cpu_isa());
}

RunSize run_size(const RunOptions& run, const SamplerConfig& config, int dim, int units, bool pooled) {
  RunSize s;
  s.dim = dim;
  s.units = units;
  s.chains = run.chains;
  s.adapting_units = pooled ? 1 : units;
  s.crowd = std::max<std::int64_t>(pooled ? std::int64_t(units) * run.chains : run.chains,
                                   config.adapt ? config.warmup_chains : 1);
  if (config.instrument == SamplerConfig::Instrument::bridge || run.init == "scout")
    s.particles = config.scout_particles;
  const double of_one = config.model.pseudo_samples;
  // A transition takes one leapfrog step at least.
  s.iterations =
      run.gradients > 0 ? std::min(run.gradients / (of_one * run.chains), 1e18) : double(run.iterations);
  s.saved = !run.out.empty();
  s.transition = config.transition;
  const auto& shared = config.transition->shared;
  if (std::find(shared.begin(), shared.end(), "network") != shared.end())
    s.network = most_network_numbers(dim, network_plan(config.settings));
  if (config.regeneration) s.then = {find_transition("regeneration")};
  s.weighted_draws = run.weighted_draws;
  const DrawPlan plan =
      plan_draws(run.draws, run.chains, std::int64_t(s.iterations / run.thin) + 1, run.thin);
  s.stored_draws = double(plan.window) * double(plan.chains.size());
  if (run.warmup_draws) s.stored_draws += (double(run.warmup) / run.thin + 1) * run.chains;
  return s;
}

/// Bytes of its engines, and numbers beside them. Descents side by side, differences of gradients, a round's starts with their
/// gradients and once more those that descend, and the library, which outlives them.
static std::pair<double, double> search_memory(const RunContext& context, int dim) {
  EngineSpec descents = engine_spec(context, {}, {0}, kTile);
  descents.transition = find_transition("lbfgs");
  descents.precision = Precision::double_;
  const double d = dim, at_once = descents_at_once(dim), around = std::clamp(2 * d, 256.0, 1024.0);
  return {std::ceil((at_once + around) / kTile) * double(context.target->engine(descents)->bytes()),
          5 * d * (at_once + 2 * d) + 3 * d * starts_at_once(dim) + 2 * d * d * most_modes(dim)};
}

MemoryPlan planned_memory(const RunContext& context, const ModelSpec& model, const RunSize& size) {
  const double n = model.pseudo_samples, d = size.dim;
  const double rows = n * (d + 1), sums = kStatRows;
  const double particles = double(size.adapting_units) * double(size.particles);
  const double crowd = double(size.adapting_units) * double(size.crowd);
  const double chains = double(size.units) * double(size.chains);
  // An engine is as large as one of few chains, times how many there will be.
  const auto engine = [&](const ModelSpec& m, double units, double per, bool recording) {
    const double count = units * per;
    // Parameters alone may be too many, of dense metrics: then not even a few chains are to be made.
    const double parameters = 4 * count * ParameterLayout{size.dim, m.dense_metric, m.base}.rows();
    if (parameters > available_memory()) return parameters;
    EngineSpec spec = engine_spec(context, m, {0}, kTile);
    spec.covariance = recording && size.covariance;
    spec.trace = recording ? size.trace : 0;
    if (m.kind == model.kind) spec.transition = size.transition, spec.then = size.then;
    double lists = 0;  // of modes and components, of each unit, and once more on the host
    if (m.kind == model.kind && size.searches) {
      if (!transition_of(spec).alone) spec.then.push_back(find_transition("mode_jump"));
      lists = 2 * 8 * units * (2 * most_used_modes(size.dim) + 1) * (d + 1) * (d + 1);
      lists += 3 * 8 * units * size.network;
    }
    if (count == 0) return 0.0;
    // A base's numbers: of each unit, or where a tile has chains of several, of each chain.
    const double bases = m.base == 0 ? 0 : units == 1 || std::fmod(per, kTile) == 0 ? units : count;
    return lists + std::ceil(count / kTile) * double(context.target->engine(spec)->bytes()) +
           8 * bases * (size.searches ? most_base_numbers(size.dim) : NormalMixture::length(1, size.dim));
  };
  MemoryPlan plan;
  const Processes& processes = Processes::all();
  const double here = processes.here(), share = here / processes.size();
  // Beside the engine stand copies of what is read from it, and of what goes into it: so many numbers.
  const auto stage = [&](double of_engine, double numbers) {
    plan.host = std::max(plan.host, 8 * numbers * here + (context.cuda ? 0 : of_engine * share));
    if (context.cuda) plan.device = std::max(plan.device, of_engine / context.shards);
  };
  // What chains carry beside their positions is read, handed on and set as a whole.
  double carried = 0;
  for (const TransitionField& field :
       size.transition == nullptr ? std::vector<TransitionField>{} : size.transition->fields)
    if (field.saved) carried += 6 * field.rows(int(rows));
  ModelSpec path;
  path.kind = ModelKind::path;
  stage(engine(path, size.adapting_units, double(size.particles), false), particles * 8 * d);
  stage(engine(model, size.adapting_units, double(size.crowd), false),
        particles * d + crowd * (3 * rows + sums + carried));
  const auto stage_of_search = [&](double beside) {
    if (!size.searches || size.dim > kMostSearchedDim) return;
    const auto [of_engines, numbers] = search_memory(context, size.dim);
    stage(of_engines, beside + numbers);
  };
  stage_of_search(particles * d + crowd * rows);
  // As many as Batches keeps, with the room that a growing vector has, and once more in a result.
  const double most = std::clamp(8192.0 / double(size.chains), 8.0, 128.0);
  const double batches = std::min(most, std::ceil(size.iterations / kChunk)),
               room = batches == 0 ? 0 : double(std::bit_ceil(std::uint64_t(batches)));
  const double moments =
      MomentLayout{size.dim, int(context.target->quantities().size()), size.covariance}.rows();
  const double draws = size.stored_draws;
  const double bytes_of_draw =
      4 * (d + int(kDrawExtraRows)) + (n > 1 && size.weighted_draws ? 8 * n * (d + 2) : 0);
  const double quantities = double(context.target->quantities().size());
  // What a launch stores, in the engine and as it is read; the overview, with its room to grow.
  const double of_launch = 4 * (std::min(draws * (d + int(kDrawExtraRows)), double(kLaunchDraws)) +
                                std::min(size.overview, double(kChunk)) * chains * (d + kOverviewExtraRows));
  const double overview = size.overview * chains;
  const double saved = size.saved ? 2 * rows + moments * batches : 0;
  const double recorded = chains * moments * (room + batches);
  stage(engine(model, size.units, double(size.chains), true) + of_launch,
        chains * (rows + 1 + 2 * n + sums + moments + saved + carried) + recorded + of_launch / 8 +
            overview * (d + kOverviewExtraRows) +
            draws / 8 * 2 * bytes_of_draw);  // once more in a checkpoint
  // Figures of all draws, where all are stored, or of the overview; in double, and tables of one parameter.
  const double seen = overview > 0 ? overview : draws;
  const double kept = recorded + draws / 8 * bytes_of_draw + overview * (d + kOverviewExtraRows) / 2;
  stage_of_search(kept);  // from where chains have been
  stage(0, kept + seen * (d + quantities + 10));
  return plan;
}

void check_memory(const MemoryPlan& plan, bool quiet, const std::string& advice) {
  const auto gib = [](double bytes) { return fmt::format("{:.1f} GiB", bytes / 1073741824); };
  const double have = available_memory();
  if (plan.host > 0.9 * have)
    throw UserError(
        fmt::format("the run needs about {} of memory and {} are available (it would be killed). {}",
                    gib(plan.host), gib(have), advice));
  std::string of_device;
#ifdef LOCKSTEP_CUDA
  if (plan.device > 0) {
    const double free = double(cuda_free_memory());
    if (plan.device > 0.95 * free)
      throw UserError(
          fmt::format("the run needs about {} of the GPU's memory and {} are free (it would fail). Lower "
                      "--chains, or use --device cpu",
                      gib(plan.device), gib(free)));
    of_device =
        fmt::format("; on the GPU {:.1f} MiB of {:.0f} MiB free", plan.device / 1048576, free / 1048576);
  }
#endif
  if (!quiet)
    say(fmt::format("memory plan: {:.1f} MiB of {:.0f} MiB available{}", plan.host / 1048576, have / 1048576,
                    of_device));
}

}  // namespace lockstep
