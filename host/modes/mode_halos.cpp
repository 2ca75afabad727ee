// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_halos.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "host/estimators/log_sums.hpp"
#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

using ByRows = PointEngine::Rows;
using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr int kRays = 4, kOfRay = kRayPoints / kRays, kHaloDraws = 8, kMostOfDraws = 5;
constexpr double kRayFirst = 0.6, kRayRatio = 1.3;  // distances on a ray, in standard deviations of the mode
constexpr double kSameBend = 0.1, kOtherBend = 0.25;  // relative: second differences of one part; of another
constexpr double kOfDistance = 0.05;                  // of the distance
constexpr double kForetold = 1;
// A halo counts from a share of all that is known; or of how far a coordinate varies, where it holds a ten-thousandth.
constexpr double kLeastHalo = 0.01, kLeastOfWide = 1e-4;
const double kLogUnknown = std::log(5.0);

class HaloSearch {
 public:
  HaloSearch(ModeLibrary& library, PointEngine& points, const RunContext& context, std::uint32_t unit)
      : library_(library),
        points_(points),
        context_(context),
        unit_(unit),
        dim_(library.dim()),
        known_(library) {}
  void run() {
    for (const int k : library_.most_used()) look_from(k);
    for (int k = 0; k < library_.size(); ++k)
      std::erase_if(library_[k].halos, [&](const Halo& h) { return !matters(h); });
  }

 private:
  static double distance(int j) { return kRayFirst * std::pow(kRayRatio, j); }

