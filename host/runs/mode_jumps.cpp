// SPDX-License-Identifier: Apache-2.0
#include "host/runs/mode_jumps.hpp"

#include <Eigen/Dense>
#include <cmath>

#include "host/runs/wormhole_network.hpp"

namespace lockstep {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// As kernels/mode_jump.hpp reads it.
std::vector<double> jump_list(const ModeLibrary& library, const BaseDensity* base = nullptr) {
  const int d = library.dim(), count = std::min(library.size(), most_used_modes(d));
  if (count < 2 && base == nullptr) return {};
  const auto order = library.by_mass();
  std::vector<double> list = {double(count), base == nullptr ? 0 : double(base->components.size())};
  const auto put_triangle = [&](const Rows& m) {
    for (int i = 0; i < d; ++i) list.insert(list.end(), m.row(i).begin(), m.row(i).begin() + i + 1);
  };
  for (int k = 0; k < count; ++k) {
    const Mode& mode = library[order[k]];
    const Rows factor = Eigen::Map<const Rows>(mode.factor.data(), d, d);
    list.insert(list.end(), mode.place.begin(), mode.place.end());
    put_triangle(factor.triangularView<Eigen::Lower>().solve(Rows(Rows::Identity(d, d))));
    put_triangle(factor);
    list.push_back(factor.diagonal().array().log().sum());
  }
  double before = 0;
  for (std::size_t b = 0; base != nullptr && b < base->components.size(); ++b) {
    const NormalComponent& c = base->components[b];
    list.insert(list.end(), c.mean.begin(), c.mean.end());
    list.insert(list.end(), d * (d + 1) / 2, 0.0);  // nobody comes back from there
    put_triangle(c.factor);
    list.push_back(before);
    before += c.weight;
  }
  return list;
}

}  // namespace

RunContext with_jumps(RunContext context, const std::vector<std::uint32_t>& units,
                      const std::vector<SearchResult>& modes, const std::vector<BaseDensity>& bases) {
  auto jumps = std::make_shared<SharedNumbers>();
  bool any = false;
  for (std::size_t u = 0; u < modes.size(); ++u) {
    const bool of_modes = !bases.empty() && bases[u].components.size() > 1;
    jumps->of_unit[units[u]] = jump_list(modes[u].library, of_modes ? &bases[u] : nullptr);
    any = any || of_modes || modes[u].library.size() > 1;
  }
  if (any) context.jumps = jumps;
  return context;
}

RunContext with_jumps(RunContext context, const ModeLibrary& library, const BaseDensity* base) {
  if (library.size() < 2 && base == nullptr) return context;
  auto jumps = std::make_shared<SharedNumbers>();
  jumps->of_others = jump_list(library, base);
  context.jumps = jumps;
  return context;
}

RunContext with_lists(RunContext context, const SamplerConfig& config,
                      const std::vector<std::uint32_t>& units, const std::vector<SearchResult>& modes) {
  for (const std::string& name : config.transition->shared) {
    if (name != "network") continue;
    const auto& s = config.settings;
    const NetworkPlan plan{s[0], s[1] > 0.5, s[2] > 1.5, s[3]};
    auto lists = std::make_shared<SharedNumbers>();
    for (std::size_t u = 0; u < modes.size(); ++u)
      lists->of_unit[units[u]] = network_list(modes[u].library, plan);
    context.lists[name] = lists;
  }
  return context;
}

void JumpCounts::add(const std::vector<double>& stats, const TransitionInfo& first, int chains) {
  const std::size_t row = kStatRows + first.counters.size();
  if (stats.size() < (row + 2) * chains) return;
  const auto sum = [&](std::size_t r) {
    const auto begin = stats.begin() + std::ptrdiff_t(r) * chains;
    return std::accumulate(begin, begin + chains, 0.0);
  };
  proposed += sum(row);
  accepted += sum(row + 1);
}

}  // namespace lockstep
