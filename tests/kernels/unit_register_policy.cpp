// SPDX-License-Identifier: Apache-2.0
// The register policy, which only the GPU uses, run on the host one chain at a time: the models of
// compile-time size with their rows in local arrays give the same bits as the general ones with their rows in
// memory.
#include <gtest/gtest.h>

#include "kernels/driver.hpp"
#include "targets/engine_cpu.hpp"
#include "targets/gaussian.hpp"
#include "targets/mixture20.hpp"
#include "tests/support/engines.hpp"
#include "tests/support/target_input.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

/// Which model a batch gets: as on the GPU, or always the general one.
template <bool kRegisters>
struct OneChainBackend : FusedCpu {
  using FusedCpu::FusedCpu;
  static constexpr bool fuses(ModelKind) { return true; }
  template <int D>
  static constexpr bool specialises() {
    return kRegisters && D == 2;
  }
  template <class R, int D, int N>
  static constexpr bool in_registers() {
    return kRegisters && D == 2 && N >= 2 && N <= 5;
  }
  template <class Model>
  bool needs_work_rows(const Model&) const {
    return Model::kRows == 0;
  }

  template <class R, class E, class Model, class Body>
  static void for_each_chain(const Model& model, const BatchView<R, E>& b, bool covariance, Body body) {
    std::vector<R> state(std::size_t(3) * model.rows() * kTile);
    for (int chain = 0; chain < b.tiles * kTile; ++chain) {
      if constexpr (Model::kRows > 0) {
        RegisterRows<R, E, Model> rows;
        body(rows.lanes(model, b, chain, covariance));
      } else {
        body(
            make_working_lanes<R, E>(model, b, chain, covariance, TileRows<R>{state.data() + chain % kTile}));
      }
    }
  }
  template <class R, class E, class Model>
  void initialize(const Model& model, const BatchView<R, E>& b) const {
    for_each_chain(model, b, false, [&](const auto& w) { initialize_lanes<R, E>(model, w); });
  }
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) const {
    if (Model::kRows > 0) ++register_launches;
    for_each_chain(model, b, spec.covariance,
                   [&](const auto& w) { advance_lanes<Hmc, R, E>(model, spec, w); });
  }
  static inline int register_launches = 0;
};

template <class Definition>
void expect_equal_policies(MemoryInput input, double step_size) {
  const auto built = Definition::build(input);
  const auto engines = [&]<bool kRegisters>(std::bool_constant<kRegisters>) {
    return [&](const EngineSpec& spec) -> std::unique_ptr<Engine> {
      using Backend = OneChainBackend<kRegisters>;
      switch (spec.precision) {
        case Precision::single:
          return make_engine_for<Backend, float, float>(built.density, spec);
        case Precision::mixed:
          return make_engine_for<Backend, float, double>(built.density, spec);
        default:
          return make_engine_for<Backend, double, double>(built.density, spec);
      }
    };
  };
  struct Kind {
    ModelKind kind;
    int samples;
  };
  for (Kind k :
       {Kind{ModelKind::plain, 1}, Kind{ModelKind::pseudo_extended, 2}, Kind{ModelKind::pseudo_extended, 3},
        Kind{ModelKind::pseudo_extended, 4}, Kind{ModelKind::pseudo_extended, 5}})
    for (Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
      BatchCase c;
      c.model.kind = k.kind;
      c.model.pseudo_samples = k.samples;
      c.model.g_exponent = 0.5;
      c.model.low = 0.05;
      c.precision = precision;
      c.chees = true;
      c.step_size = step_size;
      c.trajectory_time = 4 * step_size;
      c.iterations = 5;
      const int before = OneChainBackend<true>::register_launches;
      const BatchResult registers = run_batch(engines(std::true_type()), c);
      EXPECT_EQ(OneChainBackend<true>::register_launches, before + 1);
      const BatchResult rows = run_batch(engines(std::false_type()), c);
      EXPECT_EQ(OneChainBackend<false>::register_launches, 0);
      EXPECT_EQ(registers, rows) << "model " << int(k.kind) << ", " << k.samples << " samples, precision "
                                 << int(precision);
    }
}

TEST(RegisterPolicy, GivesTheBitsOfTheTilePolicyOnMixtures) {
  expect_equal_policies<Mixture20Target>({}, 0.05);
}

TEST(RegisterPolicy, GivesTheBitsOfTheTilePolicyOnGaussians) {
  MemoryInput input;
  input.numbers = {{"dim", 2}, {"ratio", 3}};
  expect_equal_policies<GaussianTarget>(input, 0.4);
}

}  // namespace
