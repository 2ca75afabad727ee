// SPDX-License-Identifier: Apache-2.0
#include "host/runs/gates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/modes/mode_base.hpp"

namespace lockstep {
namespace {

/// The standard deviations of the particles that a unit's learned base is made of; empty: there is no such base.
std::vector<double> learned_base_sd(const ChainRunResult& run, std::size_t unit,
                                    const SamplerConfig& config) {
  if (config.instrument != SamplerConfig::Instrument::bridge || !config.base_sd.empty()) return {};
  const Frozen& f = run.frozen;
  if (run.of_modes()) return width_of(f.full_base[unit]);
  const std::size_t d = f.base_sd.size() / f.step_size.size();
  std::vector<double> sd(f.base_sd.begin() + unit * d, f.base_sd.begin() + (unit + 1) * d);
  for (double& v : sd) v /= config.base_inflation;
  return sd;
}

/// Whether the modes found hold that much, by importance sampling: then it is the particles that lost some of them.
bool held_by_modes(const ChainRunResult& run, std::size_t unit, double log_z) {
  if (run.modes.empty()) return false;
  const ModeCoverage c = coverage_of(run.modes[unit].library, log_z);
  return c.covered >= 0.5 && c.suffices();
}

/// The fewest degrees of freedom that the error of a mean has.
double least_freedom(const WeightedMoments& moments) {
  double least = INFINITY;
  for (const double df : moments.mean_df) least = std::fmin(least, df);
  return least;
}

/// Of the variance of x_i: of x_i^2 but for what it owes to the mean's, and no less than a normal's.
double variance_se(const WeightedMoments& m, std::size_t i) {
  const double of_mean = 2 * m.mean[i] * m.mean_se[i], second = m.second_se[i] * m.second_se[i];
  return std::sqrt(
      std::max(second - of_mean * of_mean, 2 * m.variance(int(i)) * m.mean_se[i] * m.mean_se[i]));
}

/// Of a transition of a chain on average.
double counted(const UnitMoments& unit, const TransitionGate& gate) {
  return unit.stats[kStatRows + gate.counter] / (double(unit.iterations) * unit.chains);
}

}  // namespace

std::string verdict_of(const std::vector<std::string>& failed) {
  if (failed.empty()) return "pass";
  const bool unknown = failed == std::vector<std::string>{"modes_mass"};
  const bool is_short = std::find(failed.begin(), failed.end(), "length") != failed.end();
  return is_short || unknown ? "not established" : "fail";
}

std::vector<std::string> failed_gates(const Estimates& e, const ChainRunResult& run, std::size_t unit,
                                      const SamplerConfig& config) {
  std::vector<std::string> failed;
  const auto gate = [&](const char* name, bool passes) {
    if (!passes) failed.push_back(name);
  };
  const auto& superchain = run.units[unit].superchain;
  gate("starts", superchain.empty() || run.units[unit].known_starts <= superchain.back() + 1);
  gate("length", run.units[unit].iterations >= kLeastIterations);
  gate(e.nested ? "nested_rhat" : "rhat", e.rhat_max <= 1.05);
  // A sampler whose jumps are meant to be rejected more often than that has a lower bound.
  const double aim = config.transition->target_acceptance;
  gate("acceptance", e.acceptance >= (aim < 0.2 ? aim / 2 : 0.2) && e.acceptance <= 0.99);
  gate("divergences", e.divergence_rate < 0.01);
  gate("weight_ess", e.weight_ess >= 10.0 * double(e.mean.size()));
  if (config.model.learned) gate("round_trips", !(e.beta_spread > kMostSpread));
  const auto base_sd = learned_base_sd(run, unit, config);
  if (!base_sd.empty()) gate("base", times_as_wide(e, base_sd) <= kNarrow);
  const Frozen& f = run.frozen;
  bool agrees = !wider_scout(e, run, unit, config);
  if (!run.log_z.empty()) {
    const LogZ& z = run.log_z[unit];
    gate("log_z", std::isfinite(z.estimate) && std::isfinite(z.se));
    if (!f.scout_log_z.empty()) {
      const LogZ scout{f.scout_log_z[unit], f.scout_log_z_se[unit]};
      // What lies above may be what the particles lost, where others have seen it.
      const LogZ seen{f.warmup_log_z[unit], 0};
      const bool lost =
          held_by_modes(run, unit, z.estimate) || (std::isfinite(seen.estimate) && !contradicts(z, seen));
      agrees = agrees && (!contradicts(z, scout) || (z.estimate > scout.estimate && lost));
    }
  }
  gate("scout", agrees);
  for (const TransitionGate& own : config.transition->gates)
    gate(config.transition->counters[own.counter].c_str(),
         !own.fails || counted(run.units[unit], own) <= own.most);
  return failed;
}

std::optional<WiderScout> wider_scout(const Estimates& e, const ChainRunResult& run, std::size_t unit,
                                      const SamplerConfig& config) {
  constexpr double kErrors = 4;
  const Frozen& f = run.frozen;
  if (f.scout_variance.empty() || std::isfinite(config.model.box) ||
      held_by_modes(run, unit, f.scout_log_z[unit]))
    return {};
  WiderScout widest{-1, kNarrow};
  const std::size_t d = e.mean.size();
  for (std::size_t i = 0; i < d; ++i) {
    const LogZ& scout = f.scout_variance[unit * d + i];
    const double variance = e.variance(int(i)), times = std::sqrt(scout.estimate / variance);
    if (times > widest.times && scout.estimate - variance > kErrors * std::hypot(scout.se, variance_se(e, i)))
      widest = {int(i), times};
  }
  return widest.axis < 0 ? std::nullopt : std::optional(widest);
}

std::string warning_of(const WiderScout& scout, const std::vector<std::string>& names) {
  return fmt::format(
      "the scout's particles are {:.2g} times as wide as the draws along {}: chains have not come into its "
      "tails; more "
      "--iterations, or raise sampler.target_acceptance",
      scout.times, names[scout.axis]);
}

std::string judge_short_chains(std::vector<std::string>& failed, const Estimates& e) {
  if (!failed.empty()) return "";
  const double r = e.rhat_of_chains, freedom = least_freedom(e);
  if (e.nested && r > kChainsApart) {
    failed.push_back("length");
    return fmt::format(
        "R-hat of single chains is {:.2g}: each is worth some {:.1g} independent draws, and groups agree "
        "because they began alike; more --iterations",
        r, 1 / (r * r - 1));
  }
  if (e.effective_draws < kLeastEffective) {
    failed.push_back("length");
    return fmt::format(
        "the draws of a coordinate, or its tails, are worth {:.0f} independent ones (ess_bulk, ess_tail), "
        "too few to go by; more "
        "--iterations",
        e.effective_draws);
  }
  if (freedom < kLeastFreedom) {
    failed.push_back("length");
    return fmt::format(
        "the standard error of a mean has {:.0f} degree{} of freedom, too few to go by; more --iterations, "
        "or --chains",
        freedom, freedom == 1 ? "" : "s");
  }
  return "";
}

NamedNumbers counters_of(const UnitMoments& unit, const TransitionInfo& transition) {
  NamedNumbers counters;
  for (const std::string& name : transition.counters)
    counters.emplace_back(name, unit.stats[kStatRows + counters.size()]);
  return counters;
}

std::vector<std::string> advice_of(const UnitMoments& unit, const TransitionInfo& transition) {
  std::vector<std::string> all;
  for (const TransitionGate& gate : transition.gates)
    if (const double n = counted(unit, gate); !(n <= gate.most))
      all.push_back(fmt::format("{} {:.3g} of a transition, over {}: {}", transition.counters[gate.counter],
                                n, gate.most, gate.advice));
  return all;
}

double times_as_wide(const WeightedMoments& moments, const std::vector<double>& base_sd) {
  double widest = 0;
  for (std::size_t i = 0; i < base_sd.size(); ++i)
    widest = std::max(widest, std::sqrt(moments.variance(int(i))) / base_sd[i]);
  return widest;
}

bool misses_what_others_see(const LogZ& recorded, const LogZ& others) {
  const double lower = others.estimate - recorded.estimate;
  return lower > 0.3 && lower > 4 * std::hypot(recorded.se, others.se);
}

bool contradicts(const LogZ& recorded, const LogZ& particles) {
  const double apart = std::abs(recorded.estimate - particles.estimate);
  return apart > 3 && apart > 5 * std::hypot(recorded.se, particles.se);
}

}  // namespace lockstep
