// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/pack_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elementary.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kLanes = 8;
using P = Pack<double, int(kLanes)>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What is left below a full pack is filled up.
LOCKSTEP_FN P load_some(std::span<const double> values, std::size_t first, double fill) {
  if (first + kLanes <= values.size()) return load<P>(values.data() + first);
  double last[kLanes];
  std::fill(std::copy(values.begin() + std::ptrdiff_t(first), values.end(), last), last + kLanes, fill);
  return load<P>(last);
}

/// Calls f with one pack of values after another.
template <class F>
void in_packs(std::span<const double> values, double fill, F&& f) {
  for (std::size_t i = 0; i < values.size(); i += kLanes) f(load_some(values, i, fill));
}

/// Of the first lanes.
double total(P a, std::size_t lanes = kLanes) {
  double x[kLanes], sum = 0;
  store(x, a);
  for (std::size_t i = 0; i < lanes; ++i) sum += x[i];
  return sum;
}

/// exp stops at the smallest normal number, which is no weight of 0; a NaN stays.
LOCKSTEP_FN P exp_or_zero(P a) { return select(a <= kExp2Low<double> * kLn2, P(0.0), exp(a)); }

}  // namespace

double sum_of(std::span<const double> values) {
  P sum(0.0);
  in_packs(values, 0, [&](P v) { sum = sum + v; });
  return total(sum);
}

LogSum log_sum_of(std::span<const double> log_terms) {
  P top(LogSum().largest);
  in_packs(log_terms, -kInfinity, [&](P t) { top = max(t, top); });  // of a NaN the second
  const double largest = reduce_max(top);
  if (largest == kInfinity) {  // the difference of two is a NaN; of one alone it is not asked for
    LogSum one_by_one;
    for (double t : log_terms) one_by_one.add(t);
    return one_by_one;
  }
  P sum(0.0);
  in_packs(log_terms, -kInfinity, [&](P t) { sum = sum + exp_or_zero(t - largest); });
  return {largest, total(sum)};
}

LogisticSums logistic_sums(std::span<const double> values, double shift) {
  P sum(0.0), squares(0.0), slope(0.0);
  in_packs(values, -kInfinity, [&](P v) {
    const P a = v + shift, e = exp_or_zero(-abs(a)), large = 1.0 / (e + 1.0), small = e * large;
    const P s = select(a < 0.0, small, large);  // of a NaN both are NaN
    sum = sum + s;
    squares = fma(s, s, squares);
    slope = fma(small, large, slope);
  });
  return {total(sum), total(squares), total(slope)};
}

double level_shares(std::span<const double> ladder, std::span<const double> f, std::span<const double> delta,
                    double* share, std::size_t stride) {
  double logs = 0;
  for (std::size_t i = 0; i < delta.size(); i += kLanes) {
    const P d = load_some(delta, i, 0);
    P top(-kInfinity), sum(0.0);
    for (std::size_t k = 0; k < ladder.size(); ++k) {
      const P a = ladder[k] == 0 ? P(f[k]) : nfma(P(ladder[k]), d, P(f[k]));
      store(share + k * stride + i, a);
      top = max(a, top);
    }
    for (std::size_t k = 0; k < ladder.size(); ++k) {
      const P e = exp_or_zero(load<P>(share + k * stride + i) - top);
      store(share + k * stride + i, e);
      sum = sum + e;
    }
    const P part = 1.0 / sum;
    for (std::size_t k = 0; k < ladder.size(); ++k)
      store(share + k * stride + i, load<P>(share + k * stride + i) * part);
    logs += total(top + log(sum), std::min(kLanes, delta.size() - i));
  }
  return logs;
}

}  // namespace lockstep
