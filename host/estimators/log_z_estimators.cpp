// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/log_z_estimators.hpp"

#include <algorithm>
#include <cassert>

#include "host/estimators/tempering.hpp"

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

Jackknife EndpointEvidence::value(double log_zeta, double log_prior) const {
  const int blocks = int(top_.size());
  BlockLogSums sums(blocks, 2);
  for (int b = 0; b < blocks; ++b) {
    sums.add(b, 0, std::log(top_[b]));
    sums.add(b, 1, std::log(bottom_[b]));
  }
  return sums.combine({1, -1}) + (log_zeta + log_prior);
}

}  // namespace lockstep
