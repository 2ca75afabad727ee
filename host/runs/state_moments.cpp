// SPDX-License-Identifier: Apache-2.0
#include "host/runs/state_moments.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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

BlockMeans block_means(const TargetInstance& target, const std::vector<double>& position,
                       const std::vector<double>& delta, const std::vector<double>& log_weight,
                       std::size_t blocks, const BlockMeans& about) {
  const MomentLayout layout{target.dim(), int(target.quantities().size())};
  const int d = layout.dim, moments = layout.rows() - MomentLayout::first;
  const double most = *std::max_element(log_weight.begin(), log_weight.end());
  const std::size_t n = delta.size();
  BlockMeans mean(1 + moments + 2 * d, std::vector<double>(blocks));
  std::vector<double> x(d), weight(blocks), of_state(n);
  for (std::size_t p = 0; p < n; ++p) of_state[p] = std::exp(log_weight[p] - most);
  const auto in_blocks = [&](auto&& add) {
    for (std::size_t b = 0, p = 0; b < blocks; ++b)
      for (; p * blocks < (b + 1) * n; ++p)
        if (of_state[p] > 0) add(b, p, of_state[p]);
  };
  std::vector<std::vector<double>> sums(blocks, std::vector<double>(layout.rows()));
  in_blocks([&](std::size_t b, std::size_t p, double w) {
    for (int i = 0; i < d; ++i) x[i] = position[i * n + p];
    add_state(target, layout, x.data(), w, sums[b]);
    mean[0][b] += w * delta[p];
  });
  for (std::size_t b = 0; b < blocks; ++b) {
    weight[b] = sums[b][MomentLayout::count];
    mean[0][b] /= weight[b];
    for (int r = 0; r < moments; ++r) mean[1 + r][b] = sums[b][MomentLayout::first + r] / weight[b];
  }
  const BlockMeans& at = about.empty() ? mean : about;
  const auto over_blocks = [&](int row) {
    return std::accumulate(at[row].begin(), at[row].end(), 0.0) / double(blocks);
  };
  for (int i = 0; i < d; ++i) {
    const double m = over_blocks(1 + i), far = kFarFromMean * std::sqrt(over_blocks(1 + d + i) - m * m);
    auto &below = mean[1 + moments + i], &above = mean[1 + moments + d + i];
    in_blocks([&](std::size_t b, std::size_t p, double w) {
      const double from = position[i * n + p] - m;
      if (std::abs(from) > far) (from < 0 ? below : above)[b] += w / weight[b];
    });
  }
  return mean;
}

}  // namespace lockstep
