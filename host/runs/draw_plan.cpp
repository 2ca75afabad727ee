// SPDX-License-Identifier: Apache-2.0
#include "host/runs/draw_plan.hpp"

#include <algorithm>

#include "host/options/options.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kLeastChains = 4;  // R-hat of the stored draws needs several

}  // namespace

DrawPlan plan_draws(std::int64_t most, int chains, std::int64_t length, std::int64_t thin) {
  DrawPlan plan{{}, length, thin};
  std::int64_t count = chains;
  if (most != kAllDraws) {
    const std::int64_t filled = most / std::max<std::int64_t>(length, 1);
    count = std::min({std::max(filled, kLeastChains), std::int64_t(chains), most});
    plan.window = count == 0 ? 0 : std::min(length, most / count);
  }
  for (std::int64_t k = 0; k < count; ++k) plan.chains.push_back(int(k * chains / count));
  return plan;
}

int place_draws(const DrawPlan& plan, int capacity, LaunchSpec& launch) {
  const std::int64_t begin = launch.begin, thin = plan.thin, first = (begin + thin - 1) / thin * thin;
  const auto up_to = [&](std::int64_t end) { return end <= first ? 0 : (end - first + thin - 1) / thin; };
  const std::int64_t made = up_to(launch.end), skipped = std::max<std::int64_t>(0, made - plan.window);
  const std::int64_t kept = std::min<std::int64_t>(made - skipped, capacity);
  launch.thin = int(thin);
  launch.store_from = int(first - begin + skipped * thin);
  if (kept < made - skipped) launch.end = std::uint32_t(begin + launch.store_from + (kept - 1) * thin + 1);
  return int(kept);
}

}  // namespace lockstep
