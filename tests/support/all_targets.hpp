// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every registered target, for the suites that hold all of them to one contract. One that needs data is
// listed here with some; the contract suite fails for one that is registered and not covered.
#include "targets/all.hpp"
#include "tests/support/boltzmann.hpp"
#include "tests/support/decoder.hpp"
#include "tests/support/horseshoe.hpp"
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
      subject<SensorsTarget>("sensors", three_sensors()),
      subject<WellingTehTarget>("welling_teh", two_means()),
      subject<ArkTarget>("ark", short_series()),
      // Its matrix has a condition of 1 + n alpha^2 / sigma at most.
      subject<GpRegrTarget>("gp_regr", six_points(),
                            [](const auto& x) { return 1 + 6 * std::exp(2 * x[1] - x[2]); }),
      subject<ScatteredTarget>("scattered_6d", scattered_in_six()),
      subject<HorseshoeTarget>("horseshoe", horseshoe_as_given(one_sided_cases(11, 4, 1), 0.2)),
      subject<HorseshoeTarget>("horseshoe_none_held_out", horseshoe_as_given(one_sided_cases(6, 2, 2), 0)),
      subject<DecoderTarget>("decoder_sigmoid", decoder_input(small_decoder(), 1, "bernoulli", 0, "sigmoid")),
      subject<DecoderTarget>("decoder_relu", decoder_input(small_decoder(), 1, "bernoulli", 0, "relu")),
      subject<DecoderTarget>("decoder", decoder_input(small_decoder(), 1)),
      subject<DecoderTarget>("decoder_normal", decoder_input(random_decoder({3, 5, 6}, 1.0), 1, "gaussian")),
  };
  for_each_target([&]<class Definition>() {
    const TargetInfo info = Definition::info();
    const bool complete = std::none_of(info.settings.begin(), info.settings.end(), [](const auto& s) {
      return s.second.find("no default") != std::string::npos;
    });
    if (info.data.empty() && complete) cases.push_back(subject<Definition>());
  });
  return cases;
}

}  // namespace lockstep::testing
