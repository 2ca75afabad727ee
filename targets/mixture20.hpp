// SPDX-License-Identifier: Apache-2.0
#pragma once
// The 20-component bivariate mixture of Kou, Zhou & Wong (2006), as in Nemeth et al. (2019), Table 1.
#include <array>

#include "targets/mixture.hpp"

namespace lockstep {

struct Mixture20Target {
  using Density = Mixture;

  static TargetInfo info() {
    return {.name = "mixture20",
            .summary = "20 bivariate Gaussians of Kou, Zhou & Wong (2006)",
            .formula = "(a) weights 1/20, variance 0.01; (b) weights ~ 1/r, variance r/20, r = |mu - (5, 5)|",
            .settings = {{"scenario", "a or b (default a)"}},
            .truth =
                "closed form: (a) mean 4.478 4.905, second moments 25.60468 33.91964; "
                "(b) 4.68761 5.03024, 25.66772 31.48767"};
  }

  static Built<Mixture> build(TargetInput& in) {
    // Means printed in Kou, Zhou & Wong (2006), Table 1.
    static constexpr std::array<std::array<double, 2>, 20> means = {
        {{2.18, 5.76}, {8.67, 9.59}, {4.24, 8.48}, {8.41, 1.68}, {3.93, 8.82}, {3.25, 3.47}, {1.70, 0.50},
         {4.59, 5.60}, {6.91, 5.81}, {6.87, 5.40}, {5.41, 2.65}, {2.70, 7.88}, {4.98, 3.70}, {1.14, 2.39},
         {8.33, 9.50}, {4.93, 1.50}, {1.83, 0.09}, {2.26, 0.31}, {5.54, 6.86}, {1.69, 8.11}}};
    const bool a = in.choice("scenario", "a", {"a", "b"}) == "a";
    MixtureParameters p;
    p.dim = 2;
    for (const auto& m : means) {
      const double r = std::hypot(m[0] - 5, m[1] - 5);
      p.means.insert(p.means.end(), m.begin(), m.end());
      p.weights.push_back(a ? 1.0 : 1 / r);
      p.sds.push_back(a ? 0.1 : std::sqrt(r / 20));
    }
    return build_mixture(p);
  }
};

}  // namespace lockstep
