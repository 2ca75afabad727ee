// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fused driver: a group of lanes advances its chains through many iterations of one launch.
// Stages of an iteration: load, propose (with gradients), evaluate, decide, accumulate. The block driver
// (kernels/block_cpu.hpp) calls the same stages one by one over many chains; a test holds them to equal bits.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/hmc.hpp"
#include "kernels/tempering.hpp"

namespace lockstep {

/// The rows a transition works on: position, momentum, gradient (V: rows of L), position and cache in the energy
/// precision (VE). In memory (FixedRows, Rows) or in registers (LocalRows).
template <class V, class VE>
struct Workspace {
  V x, p, g;
  VE xe, ce;
};

/// One of the transitions of an iteration: its number, by which its random numbers are its own, where its data is
/// among that of all, and its settings.
struct TransitionPart {
  std::uint32_t number = 0;
  int field = 0, counter = 0, list = 0;
  double settings[kMostSettings] = {};
  /// What it finds where it looks for its own, as long as this is there.
  template <class R, class E>
  LOCKSTEP_FN BatchView<R, E> of(BatchView<R, E> b) const {
    b.fields += field * kTile;
    b.counters += counter * kTile;
    if (b.shared_place != nullptr) b.shared_place += std::ptrdiff_t(2) * list * b.tiles * kTile;
    b.settings = settings;
    return b;
  }
};

/// The transitions of an iteration, in the types of a back end; and whether the gradient is kept with the position.
template <class Transition>
using TransitionParts = std::vector<std::pair<const Transition*, TransitionPart>>;
template <class Transition>
bool keeps_gradients(const TransitionParts<Transition>& parts) {
  return std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.first->gradients; });
}

/// The rows of one group of lanes.
template <class L, class E, class V, class VE>
struct ChainRows : Workspace<V, VE> {
  TileRows<L> position, gradient;  // the chain's state
  TileRows<E> cache;
  ParameterRows<L> parameters;
  ParameterRows<E, scalar_t<L>> energy_parameters;  // the same numbers, read in the energy precision
  double *stats, *moments;                          // rows of kTile
  int* remembered;                                  // rows of kTile
  Ladder ladder;
  double* trace;  // this group's first beta of the launch's first iteration, or none
  std::ptrdiff_t trace_stride;
  float* draws;  // draw 0, or none where no chain of the group is stored
  std::ptrdiff_t draw_stride, draw_row_stride;
  const int* draw_slot;  // of this group's chains
  float* overview;       // this group's first element of draw 0, or none
  int_lane_t<L> chain, unit;
  TileRows<wide_t<L>> fields;  // of the transition, as what follows
  double* counters;            // rows of kTile
  SharedLists<L> shared;
  const double* settings;
  /// Of an enum that ends with kCounters: there is memory for as many (checked_info), and for none where there is none.
  template <class Counter, class A>
  requires(Counter::kCounters > 0) LOCKSTEP_FN void count(Counter counter, A value) const {
    add_to(counters + int(counter) * kTile, value);
  }
};

template <int W>
LOCKSTEP_FN bool any_stored(const int* slot) {
  bool any = false;
  for (int i = 0; i < W && slot != nullptr; ++i) any = any || slot[i] >= 0;
  return any;
}

