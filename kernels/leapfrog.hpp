// SPDX-License-Identifier: Apache-2.0
#pragma once
// What transitions are made of: the leapfrog integrator's drift and kick under a metric, reflection in a box, kinetic
// energy, and what a transition hands to the driver.
// Metrics: momentum p ~ N(0, I) and velocity C p, with C C' the inverse mass (C diagonal, or a Cholesky
// factor).
#include "kernels/lane_parameters.hpp"
#include "kernels/launch_spec.hpp"

namespace lockstep {

/// to += factor * C from with C diagonal: the metric's scale of each axis, and that of u behind the samples.
template <class L, class Model, class P, class From, class To>
LOCKSTEP_FN void add_scaled(const Model& model, P par, L factor, From from, To to) {
  const int n = model.rows(), d = model.dim(), blocks = model.samples() * d;
  const auto scale = par.from(model.layout.scale());
  LOCKSTEP_UNROLL
  for (int b = 0; b < blocks; b += d) {
    LOCKSTEP_UNROLL
    for (int j = 0; j < d; ++j) to.set(b + j, fma(factor * scale[j], from[b + j], to[b + j]));
  }
  LOCKSTEP_UNROLL
  for (int j = blocks; j < n; ++j) to.set(j, fma(factor * par[ParameterLayout::scale_u], from[j], to[j]));
}

/// Adds factor * C momentum to the position (a drift), or factor * C' gradient to the momentum (a kick).
template <class L, class Model, class P, class X, class M>
LOCKSTEP_FN void drift(const Model& model, P par, L factor, X x, M p) {
  if constexpr (Model::kDim == 0)
    if (model.layout.dense_metric) {
      const int n = model.rows(), d = model.dim(), blocks = model.samples() * d;
      const auto metric = par.from(model.layout.metric_factor());
      for (int b = 0; b < blocks; b += d)
        for (int i = 0; i < d; ++i) {
          L v = L(0);
          for (int j = 0; j <= i; ++j) v = fma(metric[i * (i + 1) / 2 + j], p[b + j], v);
          x.set(b + i, fma(factor, v, x[b + i]));
        }
      for (int j = blocks; j < n; ++j) x.set(j, fma(factor * par[ParameterLayout::scale_u], p[j], x[j]));
      return;
    }
  add_scaled(model, par, factor, p, x);
}
template <class L, class Model, class P, class X, class G, class M>
LOCKSTEP_FN void kick(const Model& model, P par, L factor, [[maybe_unused]] X x, G g, M p) {
  [[maybe_unused]] const int n = model.rows(), d = model.dim(), blocks = model.samples() * d;
  [[maybe_unused]] const auto metric = par.from(model.layout.metric_factor());
  [[maybe_unused]] const bool dense = Model::kDim == 0 && model.layout.dense_metric;
  if constexpr (Model::kTempered) {
    const int scale = model.layout.scale();
    model.template force<L>(x, par, g, [=](int i, L f) {
      if (dense && i < d) {
        for (int j = 0; j <= i; ++j) p.set(j, fma(factor * metric[i * (i + 1) / 2 + j], f, p[j]));
      } else {
        p.set(i, fma(factor * par[i < d ? scale + i : int(ParameterLayout::scale_u)], f, p[i]));
      }
    });
  } else {
    if constexpr (Model::kDim == 0)
      if (dense) {
        for (int b = 0; b < blocks; b += d)
          for (int j = 0; j < d; ++j) {
            L v = L(0);
            for (int i = j; i < d; ++i) v = fma(metric[i * (i + 1) / 2 + j], g[b + i], v);
            p.set(b + j, fma(factor, v, p[b + j]));
          }
        for (int j = blocks; j < n; ++j) p.set(j, fma(factor * par[ParameterLayout::scale_u], g[j], p[j]));
        return;
      }
    add_scaled(model, par, factor, g, p);
  }
}

/// Keeps positions inside [-h, h] by reflection, turning the momentum: volume preserving and reversible
/// (diagonal metric only). A step longer than the box becomes NaN, so that its trajectory is rejected: one
/// that came back inside could not be retraced.
template <class L, class Model, class X, class M>
LOCKSTEP_FN void reflect(const Model& model, X x, M p) {
  using R = scalar_t<L>;
  if (!(model.box() < std::numeric_limits<double>::infinity())) return;
  const L h = L(R(model.box()));
  LOCKSTEP_UNROLL
  for (int j = 0; j < model.samples() * model.dim(); ++j) {
    const L a = x[j];
    const auto out = abs(a) > h;
    const L back = select(a > h, h + (h - a), select(a < -h, -h - (h + a), a));
    x.set(j, select(abs(back) <= h, back, L(std::numeric_limits<R>::quiet_NaN())));
    p.set(j, select(out, -p[j], p[j]));
  }
}

/// Where x lies in the box.
template <class L, class Model, class X>
LOCKSTEP_FN auto inside_box(const Model& model, X x) {
  auto inside = mask_not(L(0) > L(0));
  if (model.box() < std::numeric_limits<double>::infinity()) {
    LOCKSTEP_UNROLL
    for (int j = 0; j < model.samples() * model.dim(); ++j)
      inside = mask_and(inside, abs(x[j]) <= L(scalar_t<L>(model.box())));
  }
  return inside;
}

/// |p|^2 / 2 in the energy precision.
template <class E, class L, class Model, class M>
LOCKSTEP_FN E kinetic_energy(const Model& model, M p) {
  E k = E(0);
  LOCKSTEP_UNROLL
  for (int j = 0; j < model.rows(); ++j) {
    const E v = cast<E>(p[j]);
    k = fma(v, v, k);
  }
  return k * E(scalar_t<E>(0.5));
}

/// What a transition tells the driver of an iteration.
template <class L, class E>
struct Proposal {
  E log_ratio = E(0);  // what it adds to log density(new) - log density(old): kinetic(old) - kinetic(new)
  L steps = L(0);      // evaluations wanted, one after each move
  L jitter = L(1);     // the trajectory's share of its mean length
  L step = L(0);       // the step size of this iteration
  E kinetic = E(0);  // kinetic(old), which is finite whatever became of the trajectory; 0 without a momentum
  E statistic = E(-1);  // what step sizes follow, where it is not the probability of acceptance; else below 0
  E diverged = E(-1);   // 1 or 0 where it is known, else below 0: as log_ratio says
  E acceptance = E(0);  // its probability (or the statistic), and 1 or 0: the driver's answer
  E accepted = E(0);
};
/// f(part of a, the same of b) for all parts.
template <class A, class B, class F>
LOCKSTEP_FN void each_part(A& a, B& b, F&& f) {
  f(a.log_ratio, b.log_ratio);
  f(a.steps, b.steps);
  f(a.jitter, b.jitter);
  f(a.step, b.step);
  f(a.kinetic, b.kinetic);
  f(a.statistic, b.statistic);
  f(a.diverged, b.diverged);
  f(a.acceptance, b.acceptance);
  f(a.accepted, b.accepted);
}

}  // namespace lockstep
