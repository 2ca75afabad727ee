// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_moments.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "host/modes/mode_mass.hpp"

namespace lockstep {
namespace {

using Array = Eigen::ArrayXd;
using Map = Eigen::Map<const Array>;

std::vector<int> ranks_of(const ModeLibrary& library) {
  const std::vector<int> order = library.by_mass();
  std::vector<int> rank(order.size());
  for (std::size_t r = 0; r < order.size(); ++r) rank[order[r]] = int(r);
  return rank;
}

/// Of all modes, and of those from rank 1, 2, 4 and so on: how many such groups there are, and in how many a rank is.
int groups_of(std::size_t modes) { return std::bit_width(modes - 1) + 1; }
int groups_with(int rank) { return std::bit_width(unsigned(rank)) + 1; }
int first_of(int group) { return group == 0 ? 0 : 1 << (group - 1); }

struct Estimated {
  Eigen::ArrayXXd value, variance;  // [d][group]
};

/// Second moments by the library's draws, over exp(log_z).
Estimated due_of(Eigen::Index d, const std::vector<int>& rank, const HeldMoments& held, double log_z) {
  const std::size_t rows = held.part.size() / rank.size();
  const double of_z = std::exp(held.log_scale - log_z);
  const Eigen::ArrayXXd none = Eigen::ArrayXXd::Zero(d, groups_of(rank.size()));
  Estimated due{none, none};
  for (std::size_t k = 0; k < rank.size(); ++k)
    for (int g = 0; g < groups_with(rank[k]); ++g) {
      due.value.col(g) += of_z * Map(&held.part[k * rows + std::size_t(d)], d);
      due.variance.col(g) += of_z * of_z * Map(&held.variance[k * rows + std::size_t(d)], d);
    }
  return due;
}

/// By the run's draws: ratios of sums over blocks, with their errors by the blocks' spread.
Estimated seen_of(const std::vector<int>& rank, const HousedDraws& draws) {
  const Eigen::ArrayXXd none = Eigen::ArrayXXd::Zero(draws.x.rows(), groups_of(rank.size()));
  std::vector<Eigen::ArrayXXd> sums(HousedDraws::kBlocks, none);
  std::vector<double> weight(sums.size(), 0.0);
  for (std::size_t i = 0; i < draws.home.size(); ++i) {
    if (!(draws.weight[i] > 0)) continue;
    weight[draws.block[i]] += draws.weight[i];
    if (draws.home[i] < 0) continue;
    const Array square = draws.weight[i] * draws.x.col(Eigen::Index(i)).array().square();
    for (int g = 0; g < groups_with(rank[draws.home[i]]); ++g) sums[draws.block[i]].col(g) += square;
  }
  const double total = std::accumulate(weight.begin(), weight.end(), 0.0), n = double(sums.size());
  Estimated seen{none, none};
  for (const auto& sum : sums) seen.value += sum / total;
  for (std::size_t b = 0; b < sums.size(); ++b)
    seen.variance += (sums[b] - weight[b] * seen.value).square() * n / (n - 1) / (total * total);
  return seen;
}

/// The squares of what it makes of each row f of what is held (but the last, 1) that modes from rank `first` on are visited by
/// d_k more or less often than they should be: sum_k (f_k - f')^2 d_k^2, f_k the mean in mode k and f' that of all, and where that
/// is more, and more than 2 errors, as where modes alike are never visited, (sum_k (f_k - f') d_k)^2; less what of it is chance:
/// the variance of what is due, and that of as many independent draws. A mode of which no draw of the library's says what it
/// holds says nothing.
Array between_modes(const std::vector<int>& rank, int first, const HeldMoments& held,
                    const HousedDraws& draws, const LogZ& log_z) {
  const std::size_t rows = held.part.size() / rank.size() - 1;
  const double of_z = std::exp(held.log_scale - log_z.estimate),
               total = std::accumulate(draws.weight.begin(), draws.weight.end(), 0.0);
  Array seen = Array::Zero(Eigen::Index(rank.size())), independent = seen;
  for (std::size_t i = 0; i < draws.home.size(); ++i) {
    if (draws.home[i] < 0) continue;
    const double share = draws.weight[i] / total;
    seen[draws.home[i]] += share;
    independent[draws.home[i]] += share * share;
  }
  const auto share = [&](std::size_t k) { return held.part[k * (rows + 1) + rows]; };
  const auto part = [&](std::size_t k) { return Map(&held.part[k * (rows + 1)], Eigen::Index(rows)); };
  const Array none = Array::Zero(Eigen::Index(rows));
  Array centre = none, apart = none, together = none, chance = none, due = none;
  double all = 0;
  for (std::size_t k = 0; k < rank.size(); ++k) {
    centre += part(k);
    all += share(k);
  }
  centre /= all;
  for (std::size_t k = 0; k < rank.size(); ++k) {
    if (rank[k] < first || !(share(k) > 0)) continue;
    const Array f = part(k) / share(k) - centre;
    const double by = seen[Eigen::Index(k)] - of_z * share(k),
                 of_chance =
                     independent[Eigen::Index(k)] + of_z * of_z * held.variance[k * (rows + 1) + rows];
    apart += f.square() * by * by;
    chance += f.square() * of_chance;
    together += f * by;
    due += f * of_z * share(k);
  }
  chance += (log_z.se * due).square();
  constexpr double kErrors = 2;
  const Array seen_together = (together.square() > kErrors * kErrors * chance).select(together.square(), 0);
  return (apart - chance).max(seen_together - chance).max(0);
}

}  // namespace

HousedDraws::HousedDraws(const ModeLibrary& library, const SeenDraws& draws, int threads) {
  constexpr std::size_t kMost = 1 << 15, kMostOfMany = 1 << 17;
  const std::size_t d = library.dim(), all = draws.x.size() / d,
                    most = library.size() > kMassModes ? kMostOfMany : kMost;
  blocks_of_chains = draws.chains >= kBlocks;
  std::size_t step = std::max<std::size_t>(1, all / most);
  while (std::gcd(step, draws.chains) != 1) ++step;  // else some chains would never be looked at
  const std::size_t count = (all + step - 1) / step;
  x.resize(Eigen::Index(d), Eigen::Index(count));
  double largest = -INFINITY;
  for (std::size_t n = 0; n < draws.log_weight.size(); n += step)
    largest = std::max(largest, draws.log_weight[n]);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t n = i * step;
    x.col(Eigen::Index(i)) =
        Eigen::Map<const Eigen::VectorXf>(&draws.x[n * d], Eigen::Index(d)).cast<double>();
    weight.push_back(draws.log_weight.empty() ? 1 : std::exp(draws.log_weight[n] - largest));
    block.push_back(int(blocks_of_chains ? n % draws.chains * kBlocks / draws.chains : n * kBlocks / all));
  }
  home = library.of_points(x, ModeLibrary::By::density, threads);
}

