// SPDX-License-Identifier: Apache-2.0
#include "host/options/evidence_method.hpp"

#include <algorithm>
#include <cmath>

#include "host/options/samplers.hpp"
#include "host/util/errors.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

const Lines& base_settings() {
  static const Lines lines = {
      {"base",
       "the density at the path's beginning: auto, gaussian (given moments), mean-field (the target's own), "
       "scout, modes (a mixture of those "
       "found), "
       "warmup (HMC), advi or mixture (default auto: mean-field where the target has one, else modes where "
       "they "
       "hold most of it, or half modes and half scout where there is one, else scout)"},
      {"base_mean", "mean of base gaussian, one number or one per axis (default 0)"},
      {"base_sd", "its standard deviations (default 1)"},
      {"base_inflation",
       "factor on the standard deviations of a fitted base, all but gaussian and mean-field (default 1.2)"},
      {"base_starts",
       "starts of mean-field (default 2000), restarts of advi (64) and mixture (64 to 1024, by the budget), "
       "chains of warmup (128)"},
      {"bootstrap",
       "rounds in which a pilot's particles refit the base (default 0; from 5e6 gradients on a scouted one "
       "is, once, where its pilot's particles are 1.2 times as wide as what it was made of)"},
      {"scout_particles", "particles of the scout (default 2048, fewer on small budgets)"}};
  return lines;
}
Lines with(Lines lines, const std::string& but = "") {
  const Lines common = {
      {"groups",
       "independent groups of chains, by which errors are judged (default 8; of tempered "
       "chains one for every 32 where they are more than 256; of copies up to 16, by the budget)"},
      {"num_leapfrog", "mean leapfrog steps of a transition (default 5; ais and bdmc 1)"},
      {"target_acceptance", "acceptance that the pilot's steps aim at (default 0.9)"},
      {"mode_jumps", "whether chains also jump between the modes that are found (default true)"},
      {"exact_draws",
       "auto: where the target can be drawn from exactly, method auto checks itself by annealing back from "
       "such "
       "draws; none: as if it could not (default auto)"},
      {"rate", "spread of the weights from level to level of the pilot (default 0.25)"},
      {"pilot_share",
       "of the gradients that the base has left, what the pilot may spend; or all rounds of a bootstrap that "
       "is "
       "asked for (default 0.2)"}};
  lines.insert(lines.end(), common.begin(), common.end());
  lines.insert(lines.end(), base_settings().begin(), base_settings().end());
  std::erase_if(lines, [&](const auto& line) { return line.first == but; });
  return lines;
}

const std::string kSchedules =
    "barrier (equal communication barrier, from the pilot), linear, sigmoid, quadratic, or a list from 0 to "
    "1 "
    "(default barrier)";
const Lines kAnnealing = {{"temperatures", "inverse temperatures after the first (default 1000)"},
                          {"schedule", kSchedules}};
const Lines kChains = {{"discard",
                        "share of the iterations that is not recorded (default 0.2; of long runs less: no "
                        "more iterations than at 1e7 gradients)"},
                       {"seeds",
                        "where chains begin: pilot (its states at all levels) or base (a fresh draw of the "
                        "base at beta = 0; short chains are then biased) (default pilot)"}};
/// Of simulated tempering.
Lines with_base_draws(Lines lines) {
  lines.push_back({"base_draws",
                   "whether half of the gradients (beside --iterations: as many again) go into draws of the "
                   "base, weighed, where a trial finds them worth more than the chains' (default true)"});
  return lines;
}
const Lines kCopies = {{"copies", "independent copies of the ladder (default by the budget)"},
                       {"levels", "chains of a copy (default by the barrier)"},
                       {"schedule", kSchedules},
                       {"discard",
                        "share of the iterations in which the ladder adapts (default 0.33; of long runs "
                        "less, as for the others)"}};

Lines simulated_settings() {
  Lines lines = with_base_draws(kChains);
  lines.push_back({"schedule",
                   "pilot (the levels that it chose), barrier, linear, sigmoid, quadratic, or a list from 0 "
                   "to 1 (default pilot)"});
  lines.push_back({"levels", "of a named schedule (default by the barrier)"});
  lines.push_back({"weights",
                   "log weights v_k of a schedule that is a list, for densities without the base's guess of "
                   "log Z (default the pilot's, which make all levels but the ends equally likely)"});
  return lines;
}

