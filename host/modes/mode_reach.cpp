// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_reach.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "host/estimators/log_sums.hpp"
#include "host/modes/mode_mass.hpp"
#include "host/modes/mode_starts.hpp"
#include "host/modes/mode_visits.hpp"
#include "kernels/random_stream.hpp"
#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

using Vector = Eigen::VectorXd;
constexpr int kOthers = 128, kPlanes = 4, kScales = 8, kLeastSteps = 16;
constexpr double kSeen = 9;    // what is seen is some third as wide as the distance
constexpr int kMostDim = 256;  // beyond it modes are hardly weighed
constexpr double kTenth = 0.1,
                 kSurely = 0.95;  // the mass of the mode looked for, and how often it would be met
constexpr double kNarrowest = 1e-4, kWidest = 10;  // times the width of the widest
constexpr double kPrecision = 0.02;                // of that, in its log
const double kLog2Pi = std::log(2 * std::numbers::pi);

/// Not of heavier tails either, which hide more: of their draws the weights vary less.
bool is_like_normal(const Mode& mode, int dim) {
  constexpr double kMost = 1.5;
  return resembles_normal(mode.effective_share, dim) &&
         mode.effective_share < kMost * usual_effective_share(dim);
}

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

/// Another mode that there may be. About its centre, on planes through the way to the starts, in a metric in which what is seen is
/// as wide in all directions: what is known, the squared distance from the centre of the starts, and its own in the widest's metric.
struct Another {
  bool beside;
  double log_volume;
  struct Plane {
    std::vector<OnPlane> known;  // log densities of the normals
    OnPlane distance, own;
  };
  std::vector<Plane> planes;
};

class Reach {
 public:
  /// `known`: all that hides others; `widest` of those that hold over 1 %.
  Reach(const ModeLibrary& known, int widest, const StartLaw& law, double starts)
      : dim_(known.dim()),
        steps_(std::max(kLeastSteps, int(4 * std::sqrt(dim_)))),
        law_(law),
        starts_(starts * law.share),
        radius_(law.sd * law.highest * (std::sqrt(dim_) + 3)),
        peak_(known.log_total() + std::log(kTenth) - 0.5 * dim_ * kLog2Pi - known.log_volume(widest)),
        at_(Eigen::ArrayXd::LinSpaced(steps_, 0.5, steps_ - 0.5) / steps_) {
    const Eigen::RowVectorXd u = Eigen::RowVectorXd::LinSpaced(kScales, 0.5, kScales - 0.5) / kScales;
    const Eigen::Array<double, 1, Eigen::Dynamic> log_s =
        std::log(law.sd * law.lowest) + u.array() * std::log(law.highest / law.lowest);
    log_scales_ = dim_ * log_s;
    half_precision_ = 0.5 * (-2 * log_s).exp();
    const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> factor(
        known[widest].factor.data(), dim_, dim_);
    inverse_ = factor.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(dim_, dim_));
    precision_ = inverse_.transpose() * inverse_;
    for (int n = 0; n < kOthers; ++n) add(known, n);
  }

  /// How often one of `ratio` times the widest's widths would be met, where it is a mode beside those known: in places of the kind
  /// where that is less often.
  double met(double ratio) const {
    double sum[2] = {0, 0}, modes[2] = {0, 0};
    for (const Another& other : others_) {
      const double chance = chance_of(other, ratio);
      if (chance < 0) continue;
      sum[other.beside] += -std::expm1(-starts_ * chance);
      modes[other.beside] += 1;
    }
    return std::fmin(sum[0] / modes[0], sum[1] / modes[1]);  // without the NaN of none
  }

 private:
  void add(const ModeLibrary& known, int n) {
    RandomStream random(Purpose::mode_start, StreamKey{}, std::uint64_t(n));
    const auto normal = [&] { return Vector::NullaryExpr(dim_, [&] { return random.normal(); }).eval(); };
    const int mode = n / 2 % known.size();
    const double nearest = n % 2 == 1 ? nearest_to(known, mode) : INFINITY;
    Another other{std::isfinite(nearest), 0, {}};
    Vector centre = law_.centre + law_.sd * normal();
    if (other.beside) centre = place_of(known, mode) + nearest * normal().normalized();
    // About as wide as its distance from what is known, and no wider than the starts.
    double distance = INFINITY;
    for (int k = 0; k < known.size(); ++k)
      distance = std::min(distance, known.distance(k, centre.data(), distance));
    const Eigen::LLT<Eigen::MatrixXd> metric((kSeen / std::max(1.0, distance) * precision_ +
                                              Eigen::MatrixXd::Identity(dim_, dim_) / (radius_ * radius_))
                                                 .eval());
    other.log_volume = -metric.matrixLLT().diagonal().array().log().sum();
    const Vector way = (metric.matrixU() * (law_.centre - centre)).normalized();
    for (int p = 0; p < kPlanes; ++p) {
      Vector across = normal();
      across = dim_ > 1 ? (across - across.dot(way) * way).normalized().eval() : Vector::Zero(1).eval();
      const Vector u = metric.matrixU().solve(way), v = metric.matrixU().solve(across);
      const auto on_plane = [&](auto&& f) { return OnPlane(centre, u, v, f); };
      other.planes.push_back(
          {{},
           on_plane([&](const Vector& x) { return (x - law_.centre).squaredNorm(); }),
           on_plane([&](const Vector& x) { return (inverse_ * (x - centre)).squaredNorm(); })});
      for (int k = 0; k < known.size(); ++k)
        other.planes.back().known.push_back(
            on_plane([&](const Vector& x) { return known.log_density(k, x.data()); }));
    }
    others_.push_back(std::move(other));
  }
  static Eigen::Map<const Vector> place_of(const ModeLibrary& known, int k) {
    return {known[k].place.data(), known.dim()};
  }
  /// Infinite of one that has no other beside it.
  static double nearest_to(const ModeLibrary& known, int k) {
    double nearest = INFINITY;
    for (int j = 0; j < known.size(); ++j) {
      const double distance = (place_of(known, j) - place_of(known, k)).norm();
      if (distance > 0) nearest = std::min(nearest, distance);
    }
    return nearest;
  }
  /// That a start lies where it is seen; -1 if that is nowhere. Over directions at angles from the way to the starts, each
  /// the one of many that have it.
  double chance_of(const Another& other, double ratio) const {
    LogSum sum, weights;
    for (int a = 0; a < steps_; ++a) {
      const double angle = std::numbers::pi * (dim_ > 1 ? (a + 0.5) / steps_ : a % 2),
                   log_weight = dim_ > 1 ? (dim_ - 2) * std::log(std::sin(angle)) : 0;
      std::vector<AlongRay> known;
      const Another::Plane& plane = other.planes[a % kPlanes];
      for (const OnPlane& k : plane.known) known.push_back(k.at(angle));
      const double curve = plane.own.at(angle).curve / (ratio * ratio);
      const auto seen = [&](double t) {
        const double own = peak_ - dim_ * std::log(ratio) - 0.5 * curve * t * t;
        return std::all_of(known.begin(), known.end(), [&](const AlongRay& k) { return k(t) < own; });
      };
      if (!seen(0)) return -1;
      sum.add(log_weight + other.log_volume + log_starts_within(plane.distance.at(angle), seen));
      weights.add(log_weight);
    }
    return std::exp(sum.log() - weights.log());
  }
  /// Log of the share of starts that lies within what is seen, were it so in all directions, less that of the metric's volume.
  template <class Seen>
  double log_starts_within(const AlongRay& distance, const Seen& seen) const {
    // All but few starts lie in a ball, which the ray leaves at `beyond`.
    const double at0 = std::min(0.0, distance.at0 - radius_ * radius_);
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
    return log_sphere + std::log(within) + most + std::log((terms - most).exp().mean()) -
           0.5 * dim_ * kLog2Pi;
  }

  const int dim_, steps_;  // of angles, which are mostly 90 degrees to 1 / sqrt(dim), and along rays
  const StartLaw law_;
  const double starts_;
  const double radius_;                  // of a ball that all but few starts lie in
  const double peak_;                    // log density of a mode as wide as the widest that holds a tenth
  Eigen::MatrixXd inverse_, precision_;  // of the widest's factor and covariance
  std::vector<Another> others_;
  const Eigen::ArrayXd at_;                             // where along a ray, of what is seen
  Eigen::RowVectorXd half_precision_;                   // of the scales of starts: 1 / (2 s^2)
  Eigen::Array<double, 1, Eigen::Dynamic> log_scales_;  // d log s
};

}  // namespace

