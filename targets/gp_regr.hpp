// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gaussian-process regression with unknown length scale, amplitude and noise: posteriordb's gp_regr.
#include "targets/target.hpp"

namespace lockstep {

/// y ~ N(0, K), K_ij = alpha^2 exp(-(x_i - x_j)^2 / (2 rho^2)) + sigma [i = j] (sigma itself, not its square);
/// rho ~ Gamma(25, rate 4), alpha ~ N+(0, 2^2), sigma ~ N+(0, 1). State (log rho, log alpha, log sigma). All constants
/// are kept and the Jacobians are in, so that log Z = log p(y).
///
/// With K = L L' and b = K^-1 y the gradient of log N(y; 0, K) in K is (b b' - K^-1) / 2. Triangles are local arrays of
/// at most kMaxPoints (kMaxPoints + 1) / 2 lanes, in lanes of double: K loses digits as sigma becomes small.
struct GpRegr : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  static constexpr int kMaxPoints = 32, kMaxTriangle = kMaxPoints * (kMaxPoints + 1) / 2;
  static constexpr double kShape = 25, kRate = 4, kSdAlpha = 2, kSdSigma = 1;
  enum Row { kLogRho, kLogAlpha, kLogSigma };

  int dim = 3, points = 0;
  double constant = 0;
  ParameterArray y;        // [points]
  ParameterArray squares;  // [points (points - 1) / 2]: (x_i - x_j)^2, j < i, by rows

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(y, points);
    f(squares, points * (points - 1) / 2);
  }

  /// Lanes of double beside L, or L itself where it is of double.
  template <class L>
  using Wide = std::conditional_t<std::is_same_v<scalar_t<L>, double>, L, wide_t<L>>;
  template <class To, class L>
  LOCKSTEP_FN static To as(L a) {
    if constexpr (std::is_same_v<To, L>)
      return a;
    else
      return cast<To>(a);
  }

  /// Where row i of a triangle begins.
  LOCKSTEP_FN static int row(int i) { return i * (i + 1) / 2; }

  /// K becomes its Cholesky factor, with 1 / L_ii on the diagonal; returns sum log L_ii.
  template <class V>
  LOCKSTEP_FN V factorise(V* k) const {
    V logs = V(0);
    for (int i = 0; i < points; ++i) {
      V* a = k + row(i);
      for (int j = 0; j < i; ++j) {
        const V* b = k + row(j);
        V v = a[j];
        for (int m = 0; m < j; ++m) v = nfma(a[m], b[m], v);
        a[j] = v * b[j];
      }
      V v = a[i];
      for (int m = 0; m < i; ++m) v = nfma(a[m], a[m], v);
      const V root = sqrt(v);
      logs = logs + log(root);
      a[i] = V(1) / root;
    }
    return logs;
  }

  /// L as factorise left it becomes L^-1.
  template <class V>
  LOCKSTEP_FN void invert(V* k) const {
    for (int i = 0; i < points; ++i) {
      V* a = k + row(i);
      for (int j = 0; j < i; ++j) {  // -L_ii^-1 sum_m L_im (L^-1)_mj, j <= m < i
        V v = V(0);
        for (int m = j; m < i; ++m) v = fma(a[m], k[row(m) + j], v);
        a[j] = -(v * a[i]);
      }
    }
  }

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using V = Wide<L>;
    const V log_rho = as<V>(x[kLogRho]), log_alpha = as<V>(x[kLogAlpha]), log_sigma = as<V>(x[kLogSigma]);
    const V rho = exp(log_rho), alpha = exp(log_alpha), sigma = exp(log_sigma);
    const V variance = alpha * alpha, inv_rho2 = exp(log_rho * V(-2)), scale = inv_rho2 * V(-0.5);
    const double* d2 = squares.get<double>();
    const double* data = y.get<double>();
    V k[kMaxTriangle], z[kMaxPoints];
    for (int i = 0, at = 0; i < points; ++i) {
      for (int j = 0; j < i; ++j, ++at) k[row(i) + j] = variance * exp(scale * V(d2[at]));
      k[row(i) + i] = variance + sigma;
    }
    const V logs = factorise(k);
    V fit = V(0);
    for (int i = 0; i < points; ++i) {  // z = L^-1 y
      V v = V(data[i]);
      for (int j = 0; j < i; ++j) v = nfma(k[row(i) + j], z[j], v);
      z[i] = v * k[row(i) + i];
      fit = fma(z[i], z[i], fit);
    }
    const V a2 = variance * V(1 / (kSdAlpha * kSdAlpha)), s2 = sigma * sigma * V(1 / (kSdSigma * kSdSigma));
    if constexpr (gradient_wanted<G>()) {
      const Pull<V> pull = pulls(k, z, variance, scale);
      g.set(kLogRho, as<L>(fma(pull.along, inv_rho2, nfma(V(kRate), rho, V(kShape)))));
      g.set(kLogAlpha, as<L>(fma(variance, pull.own, fma(V(2), pull.smooth, V(1) - a2))));
      g.set(kLogSigma, as<L>(fma(V(0.5) * sigma, pull.own, V(1) - s2)));
    }
    const V prior = fma(V(kShape), log_rho, log_alpha + log_sigma) - V(kRate) * rho - V(0.5) * (a2 + s2);
    return as<L>(nfma(V(0.5), fit, prior - logs) + V(constant));
  }

  /// rho, alpha, sigma.
  LOCKSTEP_FN int quantities() const { return 3; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X& x, Put&& put) const {
    for (int i = 0; i < 3; ++i) put(i, exp(x[i]));
  }

 private:
  /// With M = b b' - K^-1 and S the part of K below the diagonal: sum M_ij S_ij, the same times (x_i - x_j)^2, and tr M.
  template <class V>
  struct Pull {
    V smooth = V(0), along = V(0), own = V(0);
  };
  /// From L and z = L^-1 y, which become L^-1 and b = L^-T z.
  template <class V>
  LOCKSTEP_FN Pull<V> pulls(V* k, V* z, V variance, V scale) const {
    const double* d2 = squares.get<double>();
    Pull<V> pull;
    invert(k);
    for (int j = 0; j < points; ++j) {  // b_j needs z from j on
      V v = V(0);
      for (int m = j; m < points; ++m) v = fma(k[row(m) + j], z[m], v);
      z[j] = v;
    }
    for (int i = 0, at = 0; i < points; ++i)
      for (int j = 0; j <= i; ++j) {
        V v = V(0);
        for (int m = i; m < points; ++m) v = fma(k[row(m) + i], k[row(m) + j], v);
        v = fma(z[i], z[j], -v);
        if (j == i) {
          pull.own = pull.own + v;
        } else {
          v = v * variance * exp(scale * V(d2[at]));
          pull.smooth = pull.smooth + v;
          pull.along = fma(v, V(d2[at]), pull.along);
          ++at;
        }
      }
    return pull;
  }
};

struct GpRegrTarget {
  using Density = GpRegr;
  static TargetInfo info();
  static Built<GpRegr> build(TargetInput& in);
};

}  // namespace lockstep