Lines adiabatic_settings() {
  Lines lines = kChains;
  for (auto& line : own_settings(*find_transition("adiabatic"))) lines.push_back(std::move(line));
  return lines;
}

Lines extended_settings() {
  for (const auto& s : sampler_registry())
    if (s.name == "pe") return {s.settings.begin(), s.settings.end()};
  return {};
}

// Numbers of steps by the barrier. Of parallel tempering: twice the barrier is best for round trips (Syed et al.
// 2022); the trapezoid rule wants more, and simulated tempering takes a step at most at a time.
int for_round_trips(double barrier) { return std::clamp(int(std::lround(2 * barrier)) + 1, 7, 128); }
int for_trapezoids(double barrier) { return std::clamp(int(std::lround(12 * barrier)), 32, 512); }
int for_single_steps(double barrier) { return std::clamp(int(std::lround(7 * barrier)), 7, 400); }

std::vector<EvidenceMethod> methods_of_chains() {
  return {
      {.info =
           {"auto", "the many-chain recipe: st, and where exact draws exist annealing both ways to bound it",
            "fitted base, sequential Monte Carlo pilot, chains seeded at all levels, log Z with the level "
            "integrated out; stepping stones check it",
            with(with_base_draws(kChains)), "docs/decisions/0007-evidence.md"},
       .kind = EvidenceKind::chains,
       .estimator = "integrated",
       .checks_both_ways = true,
       .of_items = true},
      {.info = {"st", "simulated tempering with the pilot's weights or with given ones",
                "p(x, k) ~ exp(v_k) gamma_{beta_k}(x); log Z = log zeta + v_0 - v_K + log of the ratio of "
                "the sums of "
                "p(K | x) and p(0 | x)",
                with(simulated_settings()), "Marinari & Parisi (1992); Rao-Blackwell: Carlson et al. (2016)"},
       .kind = EvidenceKind::chains,
       .estimator = "integrated",
       .scheduled = true,
       .of_items = true,
       .steps = for_single_steps},
      {.info = {"ct-gibbs", "continuous tempering, beta drawn from its conditional",
                "p(x, beta) ~ gamma_beta(x) on [0, 1]; beta | x a truncated exponential", with(kChains),
                "Graham & Storkey (2017), section 4"},
       .kind = EvidenceKind::chains,
       .estimator = "stepping_stones",
       .tempering = Tempering::gibbs,
       .of_items = true},
      {.info = {"ct-joint", "continuous tempering, beta moved by the trajectory itself",
                "p(x, u) ~ gamma_beta(x) sigmoid(u) sigmoid(-u), beta = sigmoid(u); HMC on (x, u)",
                with(kChains), "Graham & Storkey (2017), section 4"},
       .kind = EvidenceKind::chains,
       .num_leapfrog = 10,
       .estimator = "stepping_stones",
       .tempering = Tempering::joint,
       .control = Control::logistic,
       .of_items = true},
      {.info =
           {"ct-adiabatic",
            "continuous tempering by the contact flow of adiabatic Monte Carlo, made exact (a baseline)",
            "the density of ct-joint; x' = p, p' = -dh/dx + s r/n dh/du p, u' = -s r/n |p|^2, accepted with "
            "its volume",
            with(adiabatic_settings()), "Betancourt (2014); docs/decisions/0018-adiabatic.md"},
       .kind = EvidenceKind::chains,
       .num_leapfrog = 3,
       .estimator = "stepping_stones",
       .tempering = Tempering::joint,
       .control = Control::logistic,
       .transition = "adiabatic"},
      {.info =
           {"extended", "the extended Hamiltonian: draws at beta = 1 alone count (a baseline)",
            "beta(u) of period 4, 1 for |u| <= 1/2, 0 for |u| >= 3/2; log Z = log zeta + log of the ratio of "
            "visits",
            with(kChains), "Gobbo & Leimkuhler (2015)"},
       .kind = EvidenceKind::chains,
       .estimator = "integrated",
       .tempering = Tempering::joint,
       .control = Control::plateaus},
  };
}

