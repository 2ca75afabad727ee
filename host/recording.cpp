// SPDX-License-Identifier: Apache-2.0
#include "host/recording.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr std::int64_t kMostBatches = 128;
constexpr int kEvidenceBlocks = 64;  // of the jackknife for log Z

}  // namespace

bool gives_evidence(const SamplerConfig& c) {
  return c.instrument == SamplerConfig::Instrument::bridge && c.model.learned && c.model.pseudo_samples > 1 &&
         c.model.low == 0 && c.model.high == 1;
}

std::int64_t launch_length(std::int64_t t) {
  std::int64_t length = kChunk;
  while (t >= kMostBatches * length) length *= 2;
  return length;
}

Batches::Batches(int chains, const MomentLayout& layout) : chains_(chains), layout_(layout), sums_(chains) {
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
  m.sums.reserve(sums_.size() * sums_[0].size());
  for (const auto& s : sums_) m.sums.insert(m.sums.end(), s.begin(), s.end());
  m.stats = std::move(stats);
  return m;
}

Recording::Recording(const SamplerConfig& config, const ChainRunOptions& options, const MomentLayout& layout,
                     std::vector<std::int64_t> last)
    : config_(config),
      chains_(options.chains),
      stored_chains_(options.chains * (options.draw_units > 0 ? options.draw_units : int(last.size()))),
      most_draws_((*std::max_element(last.begin(), last.end()) - 1) / options.thin + 1),
      last_(std::move(last)),
      batches_(last_.size(), Batches(options.chains, layout)),
      stats_(last_.size(), std::vector<double>(kStatRows, 0.0)) {
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

void append_draw(StoredDraws& to, Engine& engine, int stored, std::int64_t most, bool weighted) {
  const int d = engine.dim(), chains = engine.chains(), padded = engine.padded_chains(), n = engine.samples();
  weighted = weighted && n > 1;
  const bool learns = engine.rows() > n * d;
  // All at once: vectors that grow hold their contents twice while they do, and these may be most of the
  // memory.
  const auto make_room = [&](auto& v, int of_draw) { v.reserve(std::size_t(most) * stored * of_draw); };
  make_room(to.x, d);
  for (auto* v : {&to.log_density, &to.acceptance, &to.steps}) make_room(*v, 1);
  if (weighted) make_room(to.weighted_x, n * d);
  if (weighted) make_room(to.log_weight, n);
  if (weighted && learns) make_room(to.beta, n);
  const auto draws = engine.draws();
  const auto position = engine.position(), cache = engine.cache();
  for (int c = 0; c < stored; ++c) {
    for (int i = 0; i < d; ++i) to.x.push_back(draws[std::size_t(i) * padded + c]);
    to.log_density.push_back(draws[std::size_t(d + draw_log_density) * padded + c]);
    to.acceptance.push_back(draws[std::size_t(d + draw_acceptance) * padded + c]);
    to.steps.push_back(draws[std::size_t(d + draw_steps) * padded + c]);
    for (int s = 0; weighted && s < n; ++s) {
      for (int i = 0; i < d; ++i) to.weighted_x.push_back(position[std::size_t(s * d + i) * chains + c]);
      to.log_weight.push_back(std::log(std::max(cache[std::size_t(1 + s) * chains + c], 1e-300)));
      if (learns) to.beta.push_back(position[std::size_t(n * d + s) * chains + c]);
    }
  }
  ++to.draws;
}

void to_chain_major(StoredDraws& stored, int chains) {
  const auto turn = [&](auto& v) {
    if (v.empty()) return;
    const std::size_t draws = stored.draws, width = v.size() / (draws * chains);
    auto out = v;
    for (std::size_t t = 0; t < draws; ++t)
      for (int c = 0; c < chains; ++c)
        std::copy_n(v.begin() + (t * chains + c) * width, width, out.begin() + (c * draws + t) * width);
    v.swap(out);
  };
  for (auto* v : {&stored.x, &stored.log_density, &stored.acceptance, &stored.steps}) turn(*v);
  for (auto* v : {&stored.weighted_x, &stored.log_weight, &stored.beta}) turn(*v);
}

void Recording::add_draw(Engine& engine) { append_draw(draws_, engine, stored_chains_, most_draws_, true); }

void Recording::finish(ChainRunResult& result, const std::vector<int>& superchain) {
  for (std::size_t u = 0; u < batches_.size(); ++u) {
    result.units.push_back(batches_[u].take(stats_[u]));
    result.units.back().superchain = superchain;
    if (!evidence_.empty()) result.log_z.push_back(evidence_[u].value(result.frozen.log_zeta[u]));
  }
  auto& d = result.draws = std::move(draws_);
  to_chain_major(d, stored_chains_);
  const ModelSpec& m = config_.model;
  for (double& u : d.beta) u = m.low + (m.high - m.low) / (1 + std::exp(-u));
}

}  // namespace lockstep
