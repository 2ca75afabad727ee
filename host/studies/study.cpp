// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <numeric>
#include <set>

#include "host/commands/evidence.hpp"
#include "host/commands/run_files.hpp"
#include "host/commands/sample.hpp"
#include "host/modes/given_points.hpp"
#include "host/options/config.hpp"
#include "host/options/evidence_config.hpp"
#include "host/options/item_config.hpp"
#include "host/options/target_input.hpp"
#include "host/paths/base_fit.hpp"
#include "host/runs/chain_run.hpp"
#include "host/runs/draw_figures.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/mode_gate.hpp"
#include "host/runs/recycling.hpp"
#include "host/runs/run_context.hpp"
#include "host/studies/study_files.hpp"
#include "host/studies/study_pictures.hpp"
#include "host/studies/study_pooled.hpp"
#include "host/studies/study_report.hpp"
#include "host/studies/study_rows.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "host/util/interrupt.hpp"
#include "host/util/processes.hpp"
#include "host/util/program.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

struct Prepared {
  std::shared_ptr<const TargetInstance> target;
  SamplerConfig config;  // of `sample`
  Settings effective;    // of either command
};

/// Everything a setting's rows depend on.
std::string fingerprint(const StudySetting& s, int replicates, const Prepared& p) {
  return fmt::format("{}|{}|{}|{}", s.label, replicates, s.adaptation,
                     run_identity(s.run, *p.target, p.effective));
}

/// Targets by what they are built from: settings of one target share it, for a truth may take seconds.
using Targets = std::map<std::string, std::shared_ptr<const TargetInstance>>;

Prepared prepare(const StudySetting& s, const std::filesystem::path& file, Targets& targets) {
  try {
    Prepared p;
    auto& target =
        targets[fmt::format("{}\n{}\n{}", s.run.target, s.run.target_settings.dump(), s.run.data.string())];
    if (!target) target = build_target(s.run, file);
    p.target = target;
    if (s.run.command == "evidence") {
      if (p.target->items() != nullptr) {
        p.effective = item_config(s.run, *p.target->items()).effective;
        return p;
      }
      RunOptions run = s.run;
      const EvidenceConfig c = evidence_config(run, p.target->dim(), p.target->tails());
      if (!c.is(EvidenceKind::pseudo_extended)) check_base(*p.target, c, run);
      if (c.is(EvidenceKind::pseudo_extended)) p.config = c.pseudo_extended;
      p.effective = c.effective;
      p.effective["laid out"] = {c.gradients, c.chains, c.particles};
    } else {
      p.config = sampler_config(s.run, p.target->dim(), p.target->tails());
      p.effective = p.config.effective;
    }
    usable_starts(s.run.init, *p.target);
    return p;
  } catch (const UserError& e) {
    throw UserError("setting \"" + s.label + "\": " + e.what());
  }
}

/// Draws of each chain that tell which modes of the library it visits.
std::int64_t overview_of(const Prepared& p, int chains, int replicates) {
  return p.config.needs_modes ? overview_iterations(*p.target, chains * replicates) : 0;
}

/// Throws UserError where the machine lacks the memory for all replicates at once.
void check_memory_of(const StudySetting& s, const Prepared& p, int replicates, const StudyArgs& command) {
  if (s.run.command == "evidence") return;  // one replicate after another
  RunOptions run = s.run;
  run.device = command.device;
  try {
    RunSize size = run_size(run, p.config, p.target->dim(), replicates, s.adaptation == "pooled");
    size.searches = p.config.needs_modes;
    size.overview = double(overview_of(p, run.chains, replicates));
    MemoryPlan plan = planned_memory(make_context(run, *p.target, s.label), p.config.model, size);
    // Rows of results.csv: as they grow, and once more for the tables.
    const double rows = 2.0 * p.target->dim() + double(p.target->quantities().size()) + 2;
    plan.host += 4.0 * replicates * rows * sizeof(ResultRow);
    check_memory(plan, true, "Lower its chains, or the replicates");
  } catch (const UserError& e) {
    throw UserError("setting \"" + s.label + "\": " + e.what());
  }
}

