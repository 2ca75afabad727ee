// SPDX-License-Identifier: Apache-2.0
// Lists the targets and samples one of them through the installed headers.
#include <cmath>
#include <cstdio>

#include "host/commands/sample.hpp"
#include "targets/registry.hpp"

int main() {
  for (const auto& entry : lockstep::target_registry()) std::printf("%s\n", entry.info().name.c_str());
  lockstep::RunOptions run;
  run.target = "gaussian";
  run.sampler = "hmc";
  run.chains = 32;
  run.iterations = 100;
  run.quiet = true;
  const lockstep::SampleResult result = lockstep::sample(run);
  const double mean = result.estimates.mean[0], se = result.estimates.mean_se[0];
  std::printf("mean[0] = %g +- %g\n", mean, se);
  return std::abs(mean) < 5 * se ? 0 : 1;
}
