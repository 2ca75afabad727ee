// SPDX-License-Identifier: Apache-2.0
#include "host/chain_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "host/estimates.hpp"
#include "host/interrupt.hpp"
#include "kernels/transitions.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kChunk = 64;  // iterations of the first launches and batches
constexpr std::int64_t kMostBatches = 128;
constexpr int kEvidenceBlocks = 64;  // of the jackknife for log Z

/// Gradients of each iteration of a unit, by the very function the kernel uses.
template <class R>
double iteration_gradients(const LaunchSpec& spec, std::uint32_t iteration, double step_size, double time,
                           int samples) {
  R par[2] = {static_cast<R>(step_size), static_cast<R>(time)}, jitter;
  return double(num_steps<R>(spec, iteration, Rows<R>{par, 1}, jitter)) * samples;
}

/// The first number of iterations whose gradients reach the budget.
std::int64_t iterations_for(const RunContext& context, const LaunchSpec& spec, const Frozen& f,
                            std::size_t unit, int samples, int chains, double budget) {
  double spent = 0;
  std::int64_t t = 0;
  while (spent < budget && t < (std::int64_t(1) << 30)) {
    spent += chains *
             (context.precision == Precision::full
                  ? iteration_gradients<double>(spec, t, f.step_size[unit], f.trajectory_time[unit], samples)
                  : iteration_gradients<float>(spec, t, f.step_size[unit], f.trajectory_time[unit], samples));
    ++t;
  }
  return t;
}

/// Chunk sums of one unit, merged pairwise whenever there are twice as many as wanted, so that the batches
/// depend on nothing but the number of iterations.
class Batches {
 public:
  Batches(int chains, const MomentLayout& layout) : chains_(chains), layout_(layout) {
    most_ = std::clamp<std::int64_t>(8192 / chains, 8, kMostBatches);
    sums_.resize(chains);
  }
  /// Adds the sums [row][chain] of `iterations` iterations to the open batch, starting a new one at its
  /// length.
  void add(const std::vector<double>& moments, int first, int total, std::int64_t iterations) {
    if (open_ == 0)
      for (auto& s : sums_) s.resize(s.size() + layout_.rows(), 0.0);
    for (int c = 0; c < chains_; ++c) {
      double* to = sums_[c].data() + sums_[c].size() - layout_.rows();
      for (int r = 0; r < layout_.rows(); ++r) to[r] += moments[std::size_t(r) * total + first + c];
    }
    open_ += iterations;
    iterations_ += iterations;
    if (open_ < length_) return;
    open_ = 0;
    if (std::int64_t(sums_[0].size()) / layout_.rows() < most_) return;
    for (auto& s : sums_) {
      const int rows = layout_.rows();
      for (int b = 0; b < most_ / 2; ++b)
        for (int r = 0; r < rows; ++r) s[b * rows + r] = s[2 * b * rows + r] + s[(2 * b + 1) * rows + r];
      s.resize(std::size_t(most_ / 2) * rows);
    }
    length_ *= 2;
  }
  UnitMoments take(std::vector<double> stats) const {
    UnitMoments m;
    m.layout = layout_;
    m.chains = chains_;
    m.batches = int(sums_[0].size() / layout_.rows());
    m.iterations = iterations_;
    m.batch_length = length_;
    for (const auto& s : sums_) m.sums.insert(m.sums.end(), s.begin(), s.end());
    m.stats = std::move(stats);
    return m;
  }

 private:
  int chains_;
  MomentLayout layout_;
  std::int64_t most_, length_ = kChunk, open_ = 0, iterations_ = 0;
  std::vector<std::vector<double>> sums_;  // [chain][batch * row]
};

