// SPDX-License-Identifier: Apache-2.0
#include "host/runs/mode_reach.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "host/estimators/log_sums.hpp"
#include "host/runs/mode_mass.hpp"
#include "host/runs/mode_starts.hpp"
#include "host/runs/mode_visits.hpp"
#include "kernels/random_stream.hpp"

namespace lockstep {
namespace {

using Vector = Eigen::VectorXd;
constexpr int kOthers = 128, kScales = 8, kLeastSteps = 16;
constexpr int kMostDim = 256;  // beyond it modes are hardly weighed
constexpr double kTenth = 0.1,
                 kSurely = 0.95;     // the mass of the mode looked for, and how often it would be met
constexpr double kNarrowest = 1e-4;  // times the width of the widest
constexpr double kPrecision = 0.02;  // of that, in its log
constexpr double kLeastKnown = 0.5;  // of all that is known, in the modes that count
const double kLog2Pi = std::log(2 * std::numbers::pi);

/// Quadratic in t.
struct AlongRay {
  double at0, slope, curve;
  double operator()(double t) const { return at0 + t * (slope + t * curve); }
};
/// A function that is quadratic in space, on the plane of two vectors at a point.
class OnPlane {
 public:
  template <class Function>
  OnPlane(const Vector& x, const Vector& u, const Vector& v, Function&& f) : at0_(f(x)) {
    const double before_u = f(x - u), after_u = f(x + u), before_v = f(x - v), after_v = f(x + v);
    u_ = (after_u - before_u) / 2;
    v_ = (after_v - before_v) / 2;
    uu_ = (after_u + before_u) / 2 - at0_;
    vv_ = (after_v + before_v) / 2 - at0_;
    uv_ = f(x + u + v) - at0_ - u_ - v_ - uu_ - vv_;
  }
  AlongRay at(double angle) const {
    const double c = std::cos(angle), s = std::sin(angle);
    return {at0_, c * u_ + s * v_, c * c * uu_ + s * s * vv_ + c * s * uv_};
  }

 private:
  double at0_, u_, v_, uu_, vv_, uv_;
};

/// Another mode that there may be: what is known, and the squared distance from the centre of the starts, about its centre.
struct Another {
  std::vector<OnPlane> known;  // log densities of the normals
  OnPlane distance;
};

class Reach {
 public:
  Reach(const ModeLibrary& library, const std::vector<int>& modes, const StartLaw& law, double starts)
      : dim_(library.dim()),
        steps_(std::max(kLeastSteps, int(4 * std::sqrt(dim_)))),
        law_(law),
        starts_(starts * law.share) {
    at_ = Eigen::ArrayXd::LinSpaced(steps_, 0.5, steps_ - 0.5) / steps_;
    const Eigen::RowVectorXd u = Eigen::RowVectorXd::LinSpaced(kScales, 0.5, kScales - 0.5) / kScales;
    const auto log_s = std::log(law.sd * law.lowest) + u.array() * std::log(law.highest / law.lowest);
    log_scales_ = dim_ * log_s;
    half_precision_ = 0.5 * (-2 * log_s).exp();
    const int widest = *std::max_element(modes.begin(), modes.end(), [&](int a, int b) {
      return library.log_volume(a) < library.log_volume(b);
    });
    log_volume_ = library.log_volume(widest);
    peak_ = library.log_total() + std::log(kTenth) - 0.5 * dim_ * kLog2Pi - log_volume_;
    const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> factor(
        library[widest].factor.data(), dim_, dim_);
    RandomStream random(Purpose::mode_start, StreamKey{});
    const auto normal = [&] { return Vector::NullaryExpr(dim_, [&] { return random.normal(); }).eval(); };
    for (int n = 0; n < kOthers; ++n) {
      const Vector centre = law.centre + law.sd * normal();
      // In the widest's metric: towards the starts, and across.
      const Vector way = factor.triangularView<Eigen::Lower>().solve(law.centre - centre).normalized();
      Vector across = normal();
      across = dim_ > 1 ? (across - across.dot(way) * way).normalized().eval() : Vector::Zero(1).eval();
      const Vector u = factor * way, v = factor * across;
      others_.push_back(
          {{}, OnPlane(centre, u, v, [&](const Vector& x) { return (x - law.centre).squaredNorm(); })});
      for (const int k : modes)
        others_.back().known.emplace_back(centre, u, v,
                                          [&](const Vector& x) { return library.log_density(k, x.data()); });
    }
  }

  /// How often one of `ratio` times the widest's widths would be met, where it is a mode beside those known.
  double met(double ratio) const {
    double sum = 0, modes = 0;
    for (const Another& other : others_) {
      const double chance = chance_of(other, ratio);
      if (chance < 0) continue;
      sum += -std::expm1(-starts_ * chance);
      modes += 1;
    }
    return sum / modes;
  }

