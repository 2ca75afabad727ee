// SPDX-License-Identifier: Apache-2.0
// Leaf by leaf, a tree is the one that is built by recursion, as Hoffman & Gelman write it down and Stan checks it.
#include "kernels/nuts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "kernels/driver.hpp"
#include "tests/support/scalar_model.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;
using Vector = std::vector<double>;

struct Leaf {
  Vector x, p;
};
double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}
Vector plus(Vector a, const Vector& b) {
  for (std::size_t j = 0; j < a.size(); ++j) a[j] += b[j];
  return a;
}
/// Of a stretch that goes on without turning: its first and last momentum and the sum of all.
struct Stretch {
  Vector first, last, rho;
};
bool goes_on(const Vector& first, const Vector& last, const Vector& rho) {
  return dot(first, rho) > 0 && dot(last, rho) > 0;
}
/// Of one stretch behind the other, in the order of their leaves.
bool goes_on(const Stretch& a, const Stretch& b) {
  return goes_on(a.first, b.last, plus(a.rho, b.rho)) && goes_on(a.first, b.first, plus(a.rho, b.first)) &&
         goes_on(a.last, b.last, plus(b.rho, a.last));
}

/// One transition by recursion, with the random numbers of the kernel's.
template <class Model>
struct Recursion {
  const ScalarModel<Model>& m;
  const Draw<double>& draw;
  double step, start;
  int leaves = 0, depth = 0, most = 10;
  bool diverged = false;
  double accepted = 0, added = 0;
  Vector candidate = {}, chosen = {};

  /// 2^level leaves on from `at`, which moves with them; none where they turn or diverge.
  std::optional<Stretch> stretch(int level, double direction, Leaf& at) {
    if (level > 0) {
      const auto a = stretch(level - 1, direction, at);
      if (!a) return {};
      const auto b = stretch(level - 1, direction, at);
      if (!b || !goes_on(*a, *b)) return {};
      return Stretch{a->first, b->last, plus(a->rho, b->rho)};
    }
    m.leapfrog(at.x, at.p, direction * step, 1);
    const double change = start - m.hamiltonian(at.x, at.p);
    const double u = draw.uniform_at(Purpose::tree, double(++leaves));
    added = added == -INFINITY ? change : std::log(std::exp(added) + std::exp(change));
    if (std::log(u) < change - added) candidate = at.x;
    accepted += std::exp(std::min(change, 0.0));
    diverged = !(change > -1000);
    if (diverged) return {};
    return Stretch{at.p, at.p, at.p};
  }
  void run(const Vector& x, const Vector& p) {
    start = m.hamiltonian(x, p);
    Leaf ends[2] = {{x, p}, {x, p}};
    Stretch tree{p, p, p};  // from the earliest to the latest
    double weight = 0;
    chosen = x;
    while (depth < most) {
      const bool later = draw.uniform_at(Purpose::tree, 4096 + double(depth)) < 0.5;
      added = -INFINITY;
      Leaf at = ends[later];
      const auto more = stretch(depth, later ? 1 : -1, at);
      if (!more) return;
      ends[later] = at;
      if (std::log(draw.uniform_at(Purpose::tree, 2048 + double(depth))) < added - weight) chosen = candidate;
      weight = std::log(std::exp(weight) + std::exp(added));
      ++depth;
      const Stretch back{more->last, more->first, more->rho};  // in the order of time
      const bool on = later ? goes_on(tree, *more) : goes_on(back, tree);
      tree = later ? Stretch{tree.first, more->last, plus(tree.rho, more->rho)}
                   : Stretch{more->last, tree.last, plus(tree.rho, more->rho)};
      if (!on) return;
    }
  }
};

template <class Model>
struct ScalarChain {
  decltype(std::declval<const ScalarModel<Model>&>().par()) parameters, energy_parameters;
  Rows<double> position, gradient, cache, x, p, g, xe, ce, fields;
  const double* settings;
  double* counters;
  void count(int k, double value) const { counters[k] += value; }
};