/// A name that no setting has would leave an empty table or picture when all has run.
void check_quantities(const Study& study, const std::vector<Prepared>& prepared) {
  for (const auto& p : prepared)
    if (!p.target) return;  // what it has cannot be known
  std::set<std::string> known = {
      "log_z",           "log_z_lower",           "log_z_upper",      "log_z_gap",          "base_log_z",
      "base_mean_error", "base_covariance_error", "covariance_error", "relative_mean_error"};
  // A picture or a pooled table shows all entries as one.
  const std::set<std::string> vectors = {"mean", "second_moment"};
  for (const auto& p : prepared) {
    if (p.target->names_modes()) known.insert("mode_switches");
    known.insert(p.target->quantities().begin(), p.target->quantities().end());
    known.insert(p.config.transition->counters.begin(), p.config.transition->counters.end());
    for (int i = 0; i < p.target->dim(); ++i) {
      known.insert(fmt::format("mean[{}]", i));
      known.insert(fmt::format("second_moment[{}]", i));
    }
  }
  const auto check = [&](const std::vector<std::string>& names, const std::string& pointer) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool entry = names[i].find('[') != std::string::npos;
      if (pointer == "/pooled"
              ? !entry && (known.contains(names[i]) || vectors.contains(names[i]))
              : known.contains(names[i]) || (pointer == "/plot/quantities" && vectors.contains(names[i])))
        continue;
      const std::string near = did_you_mean(names[i], {known.begin(), known.end()});
      throw UserError(
          fmt::format("{} names '{}' (no setting's target has it). {}",
                      read_toml(study.source).name(fmt::format("{}/{}", pointer, i), "quantities"), names[i],
                      near.empty() ? "There are mean[i], second_moment[i], log_z, relative_mean_error, "
                                     "mode_switches and what lockstep targets "
                                     "NAME lists."
                                   : near));
    }
  };
  check(study.quantities, "/quantities");
  check(study.pooled, "/pooled");
  check(study.plot.value("quantities", std::vector<std::string>{}), "/plot/quantities");
}

std::string verdict_of_all(const std::map<std::string, int>& failures, int replicates) {
  std::vector<std::string> gates;
  gates.reserve(failures.size());
  for (const auto& [gate, count] : failures) gates.push_back(gate);
  std::string verdict = verdict_of(gates) + (gates.empty() ? "" : ":");
  for (const auto& [gate, count] : failures) verdict += fmt::format(" {} {}/{}", gate, count, replicates);
  return verdict;
}

/// One setting: all replicates in one batch. Nothing is returned when the user interrupts: a half-run setting
/// is rerun.
std::optional<StudyPart> run_setting(const StudySetting& s, const Prepared& p, int replicates,
                                     const StudyArgs& command) {
  RunOptions run = s.run;
  run.threads = command.threads;
  run.device = command.device;
  run.quiet = command.quiet;
  RunContext context = make_context(run, *p.target, s.label);
  context.progress = progress_printer(command.quiet, s.label);
  std::vector<std::uint32_t> units(replicates);
  std::iota(units.begin(), units.end(), 0u);
  ChainRunOptions options{run, units};
  options.pooled = s.adaptation == "pooled";
  options.draws = 0;
  options.searches = p.config.needs_modes;
  options.overview = overview_of(p, run.chains, replicates);
  say_device(run, context);
  say_scout(run, run_size(run, p.config, p.target->dim(), replicates, options.pooled));
  ChainRunResult r;
  try {
    r = run_chains(context, p.config, options);
  } catch (const Interrupted&) {
    return std::nullopt;
  }
  if (r.interrupted) return std::nullopt;
  StudyPart part;
  part.fingerprint = fingerprint(s, replicates, p);
  double gradients = 0;
  std::map<std::string, int> failures;
  for (int u = 0; u < replicates; ++u) {
    Estimates e = estimate_unit(r, u);
    for (const auto& gate : failed_gates(e, r, u, p.config)) ++failures[gate];
    const ModesVerdict modes = judge_modes(r, u, e, context.threads);
    widen(e, modes.least);
    ReplicateRows rows(part.rows, s.label, u, e.gradients);
    rows.add(e, r.log_z.empty() ? nullptr : &r.log_z[u], *p.target);
    rows.add(counters_of(r.units[u], *p.config.transition));
    gradients += e.gradients;
    if (!modes.failed.empty()) ++failures[modes.failed];
  }
  part.verdict = verdict_of_all(failures, replicates);
  part.timing = {s.label, r.warmup_seconds + r.sampling_seconds, gradients / r.sampling_seconds};
  if (!command.quiet)
    say(fmt::format("{}: {:.1f} s ({:.1f} s warm-up), {:.3g} gradients per replicate, {:.3g} gradients/s, {}",
                    s.label, r.warmup_seconds + r.sampling_seconds, r.warmup_seconds, gradients / replicates,
                    gradients / r.sampling_seconds, part.verdict));
  return part;
}

