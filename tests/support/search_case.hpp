// SPDX-License-Identifier: Apache-2.0
#pragma once
// A target with what a search for its modes goes by.
#include <cmath>

#include "host/runs/run_context.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep::testing {

template <class Definition>
struct SearchCase {
  explicit SearchCase(MemoryInput in = {}) : held(listed_target<Definition>(in)), target(*held) {
    context.target = held.get();
    context.key = make_stream_key(5, "search");
  }
  std::unique_ptr<TargetInstance> held;
  const TargetInstance& target;
  RunContext context;
};

/// Two normals in 7 dimensions, .6 and .4, with axes from 1e-3 to 1e3, up and down, 2000 apart on each: what `mixture` reads.
inline MemoryInput six_decades() {
  constexpr int d = 7;
  std::vector<double> means(2 * d, 0.0), covariances(2 * d * d, 0.0);
  for (int i = 0; i < d; ++i) {
    means[d + i] = i % 2 ? -2000 : 2000;
    covariances[i * (d + 1)] = std::pow(10.0, 2 * i - d + 1);
    covariances[d * d + i * (d + 1)] = std::pow(10.0, d - 1 - 2 * i);
  }
  MemoryInput in;
  in.arrays["means"] = {means, {2, d}};
  in.arrays["weights"] = {{0.6, 0.4}, {2}};
  in.arrays["covariances"] = {covariances, {2, d, d}};
  return in;
}

}  // namespace lockstep::testing
