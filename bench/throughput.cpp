// SPDX-License-Identifier: Apache-2.0
// lockstep-bench: gradients per second of the whole sampler, against the machine's own measured peak.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "host/chain_run.hpp"
#include "host/errors.hpp"
#include "host/files.hpp"
#include "host/peak.hpp"
#include "host/program.hpp"
#include "host/run_context.hpp"
#include "host/target_input.hpp"
#ifdef LOCKSTEP_CUDA
#include "targets/cuda_device.hpp"
#endif

namespace lockstep {
namespace {

struct Figures {
  int threads;
  double gradients_per_s, fraction, peak;
};

/// Warm chains for about `seconds`, recording as a run does: best of three.
Figures measure(const RunOptions& run, const TargetInstance& target, int threads, double seconds) {
  RunOptions r = run;
  r.threads = threads;
  const SamplerConfig config = sampler_config(r, target.dim(), target.tails());
  RunContext context = make_context(r, target, "bench");
  ChainRunOptions options;
  options.units = {0};
  options.chains = r.chains;
  options.warmup = 100;
  std::vector<double> x;
  std::vector<int> superchain;
  ChainRunResult result;
  adapt(context, config, options, result, x, superchain);
  const Frozen& frozen = result.frozen;
  auto engine = target.engine(engine_spec(context, frozen.model, options.units, options.chains));
  set_frozen(*engine, config, frozen);
  engine->set_position(x);
  engine->initialize();
  LaunchSpec launch;
  launch.key = context.key;
  launch.record = true;
  double best = 0, length = 64;
  for (int repeat = 0; repeat < 6; ++repeat) {
    launch.begin = launch.end;
    launch.end += std::uint32_t(length);
    engine->take_stats();
    const auto start = std::chrono::steady_clock::now();
    engine->advance(launch);
    const auto stats = engine->take_stats();
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double gradients = 0;
    for (int c = 0; c < engine->chains(); ++c)
      gradients += stats[std::size_t(stat_gradients) * engine->chains() + c];
    if (repeat > 0) best = std::max(best, gradients / wall);
    length = std::clamp(length * seconds / 5 / wall, 16.0, 1e6);
  }
  // What is bound by matrix products is held to what Eigen or cuBLAS reaches on square ones.
  double peak =
      (target.batched() ? product_peak_gflops : fma_peak_gflops)(r.precision == "double", threads) * 1e9;
#ifdef LOCKSTEP_CUDA
  if (context.cuda)
    peak = target.batched() ? measure_product_peak(r.precision == "double") : measure_fma_peak();
#endif
  return {threads, best, best * target.operations_per_gradient() / peak, peak};
}

/// A mistake in where the figures go must not cost the time of measuring them.
void check_file(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file))
    throw UserError(
        fmt::format("--json {} is a folder (the figures go to a file). Name a file.", file.string()));
  ensure_writable_folder(std::filesystem::absolute(file).parent_path());
}

std::unique_ptr<TargetInstance> target_without_data(const RunOptions& run) {
  const std::string data = require_target(run.target).info().data;
  if (data.empty() || data.starts_with("optional")) return build_target(run);
  throw UserError(
      fmt::format("target {} needs data (lockstep-bench measures only targets that need none). See lockstep "
                  "targets for another.",
                  run.target));
}

int bench(int argc, char** argv) {
  CLI::App app(
      "Throughput of the whole sampler (random numbers, leapfrog, acceptance, accumulation): target "
      "gradients\n"
      "per second, and the fraction of the measured fused-multiply-add peak (of the measured rate of matrix "
      "products, where gradients are such) that the gradients alone make up.",
      "lockstep-bench");
  RunOptions run;
  run.target = "mixture20";
  run.chains = 1024;
  run.quiet = true;
  run.sampler = "pe";
  int dim = 0, samples = 5;
  double seconds = 3;
  std::string json, weights;
  app.add_option("--target", run.target, "target, one that needs no data")->capture_default_str();
  app.add_option("--weights", weights, "weights of target decoder (one simulated image)");
  app.add_option("--data-dir", run.data_dir, "where they are looked for");
  app.add_option("--dim", dim, "dimension, for targets that have one")->check(CLI::Range(1, 100000));
  app.add_option("--chains", run.chains, "chains")->capture_default_str()->check(CLI::Range(1, 1 << 24));
  app.add_option("--sampler", run.sampler, "sampler")
      ->capture_default_str()
      ->check(CLI::IsMember({"pe", "hmc"}));
  app.add_option("--pseudo-samples", samples, "N of pe")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_option("--precision", run.precision, "precision")
      ->capture_default_str()
      ->check(CLI::IsMember({"single", "mixed", "double"}));
  app.add_option("--device", run.device, "device")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  app.add_option("--threads", run.threads, "only this many threads (default: 1, 2, 4, ... all)")
      ->check(CLI::Range(1, 65536));
  app.add_option("--seconds", seconds, "time for each measurement")
      ->capture_default_str()
      ->check([](const std::string& text) {
        const double value = std::strtod(text.c_str(), nullptr);
        return value >= 0.01 && value <= 3600 ? "" : "Value " + text + " not in range 0.01 to 3600";
      });
  app.add_option("--json", json, "write the figures to this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    throw UserError(std::string(e.what()) + " (lockstep-bench cannot start). See lockstep-bench --help");
  }
  if (!weights.empty()) run.target_settings = {{"weights", weights}, {"images", "simulate:1"}};
  if (dim > 0) run.target_settings["dim"] = dim;
  if (run.sampler == "pe")
    run.sampler_settings["pseudo_samples"] = samples;
  else
    run.sampler_settings["trajectory_time"] = 1.0;
  const auto target = target_without_data(run);
  if (!json.empty()) check_file(json);
  const RunContext context = make_context(run, *target, "bench");
  std::vector<int> threads;
  if (run.threads > 0)
    threads = {run.threads};
  else if (context.cuda)
    threads = {hardware_threads()};
  else
    for (int t = 1; t <= hardware_threads();
         t = t < hardware_threads() ? std::min(2 * t, hardware_threads()) : t + 1)
      threads.push_back(t);
  nlohmann::ordered_json out = {
      {"target", run.target},           {"dim", target->dim()},
      {"sampler", run.sampler},         {"pseudo_samples", run.sampler == "pe" ? samples : 1},
      {"chains", run.chains},           {"precision", run.precision},
      {"device", device_name(context)}, {"instruction_set", cpu_isa()},
      {"compiler", __VERSION__},        {"operations_per_gradient", target->operations_per_gradient()}};
  fmt::print("{} ({} dimensions), {}, {} chains, {}, {}; {:.0f} operations per gradient\n", run.target,
             target->dim(), run.sampler, run.chains, run.precision, device_name(context),
             target->operations_per_gradient());
  fmt::print("{:>8} {:>14} {:>18} {:>10}\n", "threads", "gradients/s", "fraction of peak", "scaling");
  double first = 0;
  for (int t : threads) {
    const Figures f = measure(run, *target, t, seconds);
    if (first == 0) first = f.gradients_per_s / t;
    fmt::print("{:>8} {:>14.3e} {:>18.3f} {:>10.2f}\n", f.threads, f.gradients_per_s, f.fraction,
               f.gradients_per_s / first / threads[0]);
    out["runs"].push_back({{"threads", t},
                           {"gradients_per_s", f.gradients_per_s},
                           {"fraction_of_peak", f.fraction},
                           {"peak_gflops", f.peak * 1e-9}});
  }
  if (!json.empty()) write_atomically(json, out.dump(2) + "\n");
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_program("lockstep-bench", [&] { return lockstep::bench(argc, argv); });
}
