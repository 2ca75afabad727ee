// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/engines/units.hpp"
#include "host/options/options.hpp"
#include "host/options/sampler_config.hpp"
#include "host/util/progress.hpp"

namespace lockstep {

/// Device, precision, threads and stream key of a run; an exchange. Under `--device cuda` without a usable GPU:
/// UserError; under `auto` the CPU, of all where one has no GPU. `label`: the setting's, empty for a single run.
RunContext make_context(const RunOptions& run, const TargetInstance& target, const std::string& label);

/// Says on standard error, once, that `--device auto` found no GPU. For when nothing can be refused any more.
void say_device(const RunOptions& run, const RunContext& context);

/// Says on standard error, once for each target, that its data are simulated where none were given.
void say_simulated(const RunOptions& run);

/// The device a context computes on, for summaries: "cpu (AVX-512, 2 threads)" or the GPU's name.
std::string device_name(const RunContext& context);

/// What a run holds in memory at a time.
struct RunSize {
  int dim = 1;
  std::int64_t units = 1, chains = 1;          // recorded: units x chains
  std::int64_t adapting_units = 1, crowd = 1;  // adapting: units x chains, where that is more
  double iterations = 1e18;                    // recorded
  std::int64_t particles = 0;                  // of the scout for each adapting unit; 0: there is none
  double stored_draws = 0;                     // of all chains together
  bool weighted_draws = false;                 // with the states behind them
  double overview = 0;                         // iterations at which x of all chains is kept
  bool covariance = false;
  bool saved = false;  // to a checkpoint, in between
  const TransitionInfo* transition = nullptr;
  std::vector<const TransitionInfo*> then = {};  // of EngineSpec
  bool searches = false;                         // for modes; chains then jump between them
  double network = 0;  // numbers of a network of wormholes between them, of each unit
  int trace = 0;       // iterations of a launch whose inverse temperatures are kept
};

/// The size of `sample`, and of a setting of a study: at most so many draws as its budget could ever pay for.
RunSize run_size(const RunOptions& run, const SamplerConfig& config, int dim, int units, bool pooled);

/// Says on standard error what the scout of a run takes in over kMostSearchedDim dimensions, where it has hundreds of
/// levels to go, and how to do without.
void say_scout(const RunOptions& run, const RunSize& size);

/// Bytes that a run needs at its largest: scouting, adapting, or recording, with the copies that saving its
/// state and its draws takes. Engines are on the host, or on the device where the run is. Of all processes of
/// this machine: each has a share of the chains on its engines, and the numbers of all chains beside them. Of
/// one GPU, where there are several. Printed before anything of its size is allocated.
struct MemoryPlan {
  double host = 0, device = 0;
};
MemoryPlan planned_memory(const RunContext& context, const ModelSpec& model, const RunSize& size);

/// Prints the memory plan, or throws UserError when the machine or its GPU has less. `advice`: what to do.
void check_memory(const MemoryPlan& plan, bool quiet,
                  const std::string& advice = "Lower --chains, raise --thin, or leave out --draws");

}  // namespace lockstep
