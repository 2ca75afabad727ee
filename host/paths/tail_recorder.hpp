// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "host/estimators/log_sums.hpp"
#include "host/estimators/tempering.hpp"
#include "host/runs/run.hpp"
#include "host/runs/state_moments.hpp"

namespace lockstep {

/// How much of the target lies where Delta is below a limit, by p(beta = 1 | x) of all states there, and its moments, by
/// those in which launches end.
class TailRecorder {
 public:
  TailRecorder(double below, const std::vector<double>& ladder, const std::vector<double>& log_weight,
               const TargetInstance& target, const MomentLayout& layout, int groups)
      : below_(below),
        ladder_(ladder),
        log_weight_(log_weight),
        target_(target),
        layout_(layout),
        sums_(groups, 0.0),
        moments_(groups, std::vector<double>(layout.rows(), 0.0)) {}
  bool wanted() const { return below_ > -INFINITY; }
  void record(Launched& launched) {
    if (!launched.spec.record || !wanted()) return;
    const auto& trace = launched.trace();
    const std::size_t padded = launched.engine.padded_chains(), n = launched.chains(), per = n / sums_.size();
    const std::size_t length = launched.spec.end - launched.spec.begin;
    std::vector<double> last(n, 0.0);
    for (std::size_t i = 0; i < length; ++i)
      for (std::size_t c = 0; c < n; ++c)
        if (const double delta = trace[(2 * i + 1) * padded + c]; delta < below_) {
          const double weight = top(delta);
          sums_[c / per] += weight;
          if (i + 1 == length) last[c] = weight;
        }
    if (std::none_of(last.begin(), last.end(), [](double w) { return w > 0; })) return;
    const auto position = launched.engine.position();
    std::vector<double> x(layout_.dim);
    for (std::size_t c = 0; c < n; ++c) {
      if (!(last[c] > 0)) continue;
      for (int i = 0; i < layout_.dim; ++i) x[i] = position[std::size_t(i) * n + c];
      add_state(target_, layout_, x.data(), last[c], moments_[c / per]);
    }
  }
  double total() const { return std::accumulate(sums_.begin(), sums_.end(), 0.0); }
  const std::vector<double>& sums() const { return sums_; }
  const std::vector<std::vector<double>>& moments() const { return moments_; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("sums", sums_);
    archive("moments", moments_);
  }

 private:
  double top(double delta) const {
    LogSum all;
    for (std::size_t k = 0; k < ladder_.size(); ++k)
      all.add(log_weight_[k] - lockstep::tempered(ladder_[k], delta));
    return std::exp(log_weight_.back() - lockstep::tempered(ladder_.back(), delta) - all.log());
  }
  double below_;
  const std::vector<double>&ladder_, &log_weight_;
  const TargetInstance& target_;
  MomentLayout layout_;
  std::vector<double> sums_;                  // [group]
  std::vector<std::vector<double>> moments_;  // [group][row]
};

}  // namespace lockstep
