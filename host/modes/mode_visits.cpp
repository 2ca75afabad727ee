// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_visits.hpp"

#include <algorithm>
#include <cmath>

#include "host/estimators/log_sums.hpp"

namespace lockstep {
namespace {

/// Modes, then their halos as modes, and whose each is.
ModeLibrary with_halos(const ModeLibrary& library, std::vector<int>& whose) {
  ModeLibrary parts = library;
  for (int k = 0; k < library.size(); ++k) whose.push_back(k);
  for (int k = 0; k < library.size(); ++k)
    for (const Halo& h : library[k].halos) {
      parts.add(as_mode(h));
      whose.push_back(k);
    }
  return parts;
}

}  // namespace

Visits visited(const ModeLibrary& library, const HousedDraws& draws, const std::vector<int>& nearest,
               int threads) {
  const std::vector<double> none(library.size(), 0.0);
  std::vector<char> in_core(draws.home.size(), 0);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::size_t i = 0; i < draws.home.size(); ++i)
    if (const int k = draws.home[i]; k >= 0 && !std::isnan(library[k].core_log_mass))
      in_core[i] = library.in_core(k, draws.x.col(Eigen::Index(i)).data());
  Visits v{none, none, none};
  double total = 0, square = 0;
  for (std::size_t i = 0; i < draws.home.size(); ++i) {
    const double w = draws.weight[i];
    if (draws.home[i] < 0 || !(w > 0)) continue;
    v.home[draws.home[i]] += w;
    if (in_core[i]) v.core[draws.home[i]] += w;
    if (!nearest.empty() && nearest[i] >= 0) v.near[nearest[i]] += w;
    total += w;
    square += w * w;
  }
  for (auto* shares : {&v.home, &v.near, &v.core})
    for (double& s : *shares) s /= total > 0 ? total : 1;
  v.effective = square > 0 ? total * total / square : 0;
  return v;
}

Due due_of(const Mode& m, double log_z) {
  const bool known = m.mass_known();
  return {std::exp((known ? m.log_mass : m.laplace_log_mass) - log_z), known};
}

std::vector<ModeShare> shares_of(const ModeLibrary& library, const HousedDraws& draws, double log_z,
                                 int threads) {
  std::vector<ModeShare> shares;
  if (library.size() < 2) return shares;
  std::vector<int> whose;
  const ModeLibrary parts = with_halos(library, whose);
  const std::vector<int> home = parts.size() == library.size()
                                    ? draws.home
                                    : parts.of_points(draws.x, ModeLibrary::By::density, threads);
  constexpr int n = HousedDraws::kBlocks;
  Eigen::ArrayXXd held = Eigen::ArrayXXd::Zero(library.size(), n);
  for (std::size_t i = 0; i < home.size(); ++i)
    if (home[i] >= 0 && draws.weight[i] > 0) held(whose[home[i]], draws.block[i]) += draws.weight[i];
  const Eigen::ArrayXd share = held.rowwise().sum() / held.sum();
  const Eigen::ArrayXXd off = held - (share.matrix() * held.colwise().sum().matrix()).array();
  const Eigen::ArrayXd se = (off.square().rowwise().sum() * n / (n - 1)).sqrt() / held.sum();
  const auto largest_first = library.by_mass();
  for (std::size_t i = 0; i < std::min(kMostShares, largest_first.size()); ++i) {
    const int k = largest_first[i];
    const Mode& m = library[k];
    const Due due = due_of(m, log_z);
    double expected = due.known ? due.share : NAN;
    for (const Halo& h : m.halos) expected += std::exp(h.log_mass - log_z);
    shares.push_back(
        {m.place, share[k], draws.blocks_of_chains && se[k] > 0 ? se[k] : NAN, expected, m.hits});
  }
  const auto largest = [](const ModeShare& m) { return std::fmax(m.share, m.expected); };
  std::stable_sort(shares.begin(), shares.end(),
                   [&](const ModeShare& a, const ModeShare& b) { return largest(a) > largest(b); });
  return shares;
}

double due_of_core(const ModeLibrary& library, int k, double log_z) {
  const Mode& m = library[k];
  if (std::isnan(m.core_log_mass)) return 0;
  std::vector<double> rounded = m.place;
  for (double& x : rounded) x = std::nextafter(float(x), INFINITY);
  const double share = std::exp(m.core_log_mass - log_z);
  return share > kExpectedShare && library.distance(k, rounded.data()) < 1 ? share : 0;
}

void add_errors_of_halos(MomentErrors& least, const ModeLibrary& library, const HousedDraws& draws,
                         double log_z, const WeightedMoments& moments) {
  const std::size_t d = library.dim();
  std::vector<int> whose;
  const ModeLibrary parts = with_halos(library, whose);
  std::vector<double> seen(parts.size(), 0.0), density(parts.size());
  double total = 0;
  for (std::size_t i = 0; i < draws.weight.size(); ++i) {
    LogSum all;
    for (int k = 0; k < parts.size(); ++k)
      all.add(density[k] = parts.log_density(k, draws.x.col(Eigen::Index(i)).data()));
    for (int k = 0; k < parts.size(); ++k) seen[k] += draws.weight[i] * std::exp(density[k] - all.log());
    total += draws.weight[i];
  }
  least.mean.resize(d, 0.0);
  least.second.resize(d, 0.0);
  for (int k = library.size(); k < parts.size(); ++k) {
    const Mode& halo = parts[k];
    const double lacks = std::max(0.0, std::min(1.0, std::exp(halo.log_mass - log_z)) - seen[k] / total);
    for (std::size_t i = 0; i < d; ++i) {
      double second = halo.place[i] * halo.place[i];
      for (std::size_t j = 0; j <= i; ++j) second += halo.factor[i * d + j] * halo.factor[i * d + j];
      least.mean[i] = std::hypot(least.mean[i], lacks * (halo.place[i] - moments.mean[i]));
      least.second[i] = std::hypot(least.second[i], lacks * (second - moments.second[i]));
    }
  }
}

double share_beyond(const ModeLibrary& library, const HousedDraws& draws) {
  std::vector<int> whose;
  const ModeLibrary parts = with_halos(library, whose);
  const double reach = 4 * core_distance(library.dim());  // of squares
  double beyond = 0, total = 0;
  for (std::size_t i = 0; i < draws.weight.size(); ++i) {
    if (!(draws.weight[i] > 0)) continue;
    total += draws.weight[i];
    if (parts.nearest(draws.x.col(Eigen::Index(i)).data(), reach) < 0) beyond += draws.weight[i];
  }
  return beyond / total;
}

}  // namespace lockstep
