// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "host/engines/stages.hpp"
#include "host/engines/units.hpp"
#include "host/util/clock.hpp"
#include "host/util/interrupt.hpp"
#include "host/util/processes.hpp"

namespace lockstep {

/// Iterations of the first launches and batches.
inline constexpr std::int64_t kChunk = 64;

/// A launch that is over, for its recorders: they have record(launched), and fields(archive) for checkpoints.
/// What the engine has summed since it was taken last is taken once, by whoever asks first.
class Launched {
 public:
  Launched(Engine& of, const LaunchSpec& what) : engine(of), spec(what) {}
  Engine& engine;
  const LaunchSpec& spec;

  int chains() const { return engine.chains(); }
  const std::vector<double>& stats() {
    return taken(stats_, [&] { return engine.take_stats(); });
  }
  const std::vector<double>& moments() {
    return taken(moments_, [&] { return engine.take_moments(); });
  }
  const std::vector<double>& trace() {
    return taken(trace_, [&] { return engine.trace(); });
  }

 private:
  template <class Take>
  static const std::vector<double>& taken(std::vector<double>& to, Take&& take) {
    if (to.empty()) to = take();
    return to;
  }
  std::vector<double> stats_, moments_, trace_;
};

/// The loop of every run: launches of an engine, and between them what the host has to do; saved, interrupted
/// and gone on with between launches without a bit's difference. Whoever runs it holds the reins:
///
///     if (!loop.take_up(recorder)) engine.set_position(..), engine.initialize();
///     while (loop.next()) {
///       loop.launch.end = ..;  // and what this launch keeps
///       Launched launched = loop.advance();
///       recorder.record(launched);
///       loop.save(recorder);
///       loop.tell();
///     }
struct RunLoop {
  const RunContext& context;
  Engine& engine;
  std::string name;         // of its state in a checkpoint
  std::int64_t end;         // iterations
  LaunchSpec launch = {};   // of the next launch; next() sets its begin, and its end to that of the run
  std::uint32_t first = 0;  // the number of iteration 0, by which its draws are made
  /// As progress has it. What is interrupted while "sampling" keeps what it has; any other stage is of use
  /// whole alone, and throws Interrupted.
  std::string stage = "sampling";
  std::int64_t t = 0;        // iterations done
  bool interrupted = false;  // at t < end
  // Its own:
  double before = 0;  // seconds, up to the time of the clock
  Clock::time_point clock = Clock::now();
  std::vector<double> state = {};  // of the chains, on its way to a checkpoint or back

  /// Whether the checkpoint was made in the midst of this loop. Then the recorders are as they were, and so
  /// are the chains from the first next() on, by when the engine's parameters must be set.
  template <class... Recorders>
  bool take_up(Recorders&... recorders) {
    return context.stages->take_up(name, [&](Checkpoint& c) { fields(c, recorders...); });
  }
  /// Whether there is another launch.
  bool next() {
    if (!state.empty()) engine.set_state(std::exchange(state, {}));
    if (interrupted && stage != "sampling") throw Interrupted();
    launch.begin = first + std::uint32_t(t);
    launch.end = first + std::uint32_t(end);
    return t < end && !interrupted;
  }
  Launched advance() {
    engine.advance(launch);
    t = launch.end - first;
    return {engine, launch};
  }
  /// Where the run may rest: saves it where it is time to, and ends it where the user wants to stop; at its end
  /// too, where more is to come.
  template <class... Recorders>
  void save(Recorders&... recorders) {
    if (t >= end && stage == "sampling") return;
    interrupted = Processes::all().interrupted();
    if (!context.stages->due(interrupted)) return;
    state = engine.state();
    context.stages->save(name, interrupted, [&](Checkpoint& c) { fields(c, recorders...); });
    state.clear();
  }
  double share() const { return double(t) / double(end); }
  void tell(const RunHealth& health) const { context.tell(stage, share(), health); }
  /// The same, of what the engine itself has counted.
  void tell() const {
    if (context.progress->tell(stage, share())) context.show(counts_of(engine));
  }
  /// So far, and before an interruption, too.
  double seconds() const { return before + seconds_since(clock); }

  template <class... Recorders>
  void fields(Checkpoint& c, Recorders&... recorders) {
    before = seconds();
    clock = Clock::now();
    c("iteration", t);
    c("seconds", before);
    c("short_steps", launch.short_steps);
    c("state", state);
    int k = 0;
    (c("recorder " + std::to_string(k++), recorders), ...);
  }
};

/// Takes what goes level by level (step, tell, finish) up where a checkpoint has it, and to its end, saved between levels.
template <class Run>
auto run_levels(Stages& stages, Run& run) {
  stages.take_up("levels", run);
  while (run.step()) {
    stages.save("levels", run);
    run.tell();
  }
  return run.finish();
}

}  // namespace lockstep
