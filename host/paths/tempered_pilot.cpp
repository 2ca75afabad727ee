// SPDX-License-Identifier: Apache-2.0
#include "host/paths/tempered_pilot.hpp"
#include "kernels/iterations.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "host/runs/state_moments.hpp"
#include "targets/registry.hpp"

namespace lockstep {
namespace {

std::vector<std::uint32_t> numbers(int count) {
  std::vector<std::uint32_t> n(count);
  std::iota(n.begin(), n.end(), 0u);
  return n;
}

SmcOptions population(const PilotOptions& options) {
  SmcOptions o;
  o.levels = SmcOptions::Levels::common;
  o.rate = options.rate;
  o.most_levels = options.most_levels;
  o.longest = options.longest;
  o.moves = options.moves;
  o.first_moves = options.moves + PilotOptions::kSettling;
  o.launch.begin = kPilotIterations;
  o.launch.num_leapfrog = options.num_leapfrog;
  o.controller = {1.5, options.target_acceptance};
  return o;
}

}  // namespace

Jackknife Pilot::log_z_of_groups() const {
  const int groups = int(group_log_z.size());
  BlockLogSums sums(groups, 1);
  for (int g = 0; g < groups; ++g) sums.add(g, 0, group_log_z[g]);
  return sums.combine({1}) + -std::log(double(groups));
}

std::vector<int> Pilot::draw_levels(const StreamKey& key, int seeds, double end) const {
  const int levels = int(ladder.size());
  std::vector<int> level(seeds);
  for (int s = 0; s < seeds; ++s) {
    const Draw<double> draw{key, kPilotIterations, std::uint32_t(s), 0};
    const double at = draw.uniform(Purpose::seed_level) * (levels - 2 + 2 * end) - end;  // levels 1.. from 0
    level[s] = at < 0 ? 0 : std::min(levels - 1, 1 + int(at));
  }
  return level;
}

std::vector<double> Pilot::positions(const std::vector<int>& level, const std::vector<int>& seed) const {
  const std::size_t n = level.size(), rows = last.size() / last_weight.size(),
                    seeds = states[0].size() / rows;
  std::vector<double> x(rows * n);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t c = 0; c < n; ++c) x[i * n + c] = states[level[c]][i * seeds + seed[c]];
  return x;
}

CommunicationBarrier Pilot::barriers() const {
  const int steps = int(ladder.size()) - 1;
  return {ladder, std::vector<double>(steps, barrier / steps)};
}

std::pair<int, double> Pilot::place(double beta, const CommunicationBarrier& barrier) const {
  const int levels = int(step_size.size());
  const double at = barrier.cumulative(beta) / barrier.global() * (levels - 1);
  const int low = std::min(int(at), levels - 2);
  return {low, at - low};
}

double Pilot::step_size_at(double beta, const CommunicationBarrier& barrier) const {
  const auto [low, part] = place(beta, barrier);
  return step_size[low] * std::pow(step_size[low + 1] / step_size[low], part);
}

Pilot Pilot::on_ladder(std::vector<double> other) const {
  Pilot out = *this;
  out.states.clear();
  out.step_size.clear();
  out.log_z.clear();
  const auto barrier = barriers();
  for (double beta : other) {
    const auto [low, part] = place(beta, barrier);
    out.log_z.push_back((1 - part) * log_z[low] + part * log_z[low + 1]);
    out.step_size.push_back(step_size_at(beta, barrier));
    const auto above = std::lower_bound(ladder.begin(), ladder.end(), beta) - ladder.begin();
    out.states.push_back(states[std::min(std::size_t(above), states.size() - 1)]);
  }
  out.ladder = std::move(other);
  return out;
}

PilotRun::PilotRun(const RunContext& context, const PathBase& base, const PilotOptions& options)
    : context_(context),
      options_(options),
      particles_(
          context, base.path_engine(context, numbers(options.groups), options.particles / options.groups),
          numbers(options.groups),
          base.draws(context.key, kPilotIterations, options.particles / options.groups * options.groups,
                     options.particles / options.groups),
          population(options)) {}

bool PilotRun::step() {
  if (!particles_.step()) return linger();
  record_level();
  return true;
}

bool PilotRun::linger() {
  if (lingered_ == options_.linger) return false;
  if (lingered_++ == 0) found_.drift = means({});
  particles_.linger();
  const bool of_delta = lingered_ == options_.linger_of_delta, last = lingered_ == options_.linger;
  if (!of_delta && !last) return true;
  const auto now = means(found_.drift);
  for (std::size_t r = 0; r < now.size(); ++r)
    for (std::size_t b = 0; b < now[r].size() && (r == 0 ? of_delta : last); ++b)
      found_.drift[r][b] = now[r][b] - found_.drift[r][b];
  return true;
}

