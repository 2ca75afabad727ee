// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/log_sums.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {
namespace {

/// P(|t| <= x) of Student's distribution with a whole number of degrees of freedom.
double student_within(double df, double x) {
  if (!(df <= 1e4)) return std::erf(x / std::sqrt(2.0));
  const bool odd = std::fmod(df, 2) == 1;
  const double angle = std::atan2(x, std::sqrt(df)), c = std::cos(angle);
  // Odd: (2 / pi) (angle + sin sum_k c^(2k+1) (2k)!! / (2k+1)!!); even: sin sum_k c^(2k) (2k-1)!! / (2k)!!.
  double term = odd ? c : 1, sum = 0;
  for (double k = odd ? 1 : 0; k < df - 1; k += 2) {
    sum += term;
    term *= c * c * (k + 1) / (k + 2);
  }
  return odd ? 2 / M_PI * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

}  // namespace

double student_quantile(double df, double level) {
  if (df < 1) return NAN;
  double low = 0, high = 1;
  while (student_within(df, high) < level) high *= 2;
  for (int k = 0; k < 60; ++k) {
    const double middle = 0.5 * (low + high);
    (student_within(df, middle) < level ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

std::array<double, 2> LogZ::interval(double level) const {
  const double half = student_quantile(df, level) * (std::isnan(unscaled_se) ? se : unscaled_se);
  return {estimate - half, estimate + half};
}

namespace {
double three_errors(const LogZ& z, double parts) { return z.interval(1 - 0.003 / parts)[1] - z.estimate; }
}  // namespace

bool differ(const LogZ& a, const LogZ& b, double parts) {
  return !(std::abs(a.estimate - b.estimate) <=
           std::max(three_errors(a, parts), three_errors(b, parts)) + kRounding * (1 + std::abs(a.estimate)));
}
bool significant(const LogZ& difference) {
  return !(std::abs(difference.estimate) <= three_errors(difference, 1) + kRounding);
}

double Jackknife::se() const {
  const double blocks = double(left_out.size());
  if (blocks < 2) return NAN;
  double mean = 0, square = 0;
  for (double v : left_out) mean += v / blocks;
  for (double v : left_out) square += (v - mean) * (v - mean);
  return std::sqrt(square * (blocks - 1) / blocks);
}

LogZ Jackknife::value() const {
  const double blocks = double(left_out.size());
  return {estimate, se() * (blocks > 3 ? std::sqrt((blocks - 1) / (blocks - 3)) : 1), se(), blocks - 1};
}
Jackknife operator+(Jackknife a, const Jackknife& b) {
  assert(a.left_out.size() == b.left_out.size());
  a.estimate += b.estimate;
  for (std::size_t k = 0; k < a.left_out.size(); ++k) a.left_out[k] += b.left_out[k];
  return a;
}
Jackknife operator-(Jackknife a, const Jackknife& b) {
  assert(a.left_out.size() == b.left_out.size());
  a.estimate -= b.estimate;
  for (std::size_t k = 0; k < a.left_out.size(); ++k) a.left_out[k] -= b.left_out[k];
  return a;
}
Jackknife operator+(Jackknife a, double shift) {
  a.estimate += shift;
  for (double& v : a.left_out) v += shift;
  return a;
}

LogZ LogZ::widened(double by) const {
  if (!(by > 0)) return *this;
  const double unscaled = std::hypot(unscaled_se, by);
  return {estimate, std::hypot(se, by), unscaled,
          std::min(std::floor(df * std::pow(unscaled / unscaled_se, 4)), 1e4)};
}

Jackknife block_mean(const std::vector<double>& of_blocks) {
  double sum = 0;
  for (double v : of_blocks) sum += v;
  const double n = double(of_blocks.size());
  Jackknife j{sum / n, {}};
  for (double v : of_blocks) j.left_out.push_back((sum - v) / (n - 1));
  return j;
}
Jackknife log_mean(const std::vector<double>& of_blocks, double shift) {
  Jackknife j = block_mean(of_blocks);
  j.estimate = shift + std::log(j.estimate);
  for (double& v : j.left_out) v = shift + std::log(v);
  return j;
}

void BlockLogSums::set(int block, int row, const LogSum& s) {
  largest_[index(block, row)] = s.largest;
  sum_[index(block, row)] = s.sum;
}

void BlockLogSums::add(int block, int row, double log_term) {
  LogSum s = get(block, row);
  s.add(log_term);
  set(block, row, s);
}

void BlockLogSums::add(int block, int row, const LogSum& terms) {
  LogSum s = get(block, row);
  s.add(terms);
  set(block, row, s);
}

Jackknife BlockLogSums::combine(const std::vector<double>& coefficients) const {
  assert(int(coefficients.size()) == rows_);
  Jackknife result{0, std::vector<double>(blocks_, 0.0)};
  std::vector<LogSum> before(blocks_ + 1);
  for (int r = 0; r < rows_; ++r) {
    // What comes before a block and what comes after it: subtracting the block from the total would cancel.
    for (int b = 0; b < blocks_; ++b) {
      before[b + 1] = before[b];
      before[b + 1].add(get(b, r));
    }
    result.estimate += coefficients[r] * before[blocks_].log();
    LogSum after;
    for (int b = blocks_ - 1; b >= 0; --b) {
      LogSum rest = before[b];
      rest.add(after);
      result.left_out[b] += coefficients[r] * rest.log();
      after.add(get(b, r));
    }
  }
  return result;
}

}  // namespace lockstep
