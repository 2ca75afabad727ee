// SPDX-License-Identifier: Apache-2.0
#include "host/runs/path_profile.hpp"

#include <Eigen/Dense>
#include <algorithm>

#include "host/runs/sharded_engine.hpp"
#include "kernels/iterations.hpp"

namespace lockstep {
namespace {

BaseDensity base_of(const Frozen& f, std::size_t unit) {
  if (!f.full_base.empty()) return f.full_base[unit];
  const auto d = std::ptrdiff_t(f.scale.size() / f.step_size.size());
  using Axes = Eigen::Map<const Eigen::VectorXd>;
  const Axes mean(f.base_mean.data() + std::ptrdiff_t(unit) * d, d),
      sd(f.base_sd.data() + std::ptrdiff_t(unit) * d, d);
  return BaseDensity::normal(mean, sd.asDiagonal(), true);
}

SmcSampler population(const RunContext& context, const SamplerConfig& config,
                      const std::vector<std::uint32_t>& units, const Frozen& f) {
  constexpr int kParticles = 512;
  ModelSpec path;
  path.kind = ModelKind::path;
  path.base = f.model.base;
  auto engine = make_engine(context, engine_spec(context, path, units, kParticles));
  set_frozen(*engine, config, units, f);
  set_per_unit(*engine, ParameterLayout::beta, {0});
  SmcOptions o;
  o.moves = 2;
  o.launch.begin = kProfileIterations;
  o.launch.num_leapfrog = 4;
  o.controller = {1, 0.75};
  o.metric = f.scale;
  o.least_scale = 1e-6 * *std::min_element(f.scale.begin(), f.scale.end());
  o.step_size = 0.7 / std::pow(double(engine->dim()), 0.25);
  const std::size_t d = std::size_t(engine->dim()), n = std::size_t(engine->chains());
  std::vector<double> x(d * n);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const BaseDensity base = base_of(f, u);
    for (std::size_t p = 0; p < kParticles; ++p) {
      const Eigen::VectorXd draw = base.draw({context.key, kProfileIterations, std::uint32_t(p), units[u]});
      for (std::size_t i = 0; i < d; ++i) x[i * n + u * kParticles + p] = draw[Eigen::Index(i)];
    }
  }
  return {context, std::move(engine), units, x, std::move(o)};
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
  constexpr int n = ParameterLayout::kBend;
  std::array<double, n> out{};
  const auto &b = beta[unit], &z = log_z[unit];
  const auto levels = Eigen::Index(b.size());
  if (b.back() < 1) return out;
  // A little of the coefficients' squares settles what few levels leave open.
  constexpr double kRidge = 1e-4;
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(levels + n, n);
  Eigen::VectorXd y = Eigen::VectorXd::Zero(levels + n);
  for (Eigen::Index l = 0; l < levels; ++l) {
    y[l] = z[std::size_t(l)] - (l > 0 ? (to - from) * std::log(b[std::size_t(l)] / b[1]) : 0);
    for (int k = 0; k < n; ++k) a(l, k) = std::pow(b[std::size_t(l)], 0.25 * (k + 1));
  }
  for (int k = 0; k < n; ++k) a(levels + k, k) = kRidge;
  const Eigen::VectorXd c = a.householderQr().solve(y);
  for (int k = 0; k < n; ++k) out[std::size_t(k)] = -c[k];
  out.back() += std::min(z.back(), -tilt);
  return out;
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
  context_.tell("flattening", *std::min_element(beta.begin(), beta.end()), {particles_.total_gradients(), NAN});
}

PathProfile ProfileRun::finish() {
  found_.gradients = particles_.state().gradients;
  return std::move(found_);
}

PathProfile path_profile(const RunContext& context, const SamplerConfig& config,
                         const std::vector<std::uint32_t>& units, const Frozen& frozen) {
  Stage<PathProfile> stage(*context.stages, "path");
  if (stage.done()) return stage.result();
  ProfileRun run(context, config, units, frozen);
  context.stages->take_up("levels", run);
  while (run.step()) {
    context.stages->save("levels", run);
    run.tell();
  }
  return stage.keep(run.finish());
}

}  // namespace lockstep