template <class Transition, class Model, class Check>
void each_tree(const ScalarModel<Model>& m, double depth, Check check) {
  const int n = m.model.rows();
  const TransitionInfo info = Transition::info();
  const double settings[] = {depth};
  for (std::uint32_t chain = 0; chain < 400; ++chain) {
    const Draw<double> draw{{3, 4}, 7 + chain % 5, chain, 2};
    Vector x(n), p(n), g(n), xe(n), position(n), gradient, cache, ce(m.model.cache_rows()),
        fields(info.fields[0].rows(n), NAN), counters(1, 0.0);
    draw.normals(Purpose::start, n, [&](int j, double z) { position[j] = 1.5 * z; });
    gradient = m.gradient(position);
    cache = m.cache(position);
    x = position;
    g = gradient;
    const auto rows = [&](Vector& v) { return m.rows(v); };
    const ScalarChain<Model> w{m.par(),      m.par(),  rows(position), rows(gradient), rows(cache),
                               rows(x),      rows(p),  rows(g),        rows(xe),       rows(ce),
                               rows(fields), settings, counters.data()};
    const auto proposal = stage_propose<Transition, double, double>(m.model, LaunchSpec{}, draw, w);
    Vector momentum(n);
    draw.normals(Purpose::momentum, n, [&](int j, double z) { momentum[j] = z; });
    Recursion<Model> r{.m = m, .draw = draw, .step = m.parameters[ParameterLayout::step_size], .start = 0};
    r.most = int(depth);
    r.run(position, momentum);
    check(r, proposal, counters, x, g, ce, cache, fields);
  }
}

template <class Model>
void expect_the_recursions_trees(const ScalarModel<Model>& m, double depth, double least_spread) {
  std::map<int, int> depths;
  each_tree<Nuts>(m, depth,
                  [&](const auto& r, const auto& proposal, const Vector&, const Vector& x, const Vector& g,
                      const Vector& ce, const Vector& cache, const Vector& fields) {
                    ASSERT_EQ(proposal.steps, r.leaves);
                    EXPECT_EQ(fields[Nuts::Tree::depth], r.depth);
                    EXPECT_EQ(proposal.diverged, r.diverged);
                    EXPECT_NEAR(proposal.statistic, r.accepted / r.leaves, 1e-10);
                    for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], r.chosen[j], 1e-8);
                    EXPECT_EQ(g, m.gradient(x));
                    EXPECT_EQ(ce, m.cache(x));
                    EXPECT_EQ(proposal.log_ratio, cache[0] - ce[0]);
                    ++depths[r.depth];
                  });
  EXPECT_GE(depths.size(), least_spread);
}

TEST(Nuts, IsTheTreeOfTheRecursion) {
  CurvedDensity density;
  density.dim = 3;
  for (const double step : {0.05, 0.3, 0.9, 2.2}) {  // deep trees, and ones that diverge
    ScalarModel target(Path<CurvedDensity, 0, false>{density, ParameterLayout{3}});
    target.parameters[ParameterLayout::step_size] = step;
    expect_the_recursions_trees(target, 10, step < 2 ? 3 : 2);
    expect_the_recursions_trees(target, 3, 2);
    ScalarModel dense(Path<CurvedDensity, 0, true>{density, ParameterLayout{3, true, true}});
    dense.parameters[ParameterLayout::step_size] = step;
    expect_the_recursions_trees(dense, 10, 2);
    ScalarModel extended(make_pseudo_extended(density, 2, true, 0, 0.05, 1, 0.5));
    extended.parameters[ParameterLayout::step_size] = step;
    expect_the_recursions_trees(extended, 10, 2);
  }
}

TEST(Nuts, WithoutChecksWithinADoublingTreesAreOthers) {
  CurvedDensity density;
  density.dim = 3;
  ScalarModel target(Path<CurvedDensity, 0, false>{density, ParameterLayout{3}});
  target.parameters[ParameterLayout::step_size] = 0.9;
  int others = 0;
  each_tree<NutsTree<false>>(target, 10, [&](const auto& r, const auto& proposal, const auto&...) {
    others += proposal.steps != r.leaves;
  });
  EXPECT_GT(others, 5);
}

TEST(Nuts, CountsTreesThatDoNotTurn) {
  CurvedDensity density;
  ScalarModel target(Path<CurvedDensity, 0, false>{density, ParameterLayout{2}});
  target.parameters[ParameterLayout::step_size] = 0.01;
  double saturated = 0;
  each_tree<Nuts>(target, 4, [&](const auto&, const auto& proposal, const Vector& counters, const auto&...) {
    EXPECT_LE(counters[Nuts::saturated], proposal.steps == 15 ? 1 : 0);
    saturated += counters[Nuts::saturated];
  });
  EXPECT_GT(saturated, 300);  // of 400
}

}  // namespace
