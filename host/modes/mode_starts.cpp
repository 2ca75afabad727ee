// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_starts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/elementary.hpp"
#include "kernels/random_stream.hpp"

namespace lockstep {
namespace {

using Vector = Eigen::VectorXd;
// Of the starts of later rounds; and those from far outside, for the scale may be far too narrow.
constexpr double kOwnScales = 0.25, kFar = 1 / 32.0, kClose = 0.25;  // the last: of those of the own scales
constexpr double kThere = 0.5;                                       // of the own scales
constexpr double kFarthest = 100;                                    // times the widest scale
constexpr double kNearer = 0.5, kSpan = 4;                           // of scales between modes
constexpr double kOwnSpan = 10;                                      // of its own
constexpr double kNothing = 20;     // log mass below the largest: says nothing of where the others lie
constexpr double kUsualScale = 10;  // standard deviations of a mode, as the default has of a unit normal

/// Those that hold anything.
std::vector<const Mode*> that_count(const ModeLibrary& modes) {
  std::vector<const Mode*> all;
  double largest = -INFINITY;
  for (int m = 0; m < modes.size(); ++m) largest = std::max(largest, modes[m].laplace_log_mass);
  for (int m = 0; m < modes.size(); ++m)
    if (!(modes[m].laplace_log_mass < largest - kNothing)) all.push_back(&modes[m]);
  return all;
}
/// A mode's standard deviation on an axis.
double sd_of(const Mode& mode, int i) {
  const std::size_t d = mode.place.size();
  return Eigen::Map<const Vector>(mode.factor.data() + i * d, Eigen::Index(d)).norm();
}

/// The mean of the places of the modes that hold anything, and the variance between them on an axis.
std::pair<Vector, double> spread_of(const ModeLibrary& modes) {
  const int d = modes.dim();
  std::vector<Eigen::Map<const Vector>> places;
  for (const Mode* m : that_count(modes)) places.emplace_back(m->place.data(), d);
  const double k = double(places.size());
  Vector mean = Vector::Zero(d);
  double variance = 0;
  for (const auto& place : places) mean += place / k;
  for (const auto& place : places)
    if (k > 1) variance += (place - mean).squaredNorm() / (d * (k - 1));
  return {mean, variance};
}

/// Within which distance of 0, on each axis, the modes lie with two of their standard deviations; infinite of none.
double extent_of(const ModeLibrary& modes) {
  const int d = modes.dim();
  double extent = modes.size() > 0 ? 0 : INFINITY;
  for (int m = 0; m < modes.size(); ++m)
    for (int i = 0; i < d; ++i)
      extent = std::max(extent, std::abs(modes[m].place[i]) + 2 * sd_of(modes[m], i));
  return extent;
}

/// Whether these modes lie far beyond what starts of such a scale about 0 span: how far on the axis where most; else 0.
double far_beyond(const ModeLibrary& modes, double scale) {
  const auto [mean, variance] = spread_of(modes);
  const double d = modes.dim(), odds = std::log(1000.0), s = std::max(scale, 2 * std::sqrt(variance)),
               widest = mean.cwiseAbs().maxCoeff();
  const bool far = mean.norm() > s * (std::sqrt(d) + std::sqrt(2 * odds)),
             far_on_axis = widest > s * std::sqrt(2 * (odds + std::log(d)));
  return far || far_on_axis ? widest : 0;
}

}  // namespace

double widened(const ModeLibrary& modes, double scale) {
  if (modes.size() == 0) return scale;
  double narrowest = 0;  // of the axes of the mode that is widest there
  for (const Mode* m : that_count(modes)) {
    double least = INFINITY;
    for (int i = 0; i < modes.dim(); ++i) least = std::min(least, sd_of(*m, i));
    narrowest = std::max(narrowest, least);
  }
  if (narrowest > scale) scale = kUsualScale * narrowest;
  return std::max(scale, far_beyond(modes, scale));
}

StartLaw most_starts(const ModeLibrary& modes, double widest) {
  const auto [mean, variance] = spread_of(modes);
  if (!(variance > 0)) return {Vector::Zero(modes.dim()), widest, 1 / kOwnSpan, 1, (1 - kFar) * (1 - kClose)};
  return {mean, std::sqrt(variance), kNearer, kNearer * kSpan, (1 - kFar) * (1 - kOwnScales)};
}

PointEngine::Rows mode_starts(const RunContext& context, std::uint32_t unit, const ModeLibrary& modes,
                              double asked, std::uint64_t first, int count) {
  const double widest = widened(modes, asked);
  const int d = modes.dim();
  const auto spread = spread_of(modes);
  const Vector& mean = spread.first;
  const double variance = spread.second, closest = std::min(0.1 * widest, extent_of(modes));
  const bool alone = !(variance > 0), away = modes.size() > 0 && far_beyond(modes, asked) > 0;
  PointEngine::Rows x(d, count);
  constexpr int kLanes = 8;  // starts whose normals are drawn side by side
  using P = Pack<double, kLanes>;
#pragma omp parallel for num_threads(context.threads) schedule(static)
  for (int begin = 0; begin < count; begin += kLanes) {
    const int lanes = std::min(kLanes, count - begin);
    std::uint32_t number[kLanes] = {};
    double scale[kLanes] = {}, of_mean[kLanes] = {};
    for (int l = 0; l < lanes; ++l) {
      number[l] = std::uint32_t(first) + std::uint32_t(begin + l);
      RandomStream random(Purpose::mode_start, context.key, (std::uint64_t(unit) << 32) | number[l]);
      const bool far = modes.size() > 0 && random.uniform() < kFar;
      const bool own = far || alone || random.uniform() < kOwnScales;
      const bool close = random.uniform() < kClose && closest < 0.1 * widest;
      const double u = random.uniform();
      const bool there = away && own && !far && random.uniform() < kThere;
      scale[l] = there   ? asked * std::pow(kOwnSpan, u - 1)
                 : far   ? widest * std::pow(kFarthest, u)
                 : !own  ? std::sqrt(variance) * kNearer * std::pow(kSpan, u)
                 : close ? closest * std::pow(0.1 * widest / closest, u)
                         : widest * std::pow(kOwnSpan, u - 1);
      of_mean[l] = own && !there ? 0 : 1;
    }
    const P scales = load<P>(scale), means = load<P>(of_mean);
    const Draw<P> draw{context.key, 0, load_int<P>(number), int_lane_t<P>(unit), 1};
    draw.normals(Purpose::mode_start, d, [&](int i, P z) {
      double values[kLanes];
      store(values, fma(scales, z, means * P(mean[i])));
      std::copy_n(values, lanes, &x(i, begin));
    });
  }
  return x;
}

}  // namespace lockstep
