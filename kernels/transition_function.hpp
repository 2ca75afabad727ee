// SPDX-License-Identifier: Apache-2.0
#pragma once
// What kernels/transition.hpp asks of a transition, as concepts, and what is said of one that lacks something.
#include <concepts>
#include <stdexcept>

#include "kernels/driver.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

/// What a transition is called with, for one model in one precision.
template <class L, class E, class Model>
struct TransitionCall {
  const Model& model;
  const LaunchSpec& spec;
  const Draw<L>& draw;
  const ChainRows<L, E, GroupRows<L>, GroupRows<E>>& w;
  Proposal<L, E>& proposal;
};

template <class T>
concept HasInfo = requires {
  { T::info() } -> std::same_as<TransitionInfo>;
};
template <class T, class R>
concept HasKnownSteps = requires(const LaunchSpec& spec, std::uint32_t iteration) {
  { T::template known_steps<R>(spec, iteration, KnownRows<R>()) } -> std::same_as<int>;
};
template <class T, class L, class E, class Model>
concept HasBegin = requires(const TransitionCall<L, E, Model>& c) {
  { T::template begin<L, E>(c.model, c.spec, c.draw, c.w) } -> std::same_as<Proposal<L, E>>;
};
template <class T, class L, class E, class Model>
concept HasMove = requires(const TransitionCall<L, E, Model>& c) {
  T::move(c.model, c.draw, L(1), c.proposal, c.w);
};
template <class T, class L, class E, class Model>
concept HasPush = requires(const TransitionCall<L, E, Model>& c) {
  T::push(c.model, c.draw, L(1), c.proposal, c.w);
};
template <class T, class L, class E, class Model>
concept HasEnd = requires(const TransitionCall<L, E, Model>& c) {
  T::end(c.model, c.proposal, c.w);
};
template <class T, class L, class E, class Model>
concept HasTransitionDefaults = std::derived_from<T, TransitionDefaults> &&
    requires(const TransitionCall<L, E, Model>& c) {
  T::decided(c.model, c.spec, c.draw, c.proposal, c.w);
};
template <class T, class L, class E, class Model>
concept TransitionFunction =
    HasInfo<T> && HasKnownSteps<T, scalar_t<L>> && HasBegin<T, L, E, Model> && HasMove<T, L, E, Model> &&
    HasPush<T, L, E, Model> && HasEnd<T, L, E, Model> && HasTransitionDefaults<T, L, E, Model>;

/// Says in one line what a transition lacks, as check_density does of a density.
template <class T, class Model>
constexpr bool check_transition() {
  using V = double;
  constexpr bool info = HasInfo<T>, known_steps = HasKnownSteps<T, V>, begin = HasBegin<T, V, V, Model>,
                 move = HasMove<T, V, V, Model>, push = HasPush<T, V, V, Model>, end = HasEnd<T, V, V, Model>,
                 rest = HasTransitionDefaults<T, V, V, Model>;
  static_assert(info, "TransitionFunction: a transition has  static TransitionInfo info()");
  static_assert(known_steps,
                "TransitionFunction: a transition has  template <class R> static int known_steps(const "
                "LaunchSpec&, std::uint32_t iteration, const KnownRows<R>&)");
  static_assert(
      begin,
      "TransitionFunction: a transition has  template <class L, class E, class Model, class W> static "
      "Proposal<L, E> begin(const Model&, const LaunchSpec&, const Draw<L>&, const W&)");
  static_assert(
      move,
      "TransitionFunction: a transition has  template <class L, class E, class Model, class D, class W> "
      "static void move(const Model&, const D&, L s, const Proposal<L, E>&, const W&)");
  static_assert(
      push,
      "TransitionFunction: a transition has  template <class L, class E, class Model, class D, class W> "
      "static void push(const Model&, const D&, L s, const Proposal<L, E>&, const W&)");
  static_assert(
      end,
      "TransitionFunction: a transition has  template <class L, class E, class Model, class W> static "
      "void end(const Model&, Proposal<L, E>&, const W&)");
  static_assert(
      rest,
      "TransitionFunction: a transition inherits TransitionDefaults, whose `decided` has  (const Model&, "
      "const LaunchSpec&, const D&, const P&, const W&)");
  return TransitionFunction<T, V, V, Model>;
}

/// What a transition says of itself. Throws where it has other counters than it names: one that inherits what another
/// counts, and an info() of its own.
template <class T>
TransitionInfo checked_info() {
  TransitionInfo info = T::info();
  if (info.counters.size() != std::size_t(T::kCounters))
    throw std::logic_error("transition " + info.name + " names other counters than it has");
  return info;
}

}  // namespace lockstep
