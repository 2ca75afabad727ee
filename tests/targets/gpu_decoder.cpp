// SPDX-License-Identifier: Apache-2.0
// A decoder, whose gradients are matrix products over many chains, on the GPU: against the CPU's, and against
// itself however the work is divided.
#include "targets/registry.hpp"
#include "tests/support/decoder.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/parity.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

constexpr int kItems = 9;

struct Network {
  std::string name;
  std::vector<int> widths;
  std::string activation = "tanh", likelihood = "bernoulli";
};
void PrintTo(const Network& n, std::ostream* out) { *out << n.name; }

std::unique_ptr<TargetInstance> make_decoder(const Network& n) {
  MemoryInput input = decoder_input(random_decoder(n.widths), kItems, n.likelihood);
  input.choices["activation"] = n.activation;
  return find_target("decoder")->make(input);
}
std::unique_ptr<TargetInstance> make_small() { return make_decoder({"small", {3, 7, 5, 11}}); }

/// The same chains on both devices: 75, one for each item in turn, on the path to the target.
struct Pair {
  static constexpr int kChains = 75;
  std::unique_ptr<Engine> gpu, cpu;
  explicit Pair(const TargetInstance& target, Precision precision, ModelKind kind = ModelKind::path) {
    EngineSpec spec;
    spec.model.kind = kind;
    spec.precision = precision;
    for (std::uint32_t i = 0; i < kChains; ++i)
      spec.chain.push_back(i / kItems), spec.unit.push_back(i % kItems);
    gpu = engines(target, true)(spec);
    cpu = engines(target, false)(spec);
    std::vector<double> start(std::size_t(gpu->rows()) * kChains);
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = 3 * hashed(std::uint32_t(i), 77) - 1.5;
    BatchCase c;
    c.step_size = 0.25;
    for (Engine* e : {gpu.get(), cpu.get()}) {
      set_parameters(*e, c, 0);
      e->set_position(start);
      e->initialize();
    }
  }
};

class GpuDecoder : public GpuTest {};
class GpuDecoders : public GpuTest, public ::testing::WithParamInterface<Network> {};
INSTANTIATE_TEST_SUITE_P(Networks, GpuDecoders,
                         ::testing::Values(Network{"small", {3, 7, 5, 11}},
                                           Network{"wide", {10, 50, 40, 130}},
                                           Network{"relu", {4, 30, 70}, "relu"},
                                           Network{"sigmoid", {4, 30, 70}, "sigmoid"},
                                           Network{"normal", {5, 20, 40}, "tanh", "gaussian"},
                                           Network{"linear", {3, 37}, "tanh", "gaussian"}),
                         [](const auto& info) { return info.param.name; });

TEST_P(GpuDecoders, GradientAndEnergyAreTheCpus) {
  const auto target = make_decoder(GetParam());
  for (Precision precision : {Precision::single, Precision::mixed, Precision::double_})
    for (ModelKind kind : {ModelKind::plain, ModelKind::path}) {
      const Pair pair(*target, precision, kind);
      const double tolerance = precision == Precision::double_ ? 1e-12 : 1e-5;
      expect_close(pair.gpu->gradient(), pair.cpu->gradient(), tolerance, "gradient");
      expect_close(pair.gpu->cache(), pair.cpu->cache(), tolerance, "cache");
    }
}

// As GpuCases.OneTransitionIsTheCpus; products add in another order.
TEST_P(GpuDecoders, OneTransitionIsTheCpus) {
  const auto target = make_decoder(GetParam());
  BatchCase c;
  c.model.kind = ModelKind::path;
  c.chains = 75;
  c.iterations = 10;
  c.num_leapfrog = 4;
  c.step_size = 0.25;
  for (Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
    c.precision = precision;
    const Parity p = compare_transitions(engines(*target, false), engines(*target, true), c);
    EXPECT_LE(p.position, precision == Precision::double_ ? 1e-11 : 1e-4);
    EXPECT_LE(p.closest, 1e-4) << p.apart << " decisions differ";
    EXPECT_GT(p.accepted, 3 * c.chains);
    EXPECT_GT(p.refused, 0);
  }
}

struct NamedDecoder {
  std::string name;
  BatchCase batch;
};
void PrintTo(const NamedDecoder& n, std::ostream* out) { *out << n.name; }