/// Length of the launch at iteration t: the batch length that t iterations have led to, so that long runs do
/// not stop for breath every 64 iterations.
std::int64_t launch_length(std::int64_t t) {
  std::int64_t length = kChunk;
  while (t >= kMostBatches * length) length *= 2;
  return length;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Whether log Z can be had: learned temperatures all the way from a proper base, with another pseudo-sample.
bool gives_evidence(const SamplerConfig& c) {
  return c.instrument == SamplerConfig::Instrument::bridge && c.model.learned && c.model.pseudo_samples > 1 &&
         c.model.low == 0 && c.model.high == 1;
}

/// Adds the present pairs of one unit: the chains' states at chunk boundaries are enough, neighbours being
/// correlated.
void add_evidence(PseudoExtendedEvidence& e, const std::vector<double>& cache, const Engine& engine,
                  int first, int chains, int samples, double share) {
  const int total = engine.chains();
  for (int c = 0; c < chains; ++c) {
    // Whole chains as blocks where there are enough, else stretches of them.
    const int block = chains >= kEvidenceBlocks ? c % kEvidenceBlocks
                                                : std::min(kEvidenceBlocks - 1, int(share * kEvidenceBlocks));
    for (int i = 0; i < samples; ++i) {
      double others = 0;
      for (int j = 0; j < samples; ++j)
        if (j != i) others += cache[std::size_t(1 + j) * total + first + c];
      e.add(block, others, cache[std::size_t(1 + samples + i) * total + first + c]);
    }
  }
}

void store_draws(StoredDraws& out, Engine& engine) {
  const int d = engine.dim(), chains = engine.chains(), padded = engine.padded_chains(), n = engine.samples();
  const auto draws = engine.draws();
  const auto position = engine.position(), cache = engine.cache();
  // Collected as [draw][chain][..] and turned round at the end of the run.
  for (int c = 0; c < chains; ++c) {
    for (int i = 0; i < d; ++i) out.x.push_back(draws[std::size_t(i) * padded + c]);
    out.log_density.push_back(draws[std::size_t(d + draw_log_density) * padded + c]);
    out.acceptance.push_back(draws[std::size_t(d + draw_acceptance) * padded + c]);
    out.steps.push_back(draws[std::size_t(d + draw_steps) * padded + c]);
    if (n == 1) continue;
    for (int s = 0; s < n; ++s) {
      for (int i = 0; i < d; ++i) out.weighted_x.push_back(position[std::size_t(s * d + i) * chains + c]);
      out.log_weight.push_back(std::log(std::max(cache[std::size_t(1 + s) * chains + c], 1e-300)));
      if (engine.rows() > n * d) out.beta.push_back(position[std::size_t(n * d + s) * chains + c]);
    }
  }
  ++out.draws;
}

template <class T>
void to_chain_major(std::vector<T>& v, int draws, int chains) {
  if (v.empty()) return;
  const std::size_t width = v.size() / (std::size_t(draws) * chains);
  std::vector<T> out(v.size());
  for (int t = 0; t < draws; ++t)
    for (int c = 0; c < chains; ++c)
      std::copy_n(v.begin() + (std::size_t(t) * chains + c) * width, width,
                  out.begin() + (std::size_t(c) * draws + t) * width);
  v.swap(out);
}

}  // namespace

