// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every registered target, for the suites that hold all of them to one contract. One that needs data is
// listed here with some; the contract suite fails for one that is registered and not covered.
#include "targets/all.hpp"
#include "tests/support/boltzmann.hpp"
#include "tests/support/radon.hpp"
#include "tests/support/subject.hpp"

namespace lockstep::testing {

inline std::vector<SubjectCase> all_targets() {
  std::vector<SubjectCase> cases = {
      subject<MixtureTarget>("mixture_spherical", spherical_mixture()),
      subject<MixtureTarget>("mixture_full", full_mixture()),
      subject<BoltzmannTarget>("boltzmann_3", machine_input(three_units())),
      subject<BoltzmannTarget>("boltzmann_10", machine_input(random_boltzmann_machine(10, 4))),
      subject<RadonTarget>("radon_4", radon_input(households(4, 40, 2))),
      subject<RadonTarget>("radon_cells_apart", radon_input(households(3, 30, 3, true))),
      subject<EightSchoolsTarget>("eight_schools", eight_schools()),
  };
  for_each_target([&]<class Definition>() {
    if (Definition::info().data.empty()) cases.push_back(subject<Definition>());
  });
  return cases;
}

}  // namespace lockstep::testing
