// SPDX-License-Identifier: Apache-2.0
// Jumps between modes and draws of the base (kernels/mode_jump.hpp) leave invariant what chains are in: the target, its
// path, the joint density of a path and its control variable, the extended target. Components are those of the base
// that the chains' model has. Broken twins, each run on a case that the real one passes, must be found. At most 40
// statistics of each of at most 25 real ones (limit() is that of 1000).
#include <gtest/gtest.h>

#include "tests/support/comparators.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

/// What the chains' list holds: so many of the known modes, and the components of the base.
struct JumpCase : InvarianceCase {
  int modes = 3;
  bool redraws = false;
  bool elsewhere = false;  // where the base is not
};
JumpCase make_case(const std::string& name, ModelKind kind) {
  JumpCase c;
  c.name = name;
  c.model.kind = kind;
  return c;
}
JumpCase extended(const std::string& name, int samples) {
  JumpCase c = make_case(name, ModelKind::pseudo_extended);
  c.model.pseudo_samples = samples;
  return c;
}
JumpCase joint(const std::string& name, Control control) {
  JumpCase c = make_case(name, ModelKind::path);
  c.model.control = control;
  return c;
}
/// The same with draws of its base, a mixture of so many components.
JumpCase redrawn(JumpCase c, int modes, int components) {
  c.name += ", " + std::to_string(modes) + " modes, " + std::to_string(components) + " components";
  c.modes = modes;
  c.redraws = true;
  c.dense = components == 1;
  c.mixture = components == 2;
  return c;
}

/// As kernels/mode_jump.hpp reads it. What is drawn from is the path at beta = 0, which holds each component by the
/// share of its integral.
std::vector<double> list_of(const JumpCase& c, const GaussianPair& pair) {
  const int components = c.redraws ? pair.components() : 0;
  std::vector<double> list = {double(c.modes), double(components)};
  KnownModes::put_modes(list, 2, 0, c.modes);
  double total = 0, before = 0;
  for (int b = 0; b < components; ++b) total += std::exp(pair.tempered(0, b).log_z);
  for (int b = 0; b < components; ++b) {
    const auto t = pair.tempered(0, b);
    list.insert(list.end(), {t.mean[0] + (c.elsewhere ? 0.3 : 0), t.mean[1]});
    list.insert(list.end(), 3, 0.0);  // nobody comes back from there
    list.insert(list.end(), t.factor.begin(), t.factor.end());
    list.push_back(before);
    before += std::exp(t.log_z) / total;
  }
  return list;
}
template <class Transition>
Moved jumped(const JumpCase& c, const Starts& starts, std::uint64_t seed) {
  const EngineMaker make = ByBlocks<Transition>::on(c.model.kind);
  return run_invariance(c, starts, seed, [&](const Gaussian& density, EngineSpec spec) {
    auto engine = make(density, std::move(spec));
    engine->set_shared(0, {{0, list_of(c, starts.pair)}});
    return engine;
  });
}

/// The library's own, compiled here as its twins are.
struct Jumps : ModeJump {};
using AfterHmc = Sequence<Library<Hmc>, Jumps>;

