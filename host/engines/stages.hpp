// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/engines/checkpoint.hpp"
#include "host/util/clock.hpp"
#include "host/util/processes.hpp"

namespace lockstep {

/// What a run has behind it and what it is in the midst of, for its checkpoint: the results of the stages that
/// are finished (a base, a pilot, a warm-up), and the state of the loop that is running. A run that is gone on
/// with finds finished stages as they were, takes up its loop where it was, and gives the same bits as one
/// that was never stopped.
class Stages {
 public:
  Stages() = default;  // of a run that keeps nothing
  /// Reads the checkpoint where the plan is to resume; UserError when that cannot be.
  explicit Stages(CheckpointPlan plan);
  /// Wall time of the run before it was stopped, 0 of one that was not.
  double seconds_before() const { return seconds_before_; }

  /// When the loop `name` begins: whether the checkpoint was made in its midst. Then what `fields(archive)`
  /// lists is as it was.
  template <class Fields>
  bool take_up(const std::string& name, Fields&& fields) {
    const std::string key = scope_ + name;
    if (!saved_ || !saved_->holds(key)) return false;
    Listed<Fields> state{fields};
    (*saved_)(key, state);
    saved_.reset();
    return true;
  }
  /// Between two rounds of a loop: whether it is time to save, or the run ends here (`stops`).
  bool due(bool stops) { return !ended_ && plan_.due(stops); }
  /// Then: saves what `fields(archive)` lists of the loop `name`.
  template <class Fields>
  void save(const std::string& name, bool stops, Fields&& fields) {
    ended_ = stops;
    Checkpoint now;
    double seconds = seconds_before_ + seconds_since(begun_);
    now("seconds", seconds);
    for (const auto& add : finished_) add(now);
    Listed<Fields> state{fields};
    now(scope_ + name, state);
    plan_.write(now);
  }

  /// The same of a loop that lists its own fields; saves it where it is time to.
  template <class Loop>
  requires requires(Loop& loop, Checkpoint& c) { loop.fields(c); }
  bool take_up(const std::string& name, Loop& loop) {
    return take_up(name, [&](Checkpoint& c) { c("state", loop); });
  }
  template <class Loop>
  void save(const std::string& name, Loop& loop) {
    const bool stops = Processes::all().interrupted();
    if (due(stops)) save(name, stops, [&](Checkpoint& c) { c("state", loop); });
  }

 private:
  template <class T>
  friend class Stage;
  template <class Fields>
  struct Listed {
    Fields& list;
    template <class Archive>
    void fields(Archive& archive) {
      list(archive);
    }
  };

  CheckpointPlan plan_;
  Clock::time_point begun_ = Clock::now();
  double seconds_before_ = 0;
  std::optional<Checkpoint> saved_;  // until the run is where it was
  std::string scope_;                // names of the stages that are open
  bool ended_ = false;               // what an interrupted run makes of its half is not saved
  std::vector<std::function<void(Checkpoint&)>> finished_;
};

/// A stage of a run, with what it comes to: out of the checkpoint where that has it, else what it is to keep.
///
///     Stage<Pilot> stage(stages, "pilot");
///     const Pilot& pilot = stage.done() ? stage.result() : stage.keep(run_pilot(..));
///
/// Until then it is open, and may be made of stages, which are forgotten when it ends. The result stays with
/// the run, for checkpoints to come; the caller may empty what nobody will need, and must change nothing else:
/// the stages after it see the result as it is saved.
template <class T>
class Stage {
 public:
  Stage(Stages& stages, const std::string& name)
      : stages_(stages), outer_(stages.scope_), finished_before_(stages.finished_.size()) {
    stages_.scope_ += name + "/";
    key_ = stages_.scope_ + "result";
    if (!stages_.saved_ || !stages_.saved_->holds(key_)) return;
    T found;
    (*stages_.saved_)(key_, found);
    keep(std::move(found));
  }
  ~Stage() {
    if (!done()) stages_.scope_ = outer_;
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  bool done() const { return result_ != nullptr; }
  T& result() { return *result_; }
  T& keep(T made) {
    result_ = std::make_shared<T>(std::move(made));
    stages_.scope_ = outer_;
    stages_.finished_.resize(finished_before_);
    stages_.finished_.push_back([key = key_, result = result_](Checkpoint& c) { c(key, *result); });
    return *result_;
  }

 private:
  Stages& stages_;
  const std::string outer_;
  const std::size_t finished_before_;
  std::string key_;
  std::shared_ptr<T> result_;
};

}  // namespace lockstep
