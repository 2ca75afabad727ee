// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "host/estimators/schedules.hpp"
#include "host/options/evidence_method.hpp"
#include "host/options/options.hpp"
#include "targets/target.hpp"

namespace lockstep {

/// Settings that methods have for a target with many items, and what they do; of other methods none.
std::vector<std::pair<std::string, std::string>> item_settings(const std::string& method);

/// Settings of evidence image by image, checked.
struct ItemConfig {
  const EvidenceMethod* of = nullptr;  // the method's row; of auto that of the annealing it stands for
  const std::string& method() const { return of->info.name; }
  bool anneals() const { return of->kind == EvidenceKind::annealing; }
  bool tempers() const { return of->kind == EvidenceKind::chains; }
  bool moves() const { return of->kind != EvidenceKind::items; }  // else the bound is all there is
  int runs = 16, steps = 1000, num_leapfrog = 10, bound_draws = 100;
  double step_size = 0;  // 0: by the pilot
  double target_acceptance = 0.8, discard = 0.2;
  std::string schedule = "barrier", base;  // encoder or prior
  std::vector<double> given_ladder;
  Settings effective;
  std::vector<double> ladder(const CommunicationBarrier& barrier) const;
};
ItemConfig item_config(const RunOptions& run, const Items& items);

}  // namespace lockstep
