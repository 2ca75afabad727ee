// SPDX-License-Identifier: Apache-2.0
#include "host/runs/recording.hpp"

#include <algorithm>
#include <cmath>

#include "host/runs/evidence_pairs.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kMostBatches = 128;
constexpr int kEvidenceBlocks = 64;  // of the jackknife for log Z

}  // namespace

std::int64_t launch_length(std::int64_t t) {
  std::int64_t length = kChunk;
  while (t >= kMostBatches * length) length *= 2;
  return length;
}

std::int64_t most_batches(int chains) { return std::clamp<std::int64_t>(8192 / chains, 8, kMostBatches); }

Batches::Batches(int chains, const MomentLayout& layout, int known_starts)
    : chains_(chains),
      known_starts_(known_starts),
      layout_(layout),
      most_(most_batches(chains)),
      sums_(chains) {}

void Batches::add(const std::vector<double>& moments, int first, int total, std::int64_t iterations) {
  const int rows = layout_.rows();
  if (open_ == 0)
    for (auto& s : sums_) s.resize(s.size() + rows, 0.0);
  for (int c = 0; c < chains_; ++c) {
    double* to = sums_[c].data() + sums_[c].size() - rows;
    for (int r = 0; r < rows; ++r) to[r] += moments[std::size_t(r) * total + first + c];
  }
  open_ += iterations;
  iterations_ += iterations;
  if (open_ < length_) return;
  open_ = 0;
  if (std::int64_t(sums_[0].size()) / rows < most_) return;
  for (auto& s : sums_) {
    for (int b = 0; b < most_ / 2; ++b)
      for (int r = 0; r < rows; ++r) s[b * rows + r] = s[2 * b * rows + r] + s[(2 * b + 1) * rows + r];
    s.resize(std::size_t(most_ / 2) * rows);
  }
  length_ *= 2;
}

UnitMoments Batches::take(std::vector<double> stats) const {
  UnitMoments m;
  m.layout = layout_;
  m.chains = chains_;
  m.batches = int(sums_[0].size() / layout_.rows());
  m.iterations = iterations_;
  m.batch_length = length_;
  m.known_starts = known_starts_;
  m.sums.reserve(sums_.size() * sums_[0].size());
  for (const auto& s : sums_) m.sums.insert(m.sums.end(), s.begin(), s.end());
  m.stats = std::move(stats);
  return m;
}

UnitMoments Batches::take_marginal() const {
  UnitMoments m;
  m.layout = {layout_.dim, 0, false};
  m.chains = chains_;
  const std::size_t all = layout_.rows(), some = m.layout.rows();
  m.batches = int(sums_[0].size() / all);
  m.iterations = iterations_;
  m.batch_length = length_;
  m.known_starts = known_starts_;
  for (const auto& s : sums_)
    for (int b = 0; b < m.batches; ++b)
      m.sums.insert(m.sums.end(), s.begin() + b * all, s.begin() + b * all + some);
  return m;
}

Recording::Recording(const SamplerConfig& config, const ChainRunOptions& options, const MomentLayout& layout,
                     RunEnd end, int known_starts, int threads)
    : config_(config),
      chains_(options.chains),
      dim_(layout.dim),
      threads_(threads),
      end_(*std::max_element(end.last.begin(), end.last.end())),
      plan_(plan_draws(options.draws,
                       options.chains * (options.draw_units > 0 ? options.draw_units : int(end.last.size())),
                       (end_ - 1) / options.thin + 1, options.thin)),
      weighted_(options.weighted_draws),
      overview_(options.chains * int(end.last.size()), layout.dim, options.overview),
      last_(std::move(end.last)),
      budget_(std::move(end.gradients)),
      batches_(last_.size(), Batches(options.chains, layout, known_starts)),
      stats_(last_.size(), std::vector<double>(kStatRows + config.transition->counters.size(), 0.0)) {
  draws_.chains = plan_.chains;
  // Weighted states are those of the chains themselves: one draw a launch. Else as many as a launch may make.
  const std::int64_t of_draw = std::int64_t(plan_.chains.size()) * (layout.dim + kDrawExtraRows);
  const std::int64_t longest = launch_length(end_ - 1) / options.thin + 1;
  if (!plan_.chains.empty())
    capacity_ =
        weighted_ ? 1
                  : int(std::clamp<std::int64_t>(kLaunchDraws / of_draw, 1,
                                                 std::max<std::int64_t>(std::min(plan_.window, longest), 1)));
}

