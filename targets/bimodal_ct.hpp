// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one-dimensional illustration of Graham & Storkey (2017), figure 1.
#include "targets/mixture.hpp"

namespace lockstep {

struct BimodalCtTarget {
  using Density = Mixture;
  static TargetInfo info() {
    return {.name = "bimodal_ct",
            .summary = "two modes in one dimension (continuous tempering paper, figure 1)",
            .formula = "log(0.6 N(x; -8, 1) + 0.4 N(x; 8, 4)), variances",
            .settings = {},
            .truth = "closed form: mean -1.6, second moment 66.2, P(x > 0) = 0.4"};
  }
  static Built<Mixture> build(TargetInput&) { return build_mixture({1, {-8, 8}, {0.6, 0.4}, {1, 2}, {}}); }
};

}  // namespace lockstep