/// The rows of the lanes from chain `first` on (all within one tile), with the given workspace.
template <class L, class E, class Model, class V, class VE>
LOCKSTEP_FN ChainRows<L, E, V, VE> make_lanes(const Model& model,
                                              const BatchView<scalar_t<L>, scalar_t<E>>& b, int first,
                                              bool covariance, const Workspace<V, VE>& workspace) {
  const int lane = first % kTile;
  const std::ptrdiff_t tile = first / kTile;
  const auto at = [&](auto* base, int rows) { return base + tile * rows * kTile + lane; };
  const auto if_any = [&](double* base, int rows) { return rows > 0 ? at(base, rows) : nullptr; };
  const MomentLayout moments{model.dim(), model.density.quantities(), covariance};
  auto* parameters = at(b.parameters, model.layout.rows());
  const int step = b.base_place == nullptr ? 1 : b.base_place[2 * tile + 1];
  const std::ptrdiff_t numbers =
      b.base_place == nullptr ? 0 : b.base_place[2 * tile] + (step == 1 ? 0 : lane);
  const int* slot = b.draws == nullptr ? nullptr : at(b.draw_slot, 1);
  return {workspace,
          {at(b.position, model.rows())},
          {at(b.gradient, model.rows())},
          {at(b.cache, model.cache_rows())},
          {{parameters}, b.base + numbers, step},
          {{parameters}, b.base_energy + numbers, step},
          at(b.stats, kStatRows),
          at(b.moments, moments.rows()),
          at(b.remembered, kChainRows),
          {b.ladder, b.level_weight, b.level_step, b.levels},
          b.trace == nullptr ? nullptr : b.trace + first,
          std::ptrdiff_t(b.tiles) * kTile,
          any_stored<lane_width<L>>(slot) ? b.draws : nullptr,
          std::ptrdiff_t(model.dim() + kDrawExtraRows) * b.stored_chains,
          b.stored_chains,
          slot,
          b.overview == nullptr ? nullptr : b.overview + first,
          load_int<L>(at(b.chain, 1)),
          load_int<L>(at(b.unit, 1)),
          {if_any(b.fields, b.field_rows)},
          if_any(b.counters, b.counter_rows),
          {b.shared, b.shared_place == nullptr ? nullptr : b.shared_place + first,
           std::ptrdiff_t(b.tiles) * kTile},
          b.settings};
}

/// A workspace in the memory of `state` (3 rows() rows) and `energy` (rows() + cache_rows() of them).
template <class Model, class V, class VE>
LOCKSTEP_FN Workspace<V, VE> make_workspace(const Model& model, V state, VE energy) {
  const int rows = model.rows();
  return {state, state.from(rows), state.from(2 * rows), energy, energy.from(rows)};
}

/// The same, with 3 rows() rows of `state` for position, momentum and gradient, and the energies' in the batch's own memory.
template <class L, class E, class Model, class State>
LOCKSTEP_FN auto make_working_lanes(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b,
                                    int first, bool covariance, State state) {
  const int energy_rows = model.rows() + model.cache_rows();
  const TileRows<E> energy{b.work_energy + std::ptrdiff_t(first / kTile) * energy_rows * kTile +
                           first % kTile};
  return make_lanes<L, E>(model, b, first, covariance, make_workspace(model, state, energy));
}

/// A workspace in registers (the register policy), for a model of compile-time size.
template <class L, class E, class Model>
struct RegisterRows {
  static_assert(Model::kRows > 0 && Model::kCacheRows > 0);
  Locals<L, Model::kRows> x, p, g;
  Locals<E, Model::kRows> xe;
  Locals<E, Model::kCacheRows> ce;

  LOCKSTEP_FN auto lanes(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, int first,
                         bool covariance) {
    return make_lanes<L, E>(
        model, b, first, covariance,
        Workspace<LocalRows<L>, LocalRows<E>>{x.view(), p.view(), g.view(), xe.view(), ce.view()});
  }
};

/// Calls f(x) with rows of L in the energy precision. Lanes of one chain are converted as they are read, from rows in memory;
/// a pack goes through memory for that, so that a copy is made of its rows, once.
template <class L, class E, class Model, class X, class XE, class F>
LOCKSTEP_FN void in_energy_precision(const Model& model, X x, XE copy, F f) {
  if constexpr (std::is_same_v<L, E>) {
    f(x);
  } else if constexpr (ScalarLane<L> && !std::is_same_v<X, LocalRows<L>>) {
    f(x.template as<E>());
  } else {
    copy_rows<E>(model.rows(), x, copy);
    f(copy);
  }
}