/// One setting of evidence: its replicates one after another, each with its own base, pilot and chains.
std::optional<StudyPart> run_evidence_setting(const StudySetting& s, const Prepared& p, int replicates,
                                              const StudyArgs& command) {
  StudyPart part;
  part.fingerprint = fingerprint(s, replicates, p);
  double seconds = 0, gradients = 0, divergences = 0;
  RunContext whole;
  whole.progress = progress_printer(command.quiet, s.label, false);
  std::map<std::string, int> failures;
  for (int r = 0; r < replicates; ++r) {
    RunOptions run = s.run;
    run.threads = command.threads;
    run.device = command.device;
    run.quiet = true;
    try {
      const auto result = evidence(run, fmt::format("{}#{}", s.label, r), p.target.get());
      const bool stopped = std::visit(
          [&](const auto& found) {
            ReplicateRows(part.rows, s.label, r, found.cost.gradients).add(found, *p.target);
            for (const auto& gate : found.failed_gates) ++failures[gate];
            seconds += found.cost.wall;
            gradients += found.cost.gradients;
            divergences += found.diagnostics.divergences;
            return found.interrupted;
          },
          result);
      if (stopped) return std::nullopt;
    } catch (const Interrupted&) {
      return std::nullopt;
    }
    whole.tell("evidence", double(r + 1) / replicates, {gradients, divergences});
  }
  part.verdict = verdict_of_all(failures, replicates);
  part.timing = {s.label, seconds, gradients / seconds};
  if (!command.quiet)
    say(fmt::format("{}: {:.1f} s, {:.3g} gradients per replicate, {:.3g} gradients/s, {}", s.label, seconds,
                    gradients / replicates, gradients / seconds, part.verdict));
  return part;
}

bool lists(const std::vector<std::string>& all, const std::string& label) {
  return std::find(all.begin(), all.end(), label) != all.end();
}

/// UserError where going on would leave results out that are there: of settings that the study has no more, or has with other
/// options, unless it is told to run these again.
void refuse_other_results(const StudyArgs& command, const std::vector<std::string>& labels,
                          const std::vector<std::string>& fingerprints) {
  const auto found = labels_of_parts(command.out);
  for (const auto& [k, label] : found)
    if (!lists(labels, label))
      throw UserError(
          fmt::format("{} holds another study, with setting \"{}\" (its results would be lost). Give "
                      "another --out, or --force to begin anew",
                      command.out.string(), label));
  for (const auto& [k, label] : found) {
    const bool there = std::size_t(k) < labels.size() && labels[k] == label &&
                       (fingerprints[k].empty() || read_part(command.out, k, fingerprints[k]));
    if (!there && !lists(command.only, label))
      throw UserError(fmt::format(
          "{} holds results of \"{}\" with other options, seed, data or version, or from elsewhere in the "
          "file (they would be lost). Give --only \"{}\" to replace them, another --out, or --force to begin "
          "anew",
          command.out.string(), label, label));
  }
}

