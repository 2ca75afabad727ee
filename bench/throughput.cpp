// SPDX-License-Identifier: Apache-2.0
// lockstep-bench: gradients per second of the whole sampler, against the machine's own measured peak.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>

#include "host/options/target_input.hpp"
#include "host/runs/adapt.hpp"
#include "host/runs/chain_result.hpp"
#include "host/runs/run_context.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "host/util/peak.hpp"
#include "host/util/program.hpp"
#include "host/util/settings.hpp"
#ifdef LOCKSTEP_CUDA
#include "targets/cuda_device.hpp"
#endif

namespace lockstep {
namespace {

struct Figures {
  int threads;
  double gradients_per_s, gradients_per_cpu_s, steps_per_iteration, fraction, peak;
  // What a leapfrog step moves where no row stays in registers or cache: position, momentum and gradient,
  // each read and written once.
  double bytes_per_gradient;
  double moved() const { return gradients_per_s * bytes_per_gradient; }  // bytes a second
};

/// Warm chains for about `seconds`, recording as a run does: the best of five.
Figures measure(const RunOptions& run, const TargetInstance& target, int threads, double seconds) {
  RunOptions r = run;
  r.threads = threads;
  const SamplerConfig config = sampler_config(r, target.dim(), target.tails());
  RunContext context = make_context(r, target, "bench");
  ChainRunOptions options;
  options.units = {0};
  options.chains = r.chains;
  options.warmup = 100;
  const Adapted adapted = adapt(context, config, options);
  const Frozen& frozen = adapted.frozen;
  auto engine = target.engine(engine_spec(context, frozen.model, options.units, options.chains));
  set_frozen(*engine, config, options.units, frozen);
  engine->set_position(adapted.positions);
  engine->initialize();
  LaunchSpec launch = options.launch(context, config);
  launch.record = true;
  double best = 0, best_cpu = 0, steps = 0, length = 64;
#ifdef LOCKSTEP_CUDA
  if (context.cuda) start_cuda_profiler();
#endif
  for (int repeat = 0; repeat < 6; ++repeat) {
    launch.begin = launch.end;
    launch.end += std::uint32_t(length);
    engine->take_stats();
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    engine->advance(launch);
    const auto stats = engine->take_stats();
    const double cpu = double(std::clock() - cpu_start) / CLOCKS_PER_SEC;
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double gradients = 0;
    for (int c = 0; c < engine->chains(); ++c)
      gradients += stats[std::size_t(stat_gradients) * engine->chains() + c];
    steps = gradients / engine->chains() / engine->samples() / double(launch.end - launch.begin);
    if (repeat > 0) best = std::max(best, gradients / wall);
    if (repeat > 0 && cpu > 0) best_cpu = std::max(best_cpu, gradients / cpu);
    length = std::clamp(length * seconds / 5 / wall, 16.0, 1e6);
  }
  // What is bound by matrix products is held to what Eigen or cuBLAS reaches on square ones.
  const bool in_double = r.precision == "double";
  double peak = (target.batched() ? product_peak_gflops : fma_peak_gflops)(in_double, threads) * 1e9;
#ifdef LOCKSTEP_CUDA
  if (context.cuda) peak = (target.batched() ? measure_product_peak : measure_fma_peak)(in_double);
#endif
  const double bytes = 6.0 * engine->rows() / engine->samples() * (in_double ? 8 : 4);
  return {threads, best, best_cpu, steps, best * target.operations_per_gradient() / peak, peak, bytes};
}

/// A mistake in where the figures go must not cost the time of measuring them.
void check_file(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file))
    throw UserError(
        fmt::format("--json {} is a folder (the figures go to a file). Name a file.", file.string()));
  ensure_writable_folder(std::filesystem::absolute(file).parent_path());
}

struct BenchOptions {
  RunOptions run;
  int dim = 0, samples = 5;
  double seconds = 3;
  std::string json, weights;
  std::vector<std::string> settings;
  std::vector<int> chains = {1024};
};

void add_options(CLI::App& app, BenchOptions& o) {
  app.add_option("--target", o.run.target, "target")->capture_default_str();
  app.add_option("--data", o.run.data, "its data, where it needs some");
  app.add_option("--weights", o.weights, "weights of target decoder (one simulated image)");
  app.add_option("--data-dir", o.run.data_dir, "where they are looked for");
  app.add_option("--dim", o.dim, "dimension, for targets that have one")->check(CLI::Range(1, 100000));
  app.add_option("--chains", o.chains, "chains, or several numbers of them: 1024,65536")
      ->capture_default_str()
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--sampler", o.run.sampler, "sampler")
      ->capture_default_str()
      ->check(CLI::IsMember({"pe", "hmc"}));
  app.add_option("--pseudo-samples", o.samples, "N of pe")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_option("--set", o.settings, "a setting: target.KEY=VALUE or sampler.KEY=VALUE; may be repeated")
      ->take_all();
  app.add_option("--precision", o.run.precision, "precision")
      ->capture_default_str()
      ->check(CLI::IsMember({"single", "mixed", "double"}));
  app.add_option("--device", o.run.device, "device")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  app.add_option("--threads", o.run.threads, "only this many threads (default: 1, 2, 4, ... all)")
      ->check(CLI::Range(1, 65536));
  app.add_option("--seconds", o.seconds, "time for each measurement")
      ->capture_default_str()
      ->check([](const std::string& text) {
        const double value = std::strtod(text.c_str(), nullptr);
        return value >= 0.01 && value <= 3600 ? "" : "Value " + text + " not in range 0.01 to 3600";
      });
  app.add_option("--json", o.json, "write the figures to this file");
}

