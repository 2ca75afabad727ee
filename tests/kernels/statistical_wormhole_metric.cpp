// SPDX-License-Identifier: Apache-2.0
// Invariance of wormhole HMC in its metric version: chains started exactly in the target are in it after transitions, and a
// twin without log det G is found (one without the ways back is not: what does not come back has mostly no end either).
// All statistics together raise a false alarm with probability 1e-4 at most (Bonferroni); the seeds are fixed.
#include <gtest/gtest.h>

#include "tests/support/invariance.hpp"
#include "tests/support/own_data.hpp"
#include "tests/support/wormholes.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

double limit() { return family_quantile(1e-4, 300); }

int tests_made = 0;
void expect_invariant(const InvarianceCase& c, const Moved& m) {
  tests_made += expect_in_target(c, m, limit());
}

TEST(Invariance, WormholeMetric) {
  std::uint64_t seed = 951;
  for (const ModelKind kind : {ModelKind::plain, ModelKind::path, ModelKind::pseudo_extended}) {
    InvarianceCase c;
    c.name = std::string("wormhole metric, model ") + std::to_string(int(kind));
    c.model.kind = kind;
    if (kind == ModelKind::pseudo_extended) c.model.pseudo_samples = 2;
    c.step_size = 0.16;
    c.chains = 1 << 16;  // each is dear, and so many see x stretched by 2 %
    expect_invariant(c, moved<Library<KnownWormholes<WormholeMetric>>>(c, seed++));
    expect_invariant(c, moved<Library<KnownWormholes<WormholeMetric, 2>>>(c, seed++));
    c.iterations = 5;
    expect_invariant(c, moved<Library<KnownWormholes<WormholeMetric>>>(c, seed++));
    c.iterations = 2;
    EXPECT_GT(judge(moved<KnownWormholes<WormholeMetricFlow<false, true>>>(c, seed++)).worst, limit())
        << c.name << ": no log det, not found";
  }
  EXPECT_LE(tests_made, 300) << "the stated rate of false alarms counts fewer tests than were made";
}

/// And jumps between modes after them: where either part is broken, it is found.
TEST(Invariance, WormholeMetricWithJumps) {
  using Flow = KnownWormholes<WormholeMetric>;
  using Jumps = WithSecondList<KnownModes>;
  InvarianceCase c;
  c.name = "wormhole metric and jumps";
  c.step_size = 0.3;
  c.iterations = 2;
  c.chains = 1 << 16;
  expect_invariant(c, moved<Sequence<Library<Flow>, Library<Jumps>>>(c, 971));
  EXPECT_GT(judge(moved<Sequence<Tilted<Library<Flow>>, Library<Jumps>>>(c, 972)).worst, limit());
  EXPECT_GT(judge(moved<Sequence<Library<Flow>, Tilted<Library<Jumps>>>>(c, 973)).worst, limit());
}

}  // namespace
