// SPDX-License-Identifier: Apache-2.0
// The decoder's density, and its evaluation by matrix products over blocks of chains.
#include "targets/decoder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "host/util/errors.hpp"
#include "targets/engine_cpu.hpp"
#include "tests/support/decoder.hpp"
#include "tests/support/subject.hpp"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

/// Engines of a decoder: by matrix products, or, for the first image alone, chain by chain.
using DecoderSubject = SubjectOf<DecoderTarget>;
std::unique_ptr<Engine> products(const DecoderSubject& s, const EngineSpec& spec) {
  return s.target->engine(spec);
}
std::unique_ptr<Engine> one_by_one(const DecoderSubject& s, const EngineSpec& spec) {
  const Decoder& density = s.density();
  const auto make = [&]<class R, class E>() -> std::unique_ptr<Engine> {
    using L = MachinePack<R>;
    using LE = MachineEnergies<R, E>;
    const auto blocks = [&](int chains) {
      return std::make_unique<PointwiseBlock<Decoder, L, LE>>(density, chains);
    };
    return make_block_engine<R, E>(spec, {density.dim, 0}, blocks, library_transitions<R, E>(spec));
  };
  if (spec.precision == Precision::single) return make.template operator()<float, float>();
  if (spec.precision == Precision::mixed) return make.template operator()<float, double>();
  return make.template operator()<double, double>();
}

/// Chains, one to an image in turn, at positions of which number and company are free.
struct Batch {
  std::unique_ptr<Engine> engine;
  Batch(const DecoderSubject& s, const std::vector<std::uint32_t>& unit, Precision precision, int threads = 1,
        decltype(products) make = products) {
    EngineSpec spec;
    spec.precision = precision;
    spec.threads = threads;
    spec.unit = unit;
    for (std::size_t c = 0; c < unit.size(); ++c) spec.chain.push_back(std::uint32_t(c));
    engine = make(s, spec);
    const ParameterLayout layout = engine->layout();
    for (int i = 0; i < layout.dim; ++i)
      engine->set_parameters(layout.scale() + i, std::vector<double>(unit.size(), 1));
    engine->set_parameters(ParameterLayout::step_size, std::vector<double>(unit.size(), 0.05));
    std::vector<double> x(std::size_t(layout.dim) * unit.size());
    for (std::size_t c = 0; c < unit.size(); ++c)
      for (int i = 0; i < layout.dim; ++i)
        x[i * unit.size() + c] = float(std::sin(double(unit[c] + 7 * i + 1)));
    engine->set_position(x);
    engine->initialize();
  }
  void advance() {
    LaunchSpec launch;
    launch.key = make_stream_key(4, "decoder");
    launch.end = 6;
    launch.num_leapfrog = 4;
    engine->advance(launch);
  }
};

TEST(Decoder, ReferenceIsTheFormula) {
  const auto tensors = random_decoder({2, 3, 4});
  const SubjectOf<DecoderTarget> s(decoder_input(tensors, 1));
  const Items& items = *s.target->items();
  const std::vector<double> z = {0.3, -1.2};
  std::vector<double> h(3), y(4);
  const auto value = [&](const char* name, int i) { return tensors.at(name).values[i]; };
  for (int j = 0; j < 3; ++j)
    h[j] =
        std::tanh(value("decoder_b0", j) + z[0] * value("decoder_W0", j) + z[1] * value("decoder_W0", 3 + j));
  double expected = -0.5 * (z[0] * z[0] + z[1] * z[1]) - std::log(2 * kPi);
  for (int p = 0; p < 4; ++p) {
    y[p] = value("decoder_b2", p);
    for (int j = 0; j < 3; ++j) y[p] += h[j] * value("decoder_W2", 4 * j + p);
    const double on = 1 / (1 + std::exp(-y[p]));
    expected += std::log(items.values[p] > 0.5 ? on : 1 - on);
  }
  EXPECT_NEAR(s.log_density(z), expected, 1e-13);
}

