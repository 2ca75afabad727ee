// SPDX-License-Identifier: Apache-2.0
#include "host/runs/overview.hpp"

#include <algorithm>

#include "host/runs/run.hpp"

namespace lockstep {

Overview::Overview(int chains, int dim, std::int64_t most) : chains_(chains), dim_(dim), most_(most) {}

int Overview::capacity() const {
  // Launches are kChunk iterations long, or a 64th of those before them at most; and no launch stores more
  // than there may be.
  return int(std::min(most_, std::max(kChunk, most_ / 64 + 1)));
}

int Overview::place(LaunchSpec& launch) {
  if (most_ == 0) return 0;
  const auto keep = [](std::vector<float>& all, std::size_t of_draw, std::size_t kept) {
    for (std::size_t k = 1; k < kept; ++k)
      std::copy_n(all.begin() + 3 * k * of_draw, of_draw, all.begin() + k * of_draw);
    all.resize(kept * of_draw);
  };
  while ((std::int64_t(launch.end) + stride_ - 1) / stride_ > most_) {
    const std::size_t kept = (std::size_t(draws()) + 2) / 3;
    keep(x_, std::size_t(chains_) * dim_, kept);
    keep(acceptance_, chains_, kept);
    stride_ *= 3;
  }
  const std::int64_t begin = launch.begin, first = (begin + stride_ - 1) / stride_ * stride_;
  launch.overview_thin = int(stride_);
  launch.overview_from = int(first - begin);
  return first >= launch.end ? 0 : int((launch.end - first + stride_ - 1) / stride_);
}

void Overview::add(Engine& engine, int count) {
  if (count == 0) return;
  const auto rows = engine.overview();
  const std::size_t padded = engine.padded_chains(), of_draw = dim_ + kOverviewExtraRows;
  for (int k = 0; k < count; ++k)
    for (int c = 0; c < chains_; ++c) {
      const auto at = [&](int row) { return rows[(k * of_draw + row) * padded + c]; };
      for (int i = 0; i < dim_; ++i) x_.push_back(at(i));
      acceptance_.push_back(at(dim_));
    }
}

std::vector<float> Overview::of_chains(int first, int count) const {
  std::vector<float> x;
  for (std::int64_t k = 0; k < draws(); ++k) {
    const auto from = x_.begin() + (k * chains_ + first) * dim_;
    x.insert(x.end(), from, from + std::ptrdiff_t(count) * dim_);
  }
  return x;
}

}  // namespace lockstep
