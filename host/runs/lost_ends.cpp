// SPDX-License-Identifier: Apache-2.0
#include "host/runs/lost_ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace lockstep {
namespace {

constexpr double kLostShare = 0.2;
constexpr std::size_t kLeast = 8, kLeastLost = 3, kMostOfAll = 10;  // draws; of these; one in so many
constexpr double kWorthSaying = 1.5;

/// What the ends of f add to its mean, and to that of its square, and the larger one's share of all draws; 0 where it has none.
struct Added {
  double first = 0, second = 0, share = 0;
};

class Ends {
 public:
  Ends(const std::vector<double>& values, const std::vector<char>& lost)
      : f_(values), lost_(lost), order_(values.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t(0));
    const double all = double(std::count(lost.begin(), lost.end(), 1)) / double(lost.size());
    least_ = std::max(kLostShare, 2 * all);
  }
  Added added() {
    const auto [least, most] = std::minmax_element(f_.begin(), f_.end());
    if (*least == *most || !std::all_of(f_.begin(), f_.end(), [](double x) { return std::isfinite(x); }))
      return {};
    const Added above = added_by(std::greater<>()), below = added_by(std::less<>());
    return {std::hypot(above.first, below.first), std::hypot(above.second, below.second),
            std::max(above.share, below.share)};
  }

 private:
  /// The farthest draws that are an end; those that stand at the same place are all or none of them.
  std::size_t size_of_end(std::size_t most) const {
    std::size_t end = 0, gone = 0;
    for (std::size_t m = 1; m <= most; ++m) {
      gone += lost_[order_[m - 1]];
      const bool whole = f_[order_[m - 1]] != f_[order_[m]];
      if (m >= kLeast && whole && gone >= kLeastLost && double(gone) >= least_ * double(m)) end = m;
    }
    return end;
  }
  template <class Farther>
  Added added_by(Farther farther) {
    const double n = double(f_.size()), mean = std::accumulate(f_.begin(), f_.end(), 0.0) / n,
                 square = std::inner_product(f_.begin(), f_.end(), f_.begin(), 0.0) / n;
    const std::size_t most = f_.size() / kMostOfAll;
    const auto farther_draw = [&](std::size_t a, std::size_t b) { return farther(f_[a], f_[b]); };
    const auto end = order_.begin() + std::ptrdiff_t(most + 1);
    std::nth_element(order_.begin(), end, order_.end(), farther_draw);
    std::sort(order_.begin(), end, farther_draw);
    const std::size_t size = size_of_end(most);
    Added sum{.share = double(size) / n};
    for (std::size_t m = size; m-- > 0;) {
      const double x = f_[order_[m]];
      sum.first += (x - mean) / n;
      sum.second += (x * x - square) / n;
    }
    return sum;
  }

  const std::vector<double>& f_;
  const std::vector<char>& lost_;
  std::vector<std::size_t> order_;  // the farthest first
  double least_;                    // share of an end that is lost
};

}  // namespace

bool loses_by_energy(const TransitionInfo& t, int modes) {
  return (t.trajectory || t.windows) &&
         (modes < 2 || std::none_of(t.counters.begin(), t.counters.end(),
                                    [](const auto& name) { return name.starts_with("rejected_"); }));
}

LostEnds lost_ends(const std::vector<double>& values, const std::vector<char>& lost, std::size_t dim,
                   int threads) {
  const std::size_t n = lost.size(), each = n == 0 ? 0 : values.size() / n;
  LostEnds ends;
  if (n < kLeast * kMostOfAll || std::accumulate(lost.begin(), lost.end(), std::size_t(0)) < kLeastLost)
    return ends;
  MomentErrors& least = ends.least;
  least = {std::vector<double>(dim), std::vector<double>(dim), std::vector<double>(each - dim)};
  std::vector<double> share(each);
#pragma omp parallel for schedule(dynamic) num_threads(std::min(threads, int(each)))
  for (std::size_t i = 0; i < each; ++i) {
    std::vector<double> f(n);
    for (std::size_t k = 0; k < n; ++k) f[k] = values[k * each + i];
    const Added by = Ends(f, lost).added();
    (i < dim ? least.mean[i] : least.quantity[i - dim]) = by.first;
    if (i < dim) least.second[i] = by.second;
    share[i] = by.share;
  }
  const auto largest = std::max_element(share.begin(), share.end());
  ends.largest = *largest;
  ends.of = std::size_t(largest - share.begin());
  return ends;
}

std::string judge_ends(std::vector<std::string>& failed, const LostEnds& lost, WeightedMoments& m,
                       const TargetInstance& target) {
  const auto &names = target.names(), &quantities = target.quantities();
  double most = kWorthSaying;
  std::string where;
  const auto look = [&](const std::vector<double>& least, const std::vector<double>& se, const auto& of) {
    for (std::size_t i = 0; i < least.size(); ++i)
      if (least[i] > most * se[i]) most = least[i] / se[i], where = of[i];
  };
  look(lost.least.mean, m.mean_se, names);
  look(lost.least.quantity, m.quantity_se, quantities);
  widen(m, lost.least);
  if (lost.largest > kMostOfEnd) {
    failed.push_back("ends");
    return fmt::format(
        "trajectories from the farthest draws of {}, {:.2g} of all or more, are lost: chains have not come "
        "into what lies beyond; "
        "raise sampler.target_acceptance",
        lost.of < names.size() ? names[lost.of] : quantities[lost.of - names.size()], lost.largest);
  }
  if (where.empty()) return "";
  return fmt::format(
      "trajectories from the farthest draws of {} are lost: there may be more of its tail. Errors allow for "
      "as much as is seen of it, which makes them up to {:.2g} times as large; raise "
      "sampler.target_acceptance",
      where, most);
}

}  // namespace lockstep
