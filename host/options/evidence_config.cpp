// SPDX-License-Identifier: Apache-2.0
#include "host/options/evidence_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/options/config.hpp"
#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

constexpr double kTypicalBarrier = 3.5;  // what a pilot's budget is laid out for

using Lines = std::vector<std::pair<std::string, std::string>>;

const Lines& base_settings() {
  static const Lines lines = {
      {"base",
       "auto, gaussian (given moments), mean-field (the target's own), scout, warmup (HMC), advi or mixture "
       "(default auto: mean-field where the target has one, else scout)"},
      {"base_mean", "mean of base gaussian, one number or one per axis (default 0)"},
      {"base_sd", "its standard deviations (default 1)"},
      {"base_inflation",
       "factor on the standard deviations of a fitted base, all but gaussian and mean-field (default 1.2)"},
      {"base_starts",
       "starts of mean-field (default 2000), restarts of advi (64) and mixture (64 to 1024, by the budget), "
       "chains of warmup (128)"},
      {"bootstrap",
       "rounds in which a pilot's particles refit the base (default 1 for a scouted one from 5e6 gradients "
       "on, else 0)"},
      {"scout_particles", "particles of the scout (default 2048, fewer on small budgets)"}};
  return lines;
}
Lines with(Lines lines, const std::string& but = "") {
  const Lines common = {{"groups",
                         "independent groups of chains, by which errors are judged (default 8; of tempered "
                         "chains one for every 32 where they are more than 256)"},
                        {"num_leapfrog", "mean leapfrog steps of a transition (default 5; ais and bdmc 1)"},
                        {"target_acceptance", "acceptance that the pilot's steps aim at (default 0.9)"},
                        {"rate", "spread of the weights from level to level of the pilot (default 0.25)"},
                        {"pilot_share",
                         "of the gradients that the pilot may spend, or all rounds of a bootstrap that is "
                         "asked for (default 0.2)"}};
  lines.insert(lines.end(), common.begin(), common.end());
  lines.insert(lines.end(), base_settings().begin(), base_settings().end());
  std::erase_if(lines, [&](const auto& line) { return line.first == but; });
  return lines;
}

std::vector<double> per_axis(SettingsReader& s, const RunOptions& run, const char* key, double standard,
                             int dim) {
  const auto found = run.sampler_settings.find(key);
  if (found == run.sampler_settings.end() || found->is_number())
    return std::vector<double>(dim, s.get<double>(key, standard));
  auto values = s.get<std::vector<double>>(key, {});
  if (int(values.size()) != dim) s.refuse(key, fmt::format("one number or {} of them", dim));
  return values;
}

/// A name, or a list of inverse temperatures, perhaps with a list of weights.
void read_schedule(EvidenceConfig& c, SettingsReader& s, const RunOptions& run) {
  const auto found = run.sampler_settings.find("schedule");
  const bool simulated = c.method == "st";
  if (found == run.sampler_settings.end() || !found->is_array()) {
    std::vector<std::string> names = {"barrier", "linear", "sigmoid", "quadratic"};
    if (simulated) names.push_back("pilot");
    c.schedule = s.one_of("schedule", simulated && !s.has("levels") ? "pilot" : "barrier", names);
    if (simulated && s.has("weights")) s.refuse("weights", "they go with a schedule that is a list");
    if (c.schedule == "pilot" && s.has("levels")) s.refuse("levels", "the pilot's ladder has its own");
    return;
  }
  c.schedule = "given";
  c.given_ladder = s.get<std::vector<double>>("schedule", {});
  check_ladder(c.given_ladder);
  if (simulated) c.weights = s.get<std::vector<double>>("weights", {});
  if (!c.weights.empty() && c.weights.size() != c.given_ladder.size())
    s.refuse("weights", fmt::format("{} numbers, as many as the schedule has", c.given_ladder.size()));
  for (const char* key : {"temperatures", "levels"})
    if (run.sampler_settings.contains(key)) s.refuse(key, "left out, for the schedule is a list");
}

