// SPDX-License-Identifier: Apache-2.0
#include "host/cli/cli_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>

#include "host/options/evidence_method.hpp"
#include "host/util/errors.hpp"

namespace lockstep {
namespace {

constexpr const char* what = "What to sample";
constexpr const char* how_long = "How long";
constexpr const char* starts = "Adaptation and starts";
constexpr const char* where = "Where to compute";
constexpr const char* output = "Output";
using enum OptionKind;

const OptionSpec data_dir = {"--data-dir", "DIR", text, what,
                             "Folder in which data files are looked for (default $LOCKSTEP_DATA)."};
const OptionSpec device = {"--device", "NAME", text, where, "auto (a GPU where there is one), cpu or cuda.",
                           true};
const OptionSpec threads = {"--threads", "N", number, where,
                            "Threads on the CPU (default: 0, all, or OMP_NUM_THREADS)."};
const OptionSpec force = {"--force", "", toggle, output, "Overwrite what an earlier run has left in --out."};
const OptionSpec quiet = {"--quiet", "", toggle, output, "No progress and no messages on standard error."};

constexpr const char *kModesInit = "A file of known points: modes, or where descents begin (see below).",
                     *kRunInit =
                         "scout (particles from afar), uniform:R (in [-R, R]), or a file (see below).";
constexpr const char* kModesOut = "Folder for modes.json and modes.png; without it, no files.";
constexpr const char* kRunOut =
    "Folder for summary.json, run.toml, report.html and the rest; without it, no files.";

/// "a, b or c": the methods of evidence for which it holds.
std::string some_methods(bool (*holds)(const EvidenceMethod&)) {
  std::vector<std::string> names;
  for (const EvidenceMethod& method : method_registry())
    if (holds(method)) names.push_back(method.info.name);
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : fmt::format("{} or {}", fmt::join(names, ", "), last);
}

}  // namespace

std::vector<OptionSpec> run_option_specs(const std::string& command) {
  const bool evidence = command == "evidence", check = command == "check", modes = command == "modes";
  std::vector<OptionSpec> specs = {
      {"--target", "NAME", text, what, "The density; lockstep targets lists them."},
      evidence
          ? OptionSpec{"--method", "NAME", text, what,
                       fmt::format("{}.\nWithout it: auto.", some_methods([](const auto&) { return true; }))}
          : OptionSpec{"--sampler", "NAME", text, what,
                       "The algorithm (default pe); lockstep samplers lists them."},
      {"--data", "FILE", text, what, "Data of the target: .json, .csv, .npz, .npy, or a folder of tables."},
      data_dir,
      {"--set", "SCOPE.KEY=VALUE", repeated, what,
       check   ? "A setting of the target: target.KEY=VALUE. May be repeated."
       : modes ? "A setting: target.KEY=VALUE or search.KEY=VALUE (see below). May be repeated."
               : "A setting: target.KEY=VALUE or sampler.KEY=VALUE. May be repeated."},
      {"--paper-settings", "", toggle, what, "Start from the settings of the published experiments."},
      {"--config", "FILE.toml", text, what,
       "Options from a file, such as a run.toml; the command line wins."},
      {"--chains", "N", number, how_long,
       evidence ? "Chains that run side by side (default: by the budget)." : "Chains that run side by side.",
       !evidence},
      {"--iterations", "N", number, how_long,
       evidence
           ? fmt::format("Instead: iterations that are recorded, per chain (not {}).",
                         some_methods([](const auto& m) { return !method_takes(m.info.name, "iterations"); }))
           : "Iterations recorded per chain (2000 with --init of several points).",
       !evidence},
      {"--gradients", "G", number, how_long,
       modes      ? "Of the run that is planned: the search spends a quarter at most (default 1e7)."
       : evidence ? "Instead: stop at G target gradients over all chains (default 1e8)."
                  : "Instead: stop at G target gradients over all chains, warm-up not counted."},
      {"--se", "S", number, how_long,
       evidence ? "Stop when the error of log Z is below S (default 0.02), from 1e7 gradients on."
                : "Stop earlier, when the error of every mean, relative to its sd, is below S."},
      {"--warmup", "N", number, starts,
       evidence ? "Iterations that adapt the sampler and are not recorded (pe only; default by the budget)."
                : "Iterations that adapt the sampler and are not recorded.",
       !evidence},
      {"--init", "START", text, starts, modes ? kModesInit : kRunInit, true},
      {"--init-scale", "S", number, starts,
       check ? "Standard deviation of the points, where the target has no exact draws."
             : "Standard deviation of the normal where scout and search for modes begin.",
       true},
      {"--modes", "FILE", text, starts,
       modes ? "Show these instead of searching: modes.json, summary.json of a run, or places as of --init."
             : "Modes that are known: modes.json, summary.json of a run, or places as of --init."},
      {"--seed", "N", number, starts, "Seed; the same seed gives the same bytes.", true},
      device,
      threads,
      {"--precision", "NAME", text, where, "single, mixed (sums in double) or double.", true},
      {"--out", "DIR", text, output, modes ? kModesOut : kRunOut},
      {"--draws", "[N|all]", optional, output,
       "Store draws.nc too, with at most N draws of a parameter (default 1000)."},
      {"--weighted-draws", "", toggle, output,
       "Store the weighted states behind them too (group weighted of draws.nc)."},
      {"--warmup-draws", "", toggle, output, "Store those of the warm-up beside them."},
      {"--thin", "N", number, output, "Store every N-th draw.", true},
      {"--no-pictures", "", toggle, output,
       modes ? "Leave out modes.png." : "Leave out report.html and its pictures."},
      {"--checkpoint", "SECONDS", number, output,
       "Save the state every so often (default: 0, only when interrupted)."},
      {"--resume", "", toggle, output,
       "Go on with the run in --out: from its checkpoint, or from its start; a finished one is shown."},
      force,
      {"--json", "", toggle, output, "Print the summary as JSON on standard output, and nothing else there."},
      quiet};
  static const std::set<std::string> of_check = {"--target",  "--data",       "--data-dir", "--set",
                                                 "--config",  "--init-scale", "--seed",     "--device",
                                                 "--threads", "--precision"};
  static const std::set<std::string> of_modes = {
      "--target", "--data",        "--data-dir", "--set",  "--config", "--gradients",
      "--init",   "--init-scale",  "--modes",    "--seed", "--device", "--threads",
      "--out",    "--no-pictures", "--force",    "--json", "--quiet"};
  std::erase_if(specs, [&](const OptionSpec& spec) {
    if (check || modes) return !(check ? of_check : of_modes).contains(spec.flag);
    return evidence && std::string_view(spec.flag) == "--warmup-draws";
  });
  return specs;
}

std::vector<OptionSpec> study_option_specs() {
  return {{"--replicates", "R", number, what, "Replicates of each setting (default: what the file says)."},
          {"--only", "LABEL", repeated, what, "Run only this setting. May be repeated."},
          data_dir,
          device,
          threads,
          {"--out", "DIR", text, output, "Folder for results.csv, table.md, pictures and report.html."},
          {"--resume", "", toggle, output, "Keep the settings that --out already holds and run the rest."},
          force,
          quiet};
}

std::vector<OptionSpec> option_specs(const std::string& command) {
  if (command == "study") return study_option_specs();
  if (command == "devices")
    return {{"--measure", "", toggle, "What to show",
             "Measure peak arithmetic and bandwidth too; takes seconds."}};
  if (command == "targets" || command == "samplers") return {};
  return run_option_specs(command);
}

const CommandText& program_text() {
  static const CommandText program = {
      "lockstep", "", "",
      "Markov chain Monte Carlo for many chains at once, on the CPU or a GPU:\n"
      "samples a density, estimates its normalising constant, and repeats published experiments.",
      "Examples:\n"
      "  lockstep sample --target mixture20\n"
      "  lockstep evidence --target mixture20 --method ais --out run1\n\n"
      "Exit status: 0 done, 2 bad input, 3 done but a gate failed or the run was too short to judge (never "
      "of study),\n"
      "130 interrupted, 1 anything else."};
  return program;
}

const std::vector<CommandText>& command_texts() {
  static const std::vector<CommandText> texts = {
      {"targets", "NAME", "Show only this target, in full.",
       "List the targets, or show one in full.\n"
       "In full: its formula, dimension, settings, data format, and what is known about the truth.",
       "Examples:\n"
       "  lockstep targets\n"
       "  lockstep targets mixture20"},
      {"samplers", "NAME", "Show only this sampler, in full.",
       "List the samplers and the methods of evidence, or show one in full.\n"
       "In full: what it does, its settings with their defaults, and where it was published.",
       "Examples:\n"
       "  lockstep samplers\n"
       "  lockstep samplers pe"},
      {"devices", "", "",
       "List the back ends, the CPU's instruction sets and the GPUs.\n"
       "With --measure also what they reach, against which throughput is reported.",
       "Examples:\n"
       "  lockstep devices\n"
       "  lockstep devices --measure"},
      {"sample", "", "",
       "Draw from a target with many chains and report its moments.\n"
       "Ends with diagnostics and a verdict: exit status 3 says that a gate failed, or that the run was too "
       "short.",
       "Examples:\n"
       "  lockstep sample --target mixture20 --sampler pe --set target.scenario=b --seed 7\n"
       "  lockstep sample --target gaussian --sampler hmc --set target.dim=10 --iterations 5000 --draws "
       "--out run1\n\n"
       "A file for --init holds one start a row, which the chains share out:\n"
       "JSON, {\"x\": [[0, 0], [5, 5]]}, or CSV or .npy with a column for each axis (CSV with or without a "
       "header);\nor modes.json of lockstep modes, or summary.json of a run: the modes that these list."},
      {"evidence", "", "",
       "Estimate the logarithm of a target's normalising constant (the evidence).\n"
       "Runs until the standard error is small or the budget of gradients is spent.",
       "Examples:\n"
       "  lockstep evidence --target mixture20 --method ais\n"
       "  lockstep evidence --target radon --data radon.json --method bdmc --se 0.1 --out run2\n\n"
       "A file for --init holds one known point a row, as of lockstep sample: modes there are taken\n"
       "into the library, and the scout's base covers them."},
      {"study", "FILE.toml", "The study: replicates x settings.",
       "Run every setting of a study many times and compare with the truth.\n"
       "Writes tables, pictures and a report; an interrupted study goes on with --resume.",
       "Examples:\n"
       "  lockstep study bench/studies/table1.toml --out results\n"
       "  lockstep study mine.toml --out results --replicates 5 --only \"a PE N=2\"\n\n"
       "Unlike those of lockstep sample, chains of a setting jump between modes only with\n"
       "sampler_settings = { mode_jumps = true }. The keys of FILE.toml: docs/studies.md.\n\n"
       "Exit status: 0 even where settings fail their gates (table.md names them), never 3."},
      {"modes", "", "",
       "Search for the modes of a target: places, widths, masses.\n"
       "By many descents side by side; says why it stopped, and what no search can know.",
       "Examples:\n"
       "  lockstep modes --target mixture20\n"
       "  lockstep modes --target mixture20 --out found\n\n"
       "--out DIR gets modes.json and modes.png. A file for --init holds one point a row: modes there "
       "are taken in,\nfrom the others descents begin.\n\n"
       "Columns: share of the sum of the modes' masses, and its error; log mass by 256 importance draws, and "
       "in\n"
       "Laplace's approximation; hits, the descents that came to rest there; effective, the share of the "
       "draws that\n"
       "count (of a normal mode 0.9 / sqrt(dim + 1/2); under 5 % the mass is a guess).\n\n"
       "Settings: search.starts (256), descents of the first round, of the next four times as many, up to "
       "1024;\n"
       "search.residual (none), log or difference: later descents minimise what is left beside the modes "
       "known,\n"
       "with their normals to the power 1 / search.temperature (1.05). It finds no more than other starts "
       "do."},
      {"check", "NAME", "The target to check; the same as --target.",
       "Check a target: its gradient, that all lanes agree, and that transitions keep it.\n"
       "For a new target before it is trusted, or for a new machine.",
       "Examples:\n"
       "  lockstep check --target mixture20\n"
       "  lockstep check --target gaussian --set target.dim=5 --device cpu"}};
  return texts;
}

void refuse_both(bool resume, bool force) {
  if (resume && force)
    throw UserError(
        "--resume and --force are both given (one goes on from what is there, the other overwrites "
        "it). Keep one.");
}

void check_together(const RunOptions& run) {
  const std::string command = "lockstep " + run.command;
  if (run.target.empty())
    throw UserError(
        fmt::format("{} has no target (there is nothing to work on). Add --target NAME; lockstep targets "
                    "lists them.",
                    command));
  if (run.command == "check" || run.command == "modes")
    return;  // what else a file of --config says is not for it
  if (run.warmup_draws && run.draws == 0)
    throw UserError(
        "--warmup-draws has no --draws (the warm-up's draws stand beside the others). Add --draws, or leave "
        "it "
        "out.");
  if (run.weighted_draws && run.draws == 0)
    throw UserError(
        "--weighted-draws has no --draws (the weighted states stand beside the draws). Add --draws, or leave "
        "it out.");
  if (run.thin > 1 && run.draws == 0)
    throw UserError(
        "--thin has no --draws (it thins stored draws; moments take every iteration). Add --draws, or leave "
        "it "
        "out.");
  refuse_both(run.resume, run.force);
  if (!run.out.empty()) return;
  if (run.draws != 0 && run.json)
    throw UserError(
        "--draws with --json has no --out (standard output is for the summary alone, so the draws would be "
        "lost). Add --out DIR.");
  if (run.draws != 0) throw UserError("--draws has no --out (the draws would be lost). Add --out DIR.");
  if (run.resume)
    throw UserError("--resume has no --out (a run resumes from the checkpoint there). Add --out DIR.");
  if (run.force) throw UserError("--force has no --out (without it no file is written). Add --out DIR.");
  if (run.checkpoint > 0)
    throw UserError("--checkpoint has no --out (checkpoints are kept there). Add --out DIR.");
}

}  // namespace lockstep
