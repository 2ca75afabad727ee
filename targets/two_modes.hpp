// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two distant Gaussians in any dimension: the simplest target on which an untilted tempering fails as dim
// grows.
#include "targets/mixture.hpp"

namespace lockstep {

struct TwoModesTarget {
  using Density = Mixture;
  static TargetInfo info() {
    return {.name = "two_modes",
            .summary = "two unit Gaussians 8 standard deviations apart, in any dimension",
            .formula = "log(0.7 N(x; +4 e1, I) + 0.3 N(x; -4 e1, I))",
            .settings = {{"dim", "dimension (default 27)"}},
            .truth = "closed form: mean 1.6 e1, P(x1 > 0) = 0.69999, log Z = 0"};
  }
  static Built<Mixture> build(TargetInput& in) {
    const int d = in.integer("dim", 27, 1, 10000);
    MixtureParameters p{d, std::vector<double>(2 * d, 0.0), {0.7, 0.3}, {1, 1}, {}};
    p.means[0] = 4;
    p.means[d] = -4;
    return build_mixture(p);
  }
};

}  // namespace lockstep
