// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/engines/units.hpp"
#include "host/runs/adaptation.hpp"
#include "host/runs/frozen.hpp"

namespace lockstep {

/// Adapts step size and trajectory time of every unit while an engine runs.
class Tuner {
 public:
  Tuner(const SamplerConfig& config, Frozen& frozen) : config_(config), frozen_(frozen) {
    for (std::size_t u = 0; u < frozen.step_size.size(); ++u) {
      averaging_.emplace_back(frozen.step_size[u], config.target_acceptance);
      chees_.emplace_back(frozen.trajectory_time[u]);
    }
  }
  void update(const std::vector<double>& acceptance, const std::vector<double>& chees, bool learn_time) {
    for (std::size_t u = 0; u < averaging_.size(); ++u) {
      if (config_.step_size == 0) {
        averaging_[u].update(acceptance[u]);
        frozen_.step_size[u] = averaging_[u].step_size();
      }
      if (learn_time) chees_[u].update(chees[u]);
      if (config_.trajectory_time == 0)
        frozen_.trajectory_time[u] = chees_[u].trajectory_time(frozen_.step_size[u]);
    }
  }
  void restart(std::size_t u) { averaging_[u].restart(averaging_[u].average(), config_.target_acceptance); }
  void restart() {
    for (std::size_t u = 0; u < averaging_.size(); ++u) restart(u);
  }
  template <class Archive>
  void fields(Archive& archive) {
    archive("averaging", averaging_);
    archive("chees", chees_);
  }
  void freeze() {
    for (std::size_t u = 0; u < averaging_.size(); ++u) {
      if (config_.step_size == 0) frozen_.step_size[u] = averaging_[u].average();
      if (config_.trajectory_time == 0) frozen_.trajectory_time[u] = chees_[u].average(frozen_.step_size[u]);
    }
  }

 private:
  const SamplerConfig& config_;
  Frozen& frozen_;
  std::vector<DualAveraging> averaging_;
  std::vector<Chees> chees_;
};

/// The doubling rule at acceptance 1/2 (Hoffman & Gelman 2014, algorithm 4), all units at once, one step
/// each.
void first_step_sizes(const RunContext& context, Engine& engine, Frozen& frozen,
                      const std::vector<double>& x);

}  // namespace lockstep