/// By the ratio of densities alone: a jump without its determinant, a draw of the base without the base's own.
struct WithoutFactor : ModeJump {
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    auto r = ModeJump::begin<L, E>(model, spec, draw, w);
    r.log_ratio = select(is_finite(r.log_ratio), E(0), r.log_ratio);
    return r;
  }
};
struct WithoutReverseCheck : ModeJump {
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    return jump<L, E, false>(model, draw, w);
  }
};
/// By the log density of the target, in place of that of the path at the chain's own beta, or of the extended one.
struct ByTheTargetsDensity : ModeJump {
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    const int n = model.samples(), d = model.dim();
    if constexpr (Model::kTempered) {
      const E cold = E(1) - model.template beta<E>(w.xe, w.energy_parameters, 0);
      r.log_ratio = r.log_ratio - cold * (w.ce[1] - w.cache[1]);
    } else if constexpr (Model::kExtended) {
      E change = w.cache[0] - w.ce[0];
      for (int i = 0; i < n; ++i) {
        // Of each sample the target's log density is the base's less Delta.
        const auto base = [&](auto x) {
          return base_log_density<0, E>(model.layout, x, w.energy_parameters, NoBaseGradient{});
        };
        change = change + ((base(w.xe.from(i * d)) - w.ce[1 + n + i]) -
                           (base(before<L, E>(w, i * d)) - w.cache[1 + n + i]));
      }
      r.log_ratio = r.log_ratio + change;
    }
  }
  template <class L, class E, class W>
  struct Before {
    const W& w;
    int first;
    LOCKSTEP_FN E operator[](int i) const { return cast<E>(w.position[first + i]); }
  };
  template <class L, class E, class W>
  LOCKSTEP_FN static Before<L, E, W> before(const W& w, int first) {
    return {w, first};
  }
};

TEST(ModeJumps, LeaveEachModelInvariant) {
  std::uint64_t seed = 701;
  for (JumpCase c :
       {make_case("target", ModelKind::plain), make_case("path", ModelKind::path), extended("two", 2)}) {
    const Starts starts(c, seed++);
    c.iterations = 3;
    expect_invariant(c, jumped<Jumps>(c, starts, seed++));
    expect_found(c, jumped<WithoutFactor>(c, starts, seed++));
    expect_found(c, jumped<WithoutReverseCheck>(c, starts, seed++));
    if (c.model.kind != ModelKind::plain) expect_found(c, jumped<ByTheTargetsDensity>(c, starts, seed++));
  }
}

/// The real one alone and after a trajectory; and its twins.
void check(JumpCase c, std::uint64_t seed) {
  const Starts starts(c, seed);
  expect_invariant(c, jumped<Jumps>(c, starts, seed + 1));
  c.iterations = 3;
  expect_invariant(c, jumped<AfterHmc>(c, starts, seed + 2));
  expect_found(c, jumped<WithoutFactor>(c, starts, seed + 3));
  expect_found(c, jumped<ByTheTargetsDensity>(c, starts, seed + 4));
  if (!c.redraws) return;
  c.elsewhere = true;
  expect_found(c, jumped<Jumps>(c, starts, seed + 5));
}

/// Jumps keep u, and trajectories move it.
TEST(ModeJumps, LeaveTheJointDensityInvariant) {
  const JumpCase c = joint("joint", Control::logistic);
  check(c, 801);
  check(redrawn(c, 3, 2), 811);
  check(redrawn(c, 1, 2), 821);
}
TEST(ModeJumps, LeaveTheJointDensityOnPlateausInvariant) {
  const JumpCase c = joint("joint, plateaus", Control::plateaus);
  check(c, 831);
  check(redrawn(c, 1, 1), 841);
}

TEST(BaseRedraws, LeaveTheExtendedTargetOfTwoInvariant) { check(redrawn(extended("two", 2), 3, 2), 901); }
TEST(BaseRedraws, LeaveTheExtendedTargetOfThreeInvariant) { check(redrawn(extended("three", 3), 3, 2), 911); }
// Beside one mode there are no jumps, as where a base is made of one.
TEST(BaseRedraws, BesideOneModeLeaveTheExtendedTargetInvariant) {
  check(redrawn(extended("two", 2), 1, 2), 921);
  check(redrawn(extended("three", 3), 1, 1), 931);
}
TEST(BaseRedraws, BesideOneModeLeaveABoxInvariant) {
  JumpCase c = extended("three on an interval, in a box, g = beta^-1/2, bent", 3);
  c.model.low = 0.1, c.model.high = 0.9, c.model.g_exponent = -0.5, c.model.box = 2;
  c.bend = {1, -3, 4, -1};
  check(redrawn(c, 1, 2), 941);
}

}  // namespace