std::string why_unknown(const SearchResult& found) {
  const ModeLibrary& library = found.library;
  if (library.size() == 0) return "";
  if (library.dim() > kMostDim) return fmt::format("there are over {} dimensions", kMostDim);
  if (!((found.stopped == kSearchGiven ? found.beside : found.ended) > 0)) return "none were looked for";
  if (found.full()) return "too many are known";
  if (found.unsettled()) return "the search ended too soon";
  if (found.met > 0) return "chains came upon some that no start led to";
  for (int k = 0; k < library.size(); ++k)
    if (std::exp(library[k].best_log_mass() - library.log_total()) > kExpectedShare &&
        !is_like_normal(library[k], library.dim()))
      return fmt::format("{} is like no normal: others, as wide ones too, may hide behind it",
                         library.size() == 1 ? "this one" : "one of these");
  return "";
}

double narrowest_met(const SearchResult& found) {
  const ModeLibrary& library = found.library;
  if (library.size() == 0 || !why_unknown(found).empty()) return NAN;
  const double ends = found.stopped == kSearchGiven ? found.beside : found.ended;
  ModeLibrary known(library.dim());  // with halos, which hide others too
  int widest = -1;
  double largest = -INFINITY;
  for (int k = 0; k < library.size(); ++k) {
    const Mode& mode = library[k];
    const int first = known.size();
    known.add(mode);
    for (const Halo& halo : mode.halos) known.add(as_mode(halo));
    for (int part = first; part < known.size(); ++part) {
      if (!(std::exp(known[part].best_log_mass() - library.log_total()) > kExpectedShare)) continue;
      if (!(known.log_volume(part) > largest)) continue;
      largest = known.log_volume(part);
      widest = part;
    }
  }
  if (widest < 0) return NAN;
  const StartLaw law = most_starts(library, found.scale);
  if (!(law.sd > 0)) return NAN;
  const Reach reach(known, widest, law, ends);
  double below = std::log(kNarrowest), above = std::log(kWidest);
  while (above - below > kPrecision) {
    const double middle = (below + above) / 2, met = reach.met(std::exp(middle));
    if (std::isnan(met)) return NAN;
    (met >= kSurely ? above : below) = middle;
  }
  return std::min(kWidest, std::exp(above));
}

std::string of_others(double narrowest, int modes, const std::string& unknown) {
  if (std::isnan(narrowest))
    return fmt::format("Of further modes nothing is known{}: --init takes hints",
                       unknown.empty() ? "" : ", for " + unknown);
  return fmt::format(
      "Of further modes {} that hold a tenth of all, those narrower than {:.2g} times {}{} may have been "
      "missed (of wider ones 1 in 20), and any far from these and from the starts: --init takes hints",
      modes == 1 ? "within the scale of the starts" : "among or beside these", narrowest,
      modes == 1 ? "this one" : "the widest", narrowest > 1 ? ", as wide as it too," : "");
}

}  // namespace lockstep