/// The same chains, through matrix products and chain by chain.
TEST(Decoder, ProductsAgreeWithChainByChain) {
  for (const auto& [likelihood, activation] :
       {std::pair{"bernoulli", "tanh"}, std::pair{"gaussian", "tanh"}, std::pair{"bernoulli", "relu"},
        std::pair{"bernoulli", "sigmoid"}}) {
    const SubjectOf<DecoderTarget> s(decoder_input(small_decoder(), 1, likelihood, 0.7, activation));
    const std::vector<std::uint32_t> unit(130, 0);
    for (auto [precision, tolerance] : {std::pair{Precision::single, 2e-5}, std::pair{Precision::mixed, 2e-5},
                                        std::pair{Precision::double_, 1e-12}}) {
      Batch single(s, unit, precision, 1, one_by_one), together(s, unit, precision);
      for (int moved : {0, 1}) {
        const auto a = single.engine->cache(), b = together.engine->cache();
        for (std::size_t c = 0; c < unit.size(); ++c)
          EXPECT_NEAR(a[c], b[c], tolerance * (1 + std::abs(a[c])));
        const auto ga = single.engine->gradient(), gb = together.engine->gradient();
        for (std::size_t k = 0; k < ga.size(); ++k)
          EXPECT_NEAR(ga[k], gb[k], 20 * tolerance * (1 + std::abs(ga[k]))) << moved;
        single.advance();
        together.advance();
      }
    }
  }
}

/// Every model and transition, and however beta moves.
TEST(Decoder, ProductsAgreeOnEveryModel) {
  const SubjectOf<DecoderTarget> s(decoder_input(small_decoder(), 1));
  struct Case {
    ModelSpec model;
    Tempering tempering = Tempering::fixed;
    const TransitionInfo* transition = nullptr;
  };
  std::vector<Case> cases = {{{.kind = ModelKind::path}, Tempering::gibbs},
                             {{.kind = ModelKind::path}, Tempering::levels},
                             {{.kind = ModelKind::path}, Tempering::anneal},
                             {{.kind = ModelKind::path, .control = Control::logistic}, Tempering::joint}};
  for (const TransitionInfo* t : transition_registry())
    for (const ModelKind kind : {ModelKind::plain, ModelKind::path, ModelKind::pseudo_extended})
      cases.push_back({{.kind = kind, .pseudo_samples = kind == ModelKind::pseudo_extended ? 3 : 1},
                       Tempering::fixed,
                       t});
  const int n = 100, d = s.dim();
  for (const Case& c : cases) {
    std::vector<double> cache[2], position[2];
    double accepted = 0;
    for (int together : {0, 1}) {
      EngineSpec spec;
      spec.model = c.model;
      spec.transition = c.transition;
      spec.precision = Precision::double_;
      for (int i = 0; i < n; ++i) spec.chain.push_back(i), spec.unit.push_back(0);
      const auto e = (together ? products : one_by_one)(s, spec);
      const auto set = [&](int row, double v) { e->set_parameters(row, std::vector<double>(n, v)); };
      for (int i = 0; i < d; ++i) {
        set(e->layout().scale() + i, 0.9);
        set(e->layout().base_mean() + i, 0.2);
        set(e->layout().base_inv_sd() + i, 0.8);
      }
      set(ParameterLayout::scale_u, 1);
      set(ParameterLayout::base_log_norm, -2);
      set(ParameterLayout::log_zeta, -5);
      set(ParameterLayout::step_size, 0.1);
      set(ParameterLayout::beta, 0.3);
      e->set_ladder({0, 0.2, 0.5, 1}, {0, 0.1, 0.2, 0}, {0.3, 0.2, 0.15, 0.1});
      std::vector<double> x(std::size_t(e->rows()) * n);
      for (std::size_t k = 0; k < x.size(); ++k) x[k] = std::sin(double(k));
      e->set_position(x);
      e->initialize();
      LaunchSpec launch;
      launch.key = make_stream_key(6, "paths");
      launch.end = 3;
      launch.num_leapfrog = 3;
      launch.tempering = c.tempering;
      launch.record = true;
      e->advance(launch);
      cache[together] = e->cache();
      position[together] = e->position();
      accepted += e->take_stats()[stat_accepted * n];
    }
    const std::string what = (c.transition != nullptr ? c.transition->name : "hmc") + " " +
                             std::to_string(int(c.model.kind)) + " " + std::to_string(int(c.tempering));
    EXPECT_GT(accepted, 0) << what;
    for (std::size_t k = 0; k < cache[0].size(); ++k)
      EXPECT_NEAR(cache[0][k], cache[1][k], 1e-10 * (1 + std::abs(cache[0][k]))) << what;
    for (std::size_t k = 0; k < position[0].size(); ++k)
      EXPECT_NEAR(position[0][k], position[1][k], 1e-10) << what;
  }
}