  void look_from(int k) {
    Mode& mode = library_[k];
    RandomStream random(Purpose::mode_mass, context_.key,
                        (std::uint64_t(unit_) << 32) | (std::uint64_t(1) << 31) | std::uint64_t(k));
    const Matrix factor = factor_of(mode.factor);
    const Eigen::Map<const Vector> place(mode.place.data(), dim_);
    Matrix ways(dim_, kRays);
    for (int n = 0; n < kRays; ++n) ways.col(n) = direction(random);
    ways = factor.triangularView<Eigen::Lower>() * ways;
    ByRows x(dim_, kRayPoints), gradient;
    Vector value;
    for (int n = 0; n < kRays; ++n)
      for (int j = 0; j < kOfRay; ++j) x.col(n * kOfRay + j) = place + distance(j) * ways.col(n);
    points_.evaluate(x, value, gradient);
    for (int n = 0; n < kRays; ++n) {
      const Vector slope = gradient.middleCols(n * kOfRay, kOfRay).transpose() * ways.col(n);
      double bend = -double(dim_);  // the mode's own
      for (int j = 1; j + 1 < kOfRay; ++j) {
        const double before = (slope[j] - slope[j - 1]) / (distance(j) - distance(j - 1)),
                     after = (slope[j + 1] - slope[j]) / (distance(j + 1) - distance(j));
        if (!(before < 0 && std::abs(after / before - 1) < kSameBend &&
              std::abs(before / bend - 1) > kOtherBend))
          continue;
        bend = before;
        const auto halo = normal_at(x.col(n * kOfRay + j), factor, distance(j));
        if (!halo || !holds(*halo, random)) continue;
        mode.halos.push_back(*halo);
        known_.add(as_mode(*halo));
      }
    }
  }
  Matrix factor_of(const std::vector<double>& rows) const {
    return Eigen::Map<const ByRows>(rows.data(), dim_, dim_);
  }
  Vector direction(RandomStream& random) const {
    Vector z(dim_);
    for (int i = 0; i < dim_; ++i) z[i] = random.normal();
    return z * (std::sqrt(double(dim_)) / z.norm());
  }
  /// The normal that has the density's gradient and Hessian at x, differences being taken along the columns of a factor.
  std::optional<Halo> normal_at(const Vector& x, const Matrix& factor, double distance) {
    const double step = kOfDistance * distance;
    ByRows around(dim_, 2 * dim_ + 1), gradient;
    around.leftCols(dim_) = (step * factor).colwise() + x;
    around.middleCols(dim_, dim_) = (-step * factor).colwise() + x;
    around.col(2 * dim_) = x;
    Vector value;
    points_.evaluate(around, value, gradient);
    if (!value.allFinite() || !gradient.allFinite()) return {};
    const Matrix h =
        factor.transpose() * (gradient.middleCols(dim_, dim_) - gradient.leftCols(dim_)) / (2 * step);
    const Eigen::LLT<Matrix> precision((0.5 * (h + h.transpose())).eval());
    if (precision.info() != Eigen::Success) return {};
    const Vector slope = factor.transpose() * gradient.col(2 * dim_), newton = precision.solve(slope);
    const Matrix covariance = factor * precision.solve(factor.transpose());
    const Eigen::LLT<Matrix> own((0.5 * (covariance + covariance.transpose())).eval());
    if (own.info() != Eigen::Success) return {};
    const ByRows l = own.matrixL();
    const Vector place = x + factor * newton;
    Halo halo{{place.begin(), place.end()}, {l.data(), l.data() + l.size()}};
    halo.log_mass = value[2 * dim_] + 0.5 * slope.dot(newton) + 0.5 * dim_ * std::log(2 * kPi) +
                    l.diagonal().array().log().sum();
    if (std::isfinite(halo.log_mass) && l.allFinite()) return halo;
    return {};
  }
  /// Whether it is enough of what is known, or of the variance of a coordinate.
  bool matters(const Halo& halo) const {
    const double share = std::exp(halo.log_mass - known_.log_total());
    if (share >= kLeastHalo || !(share >= kLeastOfWide)) return share >= kLeastHalo;
    const auto variances = [&](const std::vector<double>& factor) {
      return factor_of(factor).rowwise().squaredNorm().array().eval();
    };
    const Eigen::Map<const Vector> centre(halo.place.data(), dim_);
    const std::vector<double> shares = known_.shares();
    Eigen::ArrayXd mean = Eigen::ArrayXd::Zero(dim_), square = mean;  // about its centre
    for (int k = 0; k < known_.size(); ++k) {
      const Eigen::ArrayXd away = Eigen::Map<const Vector>(known_[k].place.data(), dim_) - centre;
      mean += shares[k] * away;
      square += shares[k] * (away.square() + variances(known_[k].factor));
    }
    return (share * (variances(halo.factor) + mean.square()) > kLeastHalo * (square - mean.square())).any();
  }
  /// Whether the density is what it says, and is not known.
  bool holds(const Halo& halo, RandomStream& random) {
    if (!matters(halo)) return false;
    ModeLibrary part(dim_);
    part.add(as_mode(halo));
    const Matrix factor = factor_of(halo.factor);
    const Eigen::Map<const Vector> place(halo.place.data(), dim_);
    ByRows x(dim_, kHaloDraws), gradient;
    Vector z(dim_), value;
    for (int n = 0; n < kHaloDraws; ++n) {
      for (int i = 0; i < dim_; ++i) z[i] = random.normal();
      x.col(n) = place + factor.triangularView<Eigen::Lower>() * z;
    }
    points_.evaluate(x, value, gradient);
    int foretold = 0;
    for (int n = 0; n < kHaloDraws; ++n) {
      LogSum known;
      const Vector at = x.col(n);
      for (int k = 0; k < known_.size(); ++k) known.add(known_.log_density(k, at.data()));
      foretold += std::abs(value[n] - part.log_density(0, at.data())) < kForetold &&
                  value[n] > known.log() + kLogUnknown;
    }
    return foretold >= kMostOfDraws;
  }

  ModeLibrary& library_;
  PointEngine& points_;
  const RunContext& context_;
  const std::uint32_t unit_;
  const int dim_;
  ModeLibrary known_;  // modes, then halos as such
};

}  // namespace

void find_halos(ModeLibrary& library, PointEngine& points, const RunContext& context, std::uint32_t unit) {
  HaloSearch(library, points, context, unit).run();
}

}  // namespace lockstep
