// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "targets/gaussian.hpp"

namespace lockstep::testing {

/// A Gaussian in three dimensions, not of the library's compiled sizes.
inline const Gaussian& three_axes() {
  struct Fixture {
    ParameterPool pool;
    Gaussian density;
    Fixture() {
      density.dim = 3;
      density.mean = pool.add({-0.1, 0.1, 0.3});
      density.inv_sd = pool.add({1.25, 0.9, 0.7});
    }
  };
  static const Fixture fixture;
  return fixture.density;
}

}  // namespace lockstep::testing