/// What the command line asks for; none where that is help, which is printed.
std::optional<BenchOptions> read_options(int argc, char** argv) {
  CLI::App app(
      "Throughput of the whole sampler (random numbers, leapfrog, acceptance, accumulation): target "
      "gradients\n"
      "per second, and the fraction of the measured fused-multiply-add peak (of the measured rate of matrix "
      "products, where gradients are such) that the gradients alone make up.",
      "lockstep-bench");
  BenchOptions o;
  RunOptions& run = o.run;
  run.target = "mixture20";
  run.quiet = true;
  run.sampler = "pe";
  add_options(app, o);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {
      app.exit(e);
      return {};
    }
    throw UserError(std::string(e.what()) + " (lockstep-bench cannot start). See lockstep-bench --help");
  }
  if (!o.weights.empty()) run.target_settings = {{"weights", o.weights}, {"images", "simulate:1"}};
  if (o.dim > 0) run.target_settings["dim"] = o.dim;
  if (run.sampler == "pe") run.sampler_settings["pseudo_samples"] = o.samples;
  for (const std::string& text : o.settings) {
    const SetOption option = parse_set(text);
    (option.scope == "target" ? run.target_settings : run.sampler_settings)[option.key] = option.value;
  }
  if (run.sampler == "hmc" && !run.sampler_settings.contains("num_leapfrog") &&
      !run.sampler_settings.contains("trajectory_time"))
    run.sampler_settings["trajectory_time"] = 1.0;
  return o;
}

std::vector<int> numbers_of_threads(const RunOptions& run, bool cuda) {
  if (run.threads > 0) return {run.threads};
  if (cuda) return {default_threads()};
  std::vector<int> threads;
  for (int t = 1; t <= default_threads();
       t = t < default_threads() ? std::min(2 * t, default_threads()) : t + 1)
    threads.push_back(t);
  return threads;
}

/// A line of the file; bandwidth: of copies on the device, or 0.
nlohmann::ordered_json row_of(int chains, const Figures& f, double bandwidth) {
  nlohmann::ordered_json row = {{"chains", chains},
                                {"threads", f.threads},
                                {"gradients_per_s", f.gradients_per_s},
                                {"gradients_per_cpu_s", f.gradients_per_cpu_s},
                                {"steps_per_iteration", f.steps_per_iteration},
                                {"fraction_of_peak", f.fraction},
                                {"peak_gflops", f.peak * 1e-9}};
  if (bandwidth > 0)
    row.update({{"bytes_per_gradient", f.bytes_per_gradient},
                {"fraction_of_bandwidth", f.moved() / bandwidth},
                {"copy_bandwidth_gb_s", bandwidth * 1e-9}});
  return row;
}

int bench(int argc, char** argv) {
  auto options = read_options(argc, argv);
  if (!options) return 0;
  RunOptions& run = options->run;
  const auto target = build_target(run);
  const SamplerConfig config = sampler_config(run, target->dim(), target->tails());  // refuses what is wrong
  if (!options->json.empty()) check_file(options->json);
  const RunContext context = make_context(run, *target, "bench");
  const std::vector<int> threads = numbers_of_threads(run, context.cuda);
  nlohmann::ordered_json out = {{"target", run.target},
                                {"dim", target->dim()},
                                {"sampler", run.sampler},
                                {"pseudo_samples", config.model.pseudo_samples},
                                {"settings", run.sampler_settings},
                                {"precision", run.precision},
                                {"device", device_name(context)},
                                {"instruction_set", cpu_isa()},
                                {"compiler", __VERSION__},
                                {"operations_per_gradient", target->operations_per_gradient()}};
  fmt::print("{} ({} dimensions), {}, {}, {}; {:.0f} operations per gradient\n", run.target, target->dim(),
             run.sampler, run.precision, device_name(context), target->operations_per_gradient());
  double bandwidth = 0;
#ifdef LOCKSTEP_CUDA
  if (context.cuda) bandwidth = measure_copy_bandwidth();
#endif
  fmt::print("{:>8} {:>8} {:>14} {:>18} {:>10}{}\n", "chains", "threads", "gradients/s", "fraction of peak",
             "scaling", bandwidth > 0 ? "  rows' bytes / copy bandwidth" : "");
  for (int n : options->chains) {
    run.chains = n;
    double first = 0;
    for (int t : threads) {
      const Figures f = measure(run, *target, t, options->seconds);
      if (first == 0) first = f.gradients_per_s / t;
      fmt::print("{:>8} {:>8} {:>14.3e} {:>18.3f} {:>10.2f}{}\n", n, t, f.gradients_per_s, f.fraction,
                 f.gradients_per_s / first / threads[0],
                 bandwidth > 0 ? fmt::format("  {:.3f}", f.moved() / bandwidth) : "");
      std::fflush(stdout);
      out["runs"].push_back(row_of(n, f, bandwidth));
    }
  }
  if (!options->json.empty()) write_atomically(options->json, out.dump(2) + "\n");
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_program("lockstep-bench", [&] { return lockstep::bench(argc, argv); });
}
