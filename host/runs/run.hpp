// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "host/runs/stages.hpp"
#include "host/runs/units.hpp"
#include "host/util/clock.hpp"
#include "host/util/interrupt.hpp"
#include "host/util/processes.hpp"

namespace lockstep {

/// A launch that is over, for those who record it. What the engine has summed since it was taken last is taken
/// once, by whoever asks first.
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

/// A recorder takes from every launch what it is there for, and lists its state for checkpoints.
template <class T>
concept Recorder = requires(T recorder, Launched& launched, Checkpoint& archive) {
  recorder.record(launched);
  recorder.fields(archive);
};

/// What a run may do where a launch has ended.
enum class Pace {
  inside,  // nothing: a launch that was cut short for somebody's sake, or a run that others save and stop
  whole,   // be saved, or stop where the user asks
  enough   // end
};

/// The loop of every run: launches of an engine, recorded one by one, and between them what the host has to
/// do; saved, interrupted and gone on with between launches without a bit's difference.
struct RunLoop {
  const RunContext& context;
  Engine& engine;
  std::string name;         // of its state in a checkpoint
  std::int64_t end;         // iterations
  LaunchSpec launch = {};   // what launches have in common; place and between may change it
  std::uint32_t first = 0;  // the number of iteration 0, by which its draws are made
  /// As progress has it. What is interrupted while "sampling" keeps what it has; any other stage is of use
  /// whole alone, and throws Interrupted.
  std::string stage = "sampling";
  std::int64_t t = 0;        // iterations done
  bool interrupted = false;  // at t < end
  double seconds = 0;        // before an interruption, too

  /// begin(taken_up): sets the engine up, and where nothing was taken up its chains. place(launch): where the
  /// launch that begins at t ends, before `end`, and what it keeps. between(): a Pace, when the launch is
  /// recorded. Order of calls: place, record of each, between.
  template <class Begin, class Place, class Between, Recorder... Recorders>
  void run(Begin&& begin, Place&& place, Between&& between, Recorders&... recorders) {
    std::vector<double> state;
    const auto fields = [&](Checkpoint& c) {
      c("iteration", t);
      c("seconds", seconds);
      c("short_steps", launch.short_steps);
      c("state", state);
      int k = 0;
      (c("recorder " + std::to_string(k++), recorders), ...);
    };
    const bool taken_up = context.stages->take_up(name, fields);
    begin(taken_up);
    if (taken_up) engine.set_state(state);
    const auto clock = Clock::now();
    const double before = seconds;
    while (t < end) {
      launch.begin = first + std::uint32_t(t);
      launch.end = first + std::uint32_t(end);
      place(launch);
      engine.advance(launch);
      Launched launched(engine, launch);
      (recorders.record(launched), ...);
      t = launch.end - first;
      const Pace pace = between();
      if (pace == Pace::enough) break;
      if (pace == Pace::whole) {
        interrupted = t < end && Processes::all().interrupted();
        if (t < end)
          context.stages->save(name, interrupted, fields, [&] {
            state = engine.state();
            seconds = before + seconds_since(clock);
          });
      }
      context.progress(stage, double(t) / double(end));
      if (interrupted && stage != "sampling") throw Interrupted();
      if (interrupted) break;
    }
    seconds = before + seconds_since(clock);
  }
};

}  // namespace lockstep
