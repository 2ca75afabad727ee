// SPDX-License-Identifier: Apache-2.0
#include "host/cli/commands.hpp"

#include <fmt/format.h>

#include <cmath>

#include "host/commands/check.hpp"
#include "host/commands/evidence.hpp"
#include "host/commands/run_files.hpp"
#include "host/commands/run_report.hpp"
#include "host/commands/sample.hpp"
#include "host/commands/table.hpp"
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

void list_targets(const std::string& name) {
  if (name.empty()) {
    for (const auto& entry : target_registry())
      fmt::print("{:<12} {}\n", entry.info().name, entry.info().summary);
    fmt::print("\nMore on one: lockstep targets NAME\n");
    return;
  }
  const TargetInfo info = require_target(name).info();
  fmt::print("{}: {}\n  log density  {}\n", info.name, info.summary, info.formula);
  const bool complete = std::none_of(info.settings.begin(), info.settings.end(), [](const auto& setting) {
    return setting.second.find("no default") != std::string::npos;
  });
  if (info.data.empty() && complete) {
    RunOptions run;
    run.target = name;
    const auto target = build_target(run);
    const bool has_dim = std::any_of(info.settings.begin(), info.settings.end(),
                                     [](const auto& setting) { return setting.first == "dim"; });
    fmt::print("  dimension    {}{}\n", target->dim(), has_dim ? " by default" : "");
    for (const auto& q : target->quantities()) fmt::print("  also reports {}\n", q);
  } else if (!info.data.empty()) {
    fmt::print("  data         {}\n", info.data);
  }
  fmt::print("  truth        {}\n", info.truth);
  if (!info.settings.empty()) fmt::print("  settings\n");
  print_settings(info.settings, "target");
}

void list_samplers(const std::string& name) {
  std::vector<std::string> names;
  const auto list = [&](const SamplerInfo& s, int width) {
    if (std::find(names.begin(), names.end(), s.name) == names.end()) names.push_back(s.name);  // pe is both
    if (name.empty()) fmt::print("{:<{}} {}\n", s.name, width, s.summary);
    if (name != s.name) return;
    fmt::print("{}: {}\n  {}\n  source       {}\n", s.name, s.summary, s.formula, s.source);
    if (!s.settings.empty()) fmt::print("  settings\n");
    print_settings(s.settings, "sampler");
    const auto of_items = item_settings(s.name);
    if (!of_items.empty()) fmt::print("  settings on a target with many items, such as decoder\n");
    print_settings(of_items, "sampler");
  };
  for (const SamplerInfo& s : sampler_registry()) list(s, 6);
  if (name.empty()) fmt::print("\nmethods of lockstep evidence\n");
  for (const EvidenceMethod& m : method_registry()) list(m.info, 9);
  if (name.empty())
    fmt::print("\nMore on one: lockstep samplers NAME\n");
  else if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError("there is no sampler " + name + ". " + near_or_known(name, names, "samplers"));
}

