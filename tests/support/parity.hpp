// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transitions of two engines compared one by one, each from the same state: whole chains part from each other
// by rounding alone.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/engines.hpp"

namespace lockstep::testing {

/// The error of `a`, relative to one plus the size of `b`.
inline double relative_error(double a, double b) { return std::abs(a - b) / (1 + std::abs(b)); }
/// A NaN is larger than any number.
inline double larger(double a, double b) { return std::isnan(a) || a >= b ? a : b; }

/// Every number of `a` within `tolerance` of the one of `b`.
template <class Vector>
void expect_close(const Vector& a, const Vector& b, double tolerance, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = larger(worst, relative_error(a[i], b[i]));
  EXPECT_LE(worst, tolerance) << what;
}

struct Parity {
  int accepted = 0, refused = 0;
  int apart = 0;          // transitions that one engine accepted and the other did not
  double closest = 0;     // the largest |log u - log alpha| among those: how near to a draw they all were
  int other_lengths = 0;  // trajectories of another number of steps
  // Largest errors where they decided alike.
  double position = 0, cache = 0;
  std::size_t numbers = 0, equal = 0;  // of the states after each transition
};

/// Takes every transition of a case by both engines from the reference's state, the other's positions times 1 + nudge.
inline Parity compare_transitions(const EngineFactory& reference, const EngineFactory& other,
                                  const BatchCase& c, double nudge = 0) {
  const auto a = make_engine(reference, c), b = make_engine(other, c);
  const std::size_t n = std::size_t(c.chains);
  Parity parity;
  for (std::uint32_t t = 0; t < c.iterations; ++t) {
    auto from = a->state();  // positions first
    for (std::size_t i = 0; i < n * a->rows(); ++i) from[i] *= 1 + nudge;
    b->set_state(from);
    for (Engine* e : {a.get(), b.get()}) e->advance(make_launch(c, t, t + 1));
    const auto x = a->position(), y = b->position(), of_a = a->take_stats(), of_b = b->take_stats();
    std::vector<bool> alike(n);
    for (std::size_t i = 0; i < n; ++i) {
      const bool accepted = of_a[stat_accepted * n + i] > 0;
      ++(accepted ? parity.accepted : parity.refused);
      parity.other_lengths += of_a[stat_gradients * n + i] != of_b[stat_gradients * n + i];
      alike[i] = accepted == (of_b[stat_accepted * n + i] > 0);
      if (alike[i]) continue;
      ++parity.apart;
      const Draw<double> draw{c.key, t, std::uint32_t(i % 5),
                              std::uint32_t(i / 5)};  // as make_engine's chains
      const double gap = std::log(draw.uniform(Purpose::accept)) - std::log(of_a[stat_acceptance * n + i]);
      parity.closest = std::max(parity.closest, std::abs(gap));
    }
    const auto compare = [&](double& largest, const std::vector<double>& v, const std::vector<double>& w) {
      for (std::size_t i = 0; i < v.size(); ++i)
        if (alike[i % n]) largest = larger(largest, relative_error(w[i], v[i]));
    };
    compare(parity.position, x, y);
    compare(parity.cache, a->cache(), b->cache());
    const auto s = a->state(), r = b->state();
    parity.numbers += s.size();
    for (std::size_t i = 0; i < s.size(); ++i) parity.equal += s[i] == r[i];
  }
  return parity;
}

}  // namespace lockstep::testing
