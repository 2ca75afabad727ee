// SPDX-License-Identifier: Apache-2.0
// Draws of the base and chains as one estimate.
#include <algorithm>
#include <cmath>

#include "host/paths/base_draws.hpp"

namespace lockstep {
namespace {

/// Sums over groups, and of all but one of them.
struct Sums {
  double top = 0, tail = 0;
  std::vector<double> moments;  // of states in the tail
  void add(const TemperedResult& chains, std::size_t g) {
    top += chains.top[g];
    tail += chains.tail[g];
    moments.resize(chains.tail_moments[g].size());
    for (std::size_t r = 0; r < moments.size(); ++r) moments[r] += chains.tail_moments[g][r];
  }
  double share() const { return tail / top; }
};
Sums sums_without(const TemperedResult& chains, std::size_t left_out) {
  Sums s;
  for (std::size_t g = 0; g < chains.top.size(); ++g)
    if (g != left_out) s.add(chains, g);
  return s;
}

}  // namespace

std::optional<Combined> combined(const TargetInstance& target, bool covariance, const BaseDraws& draws,
                                 const TemperedResult& chains) {
  const MomentLayout layout{target.dim(), int(target.quantities().size()), covariance};
  const Sums all = sums_without(chains, chains.top.size());
  if (!draws.taken() || !(all.tail <= Combined::kMostBeyond * all.top)) return std::nullopt;
  Combined out;
  out.beyond = all.share();
  const double states = all.moments[MomentLayout::count], n = double(draws.sums.size());
  std::vector<std::vector<double>> sums = draws.sums;
  std::vector<double> z;
  for (std::size_t g = 0; g < sums.size(); ++g) {
    // Of chains as many pseudovalues of the jackknife as there are groups: their mean is what all say.
    const Sums others = sums_without(chains, g);
    if (!(others.top > 0)) return std::nullopt;
    const double of_others = others.moments[MomentLayout::count];
    const double q = n * all.share() - (n - 1) * others.share();
    auto& s = sums[g];
    const double inside = s[MomentLayout::count];
    s[MomentLayout::count] = inside / (1 - q);
    z.push_back(s[MomentLayout::count]);
    // Sums of the weight Z of a group: Z - q Z of them from within. Without a state from beyond, as if it were like the rest.
    for (std::size_t r = MomentLayout::first; r < s.size(); ++r) {
      const auto beyond = [&](const Sums& of, double count) { return of.share() * of.moments[r] / count; };
      s[r] = states > 0
                 ? s[r] + z.back() * (n * beyond(all, states) -
                                      (n - 1) * (of_others > 0 ? beyond(others, of_others)
                                                               : others.share() * all.moments[r] / states))
                 : s[r] / (1 - q);
    }
  }
  const double visit = 1 / all.top + (states > 0 ? 0 : out.beyond), unmet = Combined::unmet(draws) + visit;
  out.log_z = log_mean(z, draws.log_scale).value().widened(unmet);
  out.moments = weighted_moments(layout, sums);
  WeightedMoments& m = out.moments;
  for (std::size_t i = 0; i < m.mean.size(); ++i) {
    const double sd = std::sqrt(std::max(0.0, m.variance(int(i))));
    const auto without = [&](std::size_t moment, double scale) {
      return std::max(unmet * scale, draws.unmet.moment[moment] / draws.number + visit * scale) +
             draws.unmet.beyond[moment] / draws.number / std::max(1.0, all.tail);
    };
    const LogZ mean =
        LogZ{m.mean[i], m.mean_se[i], m.mean_unscaled_se[i], m.mean_df[i]}.widened(without(i, sd));
    m.mean_se[i] = mean.se;
    m.mean_unscaled_se[i] = mean.unscaled_se;
    m.mean_df[i] = mean.df;
    m.second_se[i] = std::hypot(m.second_se[i], without(m.mean.size() + i, m.second[i]));
  }
  for (std::size_t i = 0; i < m.quantity.size(); ++i) {
    if (m.quantity_se[i] == 0) continue;
    const double scale = is_probability(target.quantities()[i]) ? 1 : std::abs(m.quantity[i]);
    m.quantity_se[i] = std::hypot(m.quantity_se[i], unmet * scale);
  }
  return out;
}

}  // namespace lockstep