void list_devices(bool measure) {
  fmt::print("cpu   {} threads, kernels built for {} ({} floats a register)\n", hardware_threads(), cpu_isa(),
             cpu_register_floats());
  if (measure) {
    for (int threads : {1, hardware_threads()})
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

void print_method(const nlohmann::ordered_json& s) {
  fmt::print("method {}, base {}\n", s["sampler"]["name"].get<std::string>(),
             s["diagnostics"]["base"].get<std::string>());
}

/// Of a target with items: means over them, and the items one by one where they are few.
void print_items(const nlohmann::ordered_json& s) {
  const auto& z = s["log_z"];
  const auto number = [](const nlohmann::ordered_json& j, const char* key) { return j.value(key, NAN); };
  const auto text = [](double v) { return std::isnan(v) ? std::string() : fmt::format("{:.3f}", v); };
  fmt::print("{:>6} {:>12} {:>8} {:>12} {:>12} {:>8} {:>8}\n", "item", "log_z", "se", "lower", "upper", "gap",
             "ess");
  const auto& items = s["items"];
  for (std::size_t i = 0; i < std::min<std::size_t>(items.size(), 10); ++i) {
    const auto& e = items[i]["log_z"];
    fmt::print("{:>6} {:>12} {:>8} {:>12} {:>12} {:>8} {:>8}\n", i, text(number(e, "estimate")),
               text(number(e, "se")), text(number(e, "lower")), text(number(e, "upper")),
               text(number(e, "gap")),
               text(std::fmin(number(items[i], "weight_ess"), number(items[i], "reverse_ess"))));
  }
  if (items.size() > 10)
    fmt::print("... and {} more (--json, or items.csv of --out, show all)\n", items.size() - 10);
  // The error of the runs for these images, and, of others like them, of which images there are.
  const auto mean = [&](const std::string& name, const std::string& key, const std::string& se) {
    if (std::isnan(number(z, key.c_str()))) return;
    const std::string of_runs = se == "se" ? "mc_se" : se.substr(0, se.size() - 2) + "mc_se";
    fmt::print("{:<30} {:>24}", name, with_error(number(z, key.c_str()), number(z, of_runs.c_str())));
    if (!std::isnan(number(z, se.c_str()))) fmt::print("  (over images +- {:.2g})", number(z, se.c_str()));
    fmt::print("\n");
  };
  fmt::print("\n");
  print_method(s);
  mean("mean log_z", "estimate", "se");
  mean("mean lower bound", "lower", "lower_se");
  mean("mean upper bound", "upper", "upper_se");
  if (!std::isnan(number(z, "gap")))
    fmt::print("{:<30} {:>24}\n", "mean gap", with_error(number(z, "gap"), number(z, "gap_se")));
  const auto& d = s["diagnostics"];
  fmt::print("{:<30} {:>24}\n", "mean importance-weighted bound",
             with_error(number(d, "importance_bound"), number(d, "importance_bound_se")));
  if (s.contains("truth")) fmt::print("{:<30} {:>24.6g}\n", "mean truth", s["truth"]["log_z"].get<double>());
}

void print_cost(const nlohmann::ordered_json& s) {
  const auto& d = s["diagnostics"];
  fmt::print("\n{} chains x {} iterations, {:.3g} gradients in {:.2f} s ({:.3g} per second)\n",
             s["chains"].get<int>(), s["iterations"].get<std::int64_t>(),
             s["cost"]["gradients"].get<double>(), s["cost"]["sampling_s"].get<double>(),
             s["cost"]["gradients_per_s"].get<double>());
  if (d.contains("acceptance"))
    fmt::print("acceptance {:.3f}, step size {:.4g}, leapfrog steps {:.1f}, divergences {}",
               d["acceptance"].get<double>(), d["step_size"].get<double>(), d["num_leapfrog"].get<double>(),
               d["divergences"].get<std::int64_t>());
  for (const char* key : {"rhat_max", "nested_rhat_max", "weight_ess"})
    if (d.contains(key)) fmt::print(", {} {:.4g}", key, d[key].get<double>());
  fmt::print("\nverdict: {}", s["verdict"].get<std::string>());
  for (const auto& gate : s["failed_gates"]) fmt::print(" ({})", gate.get<std::string>());
  fmt::print("\n");
  if (!s["failed_gates"].empty())
    fmt::print(
        "what each gate asks, and what to do: report.html of a run with --out, or \"When to trust a run\" in "
        "the README\n");
  for (const auto& warning : s["warnings"]) fmt::print("warning: {}\n", warning.get<std::string>());
}

void print_summary(const nlohmann::ordered_json& s) {
  if (s["target"].contains("items")) {
    print_items(s);
  } else {
    fmt::print("{}", estimates_table(s));
    if (s["diagnostics"].contains("base")) print_method(s);
  }
  print_cost(s);
}

/// The summary of a run as the user asked for it, and where its files are.
void report(const RunOptions& run, const nlohmann::ordered_json& summary) {
  if (run.json)
    fmt::print("{}", summary_text(summary));
  else
    print_summary(summary);
  if (!run.out.empty() && !run.quiet) say("files in " + run.out.string());
}

/// `sample` or `evidence`.
int run_one(const RunOptions& run) {
  const std::string goes_on =
      fmt::format("lockstep {} --out {} --resume goes on", run.command, run.out.string());
  bool stopped = false;
  nlohmann::ordered_json summary;
  try {
    summary = run.command == "evidence" ? evidence(run, stopped) : sample(run, stopped);
  } catch (const Interrupted&) {
    say(fmt::format("interrupted before anything was {}{}", run.resume ? "added" : "recorded",
                    run.out.empty() ? ": nothing is kept" : "; " + goes_on));
    return 130;
  } catch (const FilesLost& lost) {  // the table says what the files cannot
    report(run, lost.summary);
    throw;
  }
  report(run, summary);
  std::fflush(stdout);
  draw_run(run);
  if (stopped) {
    const bool saved = std::filesystem::exists(run.out / "checkpoint");
    say(fmt::format("interrupted: what was sampled so far is above; {}",
                    run.out.empty() ? "with --out it could be gone on with"
                    : saved         ? goes_on
                                    : "its state could not be saved"));
    return 130;
  }
  return summary["verdict"] == "pass" ? 0 : 3;
}

}  // namespace

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
