// SPDX-License-Identifier: Apache-2.0
#include "host/options/samplers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "host/util/suggest.hpp"

namespace lockstep {

using Keys = std::vector<std::pair<std::string, std::string>>;

Keys own_settings(const TransitionInfo& transition) {
  Keys keys;
  for (const TransitionSetting& s : transition.settings) {
    std::string range;
    if (std::isfinite(s.least) && std::isfinite(s.most))
      range = fmt::format(", {} to {}", s.least, s.most);
    else if (std::isfinite(s.least))
      range = fmt::format(", at least {}", s.least);
    else if (std::isfinite(s.most))
      range = fmt::format(", at most {}", s.most);
    keys.emplace_back(s.name, fmt::format("{}{} (default {})", s.help, range, s.standard));
  }
  return keys;
}

namespace {

std::vector<std::string> own_gates(const TransitionInfo& transition) {
  std::vector<std::string> gates;
  for (const TransitionGate& g : transition.gates)
    if (g.fails)
      gates.push_back(fmt::format("{}: at most {} of a transition (else {})", transition.counters[g.counter],
                                  g.most, g.advice));
  return gates;
}

}  // namespace

bool has_own_metric(const TransitionInfo& transition) {
  return std::any_of(transition.settings.begin(), transition.settings.end(),
                     [](const TransitionSetting& own) { return own.name == "epsilon"; });
}

namespace {

/// What every sampler with this transition takes.
Keys transition_keys(const TransitionInfo& transition, const std::string& target_acceptance) {
  Keys keys = {
      {"step_size", "step in units of the metric (default: dual averaging)"},
      {"num_leapfrog", "mean number of leapfrog steps (default: trajectory_time / step_size)"},
      {"trajectory_time",
       "mean trajectory time in units of the metric (default: ChEES in warm-up; 0.8 for the bridge); "
       "in evidence less where --gradients pay for no more"},
      {"jitter", "randomise the trajectory length (default true)"},
      {"target_acceptance",
       "acceptance_mean that dual averaging aims at (default " + target_acceptance + ")"},
      {"acceptance_mean",
       transition.harmonic_mean
           ? "over chains: harmonic (default; careful) or arithmetic (of --paper-settings and rwm)"
           : "over chains: harmonic or arithmetic (default)"},
      {"metric", has_own_metric(transition) ? "none to be given: it has its own"
                                            : "unit, diagonal or dense (default diagonal)"},
      {"adapt", fmt::format("auto (many chains, the scout's metric), windows (Stan's: the replicate's own "
                            "chains learn step and "
                            "metric) or none (needs step_size) (default {})",
                            transition.windows ? "windows" : "auto")},
      {"scout_particles",
       "particles of the sequential Monte Carlo scout (default 4096, of fewer than 64 chains 2048)"},
      {"warmup_chains", "least number of chains that adapt one replicate (default 32)"},
      {"mode_jumps",
       "whether chains also jump between the modes that are found (default true; in a study false)"},
      {"exact_draws", "auto or none, for what evidence takes too: no sampler draws exactly (default auto)"}};
  if (transition.alone) std::erase_if(keys, [](const auto& key) { return key.first == "mode_jumps"; });
  if (!transition.trajectory)
    std::erase_if(keys, [](const auto& setting) {
      return std::find(kTrajectoryKeys.begin(), kTrajectoryKeys.end(), setting.first) !=
             kTrajectoryKeys.end();
    });
  return keys;
}

/// What those with one state take beside.
void add_keys_of_one_state(Keys& keys, const TransitionInfo& transition) {
  keys.emplace_back("recycle",
                    "sample: means over all modes where a draw might as well be, and their mirror images: a "
                    "quarter of the gradients (default false)");
  if (transition.alone) return;
  for (const auto& [name, help] :
       Keys{{"darting", "sample: darts between ellipsoids in place of jumps between modes (default false)"},
            {"regeneration",
             "sample: an independence sampler follows, and chains are taken apart into tours where it says "
             "that they begin anew (default false)"}}) {
    keys.emplace_back(name, help);
    for (const auto& [own, of_own] : own_settings(*find_transition(name)))
      keys.emplace_back(own, fmt::format("of {}: {}", name, of_own));
  }
}

Keys pe_keys(const Transitions& transitions) {
  const TransitionInfo& hmc = *transitions.front();
  Keys keys = transition_keys(
      hmc, fmt::format("{} with {}; else the transition's own", kExtendedAcceptance, hmc.name));
  const Keys more = {
      {"transition", "that moves the extended state: " +
                         fmt::format("{} (default {})", fmt::join(names_of(transitions), ", "), hmc.name)},
      {"pseudo_samples", "N, 1 to 64 (default 5)"},
      {"instrument", "bridge (path to a learned Gaussian), tempered (the paper's) or fixed (default bridge)"},
      {"beta", "one fixed inverse temperature (default: learned)"},
      {"beta_min", "lower end of beta (default 0; tempered 0.001)"},
      {"beta_max", "upper end of beta (default 1)"},
      {"g_exponent",
       "a in g(beta) = beta^a (default -0.5, and where the path is flattened bent to where it is long; "
       "tempered 0)"},
      {"flatten",
       "whether particles look how deep the path's normalising constants dip between base and target, and g "
       "takes a deep dip "
       "out, which beta would seldom cross (default true for the bridge without a box)"},
      {"tilt", "log zeta = log Z-hat + tilt + 2 se (default 3): above zero is the safe side"},
      {"scale_u",
       "scale of the logits of beta in the metric (default 7 for the bridge, at least "
       "0.01 over the step size; else 1)"},
      {"base_covariance",
       "diagonal, full, or auto: full where the scout sees correlations above 0.6 (default auto)"},
      {"base",
       "where the bridge's path begins: gaussian (base_mean, base_sd), scout (its moments), modes (a mixture "
       "of those found), "
       "or "
       "auto: modes where they hold most of the target, or half and half where there is one, else scout "
       "(default auto)"},
      {"base_inflation", "factor on the standard deviations of a scouted base (default 1.2)"},
      {"base_mean", "mean of the fixed instrument or base, one number or one per axis (default: learned)"},
      {"base_sd", "its standard deviations"},
      {"box", "half width of a reflecting box about the origin (default none)"}};
  keys.insert(keys.end(), more.begin(), more.end());
  for (const TransitionInfo* t : transitions)
    for (const auto& [name, help] : own_settings(*t))
      keys.emplace_back(name, fmt::format("of transition {}: {}", t->name, help));
  return keys;
}

}  // namespace

std::vector<std::string> names_of(const Transitions& transitions) {
  std::vector<std::string> names;
  for (const TransitionInfo* t : transitions) names.push_back(t->name);
  return names;
}

std::vector<SamplerInfo> samplers_of(const Transitions& transitions) {
  std::vector<SamplerInfo> all;
  for (const TransitionInfo* t : transitions) {
    Keys keys = transition_keys(*t, fmt::format("{}", t->target_acceptance));
    add_keys_of_one_state(keys, *t);
    for (const auto& own : own_settings(*t)) keys.push_back(own);
    all.push_back({t->name, t->summary, t->formula, std::move(keys), t->source, own_gates(*t)});
  }
  all.insert(all.begin() + 1,
             {"pe", "pseudo-extended HMC: N pseudo-samples with their own inverse temperatures",
              "pi^N = (1/N) sum_i pi(x_i) pi(beta_i) prod_{j != i} q(x_j, beta_j); E f = E sum_i w_i f(x_i)",
              pe_keys(transitions), "Nemeth, Lindsten, Filippone & Hensman (2019)"});
  return all;
}

const std::vector<SamplerInfo>& sampler_registry() {
  static const std::vector<SamplerInfo> samplers = samplers_of(transition_registry());
  return samplers;
}

std::string instead_of_sampler(const std::string& name, const std::vector<std::string>& names) {
  for (const SamplerInfo& s : sampler_registry())
    for (const auto& [key, help] : s.settings)
      if (key == name)
        return fmt::format("It is a setting, --set sampler.{}=.., of {} and others.", name, s.name);
  return near_or_known(name, names, "samplers");
}

}  // namespace lockstep