/// The budget pays for the scout and the warm-up too.
EvidenceConfig pseudo_extended_config(EvidenceConfig c, RunOptions& run, int dim, Tails tails, double planned,
                                      std::int64_t scout_particles) {
  RunOptions sampling = run;
  sampling.sampler = "pe";
  c.pseudo_extended = sampler_config(sampling, dim, tails);
  if (!gives_evidence(c.pseudo_extended))
    throw UserError(
        "method pe needs the bridge with learned inverse temperatures on [0, 1] and two "
        "pseudo-samples or more (else the chain knows no normaliser). Leave out sampler.instrument, "
        "beta, beta_min, beta_max and --paper-settings");
  if (!sampling.sampler_settings.contains("scout_particles"))
    c.pseudo_extended.effective["scout_particles"] = c.pseudo_extended.scout_particles = int(scout_particles);
  if (run.chains == 0) run.chains = 64;
  const double iteration = 10.0 * c.pseudo_extended.model.pseudo_samples * run.chains;
  if (run.warmup == RunOptions().warmup && !run.says("warmup"))
    run.warmup = std::clamp<std::int64_t>(std::int64_t(0.2 * planned / iteration), 100, 1000);
  c.chains = c.seeds = c.particles = run.chains;
  c.effective = c.pseudo_extended.effective;
  return c;
}

/// Of parallel tempering: twice the barrier is best for round trips (Syed et al. 2022); the trapezoid rule
/// wants more, and simulated tempering takes a step at most at a time.
int default_steps(const std::string& method, double barrier) {
  return method == "ti"   ? std::clamp(int(std::lround(12 * barrier)), 32, 512)
         : method == "st" ? std::clamp(int(std::lround(7 * barrier)), 7, 400)
                          : std::clamp(int(std::lround(2 * barrier)) + 1, 7, 128);
}

/// Eight groups; of tempered chains that are many, as many as leave 32 chains and 128 of the pilot's particles
/// to each: the more groups, the less an error leans on few of them.
int default_groups(const EvidenceConfig& c, int chains, double planned) {
  constexpr int least = 8, most = 64;
  if (!c.runs_on() || c.method == "pt" || c.method == "ti") return least;
  return std::clamp(int(std::min(chains / 32.0, planned / 620 / 128)), least, most);
}

}  // namespace

void refuse_unused(const RunOptions& run, const std::vector<std::string>& keys, const std::string& what) {
  static const nlohmann::ordered_json standard = run_option_values(RunOptions());
  const nlohmann::ordered_json given = run_option_values(run);
  for (const std::string& key : keys) {
    std::string flag = "--" + key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (given[key] != standard[key] || run.says(key))
      throw UserError(fmt::format(
          "{} has no effect on {} (the run would not be what was asked for). Leave it out", flag, what));
  }
}

