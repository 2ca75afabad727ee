// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_keeper.hpp"

#include <algorithm>
#include <cmath>

#include "host/modes/mode_mass.hpp"
#include "host/modes/mode_shape.hpp"

namespace lockstep {
namespace {

// Descents that end near a known mode, but so much higher or lower, are looked at: they ended elsewhere.
constexpr double kOtherHeight = 0.1;
// Remembered: of what is flat, and no mode, there is no end.
constexpr std::size_t kMostRejected = 1024;
constexpr double kNegligible = 30;  // log mass below the largest: kept by no library

}  // namespace

ModeKeeper::ModeKeeper(const RunContext& context, std::uint32_t unit, PointEngine& points,
                       SearchResult& result)
    : context_(context),
      unit_(unit),
      points_(points),
      result_(result),
      most_(most_modes(context.target->dim())) {}

void ModeKeeper::know() {
  for (int k = 0; k < result_.library.size(); ++k)
    highest_ = std::max(highest_, result_.library[k].laplace_log_mass);
}

bool ModeKeeper::as_high(int k, double log_density) const {
  return std::abs(log_density - result_.library[k].log_density) <= kOtherHeight;
}

bool ModeKeeper::same(int k, const Mode& mode) const {
  if (!(result_.library.distance(k, mode.place.data(), 1) < 1)) return false;
  if (as_high(k, mode.log_density)) return true;
  ModeLibrary alone(result_.library.dim());
  alone.add(mode);
  return alone.distance(0, result_.library[k].place.data(), 1) < 1;
}

bool ModeKeeper::consider(const Eigen::VectorXd& x, double hits) {
  auto mode = mode_at(points_, x);
  if (!mode) return false;
  for (int k = 0; k < result_.library.size(); ++k)
    if (same(k, *mode)) {
      result_.library[k].hits += hits;
      return true;
    }
  mode->hits = hits;
  mode->given = hits == 0;
  highest_ = std::max(highest_, mode->laplace_log_mass);
  result_.library.add(std::move(*mode));
  return true;
}

int ModeKeeper::found_again(const Eigen::VectorXd& x, double log_density) const {
  const int k = result_.library.nearest(x.data(), 1);
  return k >= 0 && as_high(k, log_density) ? k : -1;
}

std::vector<int> ModeKeeper::take_in(const DescentEnds& ends, double most) {
  std::vector<int> at(ends.log_density.size(), -1);
  const std::vector<int>& rested = ends.rested;
  const int known = result_.library.size(), count = int(rested.size());
  std::vector<int> nearest(count);
#pragma omp parallel for num_threads(context_.threads) schedule(static)
  for (int n = 0; n < count; ++n) {
    const Eigen::VectorXd x = ends.place.col(rested[n]);
    nearest[n] = result_.library.nearest(x.data(), 1);
  }
  for (int n = 0; n < count; ++n) {
    const Eigen::VectorXd x = ends.place.col(rested[n]);
    const int k = nearest[n] >= 0 ? nearest[n] : nearest_since(known, x);
    const bool other = k >= 0 && !as_high(k, ends.log_density[rested[n]]);
    if ((k < 0 || other) && !full() && points_.evaluations() < most && !is_rejected(x)) {
      if (consider(x, 1)) continue;
      if (rejected_.size() < kMostRejected) rejected_.push_back(x);
      result_.rejected += 1;
    }
    if (k >= 0) result_.library[k].hits += 1;
    if (!other) at[rested[n]] = k;
  }
  return at;
}

int ModeKeeper::nearest_since(int known, const Eigen::VectorXd& x) const {
  for (int k = known; k < result_.library.size(); ++k)
    if (result_.library.distance(k, x.data(), 1) < 1) return k;
  return -1;
}

bool ModeKeeper::is_rejected(const Eigen::VectorXd& x) const {
  return std::any_of(rejected_.begin(), rejected_.end(), [&](const Eigen::VectorXd& r) {
    return (x - r).squaredNorm() < 1e-4 * (1 + r.squaredNorm()) / double(x.size());
  });
}

double ModeKeeper::least_hits() const {
  double least = INFINITY;
  for (int k = 0; k < result_.library.size(); ++k)
    if (!negligible(k) && result_.library[k].hits > 0) least = std::min(least, result_.library[k].hits);
  return least;
}

bool ModeKeeper::negligible(int k) const {
  return result_.library[k].laplace_log_mass < highest_ - kNegligible;
}

void ModeKeeper::raise_specks() {
  bool any = false;
  for (int k = 0; k < result_.library.size(); ++k) any = any || negligible(k);
  if (!any) return;
  halos_for_specks(result_.library, points_, context_, unit_);
  for (int k = 0; k < result_.library.size(); ++k) {
    result_.library[k].halos.clear();
    highest_ = std::max(highest_, result_.library[k].laplace_log_mass);
  }
}

void ModeKeeper::drop_negligible() {
  ModeLibrary kept(result_.library.dim());
  std::vector<int> numbers;
  for (int k = 0; k < result_.library.size(); ++k) {
    if (negligible(k)) continue;
    kept.add(std::move(result_.library[k]));
    numbers.push_back(k);
  }
  result_.library = std::move(kept);
  result_.forecast.keep(numbers);
}

}  // namespace lockstep
