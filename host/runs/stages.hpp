// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/runs/checkpoint.hpp"
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

  /// What the stage `name` comes to: out of the checkpoint where that has it, else by make(). A stage may be
  /// made of stages, which are forgotten when it ends. The result stays here, for checkpoints to come; the
  /// caller may empty what nobody will need, and must change nothing else: the stages after it see the result
  /// as it is saved.
  template <class T, class Make>
  T& once(const std::string& name, Make&& make) {
    const Within within(scope_, name);
    const std::size_t before = finished_.size();
    const std::string key = scope_ + "result";
    auto result = std::make_shared<T>();
    if (saved_ && saved_->holds(key))
      (*saved_)(key, *result);
    else
      *result = make();
    finished_.resize(before);
    finished_.push_back([key, result](Checkpoint& c) { c(key, *result); });
    return *result;
  }

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
  /// Between two rounds of the loop: saves where it is time to, or the run ends here. `prepare`: what is to be
  /// done before the fields are read.
  template <class Fields, class Prepare>
  void save(const std::string& name, bool stops, Fields&& fields, Prepare&& prepare) {
    if (ended_ || !plan_.due(stops)) return;
    ended_ = stops;
    prepare();
    Checkpoint now;
    for (const auto& add : finished_) add(now);
    Listed<Fields> state{fields};
    now(scope_ + name, state);
    plan_.write(now);
  }

  /// Runs what is saved between its own rounds: it has run(between) and fields(archive), and goes on from them.
  template <class Loop>
  auto run(const std::string& name, Loop& loop) {
    const auto fields = [&](Checkpoint& c) { c("state", loop); };
    take_up(name, fields);
    return loop.run([&] { save(name, Processes::all().interrupted(), fields, [] {}); });
  }

 private:
  /// While it lives, names are of the stage `name`.
  struct Within {
    Within(std::string& scope, const std::string& name) : scope_(scope), outer_(scope) {
      scope += name + "/";
    }
    ~Within() { scope_ = outer_; }
    std::string &scope_, outer_;
  };
  template <class Fields>
  struct Listed {
    Fields& list;
    template <class Archive>
    void fields(Archive& archive) {
      list(archive);
    }
  };

  CheckpointPlan plan_;
  std::optional<Checkpoint> saved_;  // until the run is where it was
  std::string scope_;                // names of the stages that are open
  bool ended_ = false;               // what an interrupted run makes of its half is not saved
  std::vector<std::function<void(Checkpoint&)>> finished_;
};

}  // namespace lockstep
