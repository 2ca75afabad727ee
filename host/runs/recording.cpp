// SPDX-License-Identifier: Apache-2.0
#include "host/runs/recording.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr std::int64_t kMostBatches = 128;
constexpr int kEvidenceBlocks = 64;  // of the jackknife for log Z

/// The first `count` draws leave, in the order [draw][chain].
void drop_draws(StoredDraws& stored, int count) {
  stored.arrays(
      [&](auto& v) { v.erase(v.begin(), v.begin() + std::ptrdiff_t(v.size() / stored.draws) * count); });
  stored.draws -= count;
}

/// Only those chains stay, in the order [chain][draw].
void keep_chains(StoredDraws& stored, const std::vector<int>& chains) {
  stored.arrays([&](auto& v) {
    const std::size_t of_chain = v.size() / stored.chains.size();
    for (std::size_t k = 0; k < chains.size(); ++k)
      std::copy_n(v.begin() + std::size_t(chains[k]) * of_chain, of_chain, v.begin() + k * of_chain);
    v.resize(chains.size() * of_chain);
  });
  stored.chains = chains;
}

}  // namespace

std::int64_t launch_length(std::int64_t t) {
  std::int64_t length = kChunk;
  while (t >= kMostBatches * length) length *= 2;
  return length;
}

Batches::Batches(int chains, const MomentLayout& layout, int known_starts)
    : chains_(chains), known_starts_(known_starts), layout_(layout), sums_(chains) {
  most_ = std::clamp<std::int64_t>(8192 / chains, 8, kMostBatches);
}

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
                     std::vector<std::int64_t> last, int known_starts)
    : config_(config),
      chains_(options.chains),
      length_((*std::max_element(last.begin(), last.end()) - 1) / options.thin + 1),
      plan_(plan_draws(options.draws,
                       options.chains * (options.draw_units > 0 ? options.draw_units : int(last.size())),
                       length_, options.thin)),
      weighted_(options.weighted_draws),
      overview_(options.chains, layout.dim, options.overview),
      last_(std::move(last)),
      batches_(last_.size(), Batches(options.chains, layout, known_starts)),
      stats_(last_.size(), std::vector<double>(kStatRows, 0.0)) {
  draws_.chains = plan_.chains;
  // Weighted states are those of the chains themselves: one draw a launch.
  const std::int64_t of_draw = std::int64_t(plan_.chains.size()) * (layout.dim + kDrawExtraRows);
  capacity_ =
      plan_.chains.empty() ? 0
      : weighted_
          ? 1
          : int(std::clamp<std::int64_t>(kLaunchDraws / of_draw, 1, std::max<std::int64_t>(plan_.window, 1)));
  if (gives_evidence(config))
    evidence_.assign(last_.size(), PseudoExtendedEvidence(config.model.g_exponent, kEvidenceBlocks));
}

void Recording::add_sums(Engine& engine, std::int64_t begin, std::int64_t end, bool reset) {
  const auto moments = engine.moments(reset), stats = engine.stats(reset);
  const int total = engine.chains();
  for (std::size_t u = 0; u < last_.size(); ++u) {
    if (last_[u] < end || !(reset || last_[u] == end)) continue;  // read when it ended; or goes on
    batches_[u].add(moments, int(u) * chains_, total, end - begin);
    for (int r = 0; r < kStatRows; ++r) {
      // Far proposals of a random walk are no failure of an integrator.
      if (r == stat_divergences && config_.transition == TransitionKind::random_walk) continue;
      for (int c = 0; c < chains_; ++c) stats_[u][r] += stats[std::size_t(r) * total + u * chains_ + c];
    }
  }
}

void Recording::add_evidence(Engine& engine, std::int64_t begin, std::int64_t end) {
  if (evidence_.empty()) return;
  const auto cache = engine.cache();
  const int total = engine.chains(), samples = engine.samples();
  for (std::size_t u = 0; u < last_.size(); ++u) {
    if (end > last_[u]) continue;
    for (int c = 0; c < chains_; ++c) {
      // Whole chains as blocks where there are enough, else stretches of them.
      const double share = double(begin) / double(last_[u]);
      const int block = chains_ >= kEvidenceBlocks
                            ? c % kEvidenceBlocks
                            : std::min(kEvidenceBlocks - 1, int(share * kEvidenceBlocks));
      const double* of_chain = cache.data() + u * chains_ + c;
      for (int i = 0; i < samples; ++i) {
        double others = 0;
        for (int j = 0; j < samples; ++j)
          if (j != i) others += of_chain[std::size_t(1 + j) * total];
        evidence_[u].add(block, others, of_chain[std::size_t(1 + samples + i) * total]);
      }
    }
  }
}