template <class L, class E, class Model, class W>
LOCKSTEP_FN void stage_evaluate(const Model& model, const W& w) {
  in_energy_precision<L, E>(model, w.x, w.xe,
                            [&](auto x) { model.template log_density<E>(x, w.energy_parameters, w.ce); });
}

/// First launch of a chain: gradient and energy of its start.
template <class L, class E, class Model, class W>
LOCKSTEP_FN void initialize_lanes(const Model& model, const W& w) {
  copy_rows<L>(model.rows(), w.position, w.x);
  model.template gradient<L>(w.x, w.parameters, w.g);
  copy_rows<L>(model.rows(), w.g, w.gradient);
  stage_evaluate<L, E>(model, w);
  copy_rows<E>(model.cache_rows(), w.ce, w.cache);
}

/// What comes before the transitions of an iteration.
template <class L, class E, class Model, class W>
LOCKSTEP_FN void stage_anneal(const Model&, const LaunchSpec& spec, std::uint32_t iteration, const W& w) {
  if constexpr (Model::kTempered) anneal<L, E>(spec, iteration, w);
}
/// What comes after them.
template <class L, class E, class Model, class W>
LOCKSTEP_FN void stage_temper(const Model& model, const LaunchSpec& spec, const Draw<L>& draw, const W& w) {
  if constexpr (Model::kTempered) temper<L, E>(model, spec, draw, w);
}

/// Copies the state to the working rows.
template <class L, class Model, class W>
LOCKSTEP_FN void stage_load(const Model& model, const W& w) {
  copy_rows<L>(model.rows(), w.position, w.x);
  copy_rows<L>(model.rows(), w.gradient, w.g);
}

/// A transition's proposal, with the steps that it wants.
template <class Transition, class L, class E, class Model, class W>
LOCKSTEP_FN Proposal<L, E> stage_propose(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                         const W& w) {
  auto r = Transition::template begin<L, E>(model, spec, draw, w);
  int last = static_cast<int>(reduce_max(r.steps));
  for (int s = 1; s <= last; ++s) {
    const L step = L(scalar_t<L>(s));
    Transition::move(model, draw, step, r, w);
    if constexpr (Transition::kGradients) model.template gradient<L>(w.x, w.parameters, w.g);
    if constexpr (Transition::kEnergies) stage_evaluate<L, E>(model, w);
    Transition::push(model, draw, step, r, w);
    if constexpr (Transition::kSelfEnding) last = static_cast<int>(reduce_max(r.steps));
  }
  Transition::end(model, r, w);
  return r;
}

/// The number of this iteration's draw among those a launch keeps, or -1 where it keeps none of it.
LOCKSTEP_FN int kept_draw(std::uint32_t iteration, std::uint32_t begin, int from, int thin) {
  const int since = int(iteration - begin) - from;
  return since >= 0 && since % thin == 0 ? since / thin : -1;
}

/// Where the stored draw of this iteration begins, or null where there is none.
template <class W>
LOCKSTEP_FN float* draw_place(const LaunchSpec& spec, std::uint32_t iteration, const W& w) {
  if (w.draws == nullptr) return nullptr;
  const int k = kept_draw(iteration, spec.begin, spec.store_from, spec.thin);
  return k < 0 ? nullptr : w.draws + k * w.draw_stride;
}

/// Writes one row of a stored draw, of those chains of the group that are stored.
template <class W, class V>
LOCKSTEP_FN void put_draw(const W& w, float* place, int row, V value) {
  constexpr int kWidth = lane_width<V>;
  const int first = w.draw_slot[0];  // they ascend: all are stored if the ends are, so far apart
  if (first >= 0 && w.draw_slot[kWidth - 1] - first == kWidth - 1)
    return write_row(place + row * w.draw_row_stride + first, value);
  if (kWidth == 1) return;
  alignas(64) scalar_t<V> v[kWidth];
  store(v, value);
  for (int i = 0; i < kWidth; ++i)
    if (w.draw_slot[i] >= 0) place[row * w.draw_row_stride + w.draw_slot[i]] = static_cast<float>(v[i]);
}

