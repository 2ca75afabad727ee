// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/evidence.hpp"
#include "host/tempered_run.hpp"

namespace lockstep {

/// Settings of a method of evidence, checked, with the defaults of `lockstep samplers NAME`.
struct EvidenceConfig {
  std::string method;  // auto, st, ct-gibbs, smc, ais, bdmc
  int groups = 8;
  // The base.
  // auto (mean-field where the target has one, else scout), gaussian, mean-field, scout, warmup, advi,
  // mixture.
  std::string base = "auto";
  std::vector<double> base_mean, base_sd;
  double base_inflation = 1.2;
  int base_starts = 2000, scout_particles = 2048, bootstrap = 0;
  // The path.
  int num_leapfrog = 5;
  double target_acceptance = 0.8, rate = 0.25, pilot_share = 0.2, discard = 0.2;
  int temperatures = 1000;
  std::string schedule = "barrier";
  // How much, over everything.
  double gradients = 1e8;
  int chains = 1024, particles = 4096;
  Settings effective;
};

EvidenceConfig evidence_config(const RunOptions& run, int dim);

}  // namespace lockstep
