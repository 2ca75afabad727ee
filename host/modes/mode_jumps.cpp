// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_jumps.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "host/estimators/log_sums.hpp"
#include "host/modes/wormhole_network.hpp"
#include "host/util/errors.hpp"
#include "kernels/regeneration.hpp"

namespace lockstep {
namespace {

using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void put_triangle(std::vector<double>& list, const ByRows& m) {
  for (int i = 0; i < m.rows(); ++i) list.insert(list.end(), m.row(i).begin(), m.row(i).begin() + i + 1);
}
/// A mode's place, L^-1 and L = sqrt(widened) factor; returns log |L|.
double put_normal(std::vector<double>& list, const Mode& mode, double widened = 1) {
  const int d = int(mode.place.size());
  ByRows factor = Eigen::Map<const ByRows>(mode.factor.data(), d, d);
  if (widened != 1) factor *= std::sqrt(widened);
  list.insert(list.end(), mode.place.begin(), mode.place.end());
  put_triangle(list, factor.triangularView<Eigen::Lower>().solve(ByRows(ByRows::Identity(d, d))));
  put_triangle(list, factor);
  return factor.diagonal().array().log().sum();
}

/// As kernels/mode_jump.hpp reads it.
std::vector<double> jump_list(const ModeLibrary& library, const BaseDensity* base = nullptr) {
  const int d = library.dim();
  const std::vector<int> modes = library.most_used();
  if (modes.size() < 2 && base == nullptr) return {};
  std::vector<double> list = {double(modes.size()), base == nullptr ? 0 : double(base->components.size())};
  for (const int k : modes) {
    const double log_det = put_normal(list, library[k]);
    list.push_back(log_det);
  }
  double before = 0;
  for (std::size_t b = 0; base != nullptr && b < base->components.size(); ++b) {
    const NormalComponent& c = base->components[b];
    list.insert(list.end(), c.mean.begin(), c.mean.end());
    list.insert(list.end(), d * (d + 1) / 2, 0.0);  // nobody comes back from there
    put_triangle(list, c.factor);
    list.push_back(before);
    before += c.weight;
  }
  return list;
}

/// Of each unit, made of its library.
template <class Make>
std::shared_ptr<const SharedNumbers> lists_of(const std::vector<std::uint32_t>& units,
                                              const std::vector<SearchResult>& modes, Make make) {
  auto lists = std::make_shared<SharedNumbers>();
  for (std::size_t u = 0; u < modes.size(); ++u) lists->of_unit[units[u]] = make(modes[u].library);
  return lists;
}

}  // namespace

std::vector<double> mixture_list(const ModeLibrary& library, double widened) {
  const int d = library.dim();
  const std::vector<int> modes = library.most_used();
  if (modes.empty()) return {};
  std::vector<double> list = {double(modes.size()), 0};
  LogSum total;
  for (const int k : modes) total.add(library[k].best_log_mass());
  double cumulative = 0;
  for (const int k : modes) {
    const double log_weight = library[k].best_log_mass() - total.log();
    const double log_det = put_normal(list, library[k], widened);
    cumulative += std::exp(log_weight);
    list.insert(list.end(), {log_weight - 0.5 * d * std::log(2 * kPi) - log_det, cumulative});
  }
  return list;
}

RunContext with_jumps(RunContext context, const std::vector<std::uint32_t>& units,
                      const std::vector<SearchResult>& modes, const std::vector<BaseDensity>& bases,
                      bool learns) {
  auto jumps = std::make_shared<SharedNumbers>();
  bool any = learns;
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
  if (config.darting && context.jumps) {
    context.jumps = lists_of(units, modes, [&](const ModeLibrary& library) {
      auto list = mixture_list(library, 1);
      if (!list.empty()) list[1] = std::pow(config.darting_settings[0], 2) * library.dim();
      return list;
    });
    context.jumps_by = "darting";
  }
  for (const std::string& name : config.transition->shared) {
    if (name != "network") continue;
    const NetworkPlan plan = network_plan(config.settings);
    const auto lists =
        lists_of(units, modes, [&](const ModeLibrary& library) { return network_list(library, plan); });
    const auto& all = lists->of_unit;
    if (!config.network_settings.empty() && !config.learns_modes() &&
        std::all_of(all.begin(), all.end(), [](const auto& one) { return one.second.empty(); }))
      throw UserError(fmt::format(
          "setting {} of sampler {} has no effect ({}: no wormhole leads anywhere). Leave it out, or "
          "name modes by --modes",
          config.network_settings[0], config.name,
          modes.empty() || modes[0].library.size() == 0 ? "no mode is known" : "one mode is known"));
    context.lists[name] = lists;
  }
  return context;
}

RunContext with_regeneration(RunContext context, const SamplerConfig& config,
                             const std::vector<std::uint32_t>& units,
                             const std::vector<SearchResult>& modes) {
  if (!config.regeneration) return context;
  const auto lists = lists_of(units, modes, [&](const ModeLibrary& library) {
    const double d = library.dim(),
                 widened = 1 + config.regeneration_settings[Regeneration::spread] / std::sqrt(d);
    auto list = mixture_list(library, widened);
    if (!list.empty())
      list[1] = library.log_total() + 0.5 * d * (std::log(widened) - 1 + 1 / widened) +
                config.regeneration_settings[Regeneration::level];
    else if (config.learns_modes() && library.dim() <= kMostSearchedDim)
      list = {0, 0};  // of no component yet
    return list;
  });
  const auto& all = lists->of_unit;
  if (std::any_of(all.begin(), all.end(), [](const auto& one) { return !one.second.empty(); }))
    context.regeneration = lists;
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
