// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scale of a coefficient under the regularised horseshoe of Piironen & Vehtari (2017), equations 2.8 and 2.9.
#include "kernels/elementary.hpp"

namespace lockstep {

/// tau lambda~, lambda~^2 = c^2 lambda^2 / (c^2 + tau^2 lambda^2), from the logarithms. With r = log tau + log lambda,
/// k = log c, w = exp(-|r - k|) and h = 1 / (1 + w^2):
///
///   r < k:  scale = exp(r) sqrt(h),  of_tau = h,      of_slab = w^2 h      (near 0: tau lambda, 1, 0)
///   r > k:  scale = exp(k) sqrt(h),  of_tau = w^2 h,  of_slab = h          (the slab: c, 0, 1)
///
/// of_tau = d log(scale) / d log lambda = d log(scale) / d log tau, of_slab = d log(scale) / d log c = 1 - of_tau. Nothing
/// is squared that may be large, so that none overflows for any lambda and tau.
template <class L>
struct HorseshoeScale {
  L scale, of_tau, of_slab;

  LOCKSTEP_FN HorseshoeScale(L log_lambda, L log_tau, L log_c) {
    const L r = log_lambda + log_tau, above = r - log_c, w = exp(-abs(above)), square = w * w,
            h = L(1) / (L(1) + square), small = square * h;
    scale = exp(select(above < L(0), r, log_c)) * sqrt(h);
    of_tau = select(above < L(0), h, small);
    of_slab = select(above < L(0), small, h);
  }
};

}  // namespace lockstep
