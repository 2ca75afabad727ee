// SPDX-License-Identifier: Apache-2.0
#pragma once
// The invariance suite for one transition at a time, by blocks: that it passes, and that a broken twin does not.
#include "tests/support/invariance.hpp"

namespace lockstep::testing {

/// All statistics of a file raise a false alarm with probability 1e-4 at most.
inline double limit() { return family_quantile(1e-4, 1000); }

template <class Transition>
Moved moved_by(const InvarianceCase& c, std::uint64_t seed) {
  return moved<Transition, OpaquePlain, OpaqueExtended>(c, seed);
}
inline void expect_found(const InvarianceCase& c, const Moved& m) {
  EXPECT_GT(m.jump, 0.005) << c.name;
  EXPECT_GT(judge(m).worst, limit()) << c.name;
}
template <class Transition>
void expect_found(const InvarianceCase& c, std::uint64_t seed) {
  expect_found(c, moved_by<Transition>(c, seed));
}
inline void expect_invariant(const InvarianceCase& c, const Moved& m) {
  const Verdict v = judge(m);
  EXPECT_LT(v.worst, limit()) << c.name << ": " << v.where;
  EXPECT_GT(m.jump, 0.02) << c.name;
  EXPECT_LT(m.acceptance, 0.9999) << c.name;
  EXPECT_GT(paired(m.before, m.stretched()).worst, limit())
      << c.name << ": no power to see x stretched by 2 %";
}
template <class Transition>
void expect_invariant(const InvarianceCase& c, std::uint64_t seed) {
  expect_invariant(c, moved_by<Transition>(c, seed));
}
inline InvarianceCase plain(const std::string& name, int iterations, double step_size = 0.7) {
  InvarianceCase c;
  c.name = name;
  c.model.kind = ModelKind::plain;
  c.iterations = iterations;
  c.step_size = step_size;
  return c;
}

}  // namespace lockstep::testing
