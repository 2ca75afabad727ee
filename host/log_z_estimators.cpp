// SPDX-License-Identifier: Apache-2.0
#include "host/log_z_estimators.hpp"

#include <algorithm>
#include <cassert>

#include "host/tempering.hpp"

namespace lockstep {
namespace {

std::vector<double> alternating(int pairs) {
  std::vector<double> signs;
  for (int k = 0; k < pairs; ++k) signs.insert(signs.end(), {1, -1});
  return signs;
}

}  // namespace

SteppingStones::SteppingStones(std::vector<double> edges, int blocks)
    : edges_(std::move(edges)), sums_(blocks, 2 * bins()) {}

void SteppingStones::add(int block, double beta, double delta, double log_count) {
  if (!(beta >= 0 && beta <= 1)) return;
  const auto add_to = [&](int k) {
    sums_.add(block, 2 * k, log_count - tempered(edges_[k + 1] - beta, delta));
    sums_.add(block, 2 * k + 1, log_count + tempered(beta - edges_[k], delta));
  };
  const int k = int(std::upper_bound(edges_.begin() + 1, edges_.end() - 1, beta) - edges_.begin()) - 1;
  add_to(k);
  if (k > 0 && beta == edges_[k]) add_to(k - 1);
}

Jackknife SteppingStones::value(double log_zeta) const {
  return sums_.combine(alternating(bins())) + log_zeta;
}

std::vector<int> SteppingStones::empty_bins() const {
  std::vector<int> empty;
  for (int k = 0; k < bins(); ++k)
    if (sums_.log_total(2 * k + 1) == -INFINITY) empty.push_back(k);
  return empty;
}

void ContinuousTemperingEvidence::add(int block, double delta) {
  sums_.add(block, 0, log_w1(delta));
  sums_.add(block, 1, log_w0(delta));
}

std::vector<double> log_level_probabilities(const std::vector<double>& ladder,
                                            const std::vector<double>& log_weights, double delta) {
  std::vector<double> log_p(ladder.size());
  LogSum total;
  for (std::size_t k = 0; k < ladder.size(); ++k)
    total.add(log_p[k] = log_weights[k] - tempered(ladder[k], delta));
  for (double& v : log_p) v -= total.log();
  return log_p;
}

SimulatedTemperingEvidence::SimulatedTemperingEvidence(std::vector<double> ladder,
                                                       std::vector<double> log_weights, int blocks)
    : ladder_(std::move(ladder)), log_weights_(std::move(log_weights)), sums_(blocks, 2) {
  assert(ladder_.size() == log_weights_.size());
}
void SimulatedTemperingEvidence::add(int block, double delta) {
  const std::vector<double> log_p = log_level_probabilities(ladder_, log_weights_, delta);
  sums_.add(block, 0, log_p.back());
  sums_.add(block, 1, log_p.front());
}
Jackknife SimulatedTemperingEvidence::value(double log_zeta) const {
  return sums_.combine({1, -1}) + (log_zeta + log_weights_.front() - log_weights_.back());
}

}  // namespace lockstep