std::vector<NamedDecoder> decoder_cases() {
  std::vector<NamedDecoder> cases;
  const auto add = [&](std::string name, ModelKind kind, Tempering tempering) -> BatchCase& {
    BatchCase c;
    c.model.kind = kind;
    c.tempering = tempering;
    c.precision = Precision::double_;
    c.chains = 70;
    c.num_leapfrog = 3;
    c.chees = true;
    cases.push_back({std::move(name), c});
    return cases.back().batch;
  };
  add("plain", ModelKind::plain, Tempering::fixed);
  add("own_lengths", ModelKind::plain, Tempering::fixed).num_leapfrog = 0;
  add("path", ModelKind::path, Tempering::fixed);
  add("gibbs", ModelKind::path, Tempering::gibbs);
  add("levels", ModelKind::path, Tempering::levels);
  add("anneal", ModelKind::path, Tempering::anneal);
  add("joint", ModelKind::path, Tempering::joint).model.control = Control::logistic;
  add("plateaus", ModelKind::path, Tempering::joint).model.control = Control::plateaus;
  for (const TransitionInfo* transition : transition_registry()) {
    BatchCase& extended = add("extended_" + transition->name, ModelKind::pseudo_extended, Tempering::fixed);
    extended.model.pseudo_samples = 3;
    extended.transition = transition;
    add("path_" + transition->name, ModelKind::path, Tempering::gibbs).transition = transition;
  }
  BatchCase& dense = add("dense", ModelKind::path, Tempering::fixed);
  dense.model.dense_metric = true, dense.model.base = 1;
  return cases;
}

