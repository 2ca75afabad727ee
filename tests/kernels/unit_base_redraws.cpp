// SPDX-License-Identifier: Apache-2.0
// Draws of a base in the place of a jump (kernels/mode_jump.hpp): those that the host makes of the same numbers, in any
// lanes and however the work is divided.
#include <gtest/gtest.h>

#include "tests/support/block_transitions.hpp"
#include "tests/support/lane_engines.hpp"
#include "tests/support/parity.hpp"
#include "tests/support/three_axes.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

EngineFactory factory(int width = 0) {
  return [width](EngineSpec spec) {
    if (width != 0) spec.pack_width = width;
    return blocks_of_any_width(three_axes(), spec,
                               spec.model.kind == ModelKind::path
                                   ? block_transitions<Library<KnownModes>, OpaquePath>()
                                   : block_transitions<Library<KnownModes>, OpaqueExtended>());
  };
}

struct Named {
  const char* name;
  BatchCase batch;
};
/// In units of five: two tiles and a part that is a multiple of no width.
std::vector<Named> cases() {
  static const TransitionInfo info = KnownModes::info();
  BatchCase c;
  c.model.kind = ModelKind::path;
  c.transition = &info;
  c.chains = 75;
  c.prepare = [](Engine& e) { KnownModes::prepare(e, 60); };
  BatchCase mixture = c, extended = c;
  mixture.model.base = base_number<NormalMixture>();
  mixture.tempering = Tempering::gibbs;
  extended.model.kind = ModelKind::pseudo_extended;
  extended.model.pseudo_samples = 2;
  return {{"axes", c}, {"mixture", mixture}, {"extended", extended}};
}

TEST(BaseRedraws, NoBitDependsOnTheDivisionOfTheWork) {
  for (const auto& [name, c] : cases()) {
    const BatchResult whole = run_batch(factory(), c);
    for (const int width : {4, 32}) EXPECT_EQ(run_batch(factory(width), c), whole) << name << " " << width;
    EXPECT_EQ(run_batch(factory(), c, {.threads = 3, .launches = {2}, .engines = {7, 40}}), whole) << name;
  }
}

TEST(BaseRedraws, ScalarReferenceTakesThePacksTransitions) {
  for (const auto& [name, c] : cases()) {
    const Parity p = compare_transitions(factory(), factory(1), c);
    EXPECT_LE(p.position, 1e-5) << name;
    EXPECT_LE(p.cache, 5e-4) << name;
    EXPECT_LE(p.closest, 1e-4) << name << ": " << p.apart << " decisions differ";
    EXPECT_GT(p.accepted, 0) << name;
    EXPECT_LT(p.equal, p.numbers) << name << ": are these two kinds of lanes?";
  }
}

/// What the first iteration of a chain on a path goes to, where it goes to a draw of the base, and what roundings may make
/// of that.
struct Redraw {
  bool made = false;
  double x[3], error[3];
};
Redraw redraw_of(const StreamKey& key, int unit, int chain) {
  constexpr std::uint32_t kPick = (1u << 20) - 1, kCoin = kPick - 1;  // beyond the axes
  // In single precision, as the lanes do: a uniform near 1 leaves little of a radius.
  const Draw<float> draw{key, 0, std::uint32_t(chain), std::uint32_t(unit)};
  const int components = KnownModes::components_of(unit);
  Redraw r;
  const bool may_jump = KnownModes::modes_of(unit) > 1;
  if (components == 0 || (may_jump && draw.uniform(Purpose::base_draw, kCoin) >= 0.5f)) return r;
  r.made = true;
  int picked = 0;
  for (int b = 1; b < components; ++b)
    if (draw.uniform(Purpose::base_draw, kPick) >= KnownModes::weight_before(b)) picked = b;
  double z[4];
  draw.normals(Purpose::base_draw, 4, [&](int i, float v) { z[i] = v; });
  for (int i = 0; i < 3; ++i) {
    r.x[i] = KnownModes::mean(unit, picked, i);
    double size = std::abs(r.x[i]);
    for (int j = 0; j <= i; ++j) {
      const double factor = i == j ? KnownModes::diagonal(picked) : j == 0 ? KnownModes::off(picked) : 0;
      r.x[i] += factor * z[j];
      size += std::abs(factor) * std::hypot(z[j & ~1], z[j | 1]);
    }
    // In units of roundoff of the radius: 2 of its own, 3.5 of the angle, which the C library is given times pi, 2 of
    // sine and product; and half a one of the result.
    r.error[i] = 8 * 0x1p-24 * size;
  }
  return r;
}

TEST(BaseRedraws, AreTheHostsDrawsOfTheirComponents) {
  for (const int width : {0, 1, 4, 32}) {
    BatchCase c = cases()[1].batch;
    c.tempering = Tempering::fixed;
    c.chains = 300;
    c.iterations = 1;
    const BatchResult after = run_batch(factory(width), c);
    c.iterations = 0;
    const BatchResult before = run_batch(factory(width), c);
    int accepted = 0, refused = 0, left_alone = 0;
    for (int chain = 0; chain < c.chains; ++chain) {
      const int unit = chain / 5;
      const auto at = [&](const BatchResult& r, int i) {
        return r.position[std::size_t(i) * c.chains + chain];
      };
      const bool stays = at(after, 0) == at(before, 0);
      const Redraw redraw = redraw_of(c.key, unit, chain % 5);
      if (!redraw.made) {
        if (KnownModes::modes_of(unit) > 1) continue;
        EXPECT_TRUE(stays) << "there is nowhere to go";
        ++left_alone;
        continue;
      }
      ++(stays ? refused : accepted);
      for (int i = 0; i < 3 && !stays; ++i)
        EXPECT_NEAR(at(after, i), redraw.x[i], redraw.error[i]) << width << " " << chain;
    }
    EXPECT_GT(accepted, 30) << width;
    EXPECT_GT(refused, 10) << width;
    EXPECT_GT(left_alone, 30) << width;
  }
}

}  // namespace
