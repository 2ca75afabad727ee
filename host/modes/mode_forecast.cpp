// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_forecast.hpp"

#include <algorithm>

namespace lockstep {
namespace {
constexpr double kAligned = 0.999, kMiss = 1, kLeastRight = 10, kMostWrong = 0.1;
constexpr int kAtOnce = 128;
}  // namespace

std::vector<int> ModeForecast::of(const ModeLibrary& modes, const PointEngine::Rows& x,
                                  const PointEngine::Rows& gradient, int threads) {
  const int count = int(x.cols()), most = most_used_modes(modes.dim());
  foretold_.resize(modes.size(), 0.0);
  right_.resize(modes.size(), 0.0);
  wrong_.resize(modes.size(), 0.0);
  std::vector<int> order(modes.size()), mode(count, -1);
  for (int k = 0; k < modes.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return modes[a].hits > modes[b].hits; });
  order.resize(std::min<std::size_t>(order.size(), most));
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int first = 0; first < count; first += kAtOnce) {
    const int n = std::min(kAtOnce, count - first);
    const Eigen::MatrixXd at = x.middleCols(first, n), slope = gradient.middleCols(first, n);
    Eigen::ArrayXd least = Eigen::ArrayXd::Constant(n, kMiss);
    for (const int k : order) {
      const auto aims = modes.aims(k, at, slope);
      for (int c = 0; c < n; ++c)
        if (aims.cosine[c] > kAligned && aims.miss[c] < least[c]) {
          least[c] = aims.miss[c];
          mode[first + c] = k;
        }
    }
  }
  asked_ += count;
  for (const int k : mode)
    if (k >= 0) foretold_[k] += 1;
  return mode;
}

bool ModeForecast::believed(int mode) const {
  return right_[mode] >= kLeastRight && wrong_[mode] <= kMostWrong * (right_[mode] + wrong_[mode]);
}

void ModeForecast::came(int mode, bool true_) { (true_ ? right_ : wrong_)[mode] += 1; }

double ModeForecast::share() const {
  double sum = 0;
  for (int k = 0; k < int(foretold_.size()); ++k)
    if (believed(k)) sum += foretold_[k];
  return asked_ > 0 ? sum / asked_ : 0;
}

void ModeForecast::keep(const std::vector<int>& modes) {
  for (std::vector<double>* of : {&foretold_, &right_, &wrong_}) {
    std::vector<double> kept;
    kept.reserve(modes.size());
    for (const int k : modes) kept.push_back(k < int(of->size()) ? (*of)[k] : 0);
    *of = std::move(kept);
  }
}

}  // namespace lockstep