class GpuDecoderCases : public GpuTest, public ::testing::WithParamInterface<NamedDecoder> {
 protected:
  std::unique_ptr<TargetInstance> target_ = make_small();
  BatchResult run(const BatchCase& c, bool cuda, const Split& split = {}) {
    return run_batch(engines(*target_, cuda), c, split);
  }
};
INSTANTIATE_TEST_SUITE_P(Models, GpuDecoderCases, ::testing::ValuesIn(decoder_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(GpuDecoderCases, DoubleAgreesWithTheCpu) {
  BatchCase c = GetParam().batch;
  c.iterations = 4;
  const BatchResult gpu = run(c, true), cpu = run(c, false);
  expect_close(gpu.position, cpu.position, 1e-8, "position");
  expect_close(gpu.gradient, cpu.gradient, 1e-6, "gradient");
  expect_close(gpu.cache, cpu.cache, 1e-6, "cache");
  expect_close(gpu.stats, cpu.stats, 1e-6, "stats");
  expect_close(gpu.moments, cpu.moments, 1e-6, "moments");
  expect_close(gpu.draws, cpu.draws, 1e-5, "draws");
}

// 1100 chains are more than a block of products has, and the splits put a chain at other places of one.
TEST_P(GpuDecoderCases, NoBitDependsOnTheSplit) {
  BatchCase c = GetParam().batch;
  c.precision = Precision::mixed;
  c.chains = chains_of(c, 1100);
  c.thin = 2;
  const BatchResult whole = run(c, true);
  EXPECT_EQ(whole, run(c, true, {.launches = {2, 4}, .block_threads = 32}));
  EXPECT_EQ(whole, run(c, true, {.engines = {1, 40, c.chains * 11 / 20}, .block_threads = 64}));
  EXPECT_EQ(whole, run(c, true, {.engines = {32, 64, c.chains - 9}, .at_once = true}));  // on four streams
  EXPECT_EQ(whole, run(c, true, {.block_threads = 256}));
}

// A short run in every precision, for compute-sanitizer: 33 chains, so that a tile is mostly padding.
TEST_P(GpuDecoderCases, SanitizeRuns) {
  BatchCase c = GetParam().batch;
  c.chains = 33;
  c.iterations = 2;
  for (Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
    c.precision = precision;
    const BatchResult r = run(c, true);
    for (double x : r.position) ASSERT_TRUE(std::isfinite(x));
  }
}

// What an item gives does not depend on the others: the same chains in batches of two items and of all.
TEST_F(GpuDecoder, ItemsShareNothing) {
  const auto target = make_small();
  const int runs = 16;
  const auto run = [&](int items) {
    EngineSpec spec;
    spec.model.kind = ModelKind::path;
    for (int c = 0; c < items * runs; ++c)
      spec.unit.push_back(std::uint32_t(c / runs)), spec.chain.push_back(std::uint32_t(c % runs));
    const auto engine = engines(*target, true)(spec);
    set_parameters(*engine, BatchCase{}, 0);
    engine->set_position(std::vector<double>(std::size_t(3) * items * runs, 0.25));
    engine->initialize();
    LaunchSpec launch;
    launch.num_leapfrog = 3;
    launch.end = 5;
    engine->advance(launch);
    return engine->position();
  };
  const auto two = run(2), all = run(kItems);
  for (int j = 0; j < 3; ++j)
    for (int c = 0; c < 2 * runs; ++c) EXPECT_EQ(two[j * 2 * runs + c], all[j * kItems * runs + c]);
  EXPECT_NE(two[0], two[runs]);  // of another item, same chain
}

// Captured work serves launches with other ladders, elsewhere in memory.
TEST_F(GpuDecoder, LaddersMayChange) {
  const auto target = make_small();
  Pair pair(*target, Precision::double_);
  LaunchSpec launch;
  launch.num_leapfrog = 2;
  launch.tempering = Tempering::levels;
  for (int levels : {3, 500, 4}) {
    std::vector<double> ladder(levels), step(levels);
    for (int k = 0; k < levels; ++k)
      ladder[k] = double(k) / (levels - 1), step[k] = 0.2 + 0.1 * hashed(k, levels);
    launch.end = launch.begin + 2;
    for (Engine* e : {pair.gpu.get(), pair.cpu.get()}) {
      e->set_ladder(ladder, std::vector<double>(levels, 0.0), step);
      e->advance(launch);
    }
    launch.begin = launch.end;
    expect_close(pair.gpu->position(), pair.cpu->position(), 1e-8, "position");
    EXPECT_EQ(pair.gpu->beta(), pair.cpu->beta());
  }
}

// A step size that is no number makes every proposal no number: such a chain stays, and its neighbours in the
// matrix products do not notice.
TEST_F(GpuDecoder, SanitizeNanNeverMoves) {
  const auto target = make_small();
  const int n = Pair::kChains;
  Pair broken(*target, Precision::mixed), whole(*target, Precision::mixed);
  std::vector<double> steps(n, 0.4);
  whole.gpu->set_parameters(ParameterLayout::step_size, steps);
  for (int i = 0; i < n; i += 2) steps[i] = std::numeric_limits<double>::quiet_NaN();
  broken.gpu->set_parameters(ParameterLayout::step_size, steps);
  const auto start = broken.gpu->position();
  LaunchSpec launch;
  launch.num_leapfrog = 3;
  launch.end = 4;
  for (Pair* pair : {&broken, &whole}) pair->gpu->advance(launch);
  const auto end = broken.gpu->position(), free = whole.gpu->position();
  for (std::size_t i = 0; i < end.size(); ++i) EXPECT_EQ(end[i], i % n % 2 == 0 ? start[i] : free[i]);
  EXPECT_NE(start, free);
  const auto stats = broken.gpu->take_stats();
  for (int i = 0; i < n; ++i) EXPECT_EQ(stats[stat_divergences * n + i], i % 2 == 0 ? 4 : 0);
}

// Parallel tempering: a launch for each iteration, and the swaps in between.
TEST_F(GpuDecoder, SwapsAreTheCpus) {
  const auto target = make_small();
  Pair pair(*target, Precision::double_);
  LaunchSpec launch;
  launch.num_leapfrog = 1;
  launch.tempering = Tempering::swap;
  launch.end = 6;
  for (Engine* e : {pair.gpu.get(), pair.cpu.get()}) {
    e->set_ladder({0, 0.5, 1}, {0, 0, 0}, {0.3, 0.3, 0.3});
    std::vector<double> beta(Pair::kChains);
    for (int i = 0; i < Pair::kChains; ++i) beta[i] = 0.5 * (i % 3);
    e->set_beta(beta);
    e->advance(launch);
  }
  EXPECT_EQ(pair.gpu->beta(), pair.cpu->beta());
  expect_close(pair.gpu->position(), pair.cpu->position(), 1e-8, "position");
}

}  // namespace