MomentsByModes moments_by_modes(const ModeLibrary& library, const HeldMoments& held, const HousedDraws& draws,
                                const LogZ& log_z) {
  constexpr double kJointErrors = 3, kShare = 0.1, kShareTold = 0.25;
  const int d = library.dim(), beyond = groups_with(most_used_modes(d) - 1);
  const std::vector<int> rank = ranks_of(library);
  const Estimated due = due_of(d, rank, held, log_z.estimate), seen = seen_of(rank, draws);
  const Eigen::ArrayXXd by = due.value - seen.value;
  const Eigen::ArrayXXd joint = (due.variance + seen.variance + (due.value * log_z.se).square()).sqrt();
  const Array between = between_modes(rank, most_used_modes(d), held, draws, log_z);
  MomentsByModes found;
  for (Eigen::Index q = 2 * d; q < between.size(); ++q) found.least.quantity.push_back(std::sqrt(between[q]));
  double most = kJointErrors;
  for (int i = 0; i < d; ++i) {
    const double lacks = beyond < by.cols() ? std::max(by(i, beyond), 0.0) : 0,
                 of_lack = lacks > 0 ? std::max(0.0, lacks * lacks - std::pow(joint(i, beyond), 2)) : 0;
    found.least.mean.push_back(std::sqrt(between[i]));
    found.least.second.push_back(std::sqrt(between[d + i]));
    for (int g = 0; g < by.cols(); ++g) {
      const bool told =
          by(i, g) < kJointErrors * std::sqrt(std::pow(joint(i, g), 2) + between[d + i] + of_lack);
      const double share = by(i, g) / seen.value(i, 0);
      if (!(by(i, g) > most * joint(i, g) && share > (told ? kShareTold : kShare))) continue;
      most = by(i, g) / joint(i, g);
      found.lacking = {i, first_of(g), due.value(i, g), seen.value(i, g), std::sqrt(seen.variance(i, g))};
    }
  }
  return found;
}

void widen(WeightedMoments& m, const MomentErrors& least) {
  for (std::size_t i = 0; i < least.mean.size(); ++i) {
    const double by = m.mean_se[i] > 0 ? std::max(1.0, least.mean[i] / m.mean_se[i]) : 1;
    m.mean_se[i] *= by;
    m.mean_unscaled_se[i] *= by;
    m.second_se[i] = std::max(m.second_se[i], least.second[i]);
  }
  for (std::size_t i = 0; i < least.quantity.size(); ++i)
    m.quantity_se[i] = std::max(m.quantity_se[i], least.quantity[i]);
}

}  // namespace lockstep
