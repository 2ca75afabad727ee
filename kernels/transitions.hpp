// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transitions: each leaves the model's density invariant. A transition proposes; kernels/driver.hpp accepts.
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
  if (!(Model::kDim == 0 && model.layout.dense_metric)) return add_scaled(model, par, factor, p, x);
  const int n = model.rows(), d = model.dim(), blocks = model.samples() * d;
  const auto metric = par.from(model.layout.metric_factor());
  for (int b = 0; b < blocks; b += d)
    for (int i = 0; i < d; ++i) {
      L v = L(0);
      for (int j = 0; j <= i; ++j) v = fma(metric[i * (i + 1) / 2 + j], p[b + j], v);
      x.set(b + i, fma(factor, v, x[b + i]));
    }
  for (int j = blocks; j < n; ++j) x.set(j, fma(factor * par[ParameterLayout::scale_u], p[j], x[j]));
}
template <class L, class Model, class P, class X, class G, class M>
LOCKSTEP_FN void kick(const Model& model, P par, L factor, [[maybe_unused]] X x, G g, M p) {
  const int n = model.rows(), d = model.dim(), blocks = model.samples() * d;
  const auto metric = par.from(model.layout.metric_factor());
  const bool dense = Model::kDim == 0 && model.layout.dense_metric;
  if constexpr (Model::kTempered) {
    const int scale = model.layout.scale();
    model.template force<L>(x, par, g, [=](int i, L f) {
      if (dense && i < d) {
        for (int j = 0; j <= i; ++j) p.set(j, fma(factor * metric[i * (i + 1) / 2 + j], f, p[j]));
      } else {
        p.set(i, fma(factor * par[i < d ? scale + i : int(ParameterLayout::scale_u)], f, p[i]));
      }
    });
    return;
  }
  if (!dense) return add_scaled(model, par, factor, g, p);
  for (int b = 0; b < blocks; b += d)
    for (int j = 0; j < d; ++j) {
      L v = L(0);
      for (int i = j; i < d; ++i) v = fma(metric[i * (i + 1) / 2 + j], g[b + i], v);
      p.set(b + j, fma(factor, v, p[b + j]));
    }
  for (int j = blocks; j < n; ++j) p.set(j, fma(factor * par[ParameterLayout::scale_u], g[j], p[j]));
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

template <class L, class E>
struct Proposal {
  E log_ratio;  // what the proposal adds to log density(new) - log density(old): kinetic(old) - kinetic(new)
  L steps;      // leapfrog steps taken (0: none)
  L jitter;     // the trajectory's share of its mean length
  E kinetic = E(0);  // kinetic(old), which is finite whatever became of the trajectory; 0 without a momentum
};

/// Number of leapfrog steps of each lane. The jitter is one draw for the whole setting and iteration, so that
/// chains of one replicate keep in step; replicates differ only through their own step sizes.
template <class L, class P>
LOCKSTEP_FN L num_steps(const LaunchSpec& spec, std::uint32_t iteration, P par, L& jitter) {
  using R = scalar_t<L>;
  std::uint32_t w[4] = {static_cast<std::uint32_t>(Purpose::trajectory) << 24, iteration, 0, 0};
  philox(w, spec.key);
  const R u = (R(w[0] >> 9) + R(0.5)) * R(1.0 / 8388608);
  jitter = L(spec.jitter ? 2 * u : R(1));
  L n;
  if (spec.num_leapfrog > 0) {
    const R steps = spec.jitter ? ::floor(u * R(2 * spec.num_leapfrog - 1)) + R(1) : R(spec.num_leapfrog);
    n = L(steps);
    jitter = n * L(R(1) / R(spec.num_leapfrog));
  } else {
    n = round(jitter * par[ParameterLayout::trajectory_time] / par[ParameterLayout::step_size]);
  }
  return max(min(n, L(R(spec.max_leapfrog))), L(1));
}

/// What multiplies the step size of an iteration, one draw for all chains: mixing in shorter steps lets
/// chains into and out of regions where the usual step is unstable (Neal 2011, section 5.4.2).
LOCKSTEP_FN double step_scale(const LaunchSpec& spec, std::uint32_t iteration) {
  if (!spec.short_steps) return 1;
  std::uint32_t w[4] = {(static_cast<std::uint32_t>(Purpose::trajectory) << 24) | 1, iteration, 0, 0};
  philox(w, spec.key);
  const std::uint32_t u = w[0] >> 16;  // of 65536
  return u < 52429 ? 1 : u < 62259 ? 0.25 : 0.0625;
}

/// Hamiltonian Monte Carlo with the leapfrog integrator (Neal 2011). Costs `steps` gradients: the last one is
/// kept for the next transition. Lanes with fewer steps wait with a step size of zero, which moves nothing.
/// A driver that takes the gradients of many chains at once calls begin, then move and push around each, and
/// end.
struct Hmc {
  template <class L, class E, class Model, class P, class X, class M, class G>
  LOCKSTEP_FN static Proposal<L, E> propose(const Model& model, P par, const LaunchSpec& spec,
                                            const Draw<L>& draw, X x, M p, G g) {
    const L step = step_size(par, spec, draw);
    auto r = begin<L, E>(model, par, spec, draw, step, x, p, g);
    const int last = static_cast<int>(reduce_max(r.steps));
    for (int s = 1; s <= last; ++s) {
      move(model, par, s, step, r.steps, x, p);
      model.template gradient<L>(x, par, g);
      push(model, par, s, step, r.steps, x, g, p);
    }
    end<L>(model, p, r);
    return r;
  }

  template <class L, class P>
  LOCKSTEP_FN static L step_size(P par, const LaunchSpec& spec, const Draw<L>& draw) {
    return par[ParameterLayout::step_size] * L(scalar_t<L>(step_scale(spec, draw.iteration)));
  }
  /// Refreshes the momentum and kicks it for half a step; log_ratio is the kinetic energy in between.
  template <class L, class E, class Model, class P, class X, class M, class G>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, P par, const LaunchSpec& spec,
                                          const Draw<L>& draw, L step, X x, M p, G g) {
    draw.normals(spec.momentum, model.rows(), [&](int j, L z) { p.set(j, z); });
    Proposal<L, E> r;
    r.log_ratio = kinetic_energy<E, L>(model, p);
    r.steps = num_steps<L>(spec, draw.iteration, par, r.jitter);
    kick(model, par, step * L(scalar_t<L>(0.5)), x, g, p);
    return r;
  }
  /// The drift of step s, from 1 on.
  template <class L, class Model, class P, class X, class M>
  LOCKSTEP_FN static void move(const Model& model, P par, int s, L step, L steps, X x, M p) {
    drift(model, par, select(L(scalar_t<L>(s)) <= steps, step, L(0)), x, p);
    reflect<L>(model, x, p);
  }
  /// Its kick, by the gradient at the new position: half a one at the end.
  template <class L, class Model, class P, class X, class G, class M>
  LOCKSTEP_FN static void push(const Model& model, P par, int s, L step, L steps, X x, G g, M p) {
    using R = scalar_t<L>;
    const L drifting = select(L(R(s)) <= steps, step, L(0));
    const L share = select(L(R(s)) < steps, L(1), L(R(0.5)));
    kick(model, par, drifting * share, x, g, p);
  }
  /// After the last kick.
  template <class L, class E, class Model, class M>
  LOCKSTEP_FN static void end(const Model& model, M p, Proposal<L, E>& r) {
    r.kinetic = r.log_ratio;
    r.log_ratio = r.log_ratio - kinetic_energy<E, L>(model, p);
  }
};

/// Random-walk Metropolis: x' = x + step_size C z, symmetric. Uses no gradient.
struct RandomWalk {
  template <class L, class E, class Model, class P, class X, class M, class G>
  LOCKSTEP_FN static Proposal<L, E> propose(const Model& model, P par, const LaunchSpec&, const Draw<L>& draw,
                                            X x, M p, G) {
    draw.normals(Purpose::proposal, model.rows(), [&](int j, L z) { p.set(j, z); });
    drift(model, par, L(par[ParameterLayout::step_size]), x, p);
    reflect<L>(model, x, p);
    return {E(0), L(0), L(1)};
  }
};

}  // namespace lockstep
