// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/schedules.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "host/estimators/pack_sums.hpp"
#include "host/util/errors.hpp"

namespace lockstep {
namespace {

template <class Shape>
std::vector<double> shaped_ladder(int steps, Shape shape) {
  assert(steps >= 1);
  std::vector<double> ladder(steps + 1, 0.0);
  for (int k = 1; k < steps; ++k) ladder[k] = shape(double(k) / steps);
  ladder[steps] = 1;
  return ladder;
}

}  // namespace

std::vector<double> linear_ladder(int steps) {
  return shaped_ladder(steps, [](double t) { return t; });
}
std::vector<double> sigmoid_ladder(int steps, double r) {
  const auto s = [](double t) { return 1 / (1 + std::exp(-t)); };
  return shaped_ladder(steps, [&](double t) { return (s(r * (2 * t - 1)) - s(-r)) / (s(r) - s(-r)); });
}
std::vector<double> quadratic_ladder(int steps) {
  return shaped_ladder(steps, [](double t) { return t * t; });
}

void check_ladder(const std::vector<double>& ladder) {
  if (ladder.size() < 2 || ladder.front() != 0 || ladder.back() != 1)
    throw UserError(
        "the ladder of inverse temperatures does not run from 0 to 1 (it must connect the base with the "
        "target). "
        "Start it with 0 and end it with 1");
  for (std::size_t k = 1; k < ladder.size(); ++k)
    if (!(ladder[k] > ladder[k - 1]))  // true for NaN too
      throw UserError("the ladder of inverse temperatures does not increase at entry " +
                      std::to_string(k + 1) +
                      " (levels must differ, in order). Sort it and remove what is double");
}

double increment_rate(const std::vector<double>& log_weights, const std::vector<double>& log_increments) {
  assert(log_weights.size() == log_increments.size());
  std::vector<double> terms(log_weights);
  const auto with = [&](double times) {
    for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = log_weights[i] + times * log_increments[i];
    return log_sum_of(terms);
  };
  const LogSum weight = log_sum_of(log_weights), first = with(1), second = with(2);
  return std::sqrt(std::max(0.0, second.log() + weight.log() - 2 * first.log()));
}

std::vector<double> smoothed_steps(const std::vector<double>& step_size, int reach) {
  const int levels = int(step_size.size());
  std::vector<double> out;
  for (int k = 0; k < levels; ++k) {
    double sum = 0, terms = 0;
    for (int j = std::max(0, k - reach); j <= std::min(levels - 1, k + reach); ++j, ++terms)
      sum += std::log(step_size[j]);
    out.push_back(std::exp(sum / terms));
  }
  return out;
}

CommunicationBarrier::CommunicationBarrier(std::vector<double> ladder, const std::vector<double>& rates)
    : ladder_(std::move(ladder)), sum_(1, 0.0), slope_(ladder_.size()) {
  assert(ladder_.size() >= 2 && rates.size() + 1 == ladder_.size());
  const std::size_t steps = rates.size();
  std::vector<double> width(steps), secant(steps);
  for (std::size_t k = 0; k < steps; ++k) {
    assert(rates[k] >= 0);
    sum_.push_back(sum_.back() + rates[k]);
    width[k] = ladder_[k + 1] - ladder_[k];
    secant[k] = rates[k] / width[k];
  }
  // Inside: a weighted harmonic mean of the secants on either side, 0 where one is 0.
  for (std::size_t k = 1; k < steps; ++k) {
    const double left = 2 * width[k] + width[k - 1], right = width[k] + 2 * width[k - 1];
    if (rates[k - 1] > 0 && rates[k] > 0)
      slope_[k] = (left + right) / (left / secant[k - 1] + right / secant[k]);
  }
  // At the ends: of the parabola through three points, within what keeps the cubic monotone.
  const auto end = [&](std::size_t k, std::size_t next) {
    const double slope =
        ((2 * width[k] + width[next]) * secant[k] - width[k] * secant[next]) / (width[k] + width[next]);
    return std::clamp(slope, 0.0, 3 * secant[k]);
  };
  slope_.front() = steps > 1 ? end(0, 1) : secant[0];
  slope_.back() = steps > 1 ? end(steps - 1, steps - 2) : secant[0];
}

std::size_t CommunicationBarrier::step_of(double beta) const {
  return std::upper_bound(ladder_.begin() + 1, ladder_.end() - 1, beta) - ladder_.begin() - 1;
}

double CommunicationBarrier::cumulative(double beta) const {
  const std::size_t k = step_of(beta);
  const double h = ladder_[k + 1] - ladder_[k], t = (beta - ladder_[k]) / h, s = 1 - t;
  return s * s * ((1 + 2 * t) * sum_[k] + t * h * slope_[k]) +
         t * t * ((1 + 2 * s) * sum_[k + 1] - s * h * slope_[k + 1]);
}

std::vector<double> CommunicationBarrier::equal_ladder(int steps) const {
  if (!(global() > 0)) return linear_ladder(steps);
  return shaped_ladder(steps, [&](double t) {
    const double wanted = t * global();
    const std::size_t k = std::upper_bound(sum_.begin() + 1, sum_.end() - 1, wanted) - sum_.begin();
    double low = ladder_[k - 1], high = ladder_[k];
    for (int i = 0; i < 60; ++i) {
      const double middle = 0.5 * (low + high);
      (cumulative(middle) < wanted ? low : high) = middle;
    }
    return 0.5 * (low + high);
  });
}

std::vector<double> named_ladder(const std::string& name, int steps, const CommunicationBarrier& barrier) {
  return name == "linear"      ? linear_ladder(steps)
         : name == "sigmoid"   ? sigmoid_ladder(steps)
         : name == "quadratic" ? quadratic_ladder(steps)
                               : barrier.equal_ladder(steps);
}

}  // namespace lockstep