void Recording::take_frozen(const Frozen& frozen) {
  if (!gives_evidence(config_)) return;
  for (std::size_t u = 0; u < last_.size(); ++u)
    evidence_.emplace_back(integral_of(config_, frozen, u), kEvidenceBlocks, frozen.bridge[u]);
}

void Recording::add_sums(Engine& engine, std::int64_t begin, std::int64_t end, bool reset) {
  const auto moments = engine.moments(reset), stats = engine.stats(reset);
  const int total = engine.chains();
  for (std::size_t u = 0; u < last_.size(); ++u) {
    if (last_[u] < end || !(reset || last_[u] == end)) continue;  // read when it ended; or goes on
    batches_[u].add(moments, int(u) * chains_, total, end - begin);
    for (std::size_t r = 0; r < stats_[u].size(); ++r) {
      // Far proposals of a random walk are no failure of an integrator.
      if (r == stat_divergences && !config_.transition->gradients) continue;
      for (int c = 0; c < chains_; ++c) stats_[u][r] += stats[r * total + u * chains_ + c];
    }
  }
}

void Recording::add_evidence(Engine& engine, std::int64_t begin, std::int64_t end) {
  if (evidence_.empty()) return;
  add_pairs(evidence_, engine, threads_, [&](std::size_t u, int chain) {
    if (end > last_[u]) return -1;
    // Whole chains as blocks where there are enough, else stretches of them.
    if (chains_ >= kEvidenceBlocks) return chain % kEvidenceBlocks;
    const double share =
        budget_.empty() ? double(begin) / double(last_[u]) : stats_[u][stat_gradients] / budget_[u];
    return std::min(kEvidenceBlocks - 1, int(share * kEvidenceBlocks));
  });
}

void Recording::prepare(EngineSpec& spec) const {
  spec.draws = capacity_;
  spec.stored_chains = plan_.chains;
  spec.overview = overview_.capacity();
}

void Recording::place(LaunchSpec& launch) {
  const std::int64_t t = launch.begin, length = launch_length(t);
  std::int64_t next = (t / length + 1) * length;
  for (const std::int64_t end : last_)
    if (end > t) next = std::min(next, end);
  launch.end = std::uint32_t(next);
  stored_ = capacity_ == 0 ? 0 : place_draws(plan_, capacity_, launch);
  if (weighted_ && stored_ > 0) launch.end = launch.begin + launch.store_from + 1;  // and then stands there
  seen_ = overview_.place(launch);
}

void Recording::record(Launched& launched) {
  const std::int64_t begin = launched.spec.begin, end = launched.spec.end, length = launch_length(begin);
  const bool whole = end % length == 0;
  const bool boundary = whole || end == end_;
  if (boundary || std::find(last_.begin(), last_.end(), end) != last_.end())
    add_sums(launched.engine, since_, end, boundary);
  add_draws(launched.engine);
  if (whole) add_evidence(launched.engine, end - length, end);
  recorded_ = end;
  if (boundary) since_ = end;
}

double Recording::end_spent() {
  double least = budget_.empty() ? 0 : 1;
  for (std::size_t u = 0; u < budget_.size(); ++u) {
    const double share = stats_[u][stat_gradients] / budget_[u];
    if (share >= 1) last_[u] = std::min(last_[u], since_);
    least = std::min(least, share);
  }
  return least;
}

void Recording::add_draws(Engine& engine) {
  overview_.add(engine, seen_);
  if (stored_ == 0) return;
  draws_.append(engine, stored_, weighted_, threads_);
  draws_.forget(plan_.window);
}

void Recording::finish(ChainRunResult& result) {
  for (std::size_t u = 0; u < batches_.size(); ++u) {
    result.units.push_back(batches_[u].take(stats_[u]));
    result.units.back().superchain = result.superchain;
    if (!evidence_.empty()) result.log_z.push_back(evidence_[u].value(result.frozen.log_zeta[u]));
  }
  result.overview = std::move(overview_);
  auto& d = result.draws = std::move(draws_);
  const std::int64_t made = (batches_[0].iterations() + plan_.thin - 1) / plan_.thin;
  d.end(plan_.window);
  d.first = (made - d.draws) * plan_.thin;
  if (result.warmup.draws > 0) result.warmup.keep_chains(plan_.chains);
  const ModelSpec& m = config_.model;
  for (double& u : d.beta) u = m.low + (m.high - m.low) / (1 + std::exp(-u));
}

}  // namespace lockstep