const std::vector<SamplerInfo>& method_registry() {
  const std::string schedules =
      "barrier (equal communication barrier, from the pilot), linear, sigmoid, quadratic, or a list from 0 "
      "to 1 "
      "(default barrier)";
  const Lines annealing = {{"temperatures", "inverse temperatures after the first (default 1000)"},
                           {"schedule", schedules}};
  const Lines chains = {{"discard",
                         "share of the iterations that is not recorded (default 0.2; of long runs less: no "
                         "more iterations than at 1e7 gradients)"},
                        {"seeds",
                         "where chains begin: pilot (its states at all levels) or base (a fresh draw of the "
                         "base at beta = 0; short chains are then biased) (default pilot)"}};
  const Lines copies = {{"copies", "independent copies of the ladder (default by the budget)"},
                        {"levels", "chains of a copy (default by the barrier)"},
                        {"schedule", schedules},
                        {"discard",
                         "share of the iterations in which the ladder adapts (default 0.33; of long runs "
                         "less, as for the others)"}};
  Lines simulated = chains;
  simulated.push_back(
      {"schedule",
       "pilot (the levels that it chose), barrier, linear, sigmoid, quadratic, or a list from 0 to 1 "
       "(default pilot)"});
  simulated.push_back({"levels", "of a named schedule (default by the barrier)"});
  simulated.push_back({"weights",
                       "log weights v_k of a schedule that is a list, for densities without the base's guess "
                       "of log Z (default "
                       "the pilot's, which make all levels but the ends equally likely)"});
  Lines extended;
  for (const auto& s : sampler_registry())
    if (s.name == "pe") extended.insert(extended.end(), s.settings.begin(), s.settings.end());
  static const std::vector<SamplerInfo> methods = {
      {"auto", "the many-chain recipe: st, and where exact draws exist annealing both ways to bound it",
       "fitted base, sequential Monte Carlo pilot, chains seeded at all levels, log Z with the level "
       "integrated out; stepping stones check it",
       with(chains), "docs/decisions/0007-evidence.md"},
      {"st", "simulated tempering with the pilot's weights or with given ones",
       "p(x, k) ~ exp(v_k) gamma_{beta_k}(x); log Z = log zeta + v_0 - v_K + log of the ratio of the sums of "
       "p(K | x) and p(0 | x)",
       with(simulated), "Marinari & Parisi (1992); Rao-Blackwell: Carlson et al. (2016)"},
      {"ct-gibbs", "continuous tempering, beta drawn from its conditional",
       "p(x, beta) ~ gamma_beta(x) on [0, 1]; beta | x a truncated exponential", with(chains),
       "Graham & Storkey (2017), section 4"},
      {"ct-joint", "continuous tempering, beta moved by the trajectory itself",
       "p(x, u) ~ gamma_beta(x) sigmoid(u) sigmoid(-u), beta = sigmoid(u); HMC on (x, u)", with(chains),
       "Graham & Storkey (2017), section 4"},
      {"extended", "the extended Hamiltonian: draws at beta = 1 alone count (a baseline)",
       "beta(u) of period 4, 1 for |u| <= 1/2, 0 for |u| >= 3/2; log Z = log zeta + log of the ratio of "
       "visits",
       with(chains), "Gobbo & Leimkuhler (2015)"},
      {"pt", "parallel tempering: even-odd swaps, equal rejection, many copies at once",
       "log Z by Bennett's ratio between neighbours; beside it both stepping stones, MBAR and the integral",
       with(copies), "Syed, Bouchard-Cote, Deligiannidis & Doucet (2022)"},
      {"ti", "thermodynamic integration over the levels of parallel tempering",
       "log Z = log zeta - int_0^1 E_beta[Delta] d beta, by the trapezoid rule", with(copies),
       "Gelman & Meng (1998); Calderhead & Girolami (2009)"},
      {"smc", "sequential Monte Carlo: annealing with resampling",
       "log Z = log zeta + sum over levels of log mean weight", with({}, "pilot_share"),
       "Del Moral, Doucet & Jasra (2006)"},
      {"ais", "annealed importance sampling",
       "log Z = log zeta + log mean exp sum_k (beta_k - beta_{k+1}) Delta", with(annealing), "Neal (2001)"},
      {"bdmc", "annealing both ways, for targets with exact draws: two-sided bounds",
       "E log w forward <= log Z <= -E log w reverse; Bennett's ratio between them", with(annealing),
       "Grosse, Ghahramani & Adams (2015); Bennett (1976)"},
      {"bound",
       "importance-weighted bound, for targets with many items (images): a cheap first answer",
       "log (1/n) sum_i density(x_i) / base(x_i)",
       {},
       "Burda, Grosse & Salakhutdinov (2016)"},
      {"pe", "the pseudo-extended chain of lockstep sample",
       "log Z = log zeta + log sum (1 - w_i) w_1(x_i) - log sum (1 - w_i) w_0(x_i)", extended,
       "Nemeth et al. (2019); the estimate: host/estimators/pe_evidence.hpp"},
  };
  return methods;
}