/// Bits do not depend on who else is in the batch, where a chain stands in it, or on threads.
TEST(Decoder, BitsDoNotDependOnTheCompany) {
  const SubjectOf<DecoderTarget> s(decoder_input(random_decoder({6, 40, 33, 50}), 40));
  for (Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t u = 0; u < 40; ++u)
      for (int r = 0; r < 7; ++r) all.push_back(u);
    const auto run = [&](std::vector<std::uint32_t> unit, int threads) {
      Batch batch(s, unit, precision, threads);
      batch.advance();
      return batch.engine->position();
    };
    const auto whole = run(all, 1);
    EXPECT_EQ(run(all, 3), whole);
    // Chain numbers are part of the random numbers: the same ones must be asked for.
    for (std::size_t n : {1u, 31u, 191u, 192u, 193u, 250u}) {
      const auto some = run({all.begin(), all.begin() + n}, 2);
      for (int i = 0; i < 6; ++i)
        for (std::size_t c = 0; c < n; ++c) ASSERT_EQ(some[i * n + c], whole[i * all.size() + c]) << n;
    }
  }
}

/// The same chain at every place of a block of products.
TEST(Decoder, BitsDoNotDependOnThePlaceInABlock) {
  const SubjectOf<DecoderTarget> s(decoder_input(random_decoder({50, 200, 200, 784}), 1));
  for (Precision precision : {Precision::mixed, Precision::double_}) {
    const std::vector<std::uint32_t> unit(384, 0);  // all at the same position
    const Batch batch(s, unit, precision);
    const auto g = batch.engine->gradient(), cache = batch.engine->cache();
    for (std::size_t c = 1; c < unit.size(); ++c) {
      ASSERT_EQ(cache[c], cache[0]) << c;
      for (int i = 0; i < 50; ++i) ASSERT_EQ(g[i * unit.size() + c], g[i * unit.size()]) << c;
    }
  }
}

TEST(Decoder, EvidenceOfOneLinearLayerIsClosed) {
  const SubjectOf<DecoderTarget> s(decoder_input(random_decoder({1, 2}), 3, "gaussian", 0.5));
  const Items& items = *s.target->items();
  ASSERT_EQ(items.log_z.size(), 3u);
  // Image 0's by quadrature over z.
  double sum = 0;
  for (int k = -4000; k <= 4000; ++k) sum += std::exp(s.log_density({k * 0.002})) * 0.002;
  EXPECT_NEAR(std::log(sum), items.log_z[0], 1e-9);
}

