// SPDX-License-Identifier: Apache-2.0
// The invariance suite must find what is broken: twins of transitions and models that differ from the real
// ones in one line, each run on a case that the real one passes (tests/kernels/statistical_invariance.cpp).
#include <gtest/gtest.h>

#include "kernels/random_walk.hpp"
#include "tests/support/invariance.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;
using Extended = PseudoExtended<Gaussian, 0, 0>;

double twin_limit() { return family_quantile(1e-4, 1000); }

InvarianceCase twin_case(const std::string& name, ModelKind kind = ModelKind::pseudo_extended) {
  InvarianceCase c;
  c.name = name;
  c.model.kind = kind;
  c.model.pseudo_samples = kind == ModelKind::pseudo_extended ? 2 : 1;
  return c;
}
Extended make_extended(const InvarianceCase& c, const Gaussian& g, const ParameterLayout& l) {
  const ModelSpec& s = c.model;
  return {g, l, s.pseudo_samples, s.learned, s.fixed_beta, s.low, s.high, s.g_exponent, s.box};
}

template <class Transition, class Build>
double worst_of(const InvarianceCase& c, Build&& build) {
  const Starts starts(c, 7);
  const Moved m = run_invariance(c, starts, 7, fused<Transition>(build));
  EXPECT_GT(m.jump, 0.005) << c.name << ": a twin that does not move proves nothing";
  return judge(m).worst;
}

// --- twins of the transition ------------------------------------------------------------------------
enum class Fault { none, whole_last_kick, wrong_sign, accept_always, no_turn, left_outside, wide_momentum };

/// All of Hmc at its begin, with a fixed number of steps and one fault.
template <Fault fault>
struct HmcTwin : WithoutGradients {
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    using R = scalar_t<L>;
    const auto par = w.parameters;
    const auto x = w.x, p = w.p, g = w.g;
    draw.normals(spec.momentum, model.rows(), [&](int j, L z) { p.set(j, z); });
    // wide_momentum: drawn with a variance of 1.1
    if (fault == Fault::wide_momentum)
      for (int j = 0; j < model.rows(); ++j) p.set(j, p[j] * L(R(1.05)));
    const E before = kinetic_energy<E, L>(model, p);
    const L step = par[ParameterLayout::step_size];
    kick(model, par, step * L(R(0.5)), x, g, p);
    for (int s = 1; s <= spec.num_leapfrog; ++s) {
      drift(model, par, step, x, p);
      const L first_momentum = p[0], h = L(R(model.box()));
      if (fault == Fault::left_outside) {  // reflected once, wherever that leads, and on from there
        for (int j = 0; j < model.samples() * model.dim(); ++j) {
          const L a = x[j];
          x.set(j, select(a > h, h + (h - a), select(a < -h, -h - (h + a), a)));
          p.set(j, select(abs(a) > h, -p[j], p[j]));
        }
      } else {
        reflect<L>(model, x, p);
      }
      if (fault == Fault::no_turn) p.set(0, first_momentum);
      model.template gradient<L>(x, par, g);
      const bool half = s == spec.num_leapfrog && fault != Fault::whole_last_kick;
      kick(model, par, step * L(R(half ? 0.5 : 1)), x, g, p);
    }
    E change = before - kinetic_energy<E, L>(model, p);
    if (fault == Fault::wrong_sign) change = -change;
    if (fault == Fault::accept_always) change = E(scalar_t<E>(1e30));
    return {change};
  }
};

template <Fault fault>
double hmc_twin(const InvarianceCase& c) {
  return worst_of<HmcTwin<fault>>(
      c, [&](const Gaussian& g, const ParameterLayout& l) { return make_extended(c, g, l); });
}

TEST(Twins, TheCopyWithoutAFaultPasses) {
  InvarianceCase c = twin_case("copy of HMC");
  EXPECT_LT(hmc_twin<Fault::none>(c), twin_limit());
  c.model.box = 1.5;
  EXPECT_LT(hmc_twin<Fault::none>(c), twin_limit());
}
TEST(Twins, WholeLastKickIsFound) {
  EXPECT_GT(hmc_twin<Fault::whole_last_kick>(twin_case("whole last kick")), twin_limit());
}
TEST(Twins, WrongSignOfTheKineticEnergyIsFound) {
  EXPECT_GT(hmc_twin<Fault::wrong_sign>(twin_case("wrong sign")), twin_limit());
}
TEST(Twins, AcceptingAlwaysIsFound) {
  EXPECT_GT(hmc_twin<Fault::accept_always>(twin_case("accept always")), twin_limit());
}
TEST(Twins, WrongMomentumVarianceIsFound) {
  InvarianceCase c = twin_case("momentum of variance 1.1");
  c.step_size = 0.2;  // small, so that only the momentum is wrong
  EXPECT_GT(hmc_twin<Fault::wide_momentum>(c), twin_limit());
}
TEST(Twins, ReflectionWithoutTurningIsFound) {
  InvarianceCase c = twin_case("no turn");
  c.model.box = 1.5;
  EXPECT_GT(hmc_twin<Fault::no_turn>(c), twin_limit());
}

