// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transitions on the CPU behind calls for a block of chains: each is compiled once for a model and a precision.
#include <algorithm>
#include <concepts>
#include <span>

#include "kernels/launch_cpu.hpp"
#include "kernels/transition_function.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {

// Lane operations are named in full: here those on packs would hide those on scalars.

/// An iteration of a block, its chains in groups of lanes.
template <class L, class E, class Model>
struct BlockIteration {
  using R = scalar_t<L>;
  using S = scalar_t<E>;
  using Group = ChainRows<L, E, GroupRows<L>, GroupRows<E>>;
  const Model& model;
  const LaunchSpec& spec;
  std::uint32_t number;
  std::span<const Group> groups;
  std::span<Proposal<L, E>> proposals;  // of each group
  std::uint32_t part = 0;
  // Where every chain is in an iteration and at a step of its own; else none.
  const std::uint32_t* numbers = nullptr;
  const R* steps = nullptr;

  Draw<L> draw(const Group& w) const { return {spec.key, number, w.chain, w.unit, part}; }
  Draw<L, int_lane_t<L>> own_draw(std::size_t k) const {
    return {spec.key, lockstep::load_int<L>(numbers + k * lane_width<L>), groups[k].chain, groups[k].unit};
  }
  L own_step(std::size_t k) const { return lockstep::load<L>(steps + k * lane_width<L>); }
};

/// One lane of a pack.
template <class V>
one_lane_t<V> lane_of(const V& pack, int i) {
  alignas(64) scalar_t<V> v[lane_width<V>];
  lockstep::store(v, pack);
  return lockstep::load<one_lane_t<V>>(v + i);
}
template <class V>
void set_lane(V& pack, int i, one_lane_t<V> value) {
  alignas(64) scalar_t<V> v[lane_width<V>];
  lockstep::store(v, pack);
  lockstep::store(v + i, value);
  pack = lockstep::load<V>(v);
}
/// One chain's proposal among those of a group.
template <class L, class E>
Proposal<one_lane_t<L>, one_lane_t<E>> lane_of(const Proposal<L, E>& group, int i) {
  Proposal<one_lane_t<L>, one_lane_t<E>> one;
  each_part(group, one, [&](const auto& from, auto& to) { to = lane_of(from, i); });
  return one;
}
template <class L, class E>
void set_lane(Proposal<L, E>& group, int i, const Proposal<one_lane_t<L>, one_lane_t<E>>& one) {
  each_part(one, group, [&](auto from, auto& to) { set_lane(to, i, from); });
}

/// One chain of a block in its iteration; L and E are lanes of one.
template <class L, class E, class Model>
struct ChainIteration {
  using Chain = ChainRows<L, E, Rows<L>, Rows<E>>;
  const Model& model;
  const LaunchSpec& spec;
  Draw<L> draw;
  const Chain& w;
  Proposal<L, E>& proposal;
};

/// A transition for a model (kernels/transition.hpp), called for a block; of one that ends when it sees fit, the calls
/// for one chain stand in for `begin`, `end` and `decided`.
template <class L, class E, class Model>
class BlockTransition {
 public:
  using Iteration = BlockIteration<L, E, Model>;
  using OfChain = ChainIteration<one_lane_t<L>, one_lane_t<E>, Model>;
  const bool gradients, energies, self_ending;
  virtual ~BlockTransition() = default;
  /// Returns how many steps the chain that wants most wants.
  virtual int begin(const Iteration& t) const = 0;
  virtual void move(const Iteration& t, int s) const = 0;
  virtual void push(const Iteration& t, int s) const = 0;
  virtual void end(const Iteration& t) const = 0;
  virtual void decided(const Iteration& t) const = 0;
  virtual void begin_chain(const OfChain& t) const = 0;
  virtual void end_chain(const OfChain& t) const = 0;
  virtual void decided_chain(const OfChain& t) const = 0;

 protected:
  BlockTransition(bool takes_gradients, bool takes_energies, bool ends_itself)
      : gradients(takes_gradients), energies(takes_energies), self_ending(ends_itself) {}
};

template <class Transition, class L, class E, class Model>
requires TransitionFunction<Transition, L, E, Model>
class BlockTransitionOf final : public BlockTransition<L, E, Model> {
  using typename BlockTransition<L, E, Model>::Iteration;
  using typename BlockTransition<L, E, Model>::OfChain;
  static constexpr bool kOwnPace = Transition::kSelfEnding;

 public:
  BlockTransitionOf()
      : BlockTransition<L, E, Model>(Transition::kGradients, Transition::kEnergies, kOwnPace) {}
  int begin(const Iteration& t) const override {
    int last = 0;
    for (std::size_t k = 0; k < t.groups.size() && !kOwnPace; ++k) {
      const auto& w = t.groups[k];
      t.proposals[k] = Transition::template begin<L, E>(t.model, t.spec, t.draw(w), w);
      last = std::max(last, static_cast<int>(lockstep::reduce_max(t.proposals[k].steps)));
    }
    return last;
  }
  void move(const Iteration& t, int s) const override {
    for_each(t, s, [&](const auto& draw, L step, auto& proposal, const auto& w) {
      Transition::move(t.model, draw, step, proposal, w);
    });
  }
  void push(const Iteration& t, int s) const override {
    for_each(t, s, [&](const auto& draw, L step, auto& proposal, const auto& w) {
      Transition::push(t.model, draw, step, proposal, w);
    });
  }
  void end(const Iteration& t) const override {
    for (std::size_t k = 0; k < t.groups.size(); ++k) Transition::end(t.model, t.proposals[k], t.groups[k]);
  }
  void decided(const Iteration& t) const override {
    for (std::size_t k = 0; k < t.groups.size(); ++k)
      Transition::decided(t.model, t.spec, t.draw(t.groups[k]), t.proposals[k], t.groups[k]);
  }
  void begin_chain(const OfChain& t) const override {
    if constexpr (kOwnPace)
      t.proposal = Transition::template begin<one_lane_t<L>, one_lane_t<E>>(t.model, t.spec, t.draw, t.w);
  }
  void end_chain(const OfChain& t) const override {
    if constexpr (kOwnPace) Transition::end(t.model, t.proposal, t.w);
  }
  void decided_chain(const OfChain& t) const override {
    if constexpr (kOwnPace) Transition::decided(t.model, t.spec, t.draw, t.proposal, t.w);
  }

 private:
  template <class Body>
  static void for_each(const Iteration& t, int s, Body body) {
    for (std::size_t k = 0; k < t.groups.size(); ++k)
      if constexpr (kOwnPace)
        body(t.own_draw(k), t.own_step(k), t.proposals[k], t.groups[k]);
      else
        body(t.draw(t.groups[k]), L(scalar_t<L>(s)), t.proposals[k], t.groups[k]);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
