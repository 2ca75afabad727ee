// SPDX-License-Identifier: Apache-2.0
#include "host/runs/base_widening.hpp"

#include <algorithm>
#include <cmath>

#include "host/runs/carried_fields.hpp"
#include "host/runs/evidence_pairs.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kLeastWindow = 8;  // of the first window
constexpr std::int64_t kPairsEvery = 16;  // iterations: neighbours are correlated
constexpr int kBlocks = 16;               // of the jackknife
constexpr double kWorthIt = 1.1, kMostWider = 5, kLargestError = 0.5;

bool is_normal(const BaseDensity& base) { return base.components.size() == 1; }

}  // namespace

BaseWidening::BaseWidening(const RunContext& context, const SamplerConfig& config, const Frozen& begins,
                           std::int64_t iterations)
    : config_(config),
      layout_{context.target->dim(), 0},
      threads_(context.threads),
      first_(iterations / 8),
      first_sd_(begins.base_sd),
      enabled_(config.adapt && config.instrument == SamplerConfig::Instrument::bridge &&
               config.base_sd.empty() && first_ >= kLeastWindow && !std::isfinite(config.model.box) &&
               !carries_fields(*config.transition) &&
               (begins.full_base.empty() || std::ranges::any_of(begins.full_base, is_normal))) {
  const std::size_t units = begins.step_size.size();
  for (std::size_t u = 0; u < units && gives_evidence(config); ++u)
    integral_.push_back(integral_of(config, begins, u));
  sums_.resize(units);
  begin();
}

void BaseWidening::begin() {
  for (auto& s : sums_) s.assign(layout_.rows(), 0.0);
  evidence_.clear();
  for (const TiltedIntegral& i : integral_) evidence_.emplace_back(i, kBlocks);
}

void BaseWidening::record(Launched& launched, std::int64_t t) {
  if (!within(t)) return;
  const auto& m = launched.moments();
  const std::size_t chains = launched.chains(), per = chains / sums_.size();
  for (int r = 0; r < layout_.rows(); ++r)
    for (std::size_t c = 0; c < chains; ++c) sums_[c / per][r] += m[r * chains + c];
  if (!evidence_.empty() && t % kPairsEvery == 0)
    add_pairs(evidence_, launched.engine, threads_, [](std::size_t, int chain) { return chain % kBlocks; });
}

std::vector<std::size_t> BaseWidening::widened(std::int64_t next, Frozen& frozen) {
  std::vector<std::size_t> units;
  if (!enabled_ || (next != 2 * first_ && next != 4 * first_)) return units;
  for (std::size_t u = 0; u < sums_.size(); ++u)
    if (widen(u, frozen)) units.push_back(u);
  begin();
  return units;
}

bool BaseWidening::widen(std::size_t u, Frozen& f) const {
  if (!f.full_base.empty() && !is_normal(f.full_base[u])) return false;
  const double weight = sums_[u][MomentLayout::count];
  const bool learned = config_.model.dense_metric || config_.windows || config_.metric == "unit";
  bool any = false;
  for (int i = 0; i < layout_.dim; ++i) {
    const std::size_t axis = u * layout_.dim + i;
    const double mean = sums_[u][layout_.mean() + i] / weight,
                 square = sums_[u][layout_.second() + i] / weight - mean * mean,
                 seen = config_.base_inflation * std::hypot(std::sqrt(square), mean - f.base_mean[axis]);
    const double wider = std::min(seen, kMostWider * first_sd_[axis]) / f.base_sd[axis];
    if (!(wider > kWorthIt)) continue;
    any = true;
    f.base_sd[axis] *= wider;
    if (!f.full_base.empty()) f.full_base[u].components[0].factor.row(i) *= wider;
    if (learned) continue;  // the metric
    f.scale[axis] *= wider;
    const std::size_t triangle = std::size_t(layout_.dim) * (layout_.dim + 1) / 2,
                      row = std::size_t(i) * (i + 1) / 2;
    for (int j = 0; j <= i && !f.factor.empty(); ++j) f.factor[u * triangle + row + j] *= wider;
  }
  if (!any || evidence_.empty()) return any;
  const LogZ z = evidence_[u].value(f.log_zeta[u]);
  if (!std::isfinite(z.estimate + z.se)) return any;
  f.warmup_log_z[u] = z.estimate;
  f.log_zeta[u] =
      double(float(z.estimate + config_.tilt + 2 * std::min(z.se, kLargestError)));  // as the engine holds it
  return any;
}

}  // namespace lockstep