TEST(Decoder, EncoderGivesTheBases) {
  auto tensors = random_decoder({2, 3});
  tensors["encoder_mean_W0"] = {{1, 2, 3, 4, 5, 6}, {3, 2}};
  tensors["encoder_mean_b0"] = {{0.5, -0.5}, {1, 2}};
  tensors["encoder_std_W0"] = {{0, 0, 0, 0, 0, 0}, {3, 2}};
  tensors["encoder_std_b0"] = {{std::log(2.0), 0}, {2}};
  MemoryInput in = decoder_input(tensors, 1);
  in.choices["images"] = "file";
  in.image_array = {{1, 0, 1}, {1, 3}};
  const SubjectOf<DecoderTarget> s(in);
  EXPECT_THAT(s.target->items()->base_mean, ::testing::ElementsAre(6.5, 7.5));
  EXPECT_THAT(s.target->items()->base_sd, ::testing::ElementsAre(::testing::DoubleEq(2), 1.0));
  EXPECT_EQ(s.target->items()->base, "encoder");
}

TEST(Decoder, ImagesAreBinarisedAsAsked) {
  MemoryInput in = decoder_input(random_decoder({2, 3, 4}), 2);
  in.choices["images"] = "file";
  const auto values = [&] { return SubjectOf<DecoderTarget>(in).target->items()->values; };
  in.image_array = {{0, 0.4, 0.7, 1, 1, 0.6, 0.5, 0}, {2, 4}};
  EXPECT_THAT(values(), ::testing::ElementsAre(0, 0, 1, 1, 1, 1, 0, 0));
  in.numbers["threshold"] = 0.65;
  EXPECT_THAT(values(), ::testing::ElementsAre(0, 0, 1, 1, 1, 0, 0, 0));
  in.numbers["items"] = 1;
  EXPECT_THAT(values(), ::testing::ElementsAre(0, 0, 1, 1));
  in.numbers = {};
  in.image_array = {{0, 127, 128, 255}, {1, 4}};  // of 255
  EXPECT_THAT(values(), ::testing::ElementsAre(0, 0, 1, 1));
  // Draws: 1 with the probability that is the intensity, others with another seed.
  in.choices["binarise"] = "draw";
  const int count = 5000;
  in.image_array = {{}, {count, 4}};
  for (int i = 0; i < count; ++i) in.image_array.values.insert(in.image_array.values.end(), {0, 0.3, 0.8, 1});
  const auto drawn = values();
  double sums[4] = {};
  for (std::size_t i = 0; i < drawn.size(); ++i) sums[i % 4] += double(drawn[i]) / count;
  EXPECT_EQ(sums[0], 0);
  EXPECT_NEAR(sums[1], 0.3, 4 * std::sqrt(0.21 / count));
  EXPECT_NEAR(sums[2], 0.8, 4 * std::sqrt(0.16 / count));
  EXPECT_NEAR(sums[3], 1, 1e-9);
  EXPECT_EQ(values(), drawn);
  in.numbers["seed"] = 2;
  EXPECT_NE(values(), drawn);
}

TEST(Decoder, HiddenLayersMayDiffer) {
  const auto weights = random_decoder({3, 7, 5, 11});
  const auto density = [&](const char* activation) {
    MemoryInput in = decoder_input(weights, 1, "bernoulli", 0.7, activation);
    const auto built = DecoderTarget::build(in);
    std::vector<Activation> of_layers;
    for (int l = 0; l < 3; ++l) of_layers.push_back(built.density.layers[l].activation);
    return of_layers;
  };
  EXPECT_THAT(density("relu"),
              ::testing::ElementsAre(Activation::relu, Activation::relu, Activation::identity));
  EXPECT_THAT(density("relu,sigmoid"),
              ::testing::ElementsAre(Activation::relu, Activation::sigmoid, Activation::identity));
  EXPECT_THROW(density("relu,tanh,tanh"), UserError);
  EXPECT_THROW(density("gelu"), UserError);
}

