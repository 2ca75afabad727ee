// SPDX-License-Identifier: Apache-2.0
// The horseshoe regression on the GPU against the CPU: gradients, energies, what is recorded, and whole transitions.
#include "targets/registry.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/horseshoe.hpp"
#include "tests/support/parity.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

/// More features and cases than one group of terms, and held-out cases that do not fill a pass.
std::unique_ptr<TargetInstance> make_horseshoe() {
  MemoryInput input = horseshoe_input(random_cases(50, 71, 4), 0.2);
  return find_target("horseshoe")->make(input);
}
class GpuHorseshoe : public GpuTest {};

TEST_F(GpuHorseshoe, GradientEnergyAndQuantitiesAreTheCpus) {
  constexpr int kChains = 75;
  const auto target = make_horseshoe();
  for (const Precision precision : {Precision::single, Precision::mixed, Precision::double_})
    for (const ModelKind kind : {ModelKind::plain, ModelKind::path}) {
      EngineSpec spec;
      spec.model.kind = kind;
      spec.precision = precision;
      for (std::uint32_t i = 0; i < kChains; ++i) spec.chain.push_back(i), spec.unit.push_back(0);
      std::vector<double> gradient[2], cache[2], moments[2];
      for (const bool cuda : {false, true}) {
        const auto e = engines(*target, cuda)(spec);
        std::vector<double> start(std::size_t(e->rows()) * kChains);
        for (std::size_t i = 0; i < start.size(); ++i) start[i] = 3 * hashed(std::uint32_t(i), 77) - 1.5;
        BatchCase c;
        c.step_size = 0;
        set_parameters(*e, c, 0);
        e->set_position(start);
        e->initialize();
        gradient[cuda] = e->gradient();
        cache[cuda] = e->cache();
        LaunchSpec launch;
        launch.key = make_stream_key(1, "horseshoe");
        launch.end = 1;
        launch.num_leapfrog = 1;
        launch.record = true;
        e->advance(launch);
        moments[cuda] = e->take_moments();
      }
      const double tolerance = precision == Precision::double_ ? 1e-12 : 2e-5;
      expect_close(gradient[1], gradient[0], tolerance, "gradient");
      expect_close(cache[1], cache[0], tolerance, "cache");
      expect_close(moments[1], moments[0], tolerance, "moments");
    }
}

TEST_F(GpuHorseshoe, OneTransitionIsTheCpus) {
  const auto target = make_horseshoe();
  BatchCase c;
  c.chains = 75;
  c.iterations = 5;
  c.num_leapfrog = 4;
  c.step_size = 0.15;
  c.precision = Precision::double_;
  for (const ModelKind kind : {ModelKind::plain, ModelKind::path, ModelKind::pseudo_extended}) {
    c.model.kind = kind;
    c.model.pseudo_samples = kind == ModelKind::pseudo_extended ? 3 : 1;
    const Parity p = compare_transitions(engines(*target, false), engines(*target, true), c);
    EXPECT_LE(p.position, 1e-9) << int(kind);
    EXPECT_LE(p.closest, 1e-4) << p.apart << " decisions differ";
    EXPECT_GT(p.accepted, c.chains) << int(kind);
  }
}

}  // namespace