std::vector<double> EvidenceConfig::ladder(const CommunicationBarrier& barrier) const {
  if (!given_ladder.empty()) return given_ladder;
  const int k = steps > 0 ? steps : default_steps(method, barrier.global());
  return schedule == "linear"      ? linear_ladder(k)
         : schedule == "sigmoid"   ? sigmoid_ladder(k)
         : schedule == "quadratic" ? quadratic_ladder(k)
                                   : barrier.equal_ladder(k);
}

bool method_takes(const std::string& method, const std::string& key) {
  EvidenceConfig c;
  c.method = method;
  const bool chain = c.runs_on() && method != "bound";
  if (key == "chains") return chain && method != "pt" && method != "ti";
  if (key == "warmup") return method == "pe";
  return key != "iterations" || chain;
}

EvidenceConfig evidence_config(RunOptions& run, int dim, Tails tails) {
  EvidenceConfig c;
  c.method = run.sampler;
  std::vector<std::string> names;
  for (const auto& m : method_registry()) names.push_back(m.name);
  if (std::find(names.begin(), names.end(), c.method) == names.end())
    throw UserError("there is no method " + c.method + " (evidence needs one it knows). " +
                    near_or_known(c.method, names, "methods") + " See: lockstep samplers");
  // Without a budget of its own a run is laid out for 1e7 gradients, and goes on until its error is small.
  c.gradients = run.gradients > 0 ? run.gradients : 1e8;
  if (!(run.gradients > 0)) c.iterations = run.iterations;
  if (c.iterations > 0 && !c.runs_on())
    throw UserError(
        fmt::format("--iterations goes with methods whose chains run on and on ({} is one pass). Give "
                    "--gradients or --se",
                    c.method));
  if (run.chains > 0 && !c.runs_on())
    throw UserError(fmt::format(
        "--chains goes with methods whose chains run on and on ({} has as many as --gradients allow). "
        "Leave it out",
        c.method));
  if (c.method == "bound")
    throw UserError("method bound is for targets with many items (images). Use --method auto or ais");
  const double planned = run.se > 0 || c.iterations > 0 ? std::min(c.gradients, 1e7) : c.gradients;
  // A particle costs some 150 gradients on its way: the scout may spend a fifth.
  const auto scout_particles = std::int64_t(std::clamp(0.2 * planned / 150, 256.0, 2048.0));
  refuse_unused(run, {"warmup_draws"}, "evidence");
  if (c.method == "pe")
    return pseudo_extended_config(std::move(c), run, dim, tails, planned, scout_particles);
  refuse_unused(run, {"warmup", "paper_settings", "thin"}, "method " + c.method);

  SettingsReader s(run.sampler_settings, "method " + c.method);
  const bool anneals = c.method == "ais" || c.method == "bdmc", copies = c.method == "pt" || c.method == "ti";
  c.groups = int(s.integer("groups", default_groups(c, run.chains, planned), 4, 64));
  c.base = s.one_of("base", s.has("base_sd") || s.has("base_mean") ? "gaussian" : "auto",
                    {"auto", "gaussian", "mean-field", "scout", "warmup", "advi", "mixture"});
  if (c.base == "gaussian") {
    c.base_mean = per_axis(s, run, "base_mean", 0, dim);
    c.base_sd = per_axis(s, run, "base_sd", 1, dim);
    for (double v : c.base_sd)
      if (!(v > 0)) s.refuse("base_sd", "above zero");
  } else {
    for (const char* key : {"base_mean", "base_sd"})
      if (s.has(key)) s.refuse(key, "of base gaussian only");
  }
  c.base_inflation = s.in_range("base_inflation", 1.2, 0.1, 100);
  // A restart costs some 1500 gradients: those of the mixture, which wants many, may take a tenth.
  const double starts = c.base == "mixture"  ? std::clamp(0.1 * planned / 1500, 64.0, 1024.0)
                        : c.base == "advi"   ? 64
                        : c.base == "warmup" ? 128
                                             : 2000;
  c.base_starts = int(s.integer("base_starts", std::int64_t(starts), 1, 1 << 20));
  if (s.has("bootstrap")) c.bootstrap = int(s.integer("bootstrap", 0, 0, 20));
  c.scout_particles = int(s.integer("scout_particles", scout_particles, 64, 1 << 20));
  c.num_leapfrog = int(s.integer("num_leapfrog", anneals ? 1 : c.method == "ct-joint" ? 10 : 5, 1, 1000));
  c.pilot_leapfrog = anneals ? 5 : c.num_leapfrog;
  c.target_acceptance = s.in_range("target_acceptance", 0.9, 0.1, 0.99);
  c.rate = s.in_range("rate", 0.25, 0.01, 2);
  c.pilot_share = s.in_range("pilot_share", 0.2, 0.001, 0.9);
  if (c.method == "smc") s.no_effect({"pilot_share"}, "the pilot is the whole run");
  if (anneals || copies || c.method == "st") read_schedule(c, s, run);
  if (anneals) c.steps = int(s.integer("temperatures", 1000, 1, 1 << 24));
  if (copies || (c.method == "st" && c.schedule != "pilot"))
    c.steps = int(s.integer("levels", 0, 0, 4096)) - 1;
  if (!anneals && !copies && c.method != "smc")
    c.start_at_base = s.one_of("seeds", "pilot", {"pilot", "base"}) == "base";

  const auto whole_groups = [&](double n) {
    return c.groups * int(std::clamp(n / c.groups, 4.0, double(1 << 20) / c.groups));
  };
  // Few chains that are long: what the pilot missed is found only by chains that go to and fro many times.
  c.chains = whole_groups(run.chains > 0 ? run.chains : 256);
  const double growth = std::sqrt(std::max(1.0, planned / 1e7));  // of the copies of a ladder
  if (c.runs_on()) {
    // What settles takes so many iterations, however many follow.
    const double longer = c.gradients / 1e7 / (copies ? growth : c.chains / 256.0);
    const double share = (copies ? 0.33 : 0.2) / (c.iterations > 0 ? 1 : std::max(1.0, longer));
    c.discard = s.in_range("discard", share, 0, 0.9);
  }
  if (copies) {
    if (run.chains > 0)
      throw UserError(
          fmt::format("--chains goes with other methods (the chains of {} are its levels). Give "
                      "--set sampler.copies and sampler.levels",
                      c.method));
    const auto given = s.integer("copies", 0, 0, 1 << 20);
    c.copies = c.groups * int((given + c.groups - 1) / c.groups);
  }
  c.seeds = c.copies > 0                   ? c.copies
            : copies                       ? c.groups * int(8 * growth)
            : anneals || c.method == "smc" ? c.groups
                                           : c.chains;
  // What is held at a time, as far as it can be said before the pilot.
  if (copies) c.chains = c.seeds * (1 + (c.steps > 0 ? c.steps : default_steps(c.method, kTypicalBarrier)));
  if (anneals) c.chains = whole_groups(planned / (double(c.steps) * c.num_leapfrog));
  if (!copies && c.runs_on()) run.chains = c.chains;  // for run.toml
  s.finish();
  c.effective = s.effective();

  // Bootstrap rounds are pilots too: they share.
  const double share = (c.method == "smc" ? 1.0 : c.pilot_share) / (std::max(0, c.bootstrap) + 1);
  const double levels = kTypicalBarrier * std::sqrt(kPi) / c.rate;
  c.particles = whole_groups(
      std::min(share * planned / (levels * c.pilot_leapfrog), c.method == "smc" ? 1e6 : 16384.0));
  return c;
}

}  // namespace lockstep
