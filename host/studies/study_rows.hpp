// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "host/commands/evidence_result.hpp"
#include "host/estimators/estimates.hpp"
#include "host/studies/study_results.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// Appends the rows of results.csv of one replicate, in a fixed order.
class ReplicateRows {
 public:
  ReplicateRows(std::vector<ResultRow>& rows, std::string label, int replicate, double gradients)
      : rows_(rows), label_(std::move(label)), replicate_(replicate), gradients_(gradients) {}
  /// Of chains: means, second moments, the target's own quantities, log Z where the sampler gives it.
  void add(const Estimates& e, const LogZ* log_z, const TargetInstance& target);
  /// What their transition has counted.
  void add(const NamedNumbers& counters);
  /// Of evidence: the same with root mean squares over entries of a covariance, bounds, and how far the base
  /// was from the truth.
  void add(const EvidenceResult& found, const TargetInstance& target);
  /// Of items: the means of log Z and its bounds.
  void add(const ItemResult& found, const TargetInstance& target);

 private:
  void add(const std::string& quantity, double estimate, double se, double truth);
  /// Log Z and its bounds.
  void add(const LogZSummary& log_z, double truth);
  /// |mean - known|_1 / |known|_1 (Ahn, Chen & Welling 2013).
  void add_relative_error(const std::vector<double>& mean, const std::vector<double>& known);
  /// The root mean square difference of all entries, where all are known.
  void add_error(const std::string& quantity, const std::vector<double>& found,
                 const std::vector<double>& known);

  std::vector<ResultRow>& rows_;
  std::string label_;
  int replicate_;
  double gradients_;
};

}  // namespace lockstep
