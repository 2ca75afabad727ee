// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is known of the modes of one replicate's target: where they are, how wide, and how much each holds.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace lockstep {

/// A part of the target that has no mode of its own, for something denser lies within it: about as a normal, with factor
/// factor' its covariance.
struct Halo {
  std::vector<double> place;   // [d], of its centre
  std::vector<double> factor;  // [d][d], by rows, lower triangle
  double log_mass = NAN;
  template <class Archive>
  void fields(Archive& archive) {
    archive("place", place);
    archive("factor", factor);
    archive("log_mass", log_mass);
  }
};

/// A place where the density is highest around, and the normal that has its curvature there: covariance
/// factor factor' = (-Hessian of the log density)^-1.
struct Mode {
  std::vector<double> place;   // [d]
  std::vector<double> factor;  // [d][d], by rows, lower triangle
  double log_density = NAN;
  /// Log of the integral of the density around it. By Laplace's approximation: log_density + (d / 2) log 2 pi + log
  /// det factor. And by importance sampling (ModeSearch), NaN where none was done, with the share of its draws that
  /// is effective.
  double laplace_log_mass = NAN, log_mass = NAN, effective_share = NAN;
  /// Of the latter what its core holds (core_distance); NaN where too few draws say it.
  double core_log_mass = NAN;
  double hits = 0;          // descents that ended there
  bool given = false;       // somebody said that one is there (--init)
  std::vector<Halo> halos;  // about it (find_halos)

  /// Whether the mass by importance sampling, and its error, can be relied on: that so large a share of its draws is
  /// effective.
  bool mass_known() const { return effective_share >= kLeastEffective; }
  static constexpr double kLeastEffective = 0.05;

  /// By importance sampling where that was done.
  double best_log_mass() const { return std::isnan(log_mass) ? laplace_log_mass : log_mass; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("place", place);
    archive("factor", factor);
    archive("log_density", log_density);
    archive("laplace_log_mass", laplace_log_mass);
    archive("log_mass", log_mass);
    archive("effective_share", effective_share);
    archive("core_log_mass", core_log_mass);
    archive("hits", hits);
    archive("given", given);
    archive("halos", halos);
  }
};

/// A halo as a mode of its own.
Mode as_mode(const Halo& halo);
/// How many times as wide as a mode a halo of it is, by their volumes.
double scale_of(const Mode& mode, const Halo& halo);

/// A mode's core ends at this squared Mahalanobis distance, beyond which 1 in 10,000 draws of its normal would be (Wilson &
/// Hilferty 1931).
inline double core_distance(int dim) {
  const double variance = 2.0 / (9 * dim);
  return dim * std::pow(1 - variance + 3.72 * std::sqrt(variance), 3);
}

/// What each mode of a library holds of first and second moments, of the target's own quantities and of all, by the draws that
/// weigh it: `part` exp(log_scale) are estimates of the integrals over its home of density f, for f = x_i, then x_i^2, the
/// quantities, and 1, with their variances. Weights are truncated at sqrt(n) times their mean (Ionides 2008), which makes them
/// low where draws do not tell.
struct HeldMoments {
  double log_scale = NAN;
  std::vector<double> part, variance;  // [mode][2 d + quantities + 1]; empty: not known

  template <class Archive>
  void fields(Archive& archive) {
    archive("log_scale", log_scale);
    archive("part", part);
    archive("variance", variance);
  }
};

/// Modes that chains jump between and bases are made of: the largest, fewer where their matrices are large.
inline int most_used_modes(int dim) {
  return int(std::clamp(double(1 << 21) / ((dim + 1.0) * (dim + 1.0)), 4.0, 32.0));
}

class ModeLibrary {
 public:
  explicit ModeLibrary(int dim = 0) : dim_(dim) {}

  int dim() const { return dim_; }
  int size() const { return int(modes_.size()); }
  const Mode& operator[](int k) const { return modes_[k]; }
  Mode& operator[](int k) { return modes_[k]; }
  void add(Mode mode);

  bool in_core(int k, const double* x) const {
    const double most = core_distance(dim_);
    return distance(k, x, most) < most;
  }
  /// Squared Mahalanobis distance of x from mode k, or something above `most` where it is more than that.
  double distance(int k, const double* x, double most = INFINITY) const;
  /// log |L| of mode k.
  double log_volume(int k) const { return 0.5 * log_det_[k]; }
  /// Of the normal with mode k's covariance and mass.
  double log_density(int k, const double* x) const;
  /// Of the lines from the columns of x along the gradients there, both in the metric of mode k (factor^-1 (place - x), factor'
  /// gradient): the cosine of the angle with the way to the mode, and how far from that the line passes, in standard
  /// deviations. NaN where one is 0.
  struct Aims {
    Eigen::ArrayXd cosine, miss;
  };
  Aims aims(int k, const Eigen::MatrixXd& x, const Eigen::MatrixXd& gradient) const;
  /// The mode nearest to x by that distance, of those nearer than `most`; -1 where there is none.
  int nearest(const double* x, double most = INFINITY) const;
  /// Of each column of x, [d][point], the mode that is nearest, or home: whose normal is densest there, all of one mass; -1
  /// where none is. In many dimensions what a narrow mode holds lies nearer to a wide one by distance alone.
  enum class By { distance, density };
  std::vector<int> of_points(const Eigen::MatrixXd& x, By by, int threads) const;

  /// Each mode's share of the total of their masses, and the log of that total.
  std::vector<double> shares() const;
  double log_total() const;  // of halos too
  /// Modes and their halos.
  int parts() const {
    int sum = size();
    for (const Mode& m : modes_) sum += int(m.halos.size());
    return sum;
  }
  /// Their numbers, the largest Laplace mass first.
  std::vector<int> by_mass() const;
  /// The first most_used_modes of these.
  std::vector<int> most_used() const {
    std::vector<int> order = by_mass();
    order.resize(std::min(size(), most_used_modes(dim_)));
    return order;
  }

  template <class Archive>
  void fields(Archive& archive) {
    archive("dim", dim_);
    archive("modes", modes_);
    inverse_.clear();
    widest_.clear();
    log_det_.clear();
    measure();
  }

 private:
  static constexpr int kRows = 8;
  using Rows = Eigen::Array<double, kRows, 1>;

  void measure();
  /// take(i, z) for i = 0, kRows, ..: so many rows of factor^-1 (x - place), zeros beyond the last; until it returns false.
  template <class Take>
  void whiten(int k, const double* x, Take take) const;
  /// distance(), without a look at whether x is too far along the widest axis.
  double measured_distance(int k, const double* x, double most) const;

  int dim_;
  std::vector<Mode> modes_;
  std::vector<std::vector<Rows>> inverse_;  // of the factors: [mode][rows, column up to their last]
  // A bound on the covariance's largest eigenvalue, at most a third above it up to 64 axes.
  std::vector<double> widest_;
  std::vector<double> log_det_;  // of the covariance
};

}  // namespace lockstep
