// SPDX-License-Identifier: Apache-2.0
#pragma once
// Expectations of a target in one or two dimensions from values of its density alone.
#include <algorithm>
#include <cmath>

#include "tests/support/points.hpp"

namespace lockstep::testing {

/// The rectangle rule on a grid over the range of 20000 exact draws, widened by twice that on either side.
/// For smooth densities that vanish at the border its error falls faster than any power of the step;
/// quantities that jump are off by about one step's mass.
inline Truth integrate(const Subject& s) {
  const int d = s.dim(), n = d == 1 ? 1000000 : 2000;
  Point low(d, 1e300), high(d, -1e300), step(d);
  for (const Point& x : typical_points(s, 20000, 81))
    for (int i = 0; i < d; ++i) {
      low[i] = std::min(low[i], x[i]);
      high[i] = std::max(high[i], x[i]);
    }
  double cell = 1;
  for (int i = 0; i < d; ++i) {
    const double range = high[i] - low[i];
    low[i] -= 2 * range;
    step[i] = 5 * range / n;
    cell *= step[i];
  }
  double mass = 0;
  Point x(d), first(d, 0.0), second(d * d, 0.0), quantity(s.target->quantities().size(), 0.0);
  for (long k = 0; k < (d == 1 ? n : long(n) * n); ++k) {
    x[0] = low[0] + (k % n + 0.5) * step[0];
    if (d == 2) x[1] = low[1] + (k / n + 0.5) * step[1];
    const double p = std::exp(s.value(x)) * cell;
    if (p < 1e-30) continue;
    mass += p;
    for (int i = 0; i < d; ++i) {
      first[i] += p * x[i];
      for (int j = 0; j < d; ++j) second[i * d + j] += p * x[i] * x[j];
    }
    if (quantity.empty()) continue;
    const Point q = s.quantities(x);
    for (std::size_t i = 0; i < q.size(); ++i) quantity[i] += p * q[i];
  }
  Truth t;
  t.log_z = std::log(mass);
  for (int i = 0; i < d; ++i) t.mean.push_back(first[i] / mass);
  for (int i = 0; i < d; ++i)
    for (int j = 0; j < d; ++j) t.covariance.push_back(second[i * d + j] / mass - t.mean[i] * t.mean[j]);
  for (double q : quantity) t.quantities.push_back(q / mass);
  return t;
}

}  // namespace lockstep::testing
