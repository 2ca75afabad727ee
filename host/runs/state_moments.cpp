// SPDX-License-Identifier: Apache-2.0
#include "host/runs/state_moments.hpp"

#include <algorithm>

namespace lockstep {

void add_state(const TargetInstance& target, const MomentLayout& layout, const double* x, double weight,
               std::vector<double>& sums) {
  if (!(weight > 0)) return;
  sums[MomentLayout::count] += weight;
  sums[MomentLayout::weight_square] += weight * weight;
  if (layout.quantities > 0) {
    std::vector<double> values(layout.quantities);
    target.quantities_at(x, values.data());
    for (int q = 0; q < layout.quantities; ++q) sums[layout.quantity() + q] += weight * values[q];
  }
  // Sums do not overlap x: many axes at a time.
  double* __restrict mean = &sums[layout.mean()], * __restrict second = &sums[layout.second()];
  for (int i = 0; i < layout.dim; ++i) mean[i] += weight * x[i];
  for (int i = 0; i < layout.dim; ++i) second[i] += weight * x[i] * x[i];
  for (int i = 1; i < layout.dim && layout.covariance; ++i) {
    double* __restrict cross = &sums[layout.cross() + i * (i - 1) / 2];
    for (int j = 0; j < i; ++j) cross[j] += weight * x[i] * x[j];
  }
}

WeightedMoments moments_of_states(const TargetInstance& target, const std::vector<double>& position,
                                  const std::vector<double>& weight, int groups, bool covariance) {
  const int d = target.dim(), n = int(weight.size()), per = n / groups;
  const MomentLayout layout{d, int(target.quantities().size()), covariance};
  std::vector<std::vector<double>> sums(groups, std::vector<double>(layout.rows(), 0.0));
  std::vector<double> x(d);
  for (int c = 0; c < n; ++c) {
    for (int i = 0; i < d; ++i) x[i] = position[std::size_t(i) * n + c];
    add_state(target, layout, x.data(), weight[c], sums[std::min(c / per, groups - 1)]);
  }
  return weighted_moments(layout, sums);
}

}  // namespace lockstep
