// SPDX-License-Identifier: Apache-2.0
// Invariance of every transition on every model: chains started exactly in the target are in it after a
// transition. All statistics of this file together raise a false alarm with probability 1e-4 at most
// (Bonferroni over at most kTests two-sided tests; seeds are fixed, so a passing test stays one). Power:
// stretching x by 2 % must be seen in every case, and tests/kernels/statistical_twins.cpp holds a broken twin
// of each part, which must be found.
#include <gtest/gtest.h>

#include <optional>

#include "targets/all_transitions.hpp"
#include "tests/support/invariance.hpp"
#include "tests/support/known_mixtures.hpp"
#include "tests/support/wormholes.hpp"

namespace lockstep::testing {
/// In two worlds the code is that in one.
template <class Flow, int kWidth, class Model>
struct BlockOf<KnownWormholes<Flow, 2, kWidth>, Model> : BlockOf<KnownWormholes<Flow>, Model> {};
}  // namespace lockstep::testing

namespace {
using namespace lockstep;
using namespace lockstep::testing;

constexpr int kTests = 6000;
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

void expect_invariant(const InvarianceCase& c, const Moved& m, bool may_accept_all = false) {
  tests_made += expect_in_target(c, m, limit(), may_accept_all);
}

std::vector<InvarianceCase> cases() {
  std::vector<InvarianceCase> all = {make_case("target", ModelKind::plain),
                                     make_case("path", ModelKind::path)};
  auto dense = make_case("path, dense base and metric", ModelKind::path);
  dense.dense = true;
  all.push_back(dense);
  auto mixture = make_case("path, base of two components", ModelKind::path);
  mixture.mixture = true;
  all.push_back(mixture);
  auto several = make_case("target, three iterations", ModelKind::plain);
  several.iterations = 3;
  all.push_back(several);
  all.push_back(extended("one sample", 1, [](InvarianceCase&) {}));
  all.push_back(extended("bridge", 2, [](InvarianceCase&) {}));
  all.push_back(extended("bridge, g = beta^2, bent", 3, [](InvarianceCase& c) {
    c.model.g_exponent = 2;
    c.bend = {2, -5, 1, 3};
  }));
  all.push_back(extended("bridge on an interval, g = beta^-1/2, bent", 3, [](InvarianceCase& c) {
    c.model.low = 0.1, c.model.high = 0.9, c.model.g_exponent = -0.5;
    c.bend = {1, -3, 4, -1};
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
  all.push_back(extended("base of two components", 2, [](InvarianceCase& c) { c.mixture = true; }));
  all.push_back(extended("base of two components, box", 3, [](InvarianceCase& c) {
    c.mixture = true, c.model.box = 2, c.model.g_exponent = 0.5;
  }));
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

TEST(Invariance, FusedHamiltonianMonteCarlo) {
  std::uint64_t seed = 1;
  const auto fused_on = [](const auto& c) -> EngineMaker {
    const auto of = [&]<class Model>() {
      return fused<Hmc>([m = c.model](const Gaussian& g, const ParameterLayout& l) {
        ModelSpec of_layout = m;
        of_layout.dense_metric = l.dense_metric, of_layout.base = l.base;
        return make_model<Model>(g, of_layout);
      });
    };
    if (c.model.kind == ModelKind::plain) return of.template operator()<Path<Gaussian, 0, false>>();
    if (c.model.kind == ModelKind::path) return of.template operator()<Path<Gaussian, 0, true>>();
    return of.template operator()<PseudoExtended<Gaussian, 0, 0>>();
  };
  for (const auto& c : cases()) {
    const Starts starts(c, seed);
    expect_invariant(c, run_invariance(c, starts, seed, fused_on(c)));
    ++seed;
  }
}

/// Transitions that own data, on each kind of model, and their twins. Slices always accept, and so does the implicit
/// midpoint rule on a Gaussian.
TEST(Invariance, TransitionsWithDataOnEveryModel) {
  std::uint64_t seed = 501;
  for_each_with_data([&]<class Transition>() {
    for (InvarianceCase c :
         {make_case("target", ModelKind::plain), make_case("path", ModelKind::path),
          extended("bridge", 2, [](InvarianceCase&) {}),
          extended("box", 2, [](InvarianceCase& b) { b.model.box = 1.5, b.model.low = 0.05; })}) {
      c.name += ", " + Transition::info().name;
      expect_invariant(c, moved<Transition>(c, seed++), true);
      c.iterations = 3;  // a walk along few directions shows its tilt in several
      EXPECT_GT(judge(moved<Tilted<Transition>>(c, seed++)).worst, limit())
          << c.name << ": broken, not found";
    }
  });
}

/// Wormholes, on each kind of model, in one world and in two; without the volume, and without the way back.
TEST(Invariance, Wormholes) {
  std::uint64_t seed = 901;
  for (InvarianceCase c : {make_case("target", ModelKind::plain), make_case("path", ModelKind::path),
                           extended("bridge", 2, [](InvarianceCase&) {})}) {
    c.name += ", wormholes";
    c.step_size = 0.5;
    c.chains = 3 << 15;  // dear ones, and so many see x stretched by 2 %
    expect_invariant(c, moved<Library<KnownWormholes<>>>(c, seed++));
    expect_invariant(c, moved<Library<KnownWormholes<Wormhole, 2>>>(c, seed++));
    c.iterations = 5;
    expect_invariant(c, moved<Library<KnownWormholes<>>>(c, seed++));
    c.iterations = 2;
    EXPECT_GT(judge(moved<KnownWormholes<WormholeFlow<false, true>>>(c, seed++)).worst, limit())
        << c.name << ": no volume, not found";
    EXPECT_GT(judge(moved<KnownWormholes<WormholeFlow<true, false>>>(c, seed++)).worst, limit())
        << c.name << ": no way back, not found";
  }
  // Wider ones, of which chains between two worlds feel more.
  InvarianceCase c = make_case("target, wide wormholes in two worlds", ModelKind::plain);
  c.step_size = 0.5;
  c.iterations = 3;
  expect_invariant(c, moved<Library<KnownWormholes<Wormhole, 2, 150>>>(c, seed++));
  EXPECT_GT(judge(moved<KnownWormholes<WormholeFlow<false, true>, 2, 150>>(c, seed++)).worst, limit())
      << c.name << ": no volume, not found";
  c.step_size = 1.2;
  EXPECT_GT(judge(moved<KnownWormholes<WormholeFlow<true, false>, 2, 150>>(c, seed++)).worst, limit())
      << c.name << ": no way back, not found";
}

/// Wormholes, and what may follow them in an iteration: jumps between modes, regenerations; and where either part is broken.
TEST(Invariance, WormholesWithJumpsAndRegenerations) {
  using Jumps = Library<WithSecondList<KnownModes>>;
  using Regenerations = Library<WithSecondList<OfKnownModes<Regeneration>>>;
  using Wormholes = Library<KnownWormholes<>>;
  std::uint64_t seed = 981;
  InvarianceCase c = make_case("target", ModelKind::plain),
                 bridge = extended("bridge, wormholes and jumps", 2, [](InvarianceCase&) {});
  c.step_size = bridge.step_size = 0.5;
  c.iterations = bridge.iterations = 2;
  const auto expect = [&]<class Flow, class After>(const char* name) {
    c.name = name;
    expect_invariant(c, moved<Sequence<Flow, After>>(c, seed++));
    EXPECT_GT(judge(moved<Sequence<Tilted<Flow>, After>>(c, seed++)).worst, limit()) << name;
    EXPECT_GT(judge(moved<Sequence<Flow, Tilted<After>>>(c, seed++)).worst, limit()) << name;
  };
  expect.operator()<Wormholes, Jumps>("wormholes and jumps");
  expect.operator()<Wormholes, Regenerations>("wormholes and regenerations");
  expect_invariant(bridge, moved<Sequence<Wormholes, Jumps>>(bridge, seed++));
}

/// A walk after Hamiltonian Monte Carlo in each iteration, which then begins with the gradient where the walk led; and
/// where either of the two is broken.
TEST(Invariance, TransitionsOneAfterTheOther) {
  std::uint64_t seed = 601;
  for (InvarianceCase c : {make_case("target", ModelKind::plain), make_case("path", ModelKind::path),
                           extended("bridge", 2, [](InvarianceCase&) {})}) {
    c.iterations = 3;
    c.name += ", one after the other";
    expect_invariant(c, moved<Sequence<Library<Hmc>, ListWalk>>(c, seed++));
    EXPECT_GT(judge(moved<Sequence<Tilted<Library<Hmc>>, ListWalk>>(c, seed++)).worst, limit()) << c.name;
    // What the walk does wrong adds up where trajectories are short.
    c.iterations = 10;
    c.num_leapfrog = 1;
    c.step_size *= 0.3;
    EXPECT_GT(judge(moved<Sequence<Library<Hmc>, Tilted<ListWalk, 100>>>(c, seed++)).worst, limit())
        << c.name;
  }
}

/// Every transition of kernels/transitions.list on every model, and its twin, which must be found on each kind of them; but
/// for one that keeps a history, for which so many chains have no memory (statistical_tempered_levels.cpp).
TEST(Invariance, EveryTransitionOnEveryModel) {
  std::uint64_t seed = 101;
  std::optional<ModelKind> last;
  for (const InvarianceCase& of : cases()) {
    const Starts starts(of, seed++);
    const bool breaks = last != of.model.kind;
    last = of.model.kind;
    for_each_transition([&]<class Transition>() {
      const TransitionInfo info = Transition::info();
      int rows = 0;
      for (const TransitionField& field : info.fields) rows += field.rows(1);
      if (rows > 500) return;
      InvarianceCase c = of;
      c.name += ", " + info.name;
      if (!info.trajectory && info.gradients) c.step_size *= 1.5;  // one step has to go as far as several
      if (info.target_acceptance < 0.2) c.step_size *= 0.5;        // far jumps are mostly rejected
      expect_invariant(c, moved<Library<Transition>>(c, starts, seed++));
      if (!breaks) return;
      EXPECT_GT(judge(moved<Tilted<Library<Transition>>>(c, starts, seed++)).worst, limit())
          << c.name << ": broken, not found";
    });
  }
  EXPECT_LE(tests_made, kTests) << "the stated rate of false alarms counts fewer tests than were made";
}

}  // namespace
