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

constexpr double kRefitFrom = 5e6;       // gradients that pay for another pilot
constexpr double kTypicalBarrier = 3.5;  // what a pilot's budget is laid out for

/// A name, or a list of inverse temperatures, perhaps with a list of weights.
void read_schedule(EvidenceConfig& c, SettingsReader& s, const RunOptions& run) {
  const auto found = run.sampler_settings.find("schedule");
  const bool simulated = c.is(EvidenceKind::chains);
  if (found == run.sampler_settings.end() || !found->is_array()) {
    std::vector<std::string> names = kLadders;
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

/// A particle costs some 150 gradients on its way: the scout may spend a fifth.
std::int64_t scout_particles(double planned) {
  return std::int64_t(std::clamp(0.2 * planned / 150, 256.0, 2048.0));
}

/// The budget pays for the scout and the warm-up too.
EvidenceConfig pseudo_extended_config(EvidenceConfig c, RunOptions& run, int dim, Tails tails,
                                      double planned) {
  RunOptions sampling = run;
  sampling.sampler = "pe";
  c.pseudo_extended = sampler_config(sampling, dim, tails);
  if (!gives_evidence(c.pseudo_extended))
    throw UserError(
        "method pe needs the bridge with learned inverse temperatures on [0, 1] and two "
        "pseudo-samples or more (else the chain knows no normaliser). Leave out sampler.instrument, "
        "beta, beta_min, beta_max and --paper-settings");
  if (!sampling.sampler_settings.contains("scout_particles"))
    c.pseudo_extended.effective["scout_particles"] = c.pseudo_extended.scout_particles =
        int(scout_particles(planned));
  if (run.chains == 0) run.chains = 64;
  const double iteration = 10.0 * c.pseudo_extended.model.pseudo_samples * run.chains;
  if (run.warmup == RunOptions().warmup && !run.says("warmup"))
    run.warmup = std::clamp<std::int64_t>(std::int64_t(0.2 * planned / iteration), 100, 1000);
  c.chains = c.seeds = c.particles = run.chains;
  c.effective = c.pseudo_extended.effective;
  return c;
}

/// Eight groups; of tempered chains that are many, as many as leave 32 chains and 128 of the pilot's particles
/// to each: the more groups, the less an error leans on few of them. Of copies of a ladder up to 16, or as many as are
/// asked for, for there is a copy to each at least.
int default_groups(const EvidenceConfig& c, int chains, std::int64_t copies, double planned) {
  constexpr int least = 8, most = 64, most_copies = 16;
  if (!c.is_resumable()) return least;
  const double of_ladder = copies > 0 ? double(std::min<std::int64_t>(copies, most_copies)) : most_copies;
  const double groups = c.is(EvidenceKind::ladder) ? of_ladder : chains / 32.0;
  return std::clamp(int(std::min(groups, planned / 620 / 128)), least, most);
}

/// A multiple of the groups.
int whole_groups(const EvidenceConfig& c, double n) {
  return c.groups * int(std::clamp(n / c.groups, 4.0, double(1 << 20) / c.groups));
}

void refuse_of_one_pass(const EvidenceConfig& c, const RunOptions& run) {
  if (c.iterations > 0)
    throw UserError(
        fmt::format("--iterations goes with methods whose chains run on and on ({} is one pass). Give "
                    "--gradients or --se",
                    c.method()));
  if (run.chains > 0)
    throw UserError(fmt::format(
        "--chains goes with methods whose chains run on and on ({} has as many as --gradients allow). "
        "Leave it out",
        c.method()));
}

void read_base(EvidenceConfig& c, SettingsReader& s, int dim, double planned) {
  c.base = s.one_of("base", s.has("base_sd") || s.has("base_mean") ? "gaussian" : "auto",
                    {"auto", "gaussian", "mean-field", "scout", "modes", "warmup", "advi", "mixture"});
  if (c.base == "gaussian") {
    if (s.has("base_mean") && !s.has("base_sd") && !s.has("base"))
      s.refuse("base_mean", "beside sampler.base_sd, or sampler.base=gaussian");
    read_normal_base(s, dim, c.base_mean, c.base_sd);
  } else {
    for (const char* key : {"base_mean", "base_sd"})
      if (s.has(key)) s.refuse(key, "of base gaussian alone, not beside another sampler.base");
  }
  c.base_inflation = s.in_range("base_inflation", 1.2, 0.1, 100);
  // A restart costs some 1500 gradients: those of the mixture, which wants many, may take a tenth.
  const double starts = c.base == "mixture"  ? std::clamp(0.1 * planned / 1500, 64.0, 1024.0)
                        : c.base == "advi"   ? 64
                        : c.base == "warmup" ? 128
                                             : 2000;
  c.base_starts = int(s.integer("base_starts", std::int64_t(starts), 1, 1 << 20));
  if (s.has("bootstrap") || planned < kRefitFrom) c.bootstrap = int(s.integer("bootstrap", 0, 0, 20));
  if (c.base == "modes" && c.bootstrap > 0)
    s.refuse("bootstrap", "0 with base modes, which a refit to one normal would undo");
  if (c.base == "modes" && !c.mode_jumps)
    s.refuse("mode_jumps", "true with base modes, all of which no trajectory reaches");
  c.scout_particles = int(s.integer("scout_particles", scout_particles(planned), 64, 1 << 20));
}

/// How many chains there are, and how much of them is discarded.
void read_chains(EvidenceConfig& c, SettingsReader& s, const RunOptions& run, std::int64_t of_ladder,
                 double planned) {
  const bool anneals = c.is(EvidenceKind::annealing), copies = c.is(EvidenceKind::ladder),
             particles = c.is(EvidenceKind::particles);
  // Few chains that are long: what the pilot missed is found only by chains that go to and fro many times.
  c.chains = whole_groups(c, run.chains > 0 ? run.chains : 256);
  const double growth = std::sqrt(std::max(1.0, planned / 1e7));  // of the copies of a ladder
  if (c.is_resumable()) {
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
                      c.method()));
    c.copies = c.groups * int((of_ladder + c.groups - 1) / c.groups);
  }
  c.seeds = c.copies > 0           ? c.copies
            : copies               ? c.groups * int(8 * growth)
            : anneals || particles ? c.groups
                                   : c.chains;
  // What is held at a time, as far as it can be said before the pilot.
  if (copies) c.chains = c.seeds * (1 + (c.steps > 0 ? c.steps : c.of->steps(kTypicalBarrier)));
  if (anneals) c.chains = whole_groups(c, planned / (double(c.steps) * c.num_leapfrog));
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

std::vector<double> EvidenceConfig::ladder(const CommunicationBarrier& barrier) const {
  if (!given_ladder.empty()) return given_ladder;
  return named_ladder(schedule, steps > 0 ? steps : of->steps(barrier.global()), barrier);
}

double planned_gradients(const EvidenceConfig& c, const RunOptions& run) {
  return run.se > 0 || c.iterations > 0 ? std::min(c.gradients, 1e7) : c.gradients;
}

EvidenceConfig evidence_config(RunOptions& run, int dim, Tails tails) {
  const EvidenceMethod& method = find_method(run.sampler);
  EvidenceConfig c;
  c.of = &method;
  // Without a budget of its own a run is laid out for 1e7 gradients, and goes on until its error is small.
  c.gradients = run.gradients > 0 ? run.gradients : 1e8;
  if (!(run.gradients > 0)) c.iterations = run.iterations;
  if (!c.is_resumable()) refuse_of_one_pass(c, run);
  if (c.is(EvidenceKind::items))
    throw UserError("method bound is for targets with many items (images). Use --method auto or ais");
  const double planned = planned_gradients(c, run);
  refuse_unused(run, {"warmup_draws"}, "evidence");
  if (c.is(EvidenceKind::pseudo_extended))
    return pseudo_extended_config(std::move(c), run, dim, tails, planned);
  refuse_unused(run, {"warmup", "paper_settings", "thin"}, "method " + c.method());

  SettingsReader s(run.sampler_settings, "method " + c.method());
  const bool anneals = c.is(EvidenceKind::annealing), copies = c.is(EvidenceKind::ladder),
             particles = c.is(EvidenceKind::particles), chains = c.is(EvidenceKind::chains);
  const std::int64_t of_ladder = copies ? s.integer("copies", 0, 0, 1 << 20) : 0;
  c.groups = int(s.integer("groups", default_groups(c, run.chains, of_ladder, planned), 4, 64));
  c.mode_jumps = s.get("mode_jumps", c.mode_jumps);
  read_base(c, s, dim, planned);
  c.num_leapfrog = int(s.integer("num_leapfrog", method.num_leapfrog, 1, 1000));
  c.pilot_leapfrog = anneals ? 5 : c.num_leapfrog;
  c.target_acceptance = s.in_range("target_acceptance", 0.9, 0.1, 0.99);
  c.exact_draws = reads_exact_draws(s);
  c.rate = s.in_range("rate", 0.25, 0.01, 2);
  c.pilot_share = s.in_range("pilot_share", 0.2, 0.001, 0.9);
  if (particles) s.no_effect({"pilot_share"}, "the pilot is the whole run");
  if (method.scheduled) read_schedule(c, s, run);
  if (anneals) c.steps = int(s.integer("temperatures", 1000, 1, 1 << 24));
  if (copies || c.own_ladder()) c.steps = int(s.integer("levels", 0, 0, 4096)) - 1;
  c.transition = find_transition(method.transition);
  for (const TransitionSetting& t : c.transition->settings)
    c.transition_settings.push_back(read_own_setting(s, t));
  c.base_draws = chains && method.tempering == Tempering::levels && s.get("base_draws", true);
  if (chains) c.start_at_base = s.one_of("seeds", "pilot", {"pilot", "base"}) == "base";

  read_chains(c, s, run, of_ladder, planned);
  if (!copies && c.is_resumable()) run.chains = c.chains;  // for run.toml
  s.finish();
  c.effective = s.effective();

  // Bootstrap rounds are pilots too: they share.
  const double share = (particles ? 1.0 : c.pilot_share) / (std::max(0, c.bootstrap) + 1);
  const double levels = kTypicalBarrier * std::sqrt(kPi) / c.rate;
  c.particles =
      whole_groups(c, std::min(share * planned / (levels * c.pilot_leapfrog), particles ? 1e6 : 16384.0));
  return c;
}

}  // namespace lockstep
