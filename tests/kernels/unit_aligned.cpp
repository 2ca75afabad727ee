// SPDX-License-Identifier: Apache-2.0
// Threads do not share cache lines: the arrays of an engine on the CPU begin where a line does, and so do their
// rows; a tile is one thread's wherever that leaves none waiting.
#include <gtest/gtest.h>
#include <omp.h>

#include <chrono>
#include <set>
#include <thread>

#include "targets/engine_cpu.hpp"
#include "targets/gaussian.hpp"
#include "tests/support/engines.hpp"
#include "tests/support/target_input.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

bool begins_a_line(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % kLineBytes == 0; }

TEST(Aligned, StorageIsWholeLines) {
  for (std::size_t count : {1, 3, 16, 17, 1000}) {
    const AlignedVector<float> v(count, 1.0f), same = v;
    EXPECT_TRUE(begins_a_line(v.data())) << count;
    EXPECT_TRUE(begins_a_line(same.data())) << count;
    EXPECT_EQ(v, same);
    AlignedVector<int> grown;
    for (std::size_t k = 0; k < count; ++k) grown.push_back(int(k));
    EXPECT_TRUE(begins_a_line(grown.data())) << count;
  }
}

/// Looks at the arrays that a launch is given.
struct Watching : FusedCpu {
  using FusedCpu::FusedCpu;
  template <class Model>
  bool needs_work_rows(const Model&) const {
    return true;
  }
  template <class R, class E, class Model>
  void initialize(const Model& model, const BatchView<R, E>& b) const {
    ++looked;
    for (const void* p :
         {(const void*)b.position, (const void*)b.gradient, (const void*)b.cache, (const void*)b.parameters,
          (const void*)b.stats, (const void*)b.moments, (const void*)b.remembered, (const void*)b.chain,
          (const void*)b.unit, (const void*)b.work_energy, (const void*)b.ladder, (const void*)b.level_weight,
          (const void*)b.level_step, (const void*)b.holder, (const void*)b.trace, (const void*)b.draws,
          (const void*)b.draw_slot, (const void*)b.overview}) {
      EXPECT_NE(p, nullptr);
      EXPECT_TRUE(begins_a_line(p));
    }
    EXPECT_EQ(kTile * sizeof(*b.remembered) % kLineBytes, 0u);  // the narrowest rows
    FusedCpu::initialize<R, E>(model, b);
  }
  template <class R, class E, class Model>
  void advance(const Model&, const BatchView<R, E>&, const LaunchSpec&) const {}
  static inline int looked = 0;
};

template <class R, class E>
void expect_aligned(int chains) {
  MemoryInput input;
  const auto built = GaussianTarget::build(input);
  EngineSpec spec;
  spec.covariance = true;
  spec.draws = 3;
  spec.overview = 2;
  spec.trace = 5;
  spec.chain.assign(chains, 0);
  spec.unit.assign(chains, 0);
  using Model = Path<Gaussian, 0, true>;
  EngineOf<Watching, Model, R, E> engine(Model{built.density, ParameterLayout{built.density.dim}}, spec);
  engine.set_ladder({0, 0.5, 1}, {0, 0, 0}, {1, 1, 1});
  const int before = Watching::looked;
  engine.initialize();
  engine.set_state(engine.state());
  engine.initialize();
  EXPECT_EQ(Watching::looked, before + 2);
}

TEST(Aligned, ArraysOfAnEngineBeginWithALine) {
  for (int chains : {1, 31, 33, 100}) {
    expect_aligned<float, float>(chains);
    expect_aligned<float, double>(chains);
    expect_aligned<double, double>(chains);
  }
}

/// The threads that work on each tile, in launches of packs of W doubles.
template <int W>
std::vector<std::set<int>> threads_of_tiles(int chains, int threads) {
  MemoryInput input;
  const auto built = GaussianTarget::build(input);
  const Path<Gaussian, 0, false> model{built.density, ParameterLayout{built.density.dim}};
  std::vector<std::uint32_t> number(chains + kTile);
  BatchView<double, double> b;
  b.chains = chains;
  b.tiles = (chains + kTile - 1) / kTile;
  b.chain = b.unit = number.data();
  std::vector<double> position(std::size_t(b.tiles) * kTile * model.rows());
  b.position = position.data();
  std::vector<std::set<int>> of_tile(b.tiles);
  for_each_group<Pack<double, W>, Pack<double, W>>(model, b, false, threads, [&](const auto& w) {
    const auto tile = (w.position.p - b.position) / (kTile * model.rows());
    std::this_thread::sleep_for(std::chrono::microseconds(20));  // so that the others take their turn
#pragma omp critical
    of_tile[tile].insert(omp_get_thread_num());
  });
  return of_tile;
}

TEST(Aligned, ATileIsOneThreadsUnlessThreadsWouldWait) {
  for (int threads : {1, 2, 3})
    for (int tiles : {threads, 2 * threads, 100})
      for (const auto& of_tile : threads_of_tiles<8>(tiles * kTile - 5, threads))
        EXPECT_EQ(of_tile.size(), 1u) << threads << " threads, " << tiles << " tiles";
  // One tile for two threads, three for two: by groups, of which each has the same number.
  EXPECT_EQ(groups_together(4, 4, 2), 1);
  EXPECT_EQ(groups_together(12, 4, 2), 1);
  EXPECT_EQ(groups_together(8, 4, 2), 4);
  for (int threads = 1; threads <= 64; ++threads)
    for (int groups = 1; groups <= 1000; ++groups)
      for (int of_tile : {1, 2, 4, 8}) {
        const int together = groups_together(groups, of_tile, threads);
        const int turns = (groups + together - 1) / together;
        EXPECT_LE(together * ((turns + threads - 1) / threads), 1.0625 * ((groups + threads - 1) / threads));
      }
}

}  // namespace
