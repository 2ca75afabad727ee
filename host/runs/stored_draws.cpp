// SPDX-License-Identifier: Apache-2.0
#include "host/runs/stored_draws.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {

void StoredDraws::append(Engine& engine, int count, bool weighted) {
  const int d = engine.dim(), all = engine.chains(), n = engine.samples();
  blocks.push_back({count, engine.draws()});
  blocks.back().numbers.resize(std::size_t(count) * (d + kDrawExtraRows) * chains.size());
  draws += count;
  if (!weighted || n == 1) return;
  const bool learns = engine.rows() > n * d;
  const auto position = engine.position(), cache = engine.cache();
  for (const int c : chains)
    for (int s = 0; s < n; ++s) {
      for (int i = 0; i < d; ++i) weighted_x.push_back(position[std::size_t(s * d + i) * all + c]);
      log_weight.push_back(std::log(std::max(cache[std::size_t(1 + s) * all + c], 1e-300)));
      if (learns) beta.push_back(position[std::size_t(n * d + s) * all + c]);
    }
}

void StoredDraws::forget(std::int64_t most) {
  std::size_t gone = 0;
  for (; gone < blocks.size() && draws - blocks[gone].draws >= most; ++gone) {
    for (auto* v : {&weighted_x, &log_weight, &beta})
      v->erase(v->begin(), v->begin() + std::ptrdiff_t(v->size() / draws * blocks[gone].draws));
    draws -= blocks[gone].draws;
  }
  blocks.erase(blocks.begin(), blocks.begin() + std::ptrdiff_t(gone));
}

void StoredDraws::arrange(int dim, std::int64_t most, int threads) {
  const std::size_t n = chains.size(), d = dim, rows = d + kDrawExtraRows;
  const std::int64_t kept = std::min<std::int64_t>(draws, most), skipped = draws - kept;
  const std::pair<std::vector<float>*, int> statistics[] = {{&log_density, draw_log_density},
                                                            {&acceptance, draw_acceptance},
                                                            {&steps, draw_steps},
                                                            {&diverging, draw_diverging},
                                                            {&energy, draw_energy}};
  x.resize(n * kept * d);
  for (const auto& [v, row] : statistics) v->resize(n * kept);
  constexpr std::size_t kTogether = 16;  // chains: a line of a block
  std::int64_t begin = -skipped;         // of the block, among the draws that are kept
  for (Block& block : blocks) {
#pragma omp parallel for num_threads(threads)
    for (std::size_t c0 = 0; c0 < n; c0 += kTogether)
      for (std::int64_t k = std::max<std::int64_t>(0, -begin); k < block.draws; ++k) {
        const float* from = block.numbers.data() + k * rows * n;
        for (std::size_t c = c0; c < std::min(n, c0 + kTogether); ++c) {
          const std::size_t to = c * kept + (begin + k);
          for (std::size_t i = 0; i < d; ++i) x[to * d + i] = from[i * n + c];
          for (const auto& [v, row] : statistics) (*v)[to] = from[(d + row) * n + c];
        }
      }
    begin += block.draws;
    block = {};
  }
  blocks.clear();
  for (auto* v : {&weighted_x, &log_weight, &beta}) {
    if (v->empty()) continue;
    const std::size_t width = v->size() / (std::size_t(draws) * n);
    std::vector<double> out(width * kept * n);
    for (std::int64_t t = 0; t < kept; ++t)
      for (std::size_t c = 0; c < n; ++c)
        std::copy_n(v->begin() + ((skipped + t) * n + c) * width, width,
                    out.begin() + (c * kept + t) * width);
    v->swap(out);
  }
  draws = int(kept);
}

void StoredDraws::keep_chains(const std::vector<int>& kept) {
  arrays([&](auto& v) {
    const std::size_t of_chain = v.size() / chains.size();
    for (std::size_t k = 0; k < kept.size(); ++k)
      std::copy_n(v.begin() + std::size_t(kept[k]) * of_chain, of_chain, v.begin() + k * of_chain);
    v.resize(kept.size() * of_chain);
  });
  chains = kept;
}

}  // namespace lockstep
