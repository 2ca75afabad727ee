// SPDX-License-Identifier: Apache-2.0
#include "host/runs/stored_draws.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {

void StoredDraws::append(Engine& engine, int count, bool weighted, int threads) {
  constexpr std::size_t kTogether = 16, kFewNumbers = 1 << 16;  // chains: a line of the engine's
  const std::size_t d = std::size_t(dim = engine.dim()), rows = d + kDrawExtraRows, width = chains.size();
  Block& block = blocks.emplace_back();
  block.draws = count;
  block.numbers.resize(count * rows * width);
  const float* const from = engine.draws(count).data();
  float *const x = block.numbers.data(), *const statistics = x + count * d * width;
#pragma omp parallel for num_threads(threads) if (block.numbers.size() > kFewNumbers)
  for (std::size_t c0 = 0; c0 < width; c0 += kTogether) {
    const std::size_t c1 = std::min(width, c0 + kTogether);
    for (std::size_t k = 0; k < std::size_t(count); ++k)
      for (std::size_t r = 0; r < rows; ++r) {
        const float* const row = from + (k * rows + r) * width;
        float* const to = r < d ? x + k * d + r : statistics + (r - d) * width * count + k;
        const std::size_t of_chain = r < d ? count * d : count;
        for (std::size_t c = c0; c < c1; ++c) to[c * of_chain] = row[c];
      }
  }
  draws += count;
  const int n = engine.samples(), all = engine.chains();
  if (!weighted || n == 1) return;
  const bool learns = engine.rows() > n * dim;
  const auto position = engine.position(), cache = engine.cache();
  for (const int c : chains)
    for (int s = 0; s < n; ++s) {
      for (int i = 0; i < dim; ++i) weighted_x.push_back(position[std::size_t(s * dim + i) * all + c]);
      log_weight.push_back(std::log(std::max(cache[std::size_t(1 + s) * all + c], 1e-300)));
      if (learns) beta.push_back(position[std::size_t(n * dim + s) * all + c]);
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

void StoredDraws::end(std::int64_t most) {
  forget(most);
  skipped = int(std::max<std::int64_t>(0, draws - most));
  draws -= skipped;
}

template <class T>
void StoredDraws::read(int row, int width, const DrawsPart& part, T* out) const {
  for (int c = 0; c < part.chains; ++c) {
    std::int64_t begin = -(skipped + part.draw);  // of a block, in the part
    for (const Block& block : blocks) {
      const std::int64_t end = begin + block.draws, first = std::max<std::int64_t>(begin, 0),
                         count = std::min<std::int64_t>(end, part.draws) - first;
      const std::int64_t at =
          (std::int64_t(row) * chains.size() + std::int64_t(part.chain + c) * width) * block.draws;
      if (count > 0)
        std::copy_n(&block.numbers[at + (first - begin) * width], count * width,
                    out + (std::int64_t(c) * part.draws + first) * width);
      begin = end;
    }
  }
}
template void StoredDraws::read(int, int, const DrawsPart&, float*) const;
template void StoredDraws::read(int, int, const DrawsPart&, std::int32_t*) const;
template void StoredDraws::read(int, int, const DrawsPart&, std::uint8_t*) const;

void StoredDraws::read(const std::vector<double>& weighted, const DrawsPart& part, double* out) const {
  const std::size_t w = width(weighted);
  for (int c = 0; c < part.chains; ++c)
    for (int t = 0; t < part.draws; ++t) {
      const std::size_t at = std::size_t(skipped + part.draw + t) * chains.size() + part.chain + c;
      out = std::copy_n(weighted.begin() + std::ptrdiff_t(at * w), w, out);
    }
}

std::vector<float> StoredDraws::x() const {
  std::vector<float> out(chains.size() * draws * dim);
  read_x(all(), out.data());
  return out;
}
std::vector<float> StoredDraws::values(DrawRow statistic) const {
  std::vector<float> out(chains.size() * draws);
  read(statistic, all(), out.data());
  return out;
}
std::vector<double> StoredDraws::values(const std::vector<double>& weighted) const {
  if (weighted.empty()) return {};
  std::vector<double> out(chains.size() * draws * width(weighted));
  read(weighted, all(), out.data());
  return out;
}

void StoredDraws::join() {
  const std::size_t of_row = chains.size() * draws;
  Block one{draws, BareVector<float>(of_row * (dim + kDrawExtraRows))};
  read_x(all(), one.numbers.data());
  for (int row = 0; row < kDrawExtraRows; ++row)
    read(DrawRow(row), all(), &one.numbers[of_row * (dim + row)]);
  blocks.clear();
  blocks.push_back(std::move(one));
  skipped = 0;
}

void StoredDraws::keep_chains(const std::vector<int>& kept) {
  for (Block& block : blocks) {
    auto to = block.numbers.begin();
    auto from = to;
    for (int row = 0; row < 1 + kDrawExtraRows; ++row) {
      const std::ptrdiff_t of_chain = std::ptrdiff_t(block.draws) * (row == 0 ? dim : 1);
      for (const int c : kept) to = std::copy_n(from + c * of_chain, of_chain, to);
      from += std::ptrdiff_t(chains.size()) * of_chain;
    }
    block.numbers.erase(to, block.numbers.end());
  }
  chains = kept;
}

}  // namespace lockstep