std::vector<EvidenceMethod> other_methods() {
  return {
      {.info = {"pt", "parallel tempering: even-odd swaps, equal rejection, many copies at once",
                "log Z by Bennett's ratio between neighbours; beside it both stepping stones, MBAR and the "
                "integral",
                with(kCopies), "Syed, Bouchard-Cote, Deligiannidis & Doucet (2022)"},
       .kind = EvidenceKind::ladder,
       .estimator = "bridge",
       .scheduled = true,
       .steps = for_round_trips},
      {.info = {"ti", "thermodynamic integration over the levels of parallel tempering",
                "log Z = log zeta - int_0^1 E_beta[Delta] d beta, by the trapezoid rule", with(kCopies),
                "Gelman & Meng (1998); Calderhead & Girolami (2009)"},
       .kind = EvidenceKind::ladder,
       .estimator = "thermodynamic_integration",
       .scheduled = true,
       .steps = for_trapezoids},
      {.info = {"smc", "sequential Monte Carlo: annealing with resampling",
                "log Z = log zeta + sum over levels of log mean weight", with({}, "pilot_share"),
                "Del Moral, Doucet & Jasra (2006)"},
       .kind = EvidenceKind::particles},
      {.info = {"ais", "annealed importance sampling",
                "log Z = log zeta + log mean exp sum_k (beta_k - beta_{k+1}) Delta", with(kAnnealing),
                "Neal (2001)"},
       .kind = EvidenceKind::annealing,
       .num_leapfrog = 1,
       .scheduled = true,
       .of_items = true},
      {.info = {"bdmc", "annealing both ways, for targets with exact draws: two-sided bounds",
                "E log w forward <= log Z <= -E log w reverse; Bennett's ratio between them",
                with(kAnnealing), "Grosse, Ghahramani & Adams (2015); Bennett (1976)"},
       .kind = EvidenceKind::annealing,
       .num_leapfrog = 1,
       .both_ways = true,
       .scheduled = true,
       .of_items = true},
      {.info = {"bound",
                "importance-weighted bound, for targets with many items (images): a cheap first answer",
                "log (1/n) sum_i density(x_i) / base(x_i)",
                {},
                "Burda, Grosse & Salakhutdinov (2016)"},
       .kind = EvidenceKind::items,
       .of_items = true},
      {.info = {"pe", "the pseudo-extended chain of lockstep sample",
                "log Z = log zeta + log sum (1 - w_i) w_1(x_i) - log sum (1 - w_i) w_0(x_i)",
                extended_settings(), "Nemeth et al. (2019); the estimate: host/estimators/pe_evidence.hpp"},
       .kind = EvidenceKind::pseudo_extended},
  };
}

const EvidenceMethod* named(const std::string& name) {
  for (const EvidenceMethod& m : method_registry())
    if (m.info.name == name) return &m;
  return nullptr;
}

}  // namespace

const std::vector<EvidenceMethod>& method_registry() {
  static const std::vector<EvidenceMethod> methods = [] {
    auto all = methods_of_chains();
    for (auto& m : other_methods()) all.push_back(std::move(m));
    return all;
  }();
  return methods;
}

const EvidenceMethod& find_method(const std::string& name) {
  if (const EvidenceMethod* m = named(name)) return *m;
  std::vector<std::string> names;
  for (const EvidenceMethod& m : method_registry()) names.push_back(m.info.name);
  const auto& samplers = sampler_registry();
  if (std::any_of(samplers.begin(), samplers.end(), [&](const SamplerInfo& s) { return s.name == name; }))
    throw UserError(name + " is a sampler, which gives no log Z (evidence needs a method). " +
                    near_or_known("", names, "methods") + " Or sample with it: lockstep sample --sampler " +
                    name);
  throw UserError("there is no method " + name + " (evidence needs one it knows). " +
                  near_or_known(name, names, "methods") + " See: lockstep samplers");
}

bool method_takes(const std::string& method, const std::string& key) {
  const EvidenceMethod* m = named(method);
  if (m == nullptr) return key != "warmup";  // the name itself is refused elsewhere
  const bool chain = m->kind != EvidenceKind::items && m->is_resumable();
  if (key == "chains") return chain && m->kind != EvidenceKind::ladder;
  if (key == "warmup") return m->kind == EvidenceKind::pseudo_extended;
  return key != "iterations" || chain;
}

}  // namespace lockstep
