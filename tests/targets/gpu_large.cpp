// SPDX-License-Identifier: Apache-2.0
// Engines on the GPU with so many chains, or for so long, that it takes a device.
#include "host/runs/run_context.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/gpu.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

class GpuLarge : public GpuTest {};

// The memory that a plan counts on is what the device has less afterwards.
TEST_F(GpuLarge, AMillionChainsTakeWhatIsPlanned) {
  const auto target = make_target("two_modes");
  const int n = 1000000;
  RunContext context;
  context.target = target.get();
  context.cuda = true;
  RunSize size;
  size.dim = target->dim();
  size.chains = n;
  const double planned = planned_memory(context, ModelSpec(), size).device;
  const double before = double(cuda_free_memory());
  const auto engine = target->engine(engine_spec(context, ModelSpec(), {0}, n));
  EXPECT_NEAR(before - double(cuda_free_memory()), planned, 0.1 * planned);
  set_parameters(*engine, BatchCase{}, 0);
  engine->set_position(std::vector<double>(5 * std::size_t(n), 0.5));
  engine->initialize();
  LaunchSpec launch;
  launch.end = 3;
  launch.num_leapfrog = 2;
  launch.record = true;
  engine->advance(launch);
  const auto moments = engine->take_moments(), stats = engine->take_stats();
  double accepted = 0;
  for (int i = 0; i < n; ++i) {
    ASSERT_EQ(moments[i], 3);
    accepted += stats[stat_accepted * std::size_t(n) + i] / (3.0 * n);
  }
  EXPECT_GT(accepted, 0.5);
  EXPECT_LT(accepted, 1);
}

// In mixed precision trajectories part from the CPU's; the distribution must not. The same streams make the
// two runs dependent at most in the conservative direction; five standard errors and 16 comparisons leave a
// false alarm below one in 100000.
TEST_F(GpuLarge, MixedMomentsAgreeWithTheCpu) {
  const auto target = make_target("mixture20");
  BatchCase c = named("", "mixture20", ModelKind::pseudo_extended, 2).batch;
  c.precision = Precision::mixed;
  c.chains = 2048;
  c.iterations = 300;
  c.thin = 300;
  const BatchResult gpu = run_batch(engines(*target, true), c), cpu = run_batch(engines(*target, false), c);
  const int rows = static_cast<int>(gpu.moments.size()) / c.chains;
  ASSERT_GT(rows, 4);
  for (int r = 1; r < rows; ++r) {
    double mean[2] = {0, 0}, variance = 0;
    for (int which = 0; which < 2; ++which) {
      const double* m = (which == 0 ? gpu : cpu).moments.data() + std::size_t(r) * c.chains;
      double square = 0;
      for (int i = 0; i < c.chains; ++i) mean[which] += m[i] / c.chains;
      for (int i = 0; i < c.chains; ++i) square += (m[i] - mean[which]) * (m[i] - mean[which]);
      variance += square / (double(c.chains) * (c.chains - 1));
    }
    EXPECT_LE(std::abs(mean[0] - mean[1]), 5 * std::sqrt(variance) + 1e-12) << "moment row " << r;
  }
}

}  // namespace