/// Metropolis step. A NaN ratio rejects; an energy error above 1000 counts as a divergence. Statistics and draws are
/// those of the first of an iteration's transitions; gradients are all.
template <class L, class E, class Model, class W>
LOCKSTEP_FN void stage_accept(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                              Proposal<L, E>& proposal, const W& w) {
  using S = scalar_t<E>;
  const E log_ratio = (w.ce[0] - w.cache[0]) + proposal.log_ratio;
  // Outside a box the density is zero: a reflected step longer than the box may still be outside.
  const auto legal = mask_and(
      cast_mask<E>(inside_box<L>(model, w.x)),
      log_ratio >
          E(S(-1e300 < std::numeric_limits<S>::lowest() ? std::numeric_limits<S>::lowest() : -1e300)));
  const E a = select(legal, exp(min(log_ratio, E(0))), E(0));  // NaN compares false: rejected
  const E u = cast<E>(draw.uniform(spec.accept));
  const auto accept = mask_and(legal, u < a);
  const E diverging =
      select(proposal.diverged >= E(0), proposal.diverged, select(log_ratio >= E(S(-1000)), E(0), E(1)));
  if (float* place = draw_place(spec, draw.iteration, w); place != nullptr && draw.part == 0) {
    const E after = (proposal.kinetic - proposal.log_ratio) - w.ce[0];  // finite where it was accepted
    put_draw(w, place, model.dim() + draw_diverging, diverging);
    put_draw(w, place, model.dim() + draw_energy, select(accept, after, proposal.kinetic - w.cache[0]));
  }
  const auto accept_state = cast_mask<L>(accept);
  select_rows(model.rows(), accept_state, w.x, w.position);
  select_rows(model.rows(), accept_state, w.g, w.gradient);
  select_rows(model.cache_rows(), accept, w.ce, w.cache);
  proposal.accepted = select(accept, E(1), E(0));
  proposal.acceptance = select(proposal.statistic >= E(0), proposal.statistic, a);
  add_to(w.stats + stat_gradients * kTile, proposal.steps * L(scalar_t<L>(model.samples())));
  if (draw.part > 0) return;
  add_to(w.stats + stat_acceptance * kTile, proposal.acceptance);
  add_to(w.stats + stat_accepted * kTile, proposal.accepted);
  add_to(w.stats + stat_divergences * kTile, diverging);
}

/// The gradient of the ChEES criterion in the trajectory time (Hoffman, Radul & Sountsov 2021), in
/// coordinates scaled by the metric, weighted by the acceptance probability. Called before `stage_accept`,
/// with x the proposal.
template <class L, class E, class Model, class W>
LOCKSTEP_FN L chees_gradient(const Model& model, const Proposal<L, E>& proposal, const W& w) {
  L after = L(0), before = L(0), along = L(0);
  const int d = model.dim(), blocks = model.samples() * d;
  const auto centre = w.parameters.from(model.layout.centre()),
             scale = w.parameters.from(model.layout.scale());
  const auto x = w.x;
  const auto p = w.p;
  const auto position = w.position;
  LOCKSTEP_UNROLL
  for (int b = 0; b < blocks; b += d) {
    LOCKSTEP_UNROLL
    for (int j = 0; j < d; ++j) {
      const L inv = L(1) / scale[j];
      const L y = (x[b + j] - centre[j]) * inv, y0 = (position[b + j] - centre[j]) * inv;
      after = fma(y, y, after);
      before = fma(y0, y0, before);
      along = fma(y, p[b + j], along);
    }
  }
  return proposal.jitter * ((after - before) * along);
}

/// Of an unweighted draw: where it stands, and its mode.
template <class E, class X>
struct Drawn {
  X x;
  E mode;
};

