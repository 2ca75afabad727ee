// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descents to modes that are not known yet: L-BFGS on what is left of the energy beside those known.
#include "kernels/lbfgs.hpp"
#include "kernels/mode_mixture.hpp"

namespace lockstep {

/// The energy that is left where the modes known are taken out (Lan, Streets & Shahbaba 2014, "Identifying new modes", with
/// its sign corrected): with q the mixture of their normals and pi the density on its scale, at a temperature T,
///
///   difference:  -log(pi - q^(1/T) + c) + log c,     log:  -log pi + log(1 + q^(1/T) / pi).
///
/// The first is the paper's, c at least twice as large as q^(1/T) anywhere: hills where modes are known, and level wherever
/// both densities are far below c. The second is level nowhere, and it has no hills: where q^(1/T) is above pi, in the whole
/// tail of a mode for T > 1, it falls as -2 log pi + log q / T does, to the mode.
///
/// Lists: "known", of ModeMixture, its other number the log of the mass that q stands for; "level": log c.
struct ResidualEnergy {
  static constexpr int kRows = 2;                        // its gradient, that of log q
  enum Setting { first_step, temperature, difference };  // of the transition

  /// log q; its gradient in rows of `slope`. `z`: rows to work in.
  template <class V, class W, class X, class Z, class G>
  LOCKSTEP_FN static V log_mixture(const W& w, int d, X x, Z z, G slope) {
    constexpr double kNone = -ModeMixture::kAll;
    const V count = w.shared.get(0, V(0.0));
    const int components = static_cast<int>(reduce_max(count));
    V top = V(kNone), sum = V(0.0);
    for (int i = 0; i < d; ++i) slope.set(i, V(0.0));
    w.shared.each_unit(0, [&](auto read) {
      for (int k = 0; k < components; ++k) {
        const int place = ModeMixture::kHeader + k * ModeMixture::length(d), inverse = place + d;
        V distance = V(0.0);
        for (int i = 0, at = inverse; i < d; ++i) {
          V s = V(0.0);
          for (int j = 0; j <= i; ++j) s = fma(read(at++), cast<V>(x[j]) - read(place + j), s);
          z.set(i, s);
          distance = fma(s, s, distance);
        }
        const V term =
            select(V(double(k)) < count, nfma(V(0.5), distance, read(inverse + d * (d + 1))), V(kNone));
        const V higher = max(term, top), kept = exp(top - higher), share = exp(term - higher);
        sum = fma(sum, kept, share);
        top = higher;
        for (int j = 0; j < d; ++j) {
          V s = V(0.0);
          for (int i = j; i < d; ++i) s = fma(read(inverse + i * (i + 1) / 2 + j), V(z[i]), s);
          slope.set(j, nfma(share, s, V(slope[j]) * kept));
        }
      }
    });
    const V whole = max(sum, V(1.0));
    for (int i = 0; i < d; ++i) slope.set(i, V(slope[i]) / whole);
    return top + log(whole);
  }

  template <class V, class Model, class W>
  LOCKSTEP_FN static V value(const Model& model, V log_density, const W& w, int own) {
    const int n = model.rows();
    const auto slope = w.fields.from(own), known = slope.from(n);
    const V log_q = log_mixture<V>(w, n, w.x, slope, known) / V(w.settings[temperature]);
    const V log_pi = log_density - w.shared.get(0, V(1.0));
    V value, of_pi, of_q;  // slope = of_pi (gradient of log pi) + of_q (gradient of log q)
    if (w.settings[difference] > 0.5) {
      const V c = w.shared.get(1, V(0.0)), pi = exp(log_pi - c), q = exp(log_q - c), less = pi - q;
      value = -log1p(less);
      of_pi = -(pi / (V(1.0) + less));
      of_q = q / (V(1.0) + less);
    } else {
      const V apart = log_q - log_pi, share = exp(log_sigmoid(apart));
      value = -(log_pi + log_sigmoid(-apart));
      of_pi = -(V(1.0) + share);
      of_q = share;
    }
    of_q = of_q / V(w.settings[temperature]);
    for (int j = 0; j < n; ++j) slope.set(j, fma(of_pi, cast<V>(w.g[j]), of_q * V(known[j])));
    return value;
  }
  template <class V, class W>
  LOCKSTEP_FN static V slope(const W& w, int own, int j) {
    return w.fields[own + j];
  }
};

/// Descents of the residual energy. Where they end is to be refined without it.
struct ResidualLbfgs : LbfgsOf<ResidualEnergy> {
  static TransitionInfo info() {
    TransitionInfo t = LbfgsOf<ResidualEnergy>::info();
    t.name = "residual_lbfgs";
    t.summary = "minimises what is left of -log density beside known modes; samples nothing";
    t.source = "Lan, Streets & Shahbaba (2014)";
    t.shared = {"known", "level"};
    t.settings.push_back({"temperature", "T of q^(1/T)", 1.05, 1, 1e3});
    t.settings.push_back(
        {"difference", "1: -log(pi - q^(1/T) + c); 0: -log pi + log(1 + q^(1/T) / pi)", 1, 0, 1, true});
    return t;
  }
};

}  // namespace lockstep