ChainRunResult run_chains(const RunContext& context, const SamplerConfig& config,
                          const ChainRunOptions& options) {
  ChainRunResult result;
  auto clock = std::chrono::steady_clock::now();
  std::vector<double> positions;
  std::vector<int> superchain;
  result.frozen = adapt(context, config, options, positions, superchain);
  result.warmup_seconds = seconds_since(clock);

  const std::size_t num_units = options.units.size();
  EngineSpec spec;
  spec.model = result.frozen.model;
  spec.transition = config.transition;
  spec.precision = context.precision;
  spec.threads = context.threads;
  spec.cuda = context.cuda;
  spec.covariance = options.covariance;
  spec.draws = options.draws ? 1 : 0;
  number_chains(spec, options.units, options.chains);
  auto engine = context.target->engine(spec);
  set_frozen(*engine, config, result.frozen);
  engine->set_position(positions);
  engine->initialize();

  LaunchSpec launch;
  launch.key = context.key;
  launch.num_leapfrog = config.num_leapfrog;
  launch.jitter = config.jitter;
  launch.record = true;
  std::vector<std::int64_t> last(num_units, options.iterations);
  if (options.gradients > 0)
    for (std::size_t u = 0; u < num_units; ++u)
      last[u] = iterations_for(context, launch, result.frozen, u, engine->samples(), options.chains,
                               options.gradients);
  const std::int64_t end = *std::max_element(last.begin(), last.end());

  clock = std::chrono::steady_clock::now();
  std::vector<Batches> batches(num_units, Batches(options.chains, engine->moment_layout()));
  std::vector<std::vector<double>> stats(num_units, std::vector<double>(kStatRows, 0.0));
  std::vector<PseudoExtendedEvidence> evidence;
  if (gives_evidence(config))
    evidence.assign(num_units, PseudoExtendedEvidence(config.model.g_exponent, kEvidenceBlocks));
  std::int64_t since = 0;  // where the engine's running sums begin
  for (std::int64_t t = 0; t < end;) {
    // Up to the next chunk boundary, the next unit's end, or the next stored draw.
    const std::int64_t length = launch_length(t);
    std::int64_t next = std::min(end, (t / length + 1) * length);
    for (std::int64_t e : last)
      if (e > t) next = std::min(next, e);
    if (options.draws)
      next = t % options.thin == 0 ? t + 1 : std::min(next, (t / options.thin + 1) * options.thin);
    launch.begin = std::uint32_t(t);
    launch.end = std::uint32_t(next);
    launch.thin = int(next - t);  // at most one draw a launch, its first
    engine->advance(launch);
    result.interrupted = interrupted();
    // Sums run on over launches that were cut short for somebody else's sake, so that not one bit depends on
    // company.
    const bool boundary = next % length == 0 || next == end || result.interrupted;
    if (boundary || std::find(last.begin(), last.end(), next) != last.end()) {
      const auto moments = engine->moments(boundary), launch_stats = engine->stats(boundary);
      for (std::size_t u = 0; u < num_units; ++u) {
        if (since >= last[u] || !(boundary || last[u] == next)) continue;
        if (next > last[u]) continue;  // ended within this batch, and was read then
        batches[u].add(moments, int(u) * options.chains, engine->chains(), next - since);
        for (int r = 0; r < kStatRows; ++r)
          for (int c = 0; c < options.chains; ++c)
            stats[u][r] += launch_stats[std::size_t(r) * engine->chains() + u * options.chains + c];
      }
      if (boundary) since = next;
    }
    if (options.draws && t % options.thin == 0) store_draws(result.draws, *engine);
    if (!evidence.empty() && next % length == 0) {  // whoever else, or whichever draws, shortened the launch
      const auto cache = engine->cache();
      for (std::size_t u = 0; u < num_units; ++u)
        if (next <= last[u])
          add_evidence(evidence[u], cache, *engine, int(u) * options.chains, options.chains,
                       engine->samples(), double(next - length) / last[u]);
    }
    t = next;
    context.progress("sampling", double(t) / end);
    if (result.interrupted) break;
    if (options.se > 0 && boundary && t % (4 * kChunk) == 0) {
      const auto now = estimate(batches[0].take(stats[0]));
      double worst = 0;
      for (int i = 0; i < engine->dim(); ++i)
        worst = std::max(worst, now.mean_se[i] / std::sqrt(now.variance(i)));
      if (worst < options.se) break;
    }
  }
  result.sampling_seconds = seconds_since(clock);
  for (std::size_t u = 0; u < num_units; ++u) {
    result.units.push_back(batches[u].take(stats[u]));
    result.units.back().superchain = superchain;
    if (!evidence.empty()) result.log_z.push_back(evidence[u].value(result.frozen.log_zeta[u]));
  }
  auto& d = result.draws;
  const int chains = engine->chains();
  to_chain_major(d.x, d.draws, chains);
  for (auto* v : {&d.log_density, &d.acceptance, &d.steps}) to_chain_major(*v, d.draws, chains);
  for (auto* v : {&d.weighted_x, &d.log_weight, &d.beta}) to_chain_major(*v, d.draws, chains);
  for (double& u : d.beta) u = config.model.low + (config.model.high - config.model.low) / (1 + std::exp(-u));
  return result;
}

}  // namespace lockstep
