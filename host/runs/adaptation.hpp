// SPDX-License-Identifier: Apache-2.0
#pragma once
// Adapters: statistics in, parameters out. Used in warm-up only, and frozen before anything is recorded.
#include <algorithm>
#include <cmath>

namespace lockstep {

/// Dual averaging of the log step size (Nesterov 2009; Hoffman & Gelman 2014, section 3.2, whose constants
/// these are).
class DualAveraging {
 public:
  explicit DualAveraging(double step_size = 1, double target = 0.8) { restart(step_size, target); }

  void restart(double step_size, double target) {
    mu_ = std::log(10 * step_size);
    target_ = target;
    log_step_ = std::log(step_size);
    log_average_ = log_step_;
    error_ = 0;
    count_ = 0;
  }
  /// Takes the acceptance of one iteration, the mean over chains.
  void update(double acceptance) {
    ++count_;
    const double eta = 1 / (count_ + kOffset);
    error_ += eta * (target_ - (std::isfinite(acceptance) ? acceptance : 0) - error_);
    log_step_ = mu_ - error_ * std::sqrt(count_) / kShrinkage;
    const double weight = std::pow(count_, -kDecay);
    log_average_ += weight * (log_step_ - log_average_);
  }
  double step_size() const { return std::exp(log_step_); }
  double average() const { return std::exp(log_average_); }

  template <class Archive>
  void fields(Archive& archive) {
    archive("mu", mu_);
    archive("target", target_);
    archive("log_step", log_step_);
    archive("log_average", log_average_);
    archive("error", error_);
    archive("count", count_);
  }

 private:
  static constexpr double kShrinkage = 0.05, kOffset = 10, kDecay = 0.75;
  double mu_, target_, log_step_, log_average_, error_, count_;
};

/// A step size that follows acceptance while the density moves on under it, so that there is no average to
/// come to: times exp(gain (acceptance - target)) after each iteration. Gain 0: it stays.
struct StepSizeController {
  double gain = 1, target = 0.8;
  double next(double step_size, double acceptance) const {
    if (gain == 0) return step_size;
    const double error = (std::isfinite(acceptance) ? acceptance : 0) - target;
    return std::clamp(step_size * std::exp(gain * error), 1e-6, 2.0);
  }
};

/// ChEES: Adam ascent of the log trajectory time on the change in the estimator of the expected square
/// (Hoffman, Radul & Sountsov 2021). The kernel supplies its gradient, weighted by acceptance, per iteration.
class Chees {
 public:
  explicit Chees(double trajectory_time = 1)
      : log_time_(std::log(trajectory_time)), log_average_(log_time_) {}

  void update(double gradient) {
    ++count_;
    if (!std::isfinite(gradient)) return;
    // d/d log T = T d/d T; the scale is Adam's affair.
    const double g = gradient * std::exp(log_time_);
    second_ += (1 - kMemory) * (g * g - second_);
    const double corrected = second_ / (1 - std::pow(kMemory, count_));
    if (corrected > 0) log_time_ += std::clamp(kRate * g / std::sqrt(corrected), -kLargest, kLargest);
    const double weight = std::pow(count_, -0.5);
    log_average_ += weight * (log_time_ - log_average_);
  }
  /// The trajectory time, kept between the step size and 1000 steps.
  double trajectory_time(double step_size) const { return within(log_time_, step_size); }
  double average(double step_size) const { return within(log_average_, step_size); }

  template <class Archive>
  void fields(Archive& archive) {
    archive("log_time", log_time_);
    archive("log_average", log_average_);
    archive("second", second_);
    archive("count", count_);
  }

 private:
  static double within(double log_time, double step_size) {
    return std::clamp(std::exp(log_time), step_size, 1000 * step_size);
  }
  static constexpr double kRate = 0.025, kMemory = 0.95, kLargest = 0.35;
  double log_time_, log_average_, second_ = 0, count_ = 0;
};

}  // namespace lockstep
