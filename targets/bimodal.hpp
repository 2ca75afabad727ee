// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one-dimensional illustration of Nemeth et al. (2019), figures 1 and 2.
#include "targets/mixture.hpp"

namespace lockstep {

struct BimodalTarget {
  using Density = Mixture;
  static TargetInfo info() {
    return {.name = "bimodal",
            .summary = "two modes in one dimension (pseudo-extended paper, figure 2)",
            .formula = "log(N(x; -1, 0.1)/2 + N(x; 1, 0.02)/2), variances",
            .settings = {},
            .truth = "closed form: mean 0, second moment 1.06, P(x > 0) = 0.5004"};
  }
  static Built<Mixture> build(TargetInput&) {
    return build_mixture({1, {-1, 1}, {0.5, 0.5}, {std::sqrt(0.1), std::sqrt(0.02)}, {}});
  }
};

}  // namespace lockstep
