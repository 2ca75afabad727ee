// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <vector>

namespace lockstep {

/// Log of a normalising constant, or a difference of two, and its standard error.
struct LogZ {
  double estimate, se;
  /// What intervals are made of: the error as it was estimated, from `df` + 1 independent blocks. NaN: `se`
  /// itself, of so many that it is normal.
  double unscaled_se = NAN, df = NAN;

  /// The central interval that covers with probability `level`: estimate +- t unscaled_se, t the quantile of
  /// Student's distribution with `df` degrees of freedom.
  std::array<double, 2> interval(double level) const;
  LogZ shifted(double by) const { return {estimate + by, se, unscaled_se, df}; }
  /// With an error beside its own which that does not show. Degrees of freedom as Satterthwaite (1946) has them: this one
  /// was not estimated.
  LogZ widened(double by) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("estimate", estimate);
    archive("se", se);
    archive("unscaled_se", unscaled_se);
    archive("df", df);
  }
};

inline constexpr double kRounding = 1e-6;  // of single precision, where nothing else errs
/// Whether two estimates of one number are further apart than the worse of them allows: half of its interval that holds
/// 99.7 %, or, of so many numbers that are compared, all but a part of the other .3 %.
bool differ(const LogZ& a, const LogZ& b, double parts = 1);
/// Whether a difference is not zero by its own error, in the same way.
bool significant(const LogZ& difference);

/// The t above which Student's distribution with `df` degrees of freedom (a whole number; NaN, or above 1e4:
/// normal; NaN below 1) has half of 1 - level: the quantile of a two-sided interval. Source: Abramowitz &
/// Stegun (1964), 26.7.3 and 26.7.4.
double student_quantile(double df, double level);

/// A sum of exponentials, kept with its largest exponent apart. A term exp(-infinity) counts as 0; a NaN
/// stays.
struct LogSum {
  double largest = -1e300, sum = 0;
  void add(double log_term) {
    if (log_term > largest) {
      sum = sum * std::exp(largest - log_term) + 1;
      largest = log_term;
    } else {
      sum += std::exp(log_term - largest);
    }
  }
  void add(const LogSum& other) {
    if (other.sum == 0) return;
    const double t = other.largest > largest ? other.largest : largest;
    sum = sum * std::exp(largest - t) + other.sum * std::exp(other.largest - t);
    largest = t;
  }
  /// -infinity for none.
  double log() const { return largest + std::log(sum); }
  template <class Archive>
  void fields(Archive& archive) {
    archive("largest", largest);
    archive("sum", sum);
  }
};

/// An estimate, and what it would be without each block (chain, run, copy) in turn. Estimates from the same
/// blocks may be added and subtracted: the standard error of the result knows how they are correlated.
struct Jackknife {
  double estimate;
  std::vector<double> left_out;
  /// sqrt((B - 1) / B sum_b (left_out_b - their mean)^2); NaN with fewer than two blocks. To first order the
  /// delta method; larger, as it should be, where a few blocks carry the sum. Source: Efron & Stein (1981).
  double se() const;
  /// With few blocks the error over se() is Student's t with B - 1 degrees of freedom: this standard error is
  /// larger by sqrt((B - 1) / (B - 3)), so that the ratio has variance one, and +- 2 covers as it should (up
  /// to 3 blocks have no such factor: it is se()'s own there).
  LogZ value() const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("estimate", estimate);
    archive("left_out", left_out);
  }
};
Jackknife operator+(Jackknife a, const Jackknife& b);
Jackknife operator-(Jackknife a, const Jackknife& b);
/// The same, shifted by a known number.
Jackknife operator+(Jackknife a, double shift);

/// The mean of a number of each block.
Jackknife block_mean(const std::vector<double>& of_blocks);
/// shift + the log of the mean of a number of each block.
Jackknife log_mean(const std::vector<double>& of_blocks, double shift);

/// Sums of exponentials in rows, apart for each block of samples that is independent of the other blocks (a
/// chain, never an iteration). Every block should hold samples.
class BlockLogSums {
 public:
  BlockLogSums(int blocks, int rows)
      : blocks_(blocks),
        rows_(rows),
        largest_(std::size_t(blocks) * rows, LogSum().largest),
        sum_(largest_.size()) {}
  void add(int block, int row, double log_term);
  void add(int block, int row, const LogSum& terms);
  /// sum_r coefficient_r log total_r; NaN where infinities meet.
  Jackknife combine(const std::vector<double>& coefficients) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("largest", largest_);
    archive("sum", sum_);
  }

 private:
  std::size_t index(int block, int row) const { return std::size_t(row) * blocks_ + block; }
  LogSum get(int block, int row) const { return {largest_[index(block, row)], sum_[index(block, row)]}; }
  void set(int block, int row, const LogSum& s);

  int blocks_, rows_;
  std::vector<double> largest_, sum_;  // [row][block]; two plain arrays, for checkpoints
};

}  // namespace lockstep