 private:
  /// That a start lies where it is seen; -1 if that is nowhere. Over directions at angles from the way to the starts, each
  /// the one of many that have it.
  double chance_of(const Another& other, double ratio) const {
    LogSum sum, weights;
    for (int a = 0; a < steps_; ++a) {
      const double angle = std::numbers::pi * (dim_ > 1 ? (a + 0.5) / steps_ : a % 2),
                   log_weight = dim_ > 1 ? (dim_ - 2) * std::log(std::sin(angle)) : 0;
      std::vector<AlongRay> known;
      for (const OnPlane& k : other.known) known.push_back(k.at(angle));
      const auto seen = [&](double t) {
        const double own = peak_ - dim_ * std::log(ratio) - 0.5 * t * t / (ratio * ratio);
        return std::all_of(known.begin(), known.end(), [&](const AlongRay& k) { return k(t) < own; });
      };
      if (!seen(0)) return -1;
      sum.add(log_weight + log_starts_within(other.distance.at(angle), seen));
      weights.add(log_weight);
    }
    return std::exp(sum.log() - weights.log());
  }
  /// Log of the share of starts that lies within what is seen, were it so in all directions.
  template <class Seen>
  double log_starts_within(const AlongRay& distance, const Seen& seen) const {
    // All but few starts lie in a ball, which the ray leaves at `beyond`.
    const double radius = law_.sd * law_.highest * (std::sqrt(dim_) + 3),
                 at0 = std::min(0.0, distance.at0 - radius * radius);
    double within = 0, beyond = (-distance.slope +
                                 std::sqrt(distance.slope * distance.slope - 4 * distance.curve * at0)) /
                                (2 * distance.curve);
    if (seen(beyond)) within = beyond;
    while (beyond - within > 1e-6 * beyond) {
      const double t = (within + beyond) / 2;
      (seen(t) ? within : beyond) = t;
    }
    const Eigen::ArrayXd t = within * at_, squared = distance.at0 + t * (distance.slope + t * distance.curve);
    const Eigen::ArrayXXd terms = ((dim_ - 1) * t.log()).replicate(1, kScales) -
                                  (squared.matrix() * half_precision_).array() -
                                  log_scales_.replicate(steps_, 1);
    const double most = terms.maxCoeff();
    const double log_sphere = std::log(2) + 0.5 * dim_ * std::log(std::numbers::pi) - std::lgamma(0.5 * dim_);
    return log_sphere + log_volume_ + std::log(within) + most + std::log((terms - most).exp().mean()) -
           0.5 * dim_ * kLog2Pi;
  }

  const int dim_, steps_;  // of angles, which are mostly 90 degrees to 1 / sqrt(dim), and along rays
  const StartLaw law_;
  const double starts_;
  double log_volume_, peak_;  // of the widest: log |L|; of a mode as wide that holds a tenth: its log density
  std::vector<Another> others_;
  Eigen::ArrayXd at_;                                   // where along a ray, of what is seen
  Eigen::RowVectorXd half_precision_;                   // of the scales of starts: 1 / (2 s^2)
  Eigen::Array<double, 1, Eigen::Dynamic> log_scales_;  // d log s
};

}  // namespace

double narrowest_met(const SearchResult& found) {
  const ModeLibrary& library = found.library;
  const double starts = found.stopped == kSearchGiven ? found.beside : found.starts;
  if (library.size() == 0 || library.dim() > kMostDim || found.full() || !(starts > 0)) return NAN;
  std::vector<int> modes;
  const std::vector<double> shares = library.shares();
  double known = 0;
  for (const int k : library.by_mass()) {
    if (!(shares[k] > kExpectedShare) || int(modes.size()) == most_used_modes(library.dim())) continue;
    if (!resembles_normal(library[k].effective_share, library.dim())) return NAN;
    known += shares[k];
    modes.push_back(k);
  }
  if (known < kLeastKnown) return NAN;
  const Reach reach(library, modes, most_starts(library, found.scale), starts);
  if (!(reach.met(1) >= kSurely)) return INFINITY;
  double below = std::log(kNarrowest), above = 0;
  while (above - below > kPrecision) {
    const double middle = (below + above) / 2;
    (reach.met(std::exp(middle)) >= kSurely ? above : below) = middle;
  }
  return std::exp(above);
}

std::string of_others(double narrowest, int modes, bool given) {
  if (std::isinf(narrowest))
    return "Even another as wide as those might have been missed: --init takes hints";
  if (std::isnan(narrowest))
    return given ? "Of others nothing is known" : "Narrow ones may hide from any search: --init takes hints";
  return fmt::format(
      "Another mode that holds a tenth, {}, would have been found 19 times in 20 if at least {:.2g} times as "
      "wide{}; "
      "--init takes hints of narrower ones",
      modes == 1 ? "within the scale of the starts" : "among these", narrowest,
      modes == 1 ? "" : " as the widest");
}

}  // namespace lockstep
