// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves of the inverse temperature beta at fixed x, for models whose density is
//   log gamma_beta(x) = base(x) - beta Delta(x),   Delta = base - (log density - log zeta):
// each leaves the joint density of (x, beta) invariant and costs no gradient. With them goes the weight of
// beta = 1 given x, by which expectations under the target are formed (Graham & Storkey 2017, section 4).
#include "kernels/lane_parameters.hpp"
#include "kernels/launch_spec.hpp"

namespace lockstep {

/// Inverse temperatures beta_0 = 0 < .. < beta_K = 1 with log weights v, p(x, k) ~ exp(v_k)
/// gamma_{beta_k}(x), and the step size of transitions at each level.
struct Ladder {
  const double *beta, *log_weight, *step_size;
  int levels;
};

/// -expm1(-a) for a >= 0 without cancellation (Kahan). Where exp(-a) is lost beside 1 the result is 1: packs
/// let exp(-a) end at the smallest normal number, whose logarithm is no longer -a.
template <class L>
LOCKSTEP_FN L one_minus_exp(L a) {
  const L u = exp(-a), lost = L(1) - u;
  return select(lost < L(1), select(u < L(1), lost * a / -log(u), a), lost);
}

/// The weights of beta = 1 and of beta = 0 in p(beta | x) ~ exp(-beta Delta) on [0, 1]: Delta / expm1(Delta)
/// and Delta / -expm1(-Delta); both 1 at Delta = 0.
template <class L>
LOCKSTEP_FN void continuous_weights(L delta, L& top, L& bottom) {
  using R = scalar_t<L>;
  const L a = abs(delta);
  const L f = select(a > L(R(1e-7)), a * exp(-a) / one_minus_exp(a), L(1) - L(R(0.5)) * a);
  const auto warm = delta > L(0);
  top = select(warm, f, f + a);
  bottom = select(warm, f + a, f);
}

/// beta from p(beta | x) ~ exp(-beta Delta) on [0, 1] by its inverse distribution function at v.
template <class L>
LOCKSTEP_FN L truncated_exponential(L delta, L v) {
  using R = scalar_t<L>;
  const L a = abs(delta);
  // Rounding could take it beyond 1.
  const L t = select(a > L(R(1e-7)), min(-log1p(-(v * one_minus_exp(a))) / a, L(1)), v);
  return select(delta > L(0), t, L(1) - t);
}

/// Sets beta, and lets the cached log density follow.
template <class L, class E, class W>
LOCKSTEP_FN void set_beta(const W& w, L beta) {
  const E before = w.energy_parameters[ParameterLayout::beta];
  w.parameters.set(ParameterLayout::beta, beta);
  const E now = w.energy_parameters[ParameterLayout::beta];
  w.cache.set(0, fma(before - now, w.cache[1], w.cache[0]));
}

/// Annealed importance sampling (Neal 2001), before the transition of an iteration: from the present beta to
/// the iteration's, adding (beta - beta') Delta to the log weight.
template <class L, class E, class W>
LOCKSTEP_FN void anneal(const LaunchSpec& spec, std::uint32_t iteration, const W& w) {
  if (spec.tempering != Tempering::anneal) return;
  const int level = spec.first_level + int(iteration - spec.begin);
  const E before = w.energy_parameters[ParameterLayout::beta];
  set_beta<L, E>(w, L(scalar_t<L>(w.ladder.beta[level])));
  w.parameters.set(ParameterLayout::step_size, L(scalar_t<L>(w.ladder.step_size[level])));
  const E now = w.energy_parameters[ParameterLayout::beta];
  add_to(w.stats + stat_log_weight * kTile, (before - now) * w.cache[1]);
}

/// A level by its weight given x: p(k | x) ~ exp(v_k - beta_k Delta). Returns its beta and its step size, and
/// the shares of the last level and of the first.
template <class E>
LOCKSTEP_FN E draw_level(const Ladder& ladder, E delta, E u, E& step, E& top, E& bottom) {
  using S = scalar_t<E>;
  const auto exponent = [&](int k) { return nfma(E(S(ladder.beta[k])), delta, E(S(ladder.log_weight[k]))); };
  E most = exponent(0);
  for (int k = 1; k < ladder.levels; ++k) most = max(most, exponent(k));
  E sum = E(0);
  for (int k = 0; k < ladder.levels; ++k) sum = sum + exp(exponent(k) - most);
  const E goal = u * sum;
  E below = E(0), beta = E(S(ladder.beta[ladder.levels - 1]));
  step = E(S(ladder.step_size[ladder.levels - 1]));
  auto open = goal >= E(0);  // not yet reached
  for (int k = 0; k + 1 < ladder.levels; ++k) {
    below = below + exp(exponent(k) - most);
    const auto here = mask_and(open, goal < below);
    beta = select(here, E(S(ladder.beta[k])), beta);
    step = select(here, E(S(ladder.step_size[k])), step);
    open = mask_and(open, mask_not(here));
  }
  const E inv = E(1) / sum;
  top = exp(exponent(ladder.levels - 1) - most) * inv;
  bottom = exp(exponent(0) - most) * inv;
  return beta;
}

/// Moves beta after the transition of an iteration, caches the weights of beta = 1 and 0 given x, counts
/// round trips, and writes the trace. A chain where Delta is not finite keeps its beta and weighs nothing.
template <class L, class E, class Model, class W>
LOCKSTEP_FN void temper(const Model& model, const LaunchSpec& spec, const Draw<L>& draw, const W& w) {
  const E delta = w.cache[1];
  const auto good = is_finite(delta);
  E beta = w.energy_parameters[ParameterLayout::beta], top, bottom;
  if (spec.tempering == Tempering::gibbs) {
    const E v = cast<E>(draw.uniform(Purpose::temper));
    beta = select(good, truncated_exponential(delta, v), beta);
    continuous_weights(delta, top, bottom);
  } else if (spec.tempering == Tempering::levels) {
    const E u = cast<E>(draw.uniform(Purpose::temper));
    E step = w.energy_parameters[ParameterLayout::step_size], drawn = step;
    beta = select(good, draw_level(w.ladder, delta, u, drawn, top, bottom), beta);
    w.parameters.set(ParameterLayout::step_size, cast<L>(select(good, drawn, step)));
  } else if (spec.tempering == Tempering::joint) {
    beta = model.template temperature<E>(cast<E>(w.position[model.dim()])).beta;
    if (model.control == Control::logistic) continuous_weights(delta, top, bottom);
  } else {  // averages at the chain's own beta
    top = E(1);
    bottom = E(1);
  }
  if (spec.tempering == Tempering::gibbs || spec.tempering == Tempering::levels) {
    set_beta<L, E>(w, cast<L>(beta));
    beta = w.energy_parameters[ParameterLayout::beta];  // as the state holds it
  }
  if (spec.tempering == Tempering::swap ||
      (spec.tempering == Tempering::joint && model.control == Control::plateaus)) {  // the ends alone count
    top = select(beta >= E(1), E(1), E(0));
    bottom = select(beta <= E(0), E(1), E(0));
  }
  top = select(good, top, E(0));
  bottom = select(good, bottom, E(0));
  w.cache.set(2, top);
  w.cache.set(3, bottom);
  if (spec.record) add_to(w.stats + stat_base_weight * kTile, bottom);

  // A round trip of continuous beta runs between the outer tenths.
  const bool continuous = spec.tempering == Tempering::gibbs || spec.tempering == Tempering::joint;
  const E edge = E(scalar_t<E>(continuous ? 0.1 : 0));
  alignas(64) scalar_t<E> place[lane_width<E>];
  store(place, select(beta >= E(1) - edge, E(1), select(beta <= edge, E(-1), E(0))));
  int* trip = w.remembered + chain_trip * kTile;
  for (int i = 0; i < lane_width<E>; ++i) {
    if (place[i] > 0 && trip[i] == 1) trip[i] = 2;
    if (place[i] < 0 && trip[i] != 1) {
      if (trip[i] == 2) w.stats[stat_round_trips * kTile + i] += 1;
      trip[i] = 1;
    }
  }
  if (w.trace != nullptr) {
    double* out = w.trace + 2 * w.trace_stride * std::ptrdiff_t(draw.iteration - spec.begin);
    Rows<E, double>{out, 0}.set(0, beta);
    Rows<E, double>{out + w.trace_stride, 0}.set(0, delta);
  }
}

/// Which levels may exchange: of which unit, and at which iteration.
struct SwapPair {
  std::uint32_t iteration;
  int unit, pair;
};

/// Parallel tempering with deterministic even-odd swaps (Syed et al. 2022), after the transitions of an
/// iteration: the chains at levels k and k + 1 of a unit, k even at even iterations and odd at odd ones,
/// exchange their inverse temperatures with probability min(1, exp((beta_k - beta_{k+1}) (Delta_k -
/// Delta_{k+1}))). Leaves the product of all levels' densities invariant, and costs no gradient.
template <class R, class E>
LOCKSTEP_FN void swap_levels(const BatchView<R, E>& b, const ParameterLayout& layout, int cache_rows,
                             const StreamKey& key, const SwapPair& at) {
  const auto [iteration, unit, pair] = at;
  const int k = 2 * pair + int(iteration & 1);
  if (k + 1 >= b.levels) return;
  int& low = b.holder[unit * b.levels + k];
  int& high = b.holder[unit * b.levels + k + 1];
  const auto cache = [&](int chain, int row) -> E& {
    return b.cache[(std::ptrdiff_t(chain / kTile) * cache_rows + row) * kTile + chain % kTile];
  };
  const auto parameter = [&](int chain, int row) -> R& {
    return b.parameters[(std::ptrdiff_t(chain / kTile) * layout.rows() + row) * kTile + chain % kTile];
  };
  const E step = E(parameter(low, ParameterLayout::beta)) - E(parameter(high, ParameterLayout::beta));
  const E log_ratio = step * (cache(low, 1) - cache(high, 1));
  const Draw<double> draw{key, iteration, std::uint32_t(k), b.unit[low]};
  if (!(draw.uniform(Purpose::swap) < ::exp(double(log_ratio >= 0 ? E(0) : log_ratio)))) return;  // NaN: none
  cache(low, 0) += step * cache(low, 1);
  cache(high, 0) -= step * cache(high, 1);
  for (const int row : {int(ParameterLayout::beta), int(ParameterLayout::step_size)}) {
    const R kept = parameter(low, row);
    parameter(low, row) = parameter(high, row);
    parameter(high, row) = kept;
  }
  const int kept = low;
  low = high;
  high = kept;
}

}  // namespace lockstep
