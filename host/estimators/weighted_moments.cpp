// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/weighted_moments.hpp"

#include <algorithm>

#include "host/estimators/log_sums.hpp"

namespace lockstep {

WeightedMoments weighted_moments(const MomentLayout& layout, const std::vector<std::vector<double>>& sums) {
  std::vector<double> total(layout.rows(), 0.0);
  for (const auto& s : sums)
    for (int r = 0; r < layout.rows(); ++r) total[r] += s[r];
  WeightedMoments m;
  const double weight = total[MomentLayout::count];
  m.weight_ess = weight * weight / total[MomentLayout::weight_square];
  const auto estimate = [&](int row) {
    Jackknife j{total[row] / weight, {}};
    for (const auto& s : sums)
      j.left_out.push_back((total[row] - s[row]) / (weight - s[MomentLayout::count]));
    return j.value();
  };
  const auto fill = [&](int first, int count, std::vector<double>& value, std::vector<double>& se) {
    for (int i = 0; i < count; ++i) {
      const LogZ e = estimate(first + i);
      value.push_back(e.estimate);
      se.push_back(e.se);
    }
  };
  for (int i = 0; i < layout.dim; ++i) {
    const LogZ e = estimate(layout.mean() + i);
    m.mean.push_back(e.estimate);
    m.mean_se.push_back(e.se);
    m.mean_unscaled_se.push_back(e.unscaled_se);
    m.mean_df.push_back(e.df);
  }
  fill(layout.second(), layout.dim, m.second, m.second_se);
  fill(layout.quantity(), layout.quantities, m.quantity, m.quantity_se);
  if (layout.covariance) {
    const int d = layout.dim;
    m.covariance.resize(std::size_t(d) * d);
    for (int i = 0; i < d; ++i)
      for (int j = 0; j <= i; ++j) {
        const double cross = i == j ? m.second[i] : total[layout.cross() + i * (i - 1) / 2 + j] / weight;
        m.covariance[i * d + j] = m.covariance[j * d + i] = cross - m.mean[i] * m.mean[j];
      }
  }
  return m;
}

int first_mean_that_differs(const WeightedMoments& one, const WeightedMoments& other) {
  const auto mean = [](const WeightedMoments& m, int i) {
    return LogZ{m.mean[i], m.mean_se[i], m.mean_unscaled_se[i], m.mean_df[i]};
  };
  const int d = int(one.mean.size());
  for (int i = 0; i < d; ++i)
    if (differ(mean(one, i), mean(other, i), d)) return i;
  return -1;
}

bool never_varied(const std::string& name, double value, double se, double draws) {
  return never_varied(value, se) || (is_probability(name) && std::min(value, 1 - value) * draws < 1);
}

}  // namespace lockstep
