// SPDX-License-Identifier: Apache-2.0
// A first mistake: does not compile, and must say why in a few lines (tests/misuse/run.cmake).
#include "targets/registry.hpp"

namespace lockstep {

struct Misspelt : DensityDefaults {
  int dim = 2;
  template <class F>
  void arrays(F&&) {}
  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_densty(const X& x, const G& g) const {
    for (int i = 0; i < dim; ++i) g.set(i, -x[i]);
    return -(x[0] * x[0]);
  }
};
struct MisspeltTarget {
  using Density = Misspelt;
  static TargetInfo info();
  static Built<Misspelt> build(TargetInput& in);
};

std::unique_ptr<TargetInstance> make_misspelt(TargetInput& in) { return make_target_of<MisspeltTarget>(in); }

}  // namespace lockstep