void Recording::prepare(EngineSpec& spec) const {
  spec.draws = capacity_;
  spec.stored_chains = plan_.chains;
  spec.overview = overview_.capacity();
}

void Recording::place(LaunchSpec& launch) {
  stored_ = capacity_ == 0 ? 0 : place_draws(plan_, capacity_, launch);
  if (weighted_ && stored_ > 0) launch.end = launch.begin + launch.store_from + 1;  // and then stands there
  seen_ = overview_.place(launch);
}

void Recording::add_draws(Engine& engine) {
  overview_.add(engine, seen_);
  if (stored_ == 0) return;
  append_draws(draws_, engine, stored_, std::min(length_, plan_.window + capacity_), weighted_);
  if (draws_.draws > plan_.window) drop_draws(draws_, int(draws_.draws - plan_.window));
}

void append_draws(StoredDraws& to, Engine& engine, int count, std::int64_t most, bool weighted) {
  const int d = engine.dim(), chains = engine.chains(), n = engine.samples();
  const std::size_t stored = to.chains.size();
  weighted = weighted && n > 1;
  const bool learns = engine.rows() > n * d;
  // All at once: vectors that grow hold their contents twice while they do, and these may be most of the
  // memory.
  const auto make_room = [&](auto& v, int of_draw) { v.reserve(std::size_t(most) * stored * of_draw); };
  make_room(to.x, d);
  const std::pair<std::vector<float>*, DrawRow> statistics[] = {{&to.log_density, draw_log_density},
                                                                {&to.acceptance, draw_acceptance},
                                                                {&to.steps, draw_steps},
                                                                {&to.diverging, draw_diverging},
                                                                {&to.energy, draw_energy}};
  for (const auto& [v, row] : statistics) make_room(*v, 1);
  if (weighted) make_room(to.weighted_x, n * d);
  if (weighted) make_room(to.log_weight, n);
  if (weighted && learns) make_room(to.beta, n);
  const auto draws = engine.draws();
  for (int k = 0; k < count; ++k)
    for (std::size_t c = 0; c < stored; ++c) {
      const auto at = [&](int row) {
        return draws[(std::size_t(k) * (d + kDrawExtraRows) + row) * stored + c];
      };
      for (int i = 0; i < d; ++i) to.x.push_back(at(i));
      for (const auto& [v, row] : statistics) v->push_back(at(d + row));
    }
  to.draws += count;
  if (!weighted) return;
  const auto position = engine.position(), cache = engine.cache();
  for (const int c : to.chains)
    for (int s = 0; s < n; ++s) {
      for (int i = 0; i < d; ++i) to.weighted_x.push_back(position[std::size_t(s * d + i) * chains + c]);
      to.log_weight.push_back(std::log(std::max(cache[std::size_t(1 + s) * chains + c], 1e-300)));
      if (learns) to.beta.push_back(position[std::size_t(n * d + s) * chains + c]);
    }
}

void to_chain_major(StoredDraws& stored) {
  stored.arrays([&](auto& v) {
    if (v.empty()) return;
    const std::size_t draws = stored.draws, chains = stored.chains.size(),
                      width = v.size() / (draws * chains);
    auto out = v;
    for (std::size_t t = 0; t < draws; ++t)
      for (std::size_t c = 0; c < chains; ++c)
        std::copy_n(v.begin() + (t * chains + c) * width, width, out.begin() + (c * draws + t) * width);
    v.swap(out);
  });
}

void Recording::finish(ChainRunResult& result, const std::vector<int>& superchain) {
  for (std::size_t u = 0; u < batches_.size(); ++u) {
    result.units.push_back(batches_[u].take(stats_[u]));
    result.units.back().superchain = superchain;
    if (!evidence_.empty()) result.log_z.push_back(evidence_[u].value(result.frozen.log_zeta[u]));
  }
  result.overview = std::move(overview_);
  auto& d = result.draws = std::move(draws_);
  const std::int64_t made = (batches_[0].iterations() + plan_.thin - 1) / plan_.thin;
  d.first = (made - d.draws) * plan_.thin;
  to_chain_major(d);
  if (result.warmup.draws > 0) keep_chains(result.warmup, plan_.chains);
  const ModelSpec& m = config_.model;
  for (double& u : d.beta) u = m.low + (m.high - m.low) / (1 + std::exp(-u));
}

}  // namespace lockstep
