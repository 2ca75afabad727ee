// SPDX-License-Identifier: Apache-2.0
#pragma once
// The half-Cauchy prior of a scale, on the logarithm of the scale.
#include "kernels/elementary.hpp"

namespace lockstep {

/// s ~ half-Cauchy(c), density 2 c / (pi (c^2 + s^2)): with its Jacobian, t = log(s / c) has the density
/// sech(t) / pi. `value` is the log density of log s without log(2 / pi), `slope` its derivative:
///
///   value = -|t| - log(1 + e),   slope = -tanh t = -sign(t) (1 - e) / (1 + e),   e = exp(-2 |t|)
///
/// No s^2 is formed, so that neither overflows for any t.
template <class L>
struct LogHalfCauchy {
  static constexpr double kConstant = -0.45158270528945486473;  // log(2 / pi)
  L value, slope;

  LOCKSTEP_FN LogHalfCauchy(L log_s, double log_c) {
    using R = scalar_t<L>;
    const L t = log_s - L(R(log_c)), size = abs(t);
    const L e = exp(size * L(R(-2))), sum = L(1) + e, tanh = (L(1) - e) / sum;
    value = -size - log(sum);
    slope = select(t < L(0), tanh, -tanh);
  }
};

}  // namespace lockstep
