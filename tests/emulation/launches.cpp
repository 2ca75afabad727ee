// SPDX-License-Identifier: Apache-2.0
// The launch code on the emulated device: its kernels' bits are the scalar CPU's, whatever the blocks; what one
// thread has waited for another may read; and errors come out as errors.
#include <gmock/gmock.h>

#include <functional>
#include <future>
#include <optional>

#include "tests/emulation/device.hpp"
#include "tests/emulation/scalar_engine.hpp"
#include "tests/support/decoder.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/own_data.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;
using ::testing::HasSubstr;

class Launches : public ::testing::TestWithParam<Named> {
 protected:
  std::unique_ptr<TargetInstance> target_ = make_target(GetParam().target);
  EngineFactory device_ = engines(*target_, true);
  EngineFactory scalar_ = [](const EngineSpec& spec) { return scalar_engine(GetParam().target, spec); };
};
INSTANTIATE_TEST_SUITE_P(Models, Launches, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

void expect_equal(const BatchResult& a, const BatchResult& b) {
  EXPECT_EQ(a.position, b.position);
  EXPECT_EQ(a.gradient, b.gradient);
  EXPECT_EQ(a.cache, b.cache);
  EXPECT_EQ(a.stats, b.stats);
  EXPECT_EQ(a.moments, b.moments);
  EXPECT_EQ(a.draws, b.draws);
}

TEST_P(Launches, BitsAreTheScalarCpus) {
  BatchCase c = GetParam().batch;
  for (Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
    c.precision = precision;
    expect_equal(run_batch(device_, c, {.launches = {2}}), run_batch(scalar_, c));
  }
}

// The last block of 256 threads has chains for 96 of them.
TEST_P(Launches, BlocksMayBeLargerThanTheBatch) {
  BatchCase c = GetParam().batch;
  c.precision = Precision::mixed;
  c.iterations = 2;
  const BatchResult expected = run_batch(scalar_, c);
  for (bool blocks : {false, true})
    for (int threads : {32, 64, 128, 256})
      expect_equal(run_batch(device_, c, {.blocks = blocks, .block_threads = threads}), expected);
}

// A state taken on one device goes on on the other.
TEST_P(Launches, StatesAreTheScalarCpus) {
  BatchCase c = GetParam().batch;
  c.precision = Precision::mixed;
  const auto from = make_engine(device_, c), to = make_engine(scalar_, c), back = make_engine(device_, c);
  from->advance(make_launch(c, 0, 2));
  to->set_state(from->state());
  to->advance(make_launch(c, 2, 4));
  back->set_state(to->state());
  from->advance(make_launch(c, 2, 6));
  back->advance(make_launch(c, 4, 6));
  EXPECT_EQ(from->state(), back->state());
}

// What a launch leaves to be read: draws of some chains, an overview of all, inverse temperatures.
TEST_P(Launches, WhatIsReadIsTheScalarCpus) {
  const BatchCase& c = GetParam().batch;
  if (c.model.kind == ModelKind::pseudo_extended) GTEST_SKIP() << "no trace";
  const std::uint32_t n = 70;
  EngineSpec spec;
  spec.model = c.model;
  spec.transition = c.transition;
  spec.trace = c.model.kind == ModelKind::path ? 6 : 0;
  spec.draws = spec.overview = 3;
  spec.stored_chains = {0, 31, 32, 69};
  for (std::uint32_t i = 0; i < n; ++i) spec.chain.push_back(i), spec.unit.push_back(0);
  const auto run = [&](const EngineFactory& make) {
    const auto engine = make(spec);
    set_parameters(*engine, c, 0);
    engine->set_position(std::vector<double>(std::size_t(engine->rows()) * n, 0.5));
    const std::vector<double> ladder{0, 0.2, 0.5, 0.7, 0.8, 0.9, 1};
    engine->set_ladder(ladder, std::vector<double>(7, 0.1), std::vector<double>(7, 0.3));
    engine->initialize();
    LaunchSpec launch = make_launch(c, 0, 6);
    launch.thin = launch.overview_thin = 2;
    launch.store_from = launch.overview_from = 1;
    engine->advance(launch);
    const auto without_padding = [&](const auto& padded) {
      std::vector<double> numbers;
      for (std::size_t i = 0; i < padded.size(); ++i)
        if (i % engine->padded_chains() < n) numbers.push_back(padded[i]);
      return numbers;
    };
    const auto draws = engine->draws(3);
    return std::tuple{std::vector<float>(draws.begin(), draws.end()), without_padding(engine->overview()),
                      without_padding(engine->trace())};
  };
  const auto device = run(device_), scalar = run(scalar_);
  EXPECT_EQ(std::get<0>(device), std::get<0>(scalar));
  EXPECT_EQ(std::get<1>(device), std::get<1>(scalar));
  EXPECT_EQ(std::get<2>(device), std::get<2>(scalar));
  EXPECT_EQ(std::get<0>(device).size(), std::size_t(3 * 4 * (target_->dim() + kDrawExtraRows)));
}

// Transitions that own data: the lists, fields and counters of the device are the scalar CPU's, and so is what chains do
// that go through their iterations at their own pace.
TEST(OwnDataLaunches, BitsAreTheScalarCpus) {
  for_each_with_data([]<class Transition>() {
    static const TransitionInfo info = Transition::info();
    for (const ModelKind kind : {ModelKind::plain, ModelKind::path, ModelKind::pseudo_extended}) {
      Named n = named(info.name, "gaussian", kind, kind == ModelKind::pseudo_extended ? 2 : 1);
      BatchCase& c = n.batch;
      c.transition = &info;
      c.precision = Precision::mixed;
      if (kind == ModelKind::path) c.tempering = Tempering::gibbs;
      // Those that go to draws of a base ask for its density.
      if (std::is_same_v<Transition, KnownModes> && kind == ModelKind::path)
        c.model.base = base_number<NormalMixture>();
      c.prepare = [](Engine& e) { prepare<Transition>(e, 14); };
      c.settings = other_settings<Transition>();
      const auto target = make_target(n.target);
      const EngineFactory scalar = [&](const EngineSpec&spec) { return scalar_engine(n.target, spec); },
                          device = engines(*target, true);
      const BatchResult expected = run_batch(scalar, c);
      for (const Split& split :
           {Split{.launches = {2}}, Split{.block_threads = 256}, Split{.engines = {33}}}) {
        const BatchResult found = run_batch(device, c, split);
        expect_equal(found, expected);
        EXPECT_EQ(found.fields, expected.fields);
      }
      const auto from = make_engine(device, c), to = make_engine(scalar, c);
      from->advance(make_launch(c, 0, 2));
      to->set_state(from->state());
      for (Engine* e : {from.get(), to.get()}) e->advance(make_launch(c, 2, 6));
      EXPECT_EQ(from->state(), to->state()) << info.name;
    }
  });
}

// Two transitions in an iteration, and the other way round.
TEST(OwnDataLaunches, SequencesAreTheScalarCpus) {
  for (const ModelKind kind : {ModelKind::plain, ModelKind::path, ModelKind::pseudo_extended}) {
    Named n = named("sequence", "gaussian", kind, kind == ModelKind::pseudo_extended ? 2 : 1);
    EngineSpec spec;
    name_transitions<Sequence<ListWalk, Tours>>(spec);
    BatchCase& c = n.batch;
    c.transition = spec.transition;
    c.then = spec.then;
    c.precision = Precision::mixed;
    if (kind == ModelKind::path) c.tempering = Tempering::anneal;
    c.prepare = [](Engine& e) { prepare<Sequence<ListWalk, Tours>>(e, 14); };
    c.settings = other_settings<Sequence<ListWalk, Tours>>();
    const auto target = make_target(n.target);
    const EngineFactory scalar = [&](const EngineSpec&s) { return scalar_engine(n.target, s); },
                        device = engines(*target, true);
    const BatchResult expected = run_batch(scalar, c), found = run_batch(device, c, {.launches = {2}});
    expect_equal(found, expected);
    EXPECT_EQ(found.fields, expected.fields);
    const auto one = make_engine(device, c), other = make_engine(scalar, c);
    LaunchSpec back = make_launch(c, 0, 3);
    back.backwards = true;
    for (Engine* e : {one.get(), other.get()}) e->advance(back);
    EXPECT_EQ(one->state(), other->state());
  }
}

/// An engine of 40 chains, in units of four, of mixed precision, in one block of many threads too many.
struct SmallEngine {
  std::unique_ptr<TargetInstance> target;
  std::unique_ptr<Engine> engine;
  BatchCase batch;
  explicit SmallEngine(std::unique_ptr<TargetInstance> of, ModelKind kind = ModelKind::plain,
                       bool blocks = false, int block_threads = 256)
      : target(std::move(of)) {
    batch.model.kind = kind;
    EngineSpec spec;
    spec.cuda = true;
    spec.model.kind = kind;
    spec.blocks = blocks;
    spec.block_threads = block_threads;
    for (std::uint32_t i = 0; i < 40; ++i) spec.chain.push_back(i % 4), spec.unit.push_back(i / 4);
    engine = target->engine(spec);
    prepare();
  }
  void prepare() {
    set_parameters(*engine, batch, 0);
    engine->set_position(std::vector<double>(std::size_t(engine->rows()) * 40, 0.3));
    engine->set_ladder({0, 0.3, 0.6, 1}, std::vector<double>(4, 0.0), std::vector<double>(4, 0.3));
  }
  LaunchSpec launch(Tempering tempering = Tempering::fixed) const {
    LaunchSpec launch;
    launch.end = 2;
    launch.record = true;
    launch.tempering = tempering;
    return launch;
  }
};

std::unique_ptr<TargetInstance> make_small_decoder() {
  MemoryInput input = decoder_input(small_decoder(), 3);
  return find_target("decoder")->make(input);
}

/// Does one thing on a thread of its own, which has a stream of its own.
void elsewhere(const std::function<void()>& work) { std::async(std::launch::async, work).get(); }

/// Each of these by a thread of its own, and what is there afterwards read by this one.
void expect_done_when_it_returns(std::function<SmallEngine()> make, Tempering tempering = Tempering::fixed) {
  std::optional<SmallEngine> small;
  elsewhere([&] {
    small.emplace(make());
    small->engine->initialize();
  });
  EXPECT_THAT(small->engine->gradient(), ::testing::Each(::testing::Not(0.0)));
  const auto before = small->engine->state();
  elsewhere([&] { small->engine->advance(small->launch(tempering)); });
  EXPECT_NE(small->engine->state(), before);
}

TEST(LaunchFences, RegistersAreDoneWhenTheyReturn) {
  expect_done_when_it_returns([] { return SmallEngine(make_target("gaussian")); });
}
// In blocks with threads too many, and in one whose memory is full.
TEST(LaunchFences, SharedAreDoneWhenTheyReturn) {
  for (int threads : {256, 64})
    expect_done_when_it_returns(
        [=] { return SmallEngine(make_target("gaussian"), ModelKind::path, false, threads); });
}
TEST(LaunchFences, BlocksAreDoneWhenTheyReturn) {
  expect_done_when_it_returns([] { return SmallEngine(make_target("gaussian"), ModelKind::plain, true); });
}
TEST(LaunchFences, SwapsAreDoneWhenTheyReturn) {
  expect_done_when_it_returns([] { return SmallEngine(make_target("gaussian"), ModelKind::path); },
                              Tempering::swap);
}
TEST(LaunchFences, ProductsAreDoneWhenTheyReturn) {
  expect_done_when_it_returns([] { return SmallEngine(make_small_decoder(), ModelKind::path); });
}

// What the host sends goes by its own stream, the products by another.
TEST(LaunchFences, ProductsWaitForWhatTheHostSends) {
  SmallEngine small(make_small_decoder(), ModelKind::path);
  small.engine->initialize();
  for (double beta : {0.2, 0.7}) {
    small.engine->set_parameters(ParameterLayout::beta, std::vector<double>(40, beta));
    small.engine->advance(small.launch());
    small.engine->take_stats();
  }
  SmallEngine again(make_small_decoder(), ModelKind::path);
  again.engine->initialize();
  again.engine->set_state(small.engine->state());
  EXPECT_EQ(again.engine->state(), small.engine->state());
}

TEST(LaunchErrors, BlocksOfAnOddSizeAreRefused) {
  for (int threads : {-32, 16, 96, 288, 512}) {
    SmallEngine small(make_target("gaussian"), ModelKind::path, false, threads);
    EXPECT_THROW(small.engine->initialize(), std::invalid_argument) << threads;
  }
}

// A fault of a kernel stays with the device: every call fails from then on, the freeing of memory too.
TEST(LaunchErrors, OutliveTheEngine) {
  for (const bool products : {false, true}) {
    std::string message;
    try {
      SmallEngine small(products ? make_small_decoder() : make_target("gaussian"), ModelKind::path);
      small.engine->initialize();
      emulated::Device::the().broken = true;
      small.engine->advance(small.launch());
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    emulated::Device::the().broken = false;
    EXPECT_THAT(message, HasSubstr("an illegal memory access was encountered"));
  }
}

}  // namespace