TEST(Twins, GoingOnOutsideTheBoxIsFound) {
  InvarianceCase c = twin_case("steps longer than the box");
  c.model.pseudo_samples = 1;
  c.model.box = 0.5;
  c.step_size = 0.9;
  c.num_leapfrog = 3;
  EXPECT_LT(hmc_twin<Fault::none>(c), twin_limit());
  EXPECT_GT(hmc_twin<Fault::left_outside>(c), twin_limit());
}

/// A random walk with a preferred direction.
struct LopsidedWalk : RandomWalk {
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    const auto r = RandomWalk::begin<L, E>(model, spec, draw, w);
    for (int j = 0; j < model.dim(); ++j) w.x.set(j, w.x[j] + L(scalar_t<L>(0.1)));
    return r;
  }
};
TEST(Twins, LopsidedWalkIsFound) {
  const InvarianceCase c = twin_case("lopsided walk", ModelKind::plain);
  auto build = [](const Gaussian& g, const ParameterLayout& l) { return Path<Gaussian, 0, false>{g, l}; };
  EXPECT_LT(worst_of<RandomWalk>(c, build), twin_limit());
  EXPECT_GT(worst_of<LopsidedWalk>(c, build), twin_limit());
}

// --- twins of the model -----------------------------------------------------------------------------
/// log density without the Jacobian of u.
struct NoJacobian : Extended {
  template <class L, class X, class P, class C>
  LOCKSTEP_FN void log_density(const X& x, const P& par, const C& cache) const {
    Extended::template log_density<L>(x, par, cache);
    for (int i = 0; i < samples(); ++i) {
      const L u = x[samples() * dim() + i];
      cache.set(0, cache[0] - (log_sigmoid(u) + log_sigmoid(-u)));
    }
  }
};
/// g forgotten in the joint density, kept in the weights.
struct ForgottenG : Extended {
  template <class L, class X, class P, class C>
  LOCKSTEP_FN void log_density(const X& x, const P& par, const C& cache) const {
    Extended::template log_density<L>(x, par, cache);
    for (int i = 0; i < samples(); ++i) cache.set(0, cache[0] - log_g(x, par, i, temperature<L>(x, i)));
  }
};
/// All weights 1 / N.
struct UniformWeights : Extended {
  template <class L, class C>
  LOCKSTEP_FN L weight(const C&, int) const {
    return L(scalar_t<L>(1.0 / samples()));
  }
};
/// The instrument alone: log of the sum of weights left out.
struct NoSumOfWeights : Extended {
  template <class L, class X, class P, class C>
  LOCKSTEP_FN void log_density(const X& x, const P& par, const C& cache) const {
    Extended::template log_density<L>(x, par, cache);
    L total = L(0);
    for (int i = 0; i < samples(); ++i) {
      const L b = base_log_density<0, L>(layout, x.from(i * dim()), par, NoBaseGradient{});
      const L l = b - cache[1 + samples() + i];
      const L beta = temperature<L>(x, i).beta, u = x[samples() * dim() + i];
      total = total + fma(beta, l - b, b) + log_sigmoid(u) + log_sigmoid(-u);
    }
    cache.set(0, total);
  }
};
/// The path at an inverse temperature 0.05 too low.
struct OtherBeta : Path<Gaussian, 0, true> {
  template <class L, class X, class P, class C>
  LOCKSTEP_FN void log_density(const X& x, const P& par, const C& cache) const {
    Path<Gaussian, 0, true>::log_density<L>(x, par, cache);
    cache.set(0, cache[0] + L(scalar_t<L>(0.05)) * cache[1]);
  }
};

template <class Twin>
double model_twin(const InvarianceCase& c) {
  return worst_of<Hmc>(
      c, [&](const Gaussian& g, const ParameterLayout& l) { return Twin{make_extended(c, g, l)}; });
}
TEST(Twins, MissingJacobianIsFound) {
  EXPECT_GT(model_twin<NoJacobian>(twin_case("no Jacobian")), twin_limit());
}
TEST(Twins, ForgottenGIsFound) {
  InvarianceCase c = twin_case("no g");
  c.model.g_exponent = 0.5;
  EXPECT_GT(model_twin<ForgottenG>(c), twin_limit());
}
TEST(Twins, UniformWeightsAreFound) {
  EXPECT_GT(model_twin<UniformWeights>(twin_case("uniform weights")), twin_limit());
}
TEST(Twins, MissingSumOfWeightsIsFound) {
  EXPECT_GT(model_twin<NoSumOfWeights>(twin_case("no sum of weights")), twin_limit());
}
TEST(Twins, OtherBetaIsFound) {
  const InvarianceCase c = twin_case("other beta", ModelKind::path);
  EXPECT_GT(worst_of<Hmc>(c,
                          [](const Gaussian& g, const ParameterLayout& l) {
                            return OtherBeta{Path<Gaussian, 0, true>{g, l}};
                          }),
            twin_limit());
}

}  // namespace