/// Adds this iteration's weighted moments, and leaves the unweighted draw in the first rows of x, which holds the
/// position: one sample by its weight. `quantity(i, put)` gives the target's expectations at sample i.
template <class L, class E, class Model, class W, class X, class Quantity>
LOCKSTEP_FN void stage_sum(const Model& model, const LaunchSpec& spec, const Draw<L>& draw, const W& w, X x,
                           Quantity&& quantity) {
  using S = scalar_t<E>;
  const int d = model.dim(), n = model.samples();
  const MomentLayout m{d, model.density.quantities(), spec.covariance};
  const auto cache = w.cache;
  E squares = E(0), betas = E(0), cumulative = E(0);
  const E u = n > 1 ? cast<E>(draw.uniform(Purpose::select)) : E(0);
  E chosen_index = E(0);
  LOCKSTEP_UNROLL
  for (int i = 0; i < n; ++i) {
    const E weight = model.template weight<E>(cache, i);
    squares = fma(weight, weight, squares);
    betas = betas + model.template beta<E>(x, w.energy_parameters, i);
    cumulative = cumulative + weight;
    chosen_index = select(cumulative <= u, E(S(i + 1)), chosen_index);
  }
  chosen_index = min(chosen_index, E(S(n - 1)));
  if (spec.record) {
    auto add = [moments = w.moments](int row, E value) { add_to(moments + row * kTile, value); };
    add(MomentLayout::count, Model::kTempered ? model.template weight<E>(cache, 0) : E(1));
    add(MomentLayout::weight_square, squares);
    add(MomentLayout::beta_mean, betas * E(S(1.0 / n)));
    constexpr int kAtOnce = 4;
    LOCKSTEP_UNROLL
    for (int begin = 0; begin < d; begin += kAtOnce) {
      E first[kAtOnce], second[kAtOnce];
      LOCKSTEP_UNROLL_FIXED
      for (int j = 0; j < kAtOnce; ++j) {
        first[j] = second[j] = E(0);
        if (begin + j < d) LOCKSTEP_UNROLL
        for (int i = 0; i < n; ++i) {
          const E at = x[i * d + begin + j], wx = model.template weight<E>(cache, i) * at;
          first[j] = first[j] + wx;
          second[j] = fma(wx, at, second[j]);
        }
      }
      add_to_rows(w.moments + (m.mean() + begin) * kTile, d - begin, first);
      add_to_rows(w.moments + (m.second() + begin) * kTile, d - begin, second);
    }
    if (spec.covariance) {
      LOCKSTEP_UNROLL
      for (int k = 0; k < d; ++k) {
        LOCKSTEP_UNROLL
        for (int i = 0; i < n; ++i) {
          const E wx = model.template weight<E>(cache, i) * x[i * d + k];
          LOCKSTEP_UNROLL
          for (int j = 0; j < k; ++j) add(m.cross() + k * (k - 1) / 2 + j, wx * x[i * d + j]);
        }
      }
    }
    if (m.quantities > 0) {
      LOCKSTEP_UNROLL
      for (int i = 0; i < n; ++i) {
        const E weight = model.template weight<E>(cache, i);
        quantity(i, [&](int q, E value) { add(m.quantity() + q, weight * value); });
      }
    }
  }
  // Its rows replace sample 0.
  LOCKSTEP_UNROLL
  for (int i = 1; i < n; ++i) {
    const auto here = mask_and(chosen_index >= E(S(i)), chosen_index <= E(S(i)));
    LOCKSTEP_UNROLL
    for (int k = 0; k < d; ++k) x.set(k, select(here, x[i * d + k], x[k]));
  }
}

