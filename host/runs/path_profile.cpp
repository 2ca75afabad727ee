// SPDX-License-Identifier: Apache-2.0
#include "host/runs/path_profile.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <span>

#include "host/engines/sharded_engine.hpp"
#include "host/runs/run.hpp"
#include "kernels/iterations.hpp"

namespace lockstep {
namespace {

/// Draws of each unit's base from one of its chain on, [axis][particle].
std::vector<double> base_draws(const Draw<double>& from, const std::vector<std::uint32_t>& units, int per,
                               std::size_t d, const Frozen& f) {
  const std::size_t n = units.size() * std::size_t(per);
  std::vector<double> x(d * n);
  for (std::size_t c = 0; c < n; ++c) {
    const std::size_t u = c / std::size_t(per);
    const Draw<double> draw{from.key, from.iteration, from.chain + std::uint32_t(c % std::size_t(per)),
                            units[u]};
    if (!f.full_base.empty()) {
      const Eigen::VectorXd of = f.full_base[u].draw(draw);
      for (std::size_t i = 0; i < d; ++i) x[i * n + c] = of[Eigen::Index(i)];
    } else {
      const auto z = normals(draw, Purpose::base, int(d));
      for (std::size_t i = 0; i < d; ++i) x[i * n + c] = f.base_mean[u * d + i] + f.base_sd[u * d + i] * z[i];
    }
  }
  return x;
}

/// So many chains of each unit on the path from its base.
std::unique_ptr<Engine> path_engine(const RunContext& context, const SamplerConfig& config,
                                    const std::vector<std::uint32_t>& units, int per, const Frozen& f) {
  ModelSpec path;
  path.kind = ModelKind::path;
  path.base = f.model.base;
  auto engine = make_engine(context, engine_spec(context, path, units, per));
  set_frozen(*engine, config, units, f);
  return engine;
}

SmcSampler population(const RunContext& context, const SamplerConfig& config,
                      const std::vector<std::uint32_t>& units, const Frozen& f) {
  const int particles = std::min(512, config.scout_particles);
  auto engine = path_engine(context, config, units, particles, f);
  SmcOptions o;
  o.moves = 2;
  o.launch.begin = kProfileIterations;
  o.launch.momentum = Purpose::scout_momentum;
  o.launch.accept = Purpose::scout_accept;
  o.launch.num_leapfrog = 4;
  o.controller = {1, 0.75};
  o.metric = f.scale;
  o.least_scale = 1e-6 * *std::min_element(f.scale.begin(), f.scale.end());
  o.step_size = 0.7 / std::pow(double(engine->dim()), 0.25);
  const auto x =
      base_draws({context.key, kProfileIterations, 0, 0}, units, particles, std::size_t(engine->dim()), f);
  return {context, std::move(engine), units, x, std::move(o)};
}

/// Linear between the levels, as log z nearly is.
double between(const std::vector<double>& beta, const std::vector<double>& value, double at) {
  const auto above = std::size_t(std::lower_bound(beta.begin() + 1, beta.end() - 1, at) - beta.begin());
  const double part = (at - beta[above - 1]) / (beta[above] - beta[above - 1]);
  return value[above - 1] + part * (value[above] - value[above - 1]);
}

}  // namespace

double PathProfile::exponent(std::size_t unit) const {
  double count = 2, sum = 2 / (1 - 0.5);
  for (double b : beta[unit])
    if (b > 0 && b < 1) {
      ++count;
      sum -= std::log(b);
    }
  return count / sum - 1;
}

std::array<double, ParameterLayout::kBend> PathProfile::bend(std::size_t unit, double tilt, double from,
                                                             double to) const {
  constexpr int n = ParameterLayout::kBend, kPoints = 64;
  constexpr double kTilt = 1;
  std::array<double, n> out{};
  const auto &b = beta[unit], &z = log_z[unit];
  if (b.back() < 1 || !std::isfinite(z.back())) return out;
  // Points as close in beta^(1/4) as beyond the first level: else the polynomial goes where it likes before that. The end
  // counts ten times.
  Eigen::MatrixXd a(kPoints, n);
  Eigen::VectorXd y(kPoints);
  for (int p = 1; p <= kPoints; ++p) {
    const double r = double(p) / kPoints, at = std::pow(r, 4), weight = p < kPoints ? 1 : 10;
    for (int k = 0; k < n; ++k) a(p - 1, k) = weight * std::pow(r, k + 1);
    y[p - 1] = weight * (between(b, z, at) - (to - from) * std::log(std::max(at, b[1]) / b[1]));
  }
  const Eigen::VectorXd c = a.householderQr().solve(y);
  for (int k = 0; k < n; ++k) out[std::size_t(k)] = -c[k];
  out.back() += std::min(z.back(), -tilt) + std::max(0.0, tilt - kTilt);
  return out;
}

double PathProfile::share(std::size_t unit) const {
  constexpr double kShallow = 2.2, kDeep = 3.2;
  const auto &b = beta[unit], &z = log_z[unit];
  double dip = 0;
  for (std::size_t l = 0; l < b.size(); ++l) dip = std::max(dip, b[l] * z.back() - z[l]);
  return std::clamp((dip - kShallow) / (kDeep - kShallow), 0.0, 1.0);
}

ProfileRun::ProfileRun(const RunContext& context, const SamplerConfig& config,
                       const std::vector<std::uint32_t>& units, const Frozen& frozen)
    : context_(context), particles_(population(context, config, units, frozen)) {
  found_.beta.resize(units.size());
  found_.log_z.resize(units.size());
}

bool ProfileRun::step() {
  if (!particles_.step()) return false;
  const SmcState& now = particles_.state();
  for (std::size_t u = 0; u < found_.beta.size(); ++u) {
    auto& beta = found_.beta[u];
    if (!beta.empty() && beta.back() == now.beta[u]) continue;  // it waits for others
    beta.push_back(now.beta[u]);
    found_.log_z[u].push_back(now.log_z[u]);
  }
  return true;
}

void ProfileRun::tell() const {
  const auto& beta = particles_.state().beta;
  context_.tell("flattening", *std::min_element(beta.begin(), beta.end()),
                {particles_.total_gradients(), NAN});
}

PathProfile ProfileRun::finish() {
  found_.gradients = particles_.state().gradients;
  return std::move(found_);
}

void bridge_to_bases(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
                     Frozen& frozen) {
  constexpr double kShare = 0.01, kLeast = 256, kFirst = 4096, kMost = 1 << 16, kEnough = 0.005,
                   kNumbers = 1 << 18;
  const std::size_t units = options.units.size(), d = std::size_t(context.target->dim());
  const double paid = options.gradients > 0 ? std::max(kShare * options.gradients, kLeast) : kMost;
  // In portions for the sake of memory. What a unit draws depends on no other.
  const int per = int(std::clamp(kNumbers / double(units * d), 1.0, kFirst));
  const auto engine = path_engine(context, config, options.units, per, frozen);
  std::vector<std::vector<double>> deltas(units);
  frozen.bridge.resize(units);
  std::size_t made = 0;
  for (double wanted = std::min(paid, kFirst);; wanted = std::min({4 * wanted, paid, kMost})) {
    for (; double(made) < wanted; made += std::size_t(per)) {
      const auto x = base_draws({context.key, kProfileIterations + 1, std::uint32_t(made), 0}, options.units,
                                per, d, frozen);
      engine->set_position(x);
      engine->initialize();
      const auto cache = engine->cache();
      const std::size_t n = units * std::size_t(per);
      for (std::size_t c = 0; c < n; ++c) {
        bool inside = true;
        for (std::size_t i = 0; i < d; ++i) inside = inside && std::abs(x[i * n + c]) <= config.model.box;
        deltas[c / std::size_t(per)].push_back(inside ? cache[n + c] : INFINITY);
      }
    }
    bool enough = true;
    for (std::size_t u = 0; u < units; ++u) {
      if (wanted > kFirst && frozen.bridge[u].se <= kEnough) continue;
      frozen.bridge[u] = {integral_of(config, frozen, u), std::span(deltas[u]).first(std::size_t(wanted))};
      enough = enough && frozen.bridge[u].se <= kEnough;
    }
    if (!enough && wanted < std::min(paid, kMost)) continue;
    for (double& g : frozen.warmup_gradients) g += double(made);
    return;
  }
}

void flatten(const RunContext& context, const SamplerConfig& config, const std::vector<std::uint32_t>& units,
             Frozen& frozen) {
  Stage<PathProfile> stage(*context.stages, "path");
  if (!stage.done()) {
    ProfileRun run(context, config, units, frozen);
    stage.keep(run_levels(*context.stages, run));
  }
  const PathProfile& profile = stage.result();
  const double a = config.model.g_exponent;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const double share = profile.share(u);
    for (double v : profile.bend(u, config.tilt, a, config.spreads ? profile.exponent(u) : a))
      frozen.bend.push_back(double(float(share * v)));  // as the engine holds it
    frozen.scout_gradients[u] += profile.gradients[u];
  }
}

}  // namespace lockstep
