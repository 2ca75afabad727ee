// SPDX-License-Identifier: Apache-2.0
// A transition of repelling-attracting Metropolis step by step as the paper writes it, from the same random words.
#include "kernels/repelling_attracting.hpp"

#include <gtest/gtest.h>

#include "kernels/driver.hpp"
#include "tests/support/scalar_model.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

constexpr int kDim = 3;
using Model = Path<CurvedDensity, 0, false>;

/// A chain in double with its rows.
struct Chain {
  ScalarModel<Model> m;
  std::vector<double> position, x, p, g, xe, ce, cache, data, counted;
  std::vector<double> setting = {1000, std::log(1e-308)};
  explicit Chain(std::vector<double> start)
      : m([] {
          CurvedDensity density;
          density.dim = kDim;
          return Model{density, ParameterLayout{kDim}};
        }()),
        position(std::move(start)),
        x(position),
        p(kDim),
        g(kDim),
        xe(kDim),
        ce(2),
        cache(m.cache(position)),
        data(200),
        counted(4) {
    m.parameters[ParameterLayout::step_size] = 1.7;
  }
  struct View {
    decltype(std::declval<const ScalarModel<Model>&>().par()) parameters, energy_parameters;
    Rows<double> position, x, p, g, xe, ce, cache, fields;
    const double* settings;
    double* counted;
    void count(int k, double value) const { counted[k] += value; }
  };
  View view() {
    const auto rows = [](std::vector<double>& v) { return Rows<double>{v.data(), 1}; };
    return {m.par(),  m.par(),  rows(position), rows(x),    rows(p),        rows(g),
            rows(xe), rows(ce), rows(cache),    rows(data), setting.data(), counted.data()};
  }
};

/// The same by the paper's algorithm. Step s takes words of its own: a uniform and the jump's normals.
struct ByHand {
  Chain& c;
  Draw<double> draw;
  int s = 0;
  double lifted(const std::vector<double>& x) const {
    const double l = c.m.log_density(x);
    return std::log(std::exp(l) + 1e-308);
  }
  std::vector<double> jump(const std::vector<double>& from, double& u) {
    ++s;
    u = draw.uniform(Purpose::proposal, 2 * s);
    std::uint32_t words[4];
    draw.words(Purpose::proposal, std::uint32_t(2 * s + 1), words);
    double z[4];
    Draw<double>::normals(words[0], words[1], z[0], z[1]);
    Draw<double>::normals(words[2], words[3], z[2], z[3]);
    auto x = from;
    for (int j = 0; j < kDim; ++j)
      x[j] +=
          c.m.parameters[ParameterLayout::step_size] * c.m.parameters[c.m.model.layout.scale() + j] * z[j];
    return x;
  }
  std::vector<double> forced(const std::vector<double>& from, bool down) {
    for (;;) {
      double u;
      const auto x = jump(from, u);
      const double up = lifted(x) - lifted(from);
      if (u < std::exp(down ? -up : up)) return x;
    }
  }
};

TEST(RepellingAttracting, IsThePapersAlgorithm) {
  int evaluations = 0;
  for (std::uint32_t iteration = 0; iteration < 30; ++iteration) {
    const Draw<double> draw{{3, 4}, iteration, 1, 2};
    Chain c({0.4, -0.7, 0.2});
    const auto w = c.view();
    ByHand paper{c, draw};
    double u;
    const auto z = paper.jump(c.position, u), x1 = paper.forced(c.position, true),
               x2 = paper.forced(x1, false), z2 = paper.forced(x2, true);
    const auto downhill = [&](const auto& from, const auto& to) {
      return std::min(1.0, std::exp(paper.lifted(from) - paper.lifted(to)));
    };
    const auto r = stage_propose<RepellingAttracting, double, double>(c.m.model, LaunchSpec(), draw, w);
    for (int j = 0; j < kDim; ++j) EXPECT_NEAR(c.x[j], x2[j], 1e-12);
    EXPECT_NEAR(c.ce[0], c.m.log_density(x2), 1e-12);
    EXPECT_NEAR(std::exp(r.log_ratio), downhill(c.position, z) / downhill(x2, z2), 1e-9);
    EXPECT_EQ(r.steps, 0);  // no gradients
    EXPECT_EQ(c.counted[RepellingAttracting::evaluations], paper.s);
    EXPECT_EQ(c.counted[RepellingAttracting::capped], 0);
    evaluations += paper.s;
    // z becomes that of x2 where this is accepted, and is kept else.
    auto decided = r;
    for (double accepted : {0.0, 1.0}) {
      decided.accepted = accepted;
      RepellingAttracting::decided(c.m.model, LaunchSpec(), draw, decided, w);
      for (int j = 0; j < kDim; ++j) EXPECT_NEAR(c.data[2 + j], (accepted > 0 ? z2 : z)[j], 1e-12);
    }
  }
  EXPECT_GT(evaluations, 5 * 30);  // loops took more than one jump
}

TEST(RepellingAttracting, AZIsDrawnOnce) {
  Chain c({0.4, -0.7, 0.2});
  const auto w = c.view();
  const auto propose = [&](std::uint32_t iteration) {
    const Draw<double> draw{{3, 4}, iteration, 1, 2};
    stage_propose<RepellingAttracting, double, double>(c.m.model, LaunchSpec(), draw, w);
    return std::vector<double>(c.data.begin() + 2, c.data.begin() + 2 + kDim);
  };
  EXPECT_EQ(propose(0), propose(1));
}

TEST(RepellingAttracting, ALoopThatIsCutShortRejects) {
  int cut = 0;
  for (std::uint32_t iteration = 0; iteration < 30; ++iteration) {
    Chain c({0.4, -0.7, 0.2});
    c.setting[0] = 1;
    const Draw<double> draw{{3, 4}, iteration, 1, 2};
    const auto r =
        stage_propose<RepellingAttracting, double, double>(c.m.model, LaunchSpec(), draw, c.view());
    const bool capped = c.counted[RepellingAttracting::capped] > 0;
    EXPECT_EQ(capped, std::isinf(r.log_ratio));
    if (capped) {
      EXPECT_EQ(c.x, c.position);
    }
    EXPECT_LE(c.counted[RepellingAttracting::evaluations], 4);
    cut += capped;
  }
  EXPECT_GT(cut, 3);
  EXPECT_LT(cut, 30);
}

}  // namespace
