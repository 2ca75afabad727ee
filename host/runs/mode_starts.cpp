// SPDX-License-Identifier: Apache-2.0
#include "host/runs/mode_starts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {
namespace {

using Vector = Eigen::VectorXd;
constexpr double kOwnScales = 0.25;  // of the starts of later rounds

/// The mean of the modes' places, and the variance between them on an axis.
std::pair<Vector, double> spread_of(const ModeLibrary& modes) {
  const int d = modes.dim(), k = modes.size();
  const auto place = [&](int m) { return Eigen::Map<const Vector>(modes[m].place.data(), d); };
  Vector mean = Vector::Zero(d);
  double variance = 0;
  for (int m = 0; m < k; ++m) mean += place(m) / k;
  for (int m = 0; m < k && k > 1; ++m) variance += (place(m) - mean).squaredNorm() / (d * (k - 1.0));
  return {mean, variance};
}

}  // namespace

double widened(const ModeLibrary& modes, double scale) {
  const auto [mean, variance] = spread_of(modes);
  const double d = modes.dim(), odds = std::log(1000.0), s = std::max(scale, 2 * std::sqrt(variance)),
               widest = mean.cwiseAbs().maxCoeff();
  const bool far = mean.norm() > s * (std::sqrt(d) + std::sqrt(2 * odds)),
             far_on_axis = widest > s * std::sqrt(2 * (odds + std::log(d)));
  return far || far_on_axis ? std::max(scale, widest) : scale;
}

PointEngine::Rows mode_starts(const RunContext& context, std::uint32_t unit, const ModeLibrary& modes,
                              double widest, std::uint64_t first, int count) {
  const int d = modes.dim();
  const bool alone = modes.size() < 2;
  const auto spread = spread_of(modes);
  const Vector& mean = spread.first;
  const double variance = spread.second;
  PointEngine::Rows x(d, count);
#pragma omp parallel for num_threads(context.threads) schedule(static)
  for (int c = 0; c < count; ++c) {
    RandomStream random(Purpose::mode_start, context.key,
                        (std::uint64_t(unit) << 32) | (first + std::uint64_t(c)));
    const bool own = alone || random.uniform() < kOwnScales;
    const double u = random.uniform();
    const double scale = own ? widest * std::pow(10.0, u - 1) : std::sqrt(variance) * 0.5 * std::pow(4.0, u);
    for (int i = 0; i < d; ++i) x(i, c) = (own ? 0 : mean[i]) + scale * random.normal();
  }
  return x;
}

}  // namespace lockstep
