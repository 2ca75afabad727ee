// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/log_z_estimators.hpp"

#include <algorithm>
#include <cassert>

#include "host/estimators/pack_sums.hpp"
#include "host/estimators/tempering.hpp"

namespace lockstep {
namespace {

std::vector<double> alternating(int pairs) {
  std::vector<double> signs;
  for (int k = 0; k < pairs; ++k) signs.insert(signs.end(), {1, -1});
  return signs;
}

}  // namespace

SteppingStones::SteppingStones(std::vector<double> edges, int blocks, bool upwards)
    : edges_(std::move(edges)), upwards_(upwards), sums_(blocks, 2 * bins()) {}

template <class Put>
void SteppingStones::terms(double beta, double delta, Put&& put) const {
  if (!(beta >= 0 && beta <= 1)) return;
  const auto put_in = [&](int k) {
    put(2 * k, -tempered(edges_[k + 1] - beta, delta));
    put(2 * k + 1, tempered(beta - edges_[k], delta));
  };
  const int k = int(std::upper_bound(edges_.begin() + 1, edges_.end() - 1, beta) - edges_.begin()) - 1;
  if (!upwards_ || beta < 1) put_in(k);
  if (!upwards_ && k > 0 && beta == edges_[k]) put_in(k - 1);
}

void SteppingStones::add(int block, double beta, double delta, double log_count) {
  terms(beta, delta, [&](int row, double term) { sums_.add(block, row, log_count + term); });
}

void SteppingStones::add(int block, std::span<const double> beta, std::span<const double> delta) {
  constexpr std::size_t kTogether = 64;  // of each row, so that all stay in the cache
  std::vector<double> waiting(2 * bins() * kTogether);
  std::vector<std::size_t> count(2 * bins(), 0);
  const auto take = [&](int row) {
    sums_.add(block, row, log_sum_of({waiting.data() + row * kTogether, count[row]}));
    count[row] = 0;
  };
  for (std::size_t i = 0; i < beta.size(); ++i)
    terms(beta[i], delta[i], [&](int row, double term) {
      waiting[row * kTogether + count[row]] = term;
      if (++count[row] == kTogether) take(row);
    });
  for (int row = 0; row < 2 * bins(); ++row) take(row);
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