/// As Pilot::drift has them, of the present. In blocks of particles that lie side by side: resampling keeps their order,
/// so that descendants of one are in one block, but for those at the ends.
BlockMeans PilotRun::means(const BlockMeans& about) const {
  constexpr int kLarge = 256, kBlocks = 4;  // of a group
  const auto delta = particles_.deltas();
  auto log_weight = particles_.state().log_weight;
  for (std::size_t p = 0; p < delta.size(); ++p)
    if (!(delta[p] < kNoWeight)) log_weight[p] = -INFINITY;
  return block_means(*context_.target, particles_.position(), delta, log_weight,
                     options_.groups * (particles_.particles() >= kLarge ? kBlocks : 1), about);
}

void PilotRun::record_level() {
  const SmcState& now = particles_.state();
  found_.ladder.push_back(now.beta[0]);
  found_.step_size.push_back(now.step_size[0]);
  LogSum z;
  for (double v : now.log_z) z.add(v);
  found_.log_z.push_back(z.log() - std::log(double(options_.groups)));
  const auto x = particles_.position();
  const std::size_t n = now.log_weight.size(), d = x.size() / n, seeds = options_.seeds,
                    per = seeds / options_.groups;
  std::vector<float> s(d * seeds);
  for (int g = 0; g < options_.groups; ++g) {
    const auto kept = particles_.resample(g, int(per));
    for (std::size_t p = 0; p < per; ++p)
      for (std::size_t i = 0; i < d; ++i) s[i * seeds + g * per + p] = float(x[i * n + kept[p]]);
  }
  found_.states.push_back(std::move(s));
}

void PilotRun::tell() const {
  const SmcState& now = particles_.state();
  const double levels = std::max<double>(1, double(found_.ladder.size()));
  context_.tell("pilot", (now.beta[0] + lingered_ / levels) / (1 + options_.linger / levels),
                {particles_.total_gradients(), now.divergences});
}

Pilot PilotRun::finish() {
  const SmcState& now = particles_.state();
  Pilot out = std::move(found_);
  out.barrier = double(out.ladder.size() - 1) * options_.rate / std::sqrt(kPi);
  out.group_log_z = now.log_z;
  out.last = particles_.position();
  const std::size_t n = now.log_weight.size(), per = n / options_.groups;
  for (std::size_t first = 0; first < n; first += per) {
    const auto ancestor = now.ancestor.begin() + std::ptrdiff_t(first);
    out.group_ancestors.push_back(int(std::set<int>(ancestor, ancestor + std::ptrdiff_t(per)).size()));
    double square = 0;
    for (std::size_t c = first; c < first + per; ++c) square += std::exp(2 * now.log_weight[c]);
    out.group_ess.push_back(1 / square);
  }
  double sum = 0, square = 0;
  for (double w : now.log_weight) {
    out.last_weight.push_back(std::exp(w));
    sum += out.last_weight.back();
    square += out.last_weight.back() * out.last_weight.back();
  }
  out.weight_ess = sum * sum / square;
  const auto gradient = particles_.gradient();
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there are particles
  for (std::size_t i = 0; i < gradient.size() / n; ++i) {
    double squares = 0;
    for (std::size_t p = 0; p < n; ++p)
      if (const double g = gradient[i * n + p]; std::isfinite(g)) squares += out.last_weight[p] * g * g;
    out.curvature.push_back(squares / sum);
  }
  out.acceptance = now.acceptance[0];
  out.gradients = particles_.total_gradients();
  out.divergences = now.divergences;
  out.jump_acceptance = now.jumps_accepted / now.jumps_proposed;
  out.step_size = smoothed_steps(out.step_size, 2);
  return out;
}

Pilot run_pilot(const RunContext& context, const PathBase& base, const PilotOptions& options) {
  PilotRun run(context, base, options);
  context.stages->take_up("levels", run);
  while (run.step()) {
    context.stages->save("levels", run);
    run.tell();
  }
  return run.finish();
}

const Pilot& pilot_stage(const RunContext& context, const std::string& name, const PathBase& base,
                         const PilotOptions& options) {
  Stage<Pilot> stage(*context.stages, name);
  return stage.done() ? stage.result() : stage.keep(run_pilot(context, base, options));
}

}  // namespace lockstep
