// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transitions by blocks for the library's engine (make_block_engine), in mixed precision: the library's own, those that a test
// compiles, and twins of either.
#include <stdexcept>

#include "targets/block_engine.hpp"
#include "tests/support/own_data.hpp"

namespace lockstep::testing {

/// The library's compiled transition of T's name, told what T is told: by blocks nothing of T's own code is run.
template <class T>
struct Library : T {};

/// On one model, in the machine's packs.
template <class Model>
using MachineBlock = BlockTransition<MachinePack<float>, MachineEnergies<float, double>, Model>;

/// A broken twin of any transition by blocks: its ratio favours one side, by so many percent of how far x goes.
template <class Transition, int kPercent = 20>
struct Tilted : Transition {};

template <int kPercent, class Model>
class TiltedBlock final : public MachineBlock<Model> {
  using typename MachineBlock<Model>::Iteration;
  using typename MachineBlock<Model>::OfChain;

 public:
  explicit TiltedBlock(const MachineBlock<Model>& of)
      : MachineBlock<Model>(of.gradients, of.energies, of.self_ending), of_(of) {}
  int begin(const Iteration& t) const override { return of_.begin(t); }
  void move(const Iteration& t, int s) const override { of_.move(t, s); }
  void push(const Iteration& t, int s) const override { of_.push(t, s); }
  void end(const Iteration& t) const override {
    of_.end(t);
    for (std::size_t k = 0; k < t.groups.size(); ++k) tilt(t.proposals[k], t.groups[k]);
  }
  void decided(const Iteration& t) const override { of_.decided(t); }
  void begin_chain(const OfChain& t) const override { of_.begin_chain(t); }
  void end_chain(const OfChain& t) const override {
    of_.end_chain(t);
    if (this->self_ending) tilt(t.proposal, t.w);
  }
  void decided_chain(const OfChain& t) const override { of_.decided_chain(t); }

 private:
  template <class X, class Y, class W>
  static void tilt(Proposal<X, Y>& r, const W& w) {
    r.log_ratio = r.log_ratio + cast<Y>((w.x[0] - w.position[0]) * X(scalar_t<X>(0.01 * kPercent)));
  }
  const MachineBlock<Model>& of_;
};

/// A transition in the machine's packs: compiled here, but for the library's.
template <class T, class Model>
struct BlockOf {
  static const MachineBlock<Model>& get() {
    static const BlockTransitionOf<T, MachinePack<float>, MachineEnergies<float, double>, Model> transition;
    return transition;
  }
};
template <class T, class Model>
struct BlockOf<Library<T>, Model> {
  static const MachineBlock<Model>& get() {
    const auto* all = static_cast<const CpuTransitions*>(find_transition(T::info().name));
    if (all == nullptr) throw std::logic_error("the library has no transition " + T::info().name);
    return *std::get<const MachineBlock<Model>*>(std::get<CpuTransition<float, double>>(all->of));
  }
};
template <class T, int kPercent, class Model>
struct BlockOf<Tilted<T, kPercent>, Model> {
  static const MachineBlock<Model>& get() {
    static const TiltedBlock<kPercent, Model> transition(BlockOf<T, Model>::get());
    return transition;
  }
};

/// A transition, or those of a sequence, on one model.
template <class Transition, class Model>
std::vector<CpuTransition<float, double>> block_transitions() {
  std::vector<CpuTransition<float, double>> all;
  Each<Transition>::call([&]<class One>() {
    std::get<const MachineBlock<Model>*>(all.emplace_back()) = &BlockOf<One, Model>::get();
  });
  return all;
}

}  // namespace lockstep::testing