TEST(Decoder, PyTorchNamesAreTransposed) {
  const auto plain = random_decoder({2, 3, 4});
  std::map<std::string, DataArray> torch;
  for (int l = 0; l < 2; ++l) {
    const auto &w = plain.at("decoder_W" + std::to_string(2 * l)),
               &b = plain.at("decoder_b" + std::to_string(2 * l));
    DataArray t = {std::vector<double>(w.values.size()), {w.shape[1], w.shape[0]}};
    for (int i = 0; i < w.shape[0]; ++i)
      for (int j = 0; j < w.shape[1]; ++j) t.values[j * w.shape[0] + i] = w.values[i * w.shape[1] + j];
    torch["decoder." + std::to_string(2 * l) + ".weight"] = t;
    torch["decoder." + std::to_string(2 * l) + ".bias"] = {b.values, {w.shape[1]}};
  }
  EXPECT_EQ(SubjectOf<DecoderTarget>(decoder_input(torch, 1)).log_density({0.1, 0.2}),
            SubjectOf<DecoderTarget>(decoder_input(plain, 1)).log_density({0.1, 0.2}));
}

TEST(Decoder, BadInputIsRefused) {
  const auto complaint = [](MemoryInput in) {
    try {
      DecoderTarget::build(in);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  const auto with = [](auto change) {
    MemoryInput in = decoder_input(random_decoder({2, 3, 4}), 2);
    change(in);
    return in;
  };
  EXPECT_EQ(complaint(with([](MemoryInput&) {})), "none");
  EXPECT_THAT(complaint(with([](MemoryInput& in) { in.choices["weights"] = ""; })), HasSubstr("no weights"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) { in.named_tensors.erase("decoder_W0"); })),
              HasSubstr("no decoder_W0"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) {
                in.named_tensors["decoder_W2"].shape = {4, 3};
              })),
              HasSubstr("decoder_W2 has shape [4, 3] (3 numbers come in"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) {
                in.named_tensors["decoder_b0"] = {{1, 2}, {2}};
              })),
              HasSubstr("decoder_b0 has shape [2]"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) { in.named_tensors.erase("decoder_b2"); })),
              HasSubstr("no decoder_b2"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) { in.named_tensors["decoder_W0"].values[1] = NAN; })),
              HasSubstr("not finite"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) {
                in.named_tensors["decoder_bias0"] = {{1}, {1}};
              })),
              HasSubstr("belongs to no layer"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) {
                in.named_tensors["decoder_W2"] = {{}, {3, 0}};
              })),
              HasSubstr("not empty"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) {
                in.named_tensors["encoder_mean_W0"] = {std::vector<double>(8, 0.1), {4, 2}};
                in.named_tensors["encoder_mean_b0"] = {{0, 0}, {2}};
              })),
              HasSubstr("alone"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) {
                in.named_tensors["encoder_mean_W0"] = {std::vector<double>(8, 0.1), {4, 2}};
                in.named_tensors["encoder_mean_b0"] = {{0, 0}, {2}};
                in.named_tensors["encoder_std_W0"] = in.named_tensors["encoder_mean_W0"];
                in.named_tensors["encoder_std_b0"] = {{800, 800}, {2}};
              })),
              HasSubstr("no use"));
  EXPECT_THAT(complaint(with([](MemoryInput& in) { in.choices["images"] = "simulate:0"; })),
              HasSubstr("simulate:0"));
  const auto file = [&](DataArray images) {
    return complaint(with([&](MemoryInput& in) {
      in.choices["images"] = "file";
      in.image_array = images;
    }));
  };
  EXPECT_EQ(file({{0, 255, 3, 200}, {1, 2, 2}}), "none");
  EXPECT_THAT(file({{0, 1, 1}, {1, 3}}), HasSubstr("gives 4 pixels"));
  EXPECT_THAT(file({{0, 1, 1, 256}, {1, 4}}), HasSubstr("outside 0 to 255"));
  EXPECT_THAT(file({{0, 1, -1, 0}, {1, 4}}), HasSubstr("outside 0 to 255"));
  EXPECT_THAT(file({{0, 1, NAN, 0}, {1, 4}}), HasSubstr("not finite"));
  EXPECT_THAT(file({{}, {0, 4}}), HasSubstr("no image"));
}

}  // namespace
}  // namespace lockstep::testing
