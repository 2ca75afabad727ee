// SPDX-License-Identifier: Apache-2.0
#include "host/commands/item_table.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/random_stream.hpp"

namespace lockstep {

LogZ mean_over_items(const std::vector<double>& values) {
  const double n = double(values.size()), mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double square = 0;
  for (double v : values) square += (v - mean) * (v - mean);
  return {mean, n > 1 ? std::sqrt(square / (n - 1) / n) : NAN};
}

std::array<double, 2> interval_over_items(const std::vector<double>& values) {
  constexpr int kResamples = 1000;
  RandomStream random(Purpose::bootstrap, {});
  std::vector<double> mean(kResamples, 0.0);
  for (double& m : mean)
    for (std::size_t i = 0; i < values.size(); ++i)
      m += values[random.below(values.size())] / double(values.size());
  std::sort(mean.begin(), mean.end());
  return {mean[kResamples / 40], mean[kResamples - 1 - kResamples / 40]};
}

}  // namespace lockstep
