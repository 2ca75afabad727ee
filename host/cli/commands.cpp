// SPDX-License-Identifier: Apache-2.0
#include "host/cli/commands.hpp"

#include <fmt/format.h>

#include "host/commands/check.hpp"
#include "host/commands/evidence.hpp"
#include "host/commands/modes.hpp"
#include "host/commands/print_result.hpp"
#include "host/commands/run_report.hpp"
#include "host/commands/sample.hpp"
#include "host/options/evidence_config.hpp"
#include "host/options/item_config.hpp"
#include "host/options/target_input.hpp"
#include "host/runs/run_context.hpp"
#include "host/studies/study.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "host/util/interrupt.hpp"
#include "host/util/peak.hpp"
#include "host/util/program.hpp"
#include "host/util/suggest.hpp"
#ifdef LOCKSTEP_CUDA
#include "targets/cuda_device.hpp"
#endif

namespace lockstep {
namespace {

void print_settings(const std::vector<std::pair<std::string, std::string>>& settings,
                    const std::string& scope) {
  for (const auto& [key, meaning] : settings) fmt::print("    --set {}.{:<20} {}\n", scope, key, meaning);
}

/// Of the settings that are the default, without data; null where a setting has none.
std::unique_ptr<TargetInstance> usual_target(const std::string& name) {
  RunOptions run;
  run.target = name;
  try {
    return build_target(run);
  } catch (const UserError&) {
    return nullptr;
  }
}

void list_targets(const std::string& name) {
  if (name.empty()) {
    for (const auto& entry : target_registry())
      fmt::print("{:<12} {}\n", entry.info().name, entry.info().summary);
    fmt::print("\nMore on one: lockstep targets NAME\n");
    return;
  }
  const TargetInfo info = require_target(name).info();
  fmt::print("{}: {}\n  log density  {}\n", info.name, info.summary, info.formula);
  if (!info.data.empty()) {
    fmt::print("  data         {}\n", info.data);
  } else if (const auto target = usual_target(name)) {
    const bool has_dim = std::any_of(info.settings.begin(), info.settings.end(),
                                     [](const auto& setting) { return setting.first == "dim"; });
    fmt::print("  dimension    {}{}\n", target->dim(), has_dim ? " by default" : "");
    for (const auto& q : target->quantities()) fmt::print("  also reports {}\n", q);
  }
  fmt::print("  truth        {}\n", info.truth);
  if (!info.settings.empty()) fmt::print("  settings\n");
  print_settings(info.settings, "target");
}

void list_samplers(const std::string& name) {
  std::vector<std::string> names;
  const auto list = [&](const SamplerInfo& s, int width) {
    const bool again = std::find(names.begin(), names.end(), s.name) != names.end();  // pe is both
    if (!again) names.push_back(s.name);
    if (name.empty()) fmt::print("{:<{}} {}\n", s.name, width, s.summary);
    if (name != s.name) return;
    fmt::print("{}: {}\n  {}\n  source       {}\n", s.name, s.summary, s.formula, s.source);
    if (again) return fmt::print("  settings     as above\n");
    if (!s.settings.empty()) fmt::print("  settings\n");
    print_settings(s.settings, "sampler");
    const auto of_items = item_settings(s.name);
    if (!of_items.empty()) fmt::print("  settings on a target with many items, such as decoder\n");
    print_settings(of_items, "sampler");
    if (!s.gates.empty()) fmt::print("  gates of its own\n");
    for (const std::string& gate : s.gates) fmt::print("    {}\n", gate);
  };
  for (const SamplerInfo& s : sampler_registry()) list(s, 6);
  if (name.empty()) fmt::print("\nmethods of lockstep evidence\n");
  for (const EvidenceMethod& m : method_registry()) list(m.info, 9);
  if (name.empty())
    fmt::print("\nMore on one: lockstep samplers NAME\n");
  else if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError("there is no sampler " + name + ". " + instead_of_sampler(name, names));
}

void list_devices(bool measure) {
  fmt::print("cpu   {} threads, kernels built for {} ({} floats a register)\n", default_threads(), cpu_isa(),
             cpu_register_floats());
  if (measure) {
    for (int threads : {1, default_threads()})
      fmt::print(
          "      {} thread{}: {:.1f} GFLOP/s single, {:.1f} GFLOP/s double (fused multiply-adds, 2 each)\n",
          threads, threads > 1 ? "s" : "", fma_peak_gflops(false, threads), fma_peak_gflops(true, threads));
  }
#ifdef LOCKSTEP_CUDA
  std::string why_not;
  if (const auto device = find_cuda_device(&why_not)) {
    fmt::print("cuda  {}, sm_{}{}, {} multiprocessors, {:.1f} GiB\n", device->name, device->major,
               device->minor, device->multiprocessors, double(device->memory) / 1073741824);
    if (measure)
      fmt::print(
          "      {:.0f} GFLOP/s single, {:.0f} double (fused multiply-adds, 2 each), copies at {:.0f} GB/s\n",
          measure_fma_peak(false) * 1e-9, measure_fma_peak(true) * 1e-9, measure_copy_bandwidth() * 1e-9);
  } else {
    fmt::print("cuda  built in, but not usable: {}\n", why_not);
  }
#else
  fmt::print("cuda  not built in (build the preset cuda-release where nvcc is installed)\n");
#endif
}

std::string how_to_go_on(const RunOptions& run) {
  return fmt::format("lockstep {} --out {} --resume goes on", run.command, run.out.string());
}

/// What a run found as the user asked for it, and where its files are.
template <class Result>
int report(const RunOptions& run, const Result& result) {
  if (run.json)
    fmt::print("{}", summary_text(to_json(result)));
  else
    print_result(result);
  if (!run.out.empty() && !run.quiet) say("files in " + run.out.string());
  if (!result.lost.empty()) throw std::runtime_error(result.lost);  // the table has said what files cannot
  std::fflush(stdout);
  draw_run(run);
  if (!result.interrupted) return result.verdict == "pass" ? 0 : 3;
  const bool saved = std::filesystem::exists(run.out / "checkpoint");
  say(fmt::format("interrupted: what was sampled so far is above; {}",
                  run.out.empty() ? "with --out it could be gone on with"
                  : saved         ? how_to_go_on(run)
                                  : "its state could not be saved"));
  return 130;
}

/// `sample` or `evidence`.
int run_one(const RunOptions& run) {
  try {
    if (run.command == "sample") return report(run, sample(run));
    return std::visit([&](const auto& result) { return report(run, result); }, evidence(run));
  } catch (const Interrupted&) {
    say(fmt::format("interrupted before anything was {}{}", run.resume ? "added" : "recorded",
                    run.out.empty() ? ": nothing is kept" : "; " + how_to_go_on(run)));
    return 130;
  }
}

int search(const RunOptions& run) {
  try {
    show_modes(run);
    return 0;
  } catch (const Interrupted&) {
    say("interrupted: nothing is kept");
    return 130;
  }
}

}  // namespace

bool is_run(const std::string& command) {
  return command == "sample" || command == "evidence" || command == "study";
}

int run_command(const CommandLine& line) {
  catch_interrupts();
  if (line.command == "targets")
    list_targets(line.name);
  else if (line.command == "samplers")
    list_samplers(line.name);
  else if (line.command == "devices")
    list_devices(line.measure);
  else if (line.command == "check")
    return check_target(line.run) ? 0 : 3;
  else if (line.command == "modes")
    return search(line.run);
  else if (line.command == "study") {
    if (!run_study(line.study)) return 0;
    fmt::print(stderr, "interrupted: add --resume to go on where it stopped\n");
    return 130;
  } else {
    return run_one(line.run);
  }
  return 0;
}

}  // namespace lockstep
