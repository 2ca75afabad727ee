// SPDX-License-Identifier: Apache-2.0
// What a density and a transition are, as concepts: those that there are satisfy them, and none does that lacks a member
// or has one of another type.
#include <gtest/gtest.h>

#include "kernels/random_walk.hpp"
#include "kernels/regeneration.hpp"
#include "targets/all.hpp"
#include "targets/all_transitions.hpp"
#include "targets/engine_cpu_memory.hpp"
#include "targets/transitions.hpp"

namespace {
using namespace lockstep;

/// A density with one fault.
template <int kFault>
struct Faulty : DensityDefaults {
  int dim = 1;
  template <class F>
  requires(kFault != 1) void arrays(F&&) {}
  template <int D, class L, class X, class G>
  requires(kFault != 2 && (kFault != 3 || !std::is_same_v<G, NoGradient>)) L
      log_density(const X& x, const G& g)
  const {
    g.set(0, -x[0]);
    return x[0];
  }
  template <int D, class L, class X>
  auto mode(const X&) const {
    if constexpr (kFault == 4)
      return 0;
    else
      return L(0);
  }
};
struct WithoutDefaults {
  int dim = 1;
  template <class F>
  void arrays(F&&) {}
  template <int D, class L, class X, class G>
  L log_density(const X& x, const G&) const {
    return x[0];
  }
};

TEST(Concepts, EveryDensityOfTheListIsOne) {
  int count = 0;
  for_each_target([&]<class Definition>() {
    static_assert(check_density<typename Definition::Density>());
    ++count;
  });
  EXPECT_GT(count, 10);
}

TEST(Concepts, OneFaultIsEnough) {
  EXPECT_TRUE(DensityFunction<Faulty<0>>);
  EXPECT_FALSE(DensityFunction<Faulty<1>>);
  EXPECT_FALSE(DensityFunction<Faulty<2>>);
  EXPECT_FALSE(DensityFunction<Faulty<3>>);
  EXPECT_FALSE(DensityFunction<Faulty<4>>);
  EXPECT_FALSE(DensityFunction<WithoutDefaults>);
  EXPECT_FALSE(DensityFunction<int>);
}

struct WithoutEnd : RandomWalk {
  static void end() {}
};
struct WithoutInfo : RandomWalk {
  static int info() { return 0; }
};
using Floats = MachinePack<float>;
using Doubles = MachineEnergies<float, double>;

TEST(Concepts, Transitions) {
  EXPECT_TRUE((TransitionFunction<RandomWalk, Floats, Doubles, OpaquePath>));
  EXPECT_FALSE((TransitionFunction<WithoutEnd, Floats, Doubles, OpaquePath>));
  EXPECT_FALSE((TransitionFunction<WithoutInfo, Floats, Doubles, OpaquePath>));
}

TEST(Concepts, WhatATransitionTakesIsWhatItSays) {
  for_each_transition([]<class Transition>() {
    static_assert(check_transition<Transition, OpaquePath>());
    EXPECT_EQ(Transition::info().gradients, Transition::kGradients) << Transition::info().name;
  });
}

/// Counts as it inherits, but does not say what.
struct WithoutNames : Regeneration {
  static TransitionInfo info() { return {}; }
};

TEST(Concepts, ATransitionNamesWhatItCounts) {
  for_each_transition([]<class Transition>() { EXPECT_NO_THROW(checked_info<Transition>()); });
  EXPECT_EQ(checked_info<Regeneration>().counters.size(), 2u);
  EXPECT_THROW(checked_info<WithoutNames>(), std::logic_error);
}

/// A model and a back end without one member.
struct WithoutBox : OpaquePath {
  void box() const = delete;
};
struct WithoutFill : CpuBackend {
  using CpuBackend::CpuBackend;
  template <class T>
  static void fill(AlignedVector<T>& v, T value) = delete;
};

TEST(Concepts, ModelsAndBackEnds) {
  EXPECT_TRUE(ModelFunction<OpaquePlain> && ModelFunction<OpaquePath> && ModelFunction<OpaqueExtended>);
  EXPECT_TRUE((ModelFunction<Path<Gaussian, 2, false>, float>));
  EXPECT_FALSE(ModelFunction<WithoutBox>);
  EXPECT_FALSE(ModelFunction<Gaussian>);
  EXPECT_TRUE(MemoryBackend<CpuBackend>);
  EXPECT_FALSE(MemoryBackend<WithoutFill>);
}

}  // namespace
