// SPDX-License-Identifier: Apache-2.0
// Repelling-attracting Metropolis where its loops are cut short; and twins of it, which must be found.
#include <gtest/gtest.h>

#include "kernels/repelling_attracting.hpp"
#include "tests/support/comparators.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

/// Loops of at most so many proposals.
template <int kMost>
struct Hasty : RepellingAttracting {
  static TransitionInfo info() {
    TransitionInfo info = RepellingAttracting::info();
    info.settings[most_proposals].standard = kMost;
    return info;
  }
};
/// Step 4 by the ratio of the densities alone.
struct WithoutAuxiliary : RepellingAttracting {
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    RepellingAttracting::end(model, r, w);
    r.log_ratio = select(is_finite(r.log_ratio), E(0), r.log_ratio);
  }
};
/// A loop that is cut short goes on with its last proposal, where it goes uphill.
struct WithTheLast : Hasty<1> {
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const Jump<W> f(model.rows(), w);
    const V phase = f.phase[0];
    const auto uphill = mask_and(is(phase, up), cast_mask<V>(s <= r.steps));
    RepellingAttracting::push(model, draw, s, r, w);
    const auto cut = mask_and(uphill, is(V(f.phase[0]), given_up));
    for (int j = 0; j < model.rows(); ++j) f.x2.set(j, select(cut, cast<V>(w.x[j]), V(f.x2[j])));
    for (int k = 0; k < model.cache_rows(); ++k) f.cache.set(k, select(cut, cast<V>(w.ce[k]), V(f.cache[k])));
    f.x2_density.set(0, select(cut, cast<V>(w.ce[0]), V(f.x2_density[0])));
    f.phase.set(0, select(cut, V(double(down_again)), V(f.phase[0])));
    r.steps = select(cast_mask<L>(cut), s + L(1), r.steps);
  }
};
/// One more proposal downhill from x than from x2.
struct OtherCaps : Hasty<1> {
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const Jump<W> f(model.rows(), w);
    const V tried = f.tried[0];
    const auto first = mask_and(is(V(f.phase[0]), down), cast_mask<V>(s <= r.steps));
    RepellingAttracting::push(model, draw, s, r, w);
    const auto again = mask_and(mask_and(first, is(V(f.phase[0]), given_up)), tried < V(20.0));
    f.phase.set(0, select(again, V(double(down)), V(f.phase[0])));
    r.steps = select(cast_mask<L>(again), s + L(1), r.steps);
  }
};

TEST(RepellingAttracting, IsInvariantHoweverSoonItsLoopsAreCut) {
  for (int iterations : {1, 4}) {
    expect_invariant<Library<RepellingAttracting>>(plain("whole", iterations, 1.5), 1);
    expect_invariant<Library<Hasty<1>>>(plain("one proposal", iterations, 1.5), 2);
    expect_invariant<Library<Hasty<2>>>(plain("two proposals", iterations, 1.5), 3);
  }
  InvarianceCase c;
  c.name = "two pseudo-samples, two proposals";
  c.model.kind = ModelKind::pseudo_extended;
  c.model.pseudo_samples = 2;
  c.iterations = 2;
  expect_invariant<Library<Hasty<2>>>(c, 4);
}
TEST(RepellingAttracting, TwinsAreFound) {
  expect_found<WithoutAuxiliary>(plain("without z", 4, 1.5), 5);
  expect_found<WithTheLast>(plain("with the last proposal", 4, 1.5), 6);
  expect_found<OtherCaps>(plain("other caps downhill", 4, 1.5), 7);
}

}  // namespace
