// SPDX-License-Identifier: Apache-2.0
// Invariance of every transition on every model: chains started exactly in the target are in it after a
// transition. All statistics of this file together raise a false alarm with probability 1e-4 at most
// (Bonferroni over at most kTests two-sided tests; seeds are fixed, so a passing test stays one). Power:
// stretching x by 2 % must be seen in every case, and tests/kernels/statistical_twins.cpp holds a broken twin
// of each part, which must be found.
#include <gtest/gtest.h>

#include "tests/support/invariance.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

constexpr int kTests = 1000;
double limit() { return family_quantile(1e-4, kTests); }
int tests_made = 0;

InvarianceCase make_case(const std::string& name, ModelKind kind) {
  InvarianceCase c;
  c.name = name;
  c.model.kind = kind;
  return c;
}
template <class Change>
InvarianceCase extended(const std::string& name, int samples, Change change) {
  InvarianceCase c = make_case(name, ModelKind::pseudo_extended);
  c.model.pseudo_samples = samples;
  change(c);
  return c;
}

void expect_invariant(const InvarianceCase& c, const Moved& m) {
  const Verdict v = judge(m);
  tests_made += v.tests;
  EXPECT_LT(v.worst, limit()) << c.name << ": " << v.where;
  EXPECT_GT(m.acceptance, 0.2) << c.name;
  EXPECT_LT(m.acceptance, 0.9999) << c.name << ": nothing is ever rejected, so the test sees no rejection";
  EXPECT_GT(m.jump, 0.02) << c.name << ": it hardly moved";
  EXPECT_GT(paired(m.before, m.stretched).worst, limit()) << c.name << ": no power to see x stretched by 2 %";
}

template <class Transition>
void check(const InvarianceCase& c, std::uint64_t seed) {
  const ModelSpec& s = c.model;
  if (s.kind == ModelKind::plain) {
    expect_invariant(c, run_invariance<Transition>(c, seed, [](const Gaussian& g, const ParameterLayout& l) {
                       return Path<Gaussian, 0, false>{g, l};
                     }));
  } else if (s.kind == ModelKind::path) {
    expect_invariant(c, run_invariance<Transition>(c, seed, [](const Gaussian& g, const ParameterLayout& l) {
                       return Path<Gaussian, 0, true>{g, l};
                     }));
  } else {
    expect_invariant(c, run_invariance<Transition>(c, seed, [&](const Gaussian& g, const ParameterLayout& l) {
                       return PseudoExtended<Gaussian, 0, 0>{
                           g,     l,      s.pseudo_samples, s.learned, s.fixed_beta,
                           s.low, s.high, s.g_exponent,     s.box};
                     }));
  }
}

std::vector<InvarianceCase> cases() {
  std::vector<InvarianceCase> all = {make_case("target", ModelKind::plain),
                                     make_case("path", ModelKind::path)};
  auto dense = make_case("path, dense base and metric", ModelKind::path);
  dense.dense = true;
  all.push_back(dense);
  auto several = make_case("target, three iterations", ModelKind::plain);
  several.iterations = 3;
  all.push_back(several);
  all.push_back(extended("one sample", 1, [](InvarianceCase&) {}));
  all.push_back(extended("bridge", 2, [](InvarianceCase&) {}));
  all.push_back(extended("bridge, g = beta^2", 3, [](InvarianceCase& c) { c.model.g_exponent = 2; }));
  all.push_back(extended("bridge on an interval, g = beta^-1/2", 3, [](InvarianceCase& c) {
    c.model.low = 0.1, c.model.high = 0.9, c.model.g_exponent = -0.5;
  }));
  all.push_back(extended("tempering, g = beta^1.5", 3,
                         [](InvarianceCase& c) { c.tempering = true, c.model.g_exponent = 1.5; }));
  all.push_back(extended("tempering on an interval", 2, [](InvarianceCase& c) {
    c.tempering = true, c.model.low = 0.2, c.model.g_exponent = 0.25;  // z(beta) g(beta) ~ beta^-0.75 ...
  }));
  all.push_back(extended("fixed beta", 3,
                         [](InvarianceCase& c) { c.model.learned = false, c.model.fixed_beta = 0.3; }));
  all.push_back(extended("fixed instrument", 3, [](InvarianceCase& c) { c.model.learned = false; }));
  all.push_back(extended("dense base and metric", 2, [](InvarianceCase& c) { c.dense = true; }));
  all.push_back(extended("box", 2, [](InvarianceCase& c) { c.model.box = 1.5, c.model.low = 0.05; }));
  all.push_back(extended("box, long steps", 2, [](InvarianceCase& c) {
    c.model.box = 1.1, c.step_size = 1.1, c.num_leapfrog = 2;
  }));
  all.push_back(extended("box, tempering", 3, [](InvarianceCase& c) {
    c.model.box = 2.5, c.tempering = true, c.model.g_exponent = 1;
  }));
  all.push_back(extended("three iterations", 3, [](InvarianceCase& c) { c.iterations = 3; }));
  return all;
}

TEST(Invariance, HamiltonianMonteCarlo) {
  std::uint64_t seed = 1;
  for (const auto& c : cases()) check<Hmc>(c, seed++);
}

TEST(Invariance, RandomWalk) {
  std::uint64_t seed = 101;
  for (InvarianceCase c : cases()) {
    c.name += ", random walk";
    check<RandomWalk>(c, seed++);
  }
  EXPECT_LE(tests_made, kTests) << "the stated rate of false alarms counts fewer tests than were made";
}

}  // namespace
