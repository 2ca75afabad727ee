// SPDX-License-Identifier: Apache-2.0
#include "host/runs/mode_forecast.hpp"

#include <algorithm>

namespace lockstep {
namespace {
constexpr double kAligned = 0.999, kLeastRight = 10, kMostWrong = 0.1;
}

std::vector<int> ModeForecast::of(const ModeLibrary& modes, const PointEngine::Rows& x,
                                  const PointEngine::Rows& gradient, int threads) {
  const int count = int(x.cols()), most = most_used_modes(modes.dim());
  right_.resize(modes.size(), 0.0);
  wrong_.resize(modes.size(), 0.0);
  std::vector<int> order(modes.size()), mode(count, -1);
  for (int k = 0; k < modes.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return modes[a].hits > modes[b].hits; });
  order.resize(std::min<std::size_t>(order.size(), most));
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int c = 0; c < count; ++c) {
    const Eigen::VectorXd at = x.col(c), slope = gradient.col(c);
    for (const int k : order)
      if (modes.alignment(k, at.data(), slope.data()) > kAligned) {
        mode[c] = k;
        break;
      }
  }
  asked_ += count;
  foretold_ += double(count - std::count(mode.begin(), mode.end(), -1));
  return mode;
}

bool ModeForecast::believed(int mode) const {
  return right_[mode] >= kLeastRight && wrong_[mode] <= kMostWrong * (right_[mode] + wrong_[mode]);
}

void ModeForecast::came(int mode, bool true_) { (true_ ? right_ : wrong_)[mode] += 1; }

void ModeForecast::keep(const std::vector<int>& modes) {
  std::vector<double> right, wrong;
  for (const int k : modes) {
    right.push_back(k < int(right_.size()) ? right_[k] : 0);
    wrong.push_back(k < int(wrong_.size()) ? wrong_[k] : 0);
  }
  right_ = std::move(right);
  wrong_ = std::move(wrong);
}

}  // namespace lockstep