/// Counts mode switches, and stores the draw.
template <class L, class E, class Model, class W, class X>
LOCKSTEP_FN void stage_store(const Model& model, const LaunchSpec& spec, std::uint32_t iteration,
                             const Proposal<L, E>& proposal, const Drawn<E, X>& drawn, const W& w) {
  using S = scalar_t<E>;
  const int d = model.dim();
  const X x = drawn.x;
  alignas(64) S modes[lane_width<E>];
  store(modes, drawn.mode);
  int* was = w.remembered + chain_mode * kTile;
  double* switches = w.stats + stat_switches * kTile;
  for (int i = 0; i < lane_width<E>; ++i) {
    const int now = 1 + static_cast<int>(modes[i]);
    if (spec.record && now != was[i] && was[i] > 0) switches[i] += 1;
    was[i] = now;
  }
  if (float* place = draw_place(spec, iteration, w); place != nullptr) {
    LOCKSTEP_UNROLL
    for (int k = 0; k < d; ++k) put_draw(w, place, k, x[k]);
    put_draw(w, place, d + draw_log_density, w.cache[0]);
    put_draw(w, place, d + draw_acceptance, proposal.acceptance);
    put_draw(w, place, d + draw_steps, proposal.steps);
  }
  if (w.overview != nullptr) {
    const int k = kept_draw(iteration, spec.begin, spec.overview_from, spec.overview_thin);
    float* to = w.overview + std::ptrdiff_t(k < 0 ? 0 : k) * (d + kOverviewExtraRows) * w.trace_stride;
    const auto put = [&](int row, E value) { Rows<E, float>{to + row * w.trace_stride, 0}.set(0, value); };
    if (k >= 0) {
      LOCKSTEP_UNROLL
      for (int j = 0; j < d; ++j) put(j, x[j]);
      put(d, proposal.acceptance);
    }
  }
}

/// What an iteration adds to the accumulators, and the draw it stores.
template <class L, class E, class Model, class W>
LOCKSTEP_FN void stage_accumulate(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                  const Proposal<L, E>& proposal, const W& w) {
  const auto accumulate = [&]<class X>(X x) {
    stage_sum<L, E>(model, spec, draw, w, x, [&](int i, auto&& put) {
      model.density.template quantity<Model::kDim, E>(x.from(i * model.dim()), put);
    });
    const Drawn<E, X> drawn{x, model.density.template mode<Model::kDim, E>(x)};
    stage_store<L, E>(model, spec, draw.iteration, proposal, drawn, w);
  };
  if constexpr (Model::kExtended) {  // where the draw takes the place of a sample
    copy_rows<E>(model.rows(), w.position, w.xe);
    accumulate(w.xe);
  } else {
    in_energy_precision<L, E>(model, w.position, w.xe, accumulate);
  }
}

/// Decides on the proposal, and adds to the ChEES statistic where the launch asks for it.
template <class L, class E, class Model, class W>
LOCKSTEP_FN void stage_decide(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                              Proposal<L, E>& proposal, const W& w) {
  const bool chees_wanted = spec.chees && draw.part == 0;
  const L chees = chees_wanted ? chees_gradient<L, E>(model, proposal, w) : L(0);
  stage_accept<L, E>(model, spec, draw, proposal, w);
  if (chees_wanted) {
    const L weighted = cast<L>(proposal.acceptance) * chees;
    add_to(w.stats + stat_chees * kTile, select(is_finite(weighted), weighted, L(0)));
  }
}

/// Iterations [begin, end) of one group of lanes.
template <class Transition, class L, class E, class Model, class W>
LOCKSTEP_FN void advance_lanes(const Model& model, const LaunchSpec& spec, const W& w) {
  for (std::uint32_t iteration = spec.begin; iteration < spec.end; ++iteration) {
    const Draw<L> draw{spec.key, iteration, w.chain, w.unit};
    stage_anneal<L, E>(model, spec, iteration, w);
    stage_load<L>(model, w);
    auto proposal = stage_propose<Transition, L, E>(model, spec, draw, w);
    stage_evaluate<L, E>(model, w);
    stage_decide<L, E>(model, spec, draw, proposal, w);
    Transition::decided(model, spec, draw, proposal, w);
    stage_temper<L, E>(model, spec, draw, w);
    if (spec.record || w.draws != nullptr) stage_accumulate<L, E>(model, spec, draw, proposal, w);
  }
}

}  // namespace lockstep
