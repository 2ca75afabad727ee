// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model in the scalar reference (double), for tests that need its density, its gradient or one trajectory
// of one chain; and a density that is no Gaussian, with known gradient.
#include <cmath>
#include <vector>

#include "kernels/hmc.hpp"
#include "targets/path.hpp"
#include "targets/pseudo_extended.hpp"
#include "targets/target.hpp"

namespace lockstep::testing {

/// log density = -x0^2/2 - (x1 - x0^2/2)^2 - sum_{k>1} (x_k^2/2 + x_k^4/20) - x_0 x_{d-1} / 4: curved, light
/// tails.
struct CurvedDensity : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  int dim = 2;
  template <class F>
  void arrays(F&&) {}
  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const int d = dim;
    const L x0 = x[0], bend = x[1] - x0 * x0 * L(R(0.5)), last = x[d - 1];
    L l = -(x0 * x0 * L(R(0.5))) - bend * bend - x0 * last * L(R(0.25));
    for (int k = 2; k < d; ++k) {
      const L s = x[k] * x[k];
      l = l - s * L(R(0.5)) - s * s * L(R(0.05));
    }
    if constexpr (gradient_wanted<G>()) {
      for (int k = 2; k < d; ++k) g.set(k, -x[k] - x[k] * x[k] * x[k] * L(R(0.2)));
      g.set(1, bend * L(R(-2)));
      g.set(0, -x0 + bend * x0 * L(R(2)) - last * L(R(0.25)));
      // x_{d-1} has one more term; where d = 2 it is x_1.
      const L own = d == 2 ? bend * L(R(-2)) : -last - last * last * last * L(R(0.2));
      g.set(d - 1, own - x0 * L(R(0.25)));
    }
    return l;
  }
};

/// A model with its parameters, at one chain.
template <class Model>
class ScalarModel {
 public:
  explicit ScalarModel(Model m) : model(std::move(m)), parameters(model.layout.rows(), 0.0) {
    parameters[ParameterLayout::step_size] = 0.1;
    parameters[ParameterLayout::trajectory_time] = 1;
    parameters[ParameterLayout::beta] = 0.6;
    parameters[ParameterLayout::log_zeta] = 0.4;
    parameters[ParameterLayout::base_log_norm] = -1.2;
    parameters[ParameterLayout::scale_u] = 1.3;
    for (int k = 0; k < ParameterLayout::kBend; ++k) parameters[ParameterLayout::bend + k] = 0.9 - 0.7 * k;
    const int d = model.layout.dim;
    for (int k = 0; k < d; ++k) {
      parameters[model.layout.scale() + k] = 0.8 + 0.3 * k;
      parameters[model.layout.base_mean() + k] = 0.3 - 0.2 * k;
      parameters[model.layout.base_inv_sd() + k] = 0.7 + 0.1 * k;
    }
    for (int i = 0, t = 0; i < d; ++i)
      for (int j = 0; j <= i; ++j, ++t)
        if (model.layout.dense_metric)
          parameters[model.layout.metric_factor() + t] = i == j ? 0.8 + 0.3 * i : 0.2 - 0.1 * j;
    set_components(1);
  }

  /// Of a NormalMixture base: one of mean base_mean(), and others.
  void set_components(int count) {
    const int d = model.layout.dim;
    base = {double(count)};
    for (int c = 0; c < count; ++c) {
      base.push_back(-0.7 * c);
      for (int k = 0; k < d; ++k) base.push_back(parameters[model.layout.base_mean() + k] + 0.9 * c);
      for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j) base.push_back(i == j ? 0.9 + 0.2 * i : 0.25 - 0.1 * c);
    }
  }

  double log_density(std::vector<double> x) const { return cache(std::move(x))[0]; }
  std::vector<double> cache(std::vector<double> x) const {
    std::vector<double> c(model.cache_rows());
    model.template log_density<double>(rows(x), par(), rows(c));
    return c;
  }
  std::vector<double> gradient(std::vector<double> x) const {
    std::vector<double> g(model.rows());
    model.template gradient<double>(rows(x), par(), rows(g));
    return g;
  }
  /// The gradient of log_density: on a path, with the base's share.
  std::vector<double> force(std::vector<double> x) const {
    std::vector<double> g = gradient(x);
    if constexpr (Model::kTempered)
      model.template force<double>(rows(x), par(), rows(g), [&](int i, double v) { g[i] = v; });
    return g;
  }
  double hamiltonian(const std::vector<double>& x, std::vector<double> p) const {
    return kinetic_energy<double, double>(model, rows(p)) - log_density(x);
  }
  /// `steps` leapfrog steps of the given size, by the kernels' kick, drift and reflect.
  void leapfrog(std::vector<double>& x, std::vector<double>& p, double step, int steps) const {
    std::vector<double> g = gradient(x);
    kick(model, par(), 0.5 * step, rows(x), rows(g), rows(p));
    for (int s = 1; s <= steps; ++s) {
      drift(model, par(), step, rows(x), rows(p));
      reflect<double>(model, rows(x), rows(p));
      g = gradient(x);
      kick(model, par(), s < steps ? step : 0.5 * step, rows(x), rows(g), rows(p));
    }
  }
  static Rows<double> rows(std::vector<double>& v) { return {v.data(), 1}; }
  ParameterRows<double, double, Rows<double>> par() const {
    return {{const_cast<double*>(parameters.data()), 1}, base.data(), 1};
  }

  Model model;
  std::vector<double> parameters, base;
};

/// The pseudo-extended target with run-time sizes.
template <class Density>
PseudoExtended<Density, 0, 0> make_pseudo_extended(const Density& density, int samples, bool learned = true,
                                                   double fixed_beta = 0, double low = 0, double high = 1,
                                                   double g_exponent = 0, bool dense = false,
                                                   double box = std::numeric_limits<double>::infinity()) {
  return {density,    ParameterLayout{density.dim, dense && !std::isfinite(box), dense ? 1 : 0},
          samples,    learned,
          fixed_beta, low,
          high,       g_exponent,
          box};
}

}  // namespace lockstep::testing
