// SPDX-License-Identifier: Apache-2.0
#pragma once
// The worked example: read this file to learn how a target is written.
//
// A target is one header with two structs, one line in targets/targets.list, and one test.
//   1. The density: a small struct of numbers, copied to every thread. Its template `log_density` is written once
//      and compiled for SIMD packs, for CUDA threads and for the scalar reference.
//   2. The definition: the name users type, what `lockstep targets NAME` says, how settings and data become the
//      density, and the truth where there is one.
#include "targets/target.hpp"

namespace lockstep {

/// N(mean, diag sd^2) in any dimension, normalised.
struct Gaussian : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int, 2>;
  int dim = 0;
  double log_norm = 0;  // -d/2 log 2 pi - sum log sd
  ParameterArray mean, inv_sd;

  /// Every array, for the copy to a device: f(array, length).
  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(mean, dim);
    f(inv_sd, dim);
  }

  /// log density and its gradient at x (x[i] reads, g.set(i, v) writes). D is the compile-time dimension or
  /// 0; L is the lane type: only the operations of kernels/lanes.hpp, no `if` on lane values.
  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    const auto* m = mean.get<L>();
    const auto* s = inv_sd.get<L>();
    L q = L(0);
    for (int i = 0; i < extent<D>(dim); ++i) {
      const L z = (x[i] - L(m[i])) * L(s[i]);
      q = fma(z, z, q);
      g.set(i, -(z * L(s[i])));
    }
    return nfma(L(0.5), q, L(log_norm));
  }
};

struct GaussianTarget {
  using Density = Gaussian;

  static TargetInfo info() {
    return {
        .name = "gaussian",
        .summary = "Gaussian with independent axes, standard deviations from 1 to target.ratio",
        .formula = "log N(x; 0, diag sd^2), sd_i = ratio^(i / (dim - 1))",
        .settings = {{"dim", "dimension (default 10)"}, {"ratio", "largest sd over smallest (default 1)"}},
        .truth = "closed form: mean 0, variances sd_i^2, log Z = 0"};
  }

  static Built<Gaussian> build(TargetInput& in) {
    const int d = in.integer("dim", 10, 1, 100000);
    const double ratio = in.number("ratio", 1.0, 1e-6, 1e6);
    Built<Gaussian> b(d);
    std::vector<double> mean(d, 0.0), inv_sd(d);
    b.density.dim = d;
    b.density.log_norm = -0.5 * d * std::log(2 * kPi);
    for (int i = 0; i < d; ++i) {
      const double sd = std::pow(ratio, d > 1 ? double(i) / (d - 1) : 0.0);
      inv_sd[i] = 1 / sd;
      b.density.log_norm -= std::log(sd);
      b.truth.mean[i] = 0;
      b.truth.set_covariance(i, i, sd * sd);
    }
    b.density.mean = b.pool.add(mean);
    b.density.inv_sd = b.pool.add(inv_sd);
    b.truth.log_z = 0;
    b.draw = [inv_sd](ExactDraw& draw, double* x) {
      for (std::size_t i = 0; i < inv_sd.size(); ++i) x[i] = draw.normal() / inv_sd[i];
    };
    return b;
  }
};

}  // namespace lockstep
