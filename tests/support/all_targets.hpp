// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every registered target, for the suites that hold all of them to one contract. A new target adds its line
// here; the contract suite fails for one that is registered and not listed.
#include "targets/banana.hpp"
#include "targets/bimodal.hpp"
#include "targets/bimodal_ct.hpp"
#include "targets/flower.hpp"
#include "targets/gaussian.hpp"
#include "targets/mixture.hpp"
#include "targets/mixture20.hpp"
#include "targets/two_modes.hpp"
#include "tests/support/subject.hpp"

namespace lockstep::testing {

inline std::vector<SubjectCase> all_targets() {
  return {
      subject<GaussianTarget>(),
      subject<MixtureTarget>("mixture_spherical", spherical_mixture()),
      subject<MixtureTarget>("mixture_full", full_mixture()),
      subject<Mixture20Target>(),
      subject<BimodalTarget>(),
      subject<BimodalCtTarget>(),
      subject<TwoModesTarget>(),
      subject<BananaTarget>(),
      subject<FlowerTarget>(),
  };
}

}  // namespace lockstep::testing
