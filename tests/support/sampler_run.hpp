// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whole runs of a sampler on a target: scout, warm-up, recording, estimates.
#include <gtest/gtest.h>

#include "host/commands/sample.hpp"
#include "host/estimators/estimates.hpp"
#include "host/options/target_input.hpp"
#include "host/runs/chain_run.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/run_context.hpp"
#include "host/util/files.hpp"

namespace lockstep::testing {

/// A whole run as tests ask for it.
struct Job {
  std::string target = {}, sampler = "pe";
  Settings target_settings = Settings::object(), sampler_settings = Settings::object();
  std::int64_t iterations = 600;
  int chains = 64;
  std::int64_t warmup = 400;
  std::string precision = "mixed", init = "scout";
  bool pooled = false;
  int replicates = 16;
  std::string data = {};  // JSON text
};

struct Outcome {
  std::unique_ptr<TargetInstance> target;
  SamplerConfig config;
  ChainRunResult result;
  std::vector<Estimates> units;
  std::vector<std::string> failed(std::size_t unit) const {
    return failed_gates(units[unit], result, unit, config);
  }
};

inline RunOptions run_of(const Job& job) {
  RunOptions run;
  run.target = job.target;
  run.target_settings = job.target_settings;
  run.sampler = job.sampler;
  run.sampler_settings = job.sampler_settings;
  run.chains = job.chains;
  run.warmup = job.warmup;
  run.iterations = job.iterations;
  run.precision = job.precision;
  run.init = job.init;
  run.device = "cpu";
  run.threads = 1;  // tests run side by side, and no bit depends on it
  run.seed = 20260301;
  if (!job.data.empty()) {  // renamed into place: several test processes may write the same file at once
    run.data =
        ::testing::TempDir() + "lockstep-" + std::to_string(std::hash<std::string>()(job.data)) + ".json";
    write_atomically(run.data, job.data);
  }
  return run;
}

inline ChainRunResult run_on(const TargetInstance& target, const Job& job, std::vector<std::uint32_t> units) {
  const RunOptions run = run_of(job);
  ChainRunOptions options{run, std::move(units)};
  options.pooled = job.pooled;
  return run_chains(make_context(run, target, "test"), sampler_config(run, target.dim(), target.tails()),
                    options);
}

/// Runs of `sample` within so many gradients, of seeds 1 to `seeds`.
inline std::vector<SampleResult> runs_of(const Job& job, double gradients, int seeds) {
  std::vector<SampleResult> all;
  for (int seed = 1; seed <= seeds; ++seed) {
    RunOptions run = run_of(job);
    run.gradients = gradients;
    run.seed = std::uint64_t(seed);
    run.quiet = true;
    all.push_back(sample(run));
  }
  return all;
}

/// Mean square of (value - truth) / se.
inline double mean_square_z(const std::vector<double>& value, const std::vector<double>& se,
                            const std::vector<double>& truth) {
  double sum = 0;
  for (std::size_t i = 0; i < value.size(); ++i) sum += std::pow((value[i] - truth[i]) / se[i], 2);
  return sum / double(value.size());
}

inline Outcome run(const Job& job) {
  Outcome o;
  o.target = build_target(run_of(job));
  o.config = sampler_config(run_of(job), o.target->dim(), o.target->tails());
  std::vector<std::uint32_t> units(job.replicates);
  for (int u = 0; u < job.replicates; ++u) units[u] = u;
  o.result = run_on(*o.target, job, units);
  for (const auto& m : o.result.units) o.units.push_back(estimate(m));
  return o;
}

}  // namespace lockstep::testing