/// The folder, where this study may write to it.
FolderLock open_study(const StudyArgs& command, const std::vector<std::string>& labels,
                      const std::vector<std::string>& fingerprints) {
  FolderLock lock(command.out);
  if (command.resume && !command.force) refuse_other_results(command, labels, fingerprints);
  if (!command.resume && !command.force) refuse_results(command.out);
  if (!command.resume && command.only.empty()) clear_parts(command.out);
  return lock;
}

}  // namespace

bool run_study(const StudyArgs& command) {
  Study study = load_study(command.file);
  study.replicates = command.replicates.value_or(study.replicates);
  std::vector<std::string> labels;
  for (const auto& s : study.settings) labels.push_back(s.label);
  for (const auto& name : command.only)
    if (!lists(labels, name))
      throw UserError("study " + study.name + " has no setting \"" + name + "\" (--only takes a label). " +
                      near_or_known(name, labels, "settings"));
  if (command.out.empty()) throw UserError("a study needs a folder for its results. Give --out DIR");
  // Every setting is built before the first one runs: a mistake in the last must not cost an hour.
  const auto file = std::filesystem::absolute(command.file);
  const auto chosen = [&](const StudySetting& s) {
    return command.only.empty() || lists(command.only, s.label);
  };
  std::vector<Prepared> prepared;
  Targets built;
  std::vector<std::string> fingerprints;
  int left_out = 0;
  std::string first_left_out;
  for (auto& s : study.settings) {
    s.run.seed = study.seed;
    s.run.data_dir = command.data_dir;
    try {
      prepared.push_back(prepare(s, file, built));
    } catch (const UserError& e) {  // its data may be missing where others' are there
      if (chosen(s)) throw;
      prepared.emplace_back();
      if (left_out++ == 0) first_left_out = e.what();
    }
    if (chosen(s)) check_memory_of(s, prepared.back(), study.replicates, command);
    fingerprints.push_back(prepared.back().target ? fingerprint(s, study.replicates, prepared.back()) : "");
  }
  if (left_out > 0)
    say(fmt::format(
        "warning: {} settings that --only does not name cannot be built, and are not in the tables "
        "({})",
        left_out, first_left_out));
  check_quantities(study, prepared);
  Processes& processes = Processes::all();
  processes.agree();  // none has failed so far: what is wrong leaves no file behind
  const FolderLock lock = processes.first() ? open_study(command, labels, fingerprints) : FolderLock();

  bool stopped = false, computed = false;
  for (std::size_t k = 0; k < study.settings.size() && !stopped; ++k) {
    const StudySetting& s = study.settings[k];
    if (!chosen(s)) continue;
    const bool finished =
        command.resume && processes.first() && read_part(command.out, int(k), fingerprints[k]);
    if (processes.of_first(finished) != 0) continue;
    computed = true;
    if (!command.quiet) say_simulated(s.run);
    const auto part = s.run.command == "evidence"
                          ? run_evidence_setting(s, prepared[k], study.replicates, command)
                          : run_setting(s, prepared[k], study.replicates, command);
    if (part && processes.first()) write_part(command.out, int(k), *part);
    stopped = !part;
  }
  if (!processes.first()) throw FirstSpeaks();
  if (!computed && !command.quiet)
    say(command.out.string() + " holds every setting, finished: only tables and pictures are made again");
  const StudyResults results = assemble_results(command.out, fingerprints);
  write_atomically(command.out / "table.md", study_table(study, results.rows, results.verdicts));
  if (!stopped) {
    std::vector<StudyTarget> targets;
    for (std::size_t k = 0; k < study.settings.size(); ++k)
      if (chosen(study.settings[k]))
        targets.push_back({&study.settings[k], prepared[k].target.get(), &prepared[k].config});
    const auto pictures = draw_study(study, targets, command);
    write_atomically(
        command.out / "report.html",
        study_report(
            study, results.rows, results.timings, results.verdicts, pictures,
            {{"version", LOCKSTEP_VERSION}, {"instruction set", LOCKSTEP_ISA}, {"compiler", __VERSION__}}));
  }
  return stopped;
}

}  // namespace lockstep
