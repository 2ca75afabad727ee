// SPDX-License-Identifier: Apache-2.0
#include "host/runs/scout.hpp"

#include <algorithm>
#include <cmath>

#include "host/engines/base_density.hpp"
#include "host/engines/sharded_engine.hpp"
#include "host/runs/run.hpp"
#include "kernels/iterations.hpp"

namespace lockstep {
namespace {

constexpr int kMoves = 3;     // HMC iterations per level
constexpr int kLeapfrog = 4;  // mean leapfrog steps of each
constexpr double kAcceptance = 0.75;
constexpr int kMaxLevels = 201;  // with the base
constexpr int kMaxWidenings = 6;
constexpr double kLost = 10;  // nats of log Z that a wider pass may lose before the one before it stands
constexpr double kFar = 3;    // standard deviations of the particles, beyond which a known point is left out

/// An equal share of a unit's particles for each known point that they left out.
void include_known(ScoutResult& out, std::size_t unit, const std::vector<Eigen::VectorXd>& known) {
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int n = out.particles, d = out.dim;
  Eigen::Map<Rows> x(out.position.data() + unit * n * d, n, d);
  Eigen::Map<Eigen::VectorXd> mean(out.mean.data() + unit * d, d), sd(out.sd.data() + unit * d, d);
  std::vector<const Eigen::VectorXd*> left_out;
  for (const auto& point : known)
    if (((point - mean).cwiseAbs().array() > kFar * sd.array()).any()) left_out.push_back(&point);
  if (left_out.empty()) return;
  const int parts = int(left_out.size()) + 1;
  for (int p = 0; p < n; ++p)
    if (p % parts > 0) x.row(p) = *left_out[p % parts - 1];
  out.measure(unit);
}

}  // namespace

void ScoutResult::measure(std::size_t unit) {
  const double* x = position.data() + unit * particles * dim;
  for (int i = 0; i < dim; ++i) {
    double sum = 0, square = 0;
    for (int p = 0; p < particles; ++p) sum += x[std::size_t(p) * dim + i] / particles;
    for (int p = 0; p < particles; ++p) {
      const double apart = x[std::size_t(p) * dim + i] - sum;
      square += apart * apart / (particles - 1);
    }
    mean[unit * dim + i] = sum;
    sd[unit * dim + i] = std::sqrt(square);
  }
}

void ScoutResult::measure_variance(std::size_t unit) {
  const int blocks = std::min(32, particles);
  const double* x = position.data() + unit * particles * dim;
  for (int i = 0; i < dim; ++i) {
    std::vector<double> square(blocks);
    for (int b = 0, p = 0; b < blocks; ++b) {
      const int first = p;
      for (; std::int64_t(p) * blocks < std::int64_t(b + 1) * particles; ++p)
        square[b] += std::pow(x[std::size_t(p) * dim + i] - mean[unit * dim + i], 2);
      square[b] /= p - first;
    }
    variance[unit * dim + i] = block_mean(square).value();
  }
}

double most_scout_gradients(std::int64_t particles) {
  return double(kMaxLevels - 1) * kMoves * kLeapfrog * double(particles);
}

Scout::Scout(const RunContext& context, std::vector<std::uint32_t> units, int particles, double init_scale,
             std::vector<Eigen::VectorXd> known)
    : context_(context), units_(std::move(units)), init_scale_(init_scale), known_(std::move(known)) {
  const std::size_t n = units_.size();
  const int d = context.target->dim();
  Eigen::VectorXd low = Eigen::VectorXd::Zero(d), high = low;
  for (const auto& x : known_) {
    low = low.cwiseMin(x);
    high = high.cwiseMax(x);
  }
  middle_ = 0.5 * (low + high);
  half_ = 0.5 * (high - low);
  found_.particles = particles;
  found_.dim = d;
  found_.position.resize(n * particles * d);
  found_.mean.resize(n * d);
  found_.sd.resize(n * d);
  found_.variance.resize(n * d, {NAN, NAN});
  found_.log_z.resize(n);
  found_.log_z_se.resize(n);
  found_.gradients.assign(n, 0.0);
  found_.levels.resize(n);
  open_.resize(n);
  std::iota(open_.begin(), open_.end(), std::size_t(0));
}

double Scout::scale() const { return std::ldexp(init_scale_, 2 * round_); }

/// Of all open units, from this round's scale about the box.
std::unique_ptr<SmcSampler> Scout::pass() const {
  const int d = found_.dim, per = found_.particles;
  std::vector<std::uint32_t> units;
  for (std::size_t u : open_) units.push_back(units_[u]);
  auto engine = make_engine(context_, engine_spec(context_, {.kind = ModelKind::path}, units, per));
  BaseAxes base{{middle_.begin(), middle_.end()}, {}, {}};
  double log_norm = -d * (0.5 * std::log(2 * kPi) + std::log(scale()));
  for (int i = 0; i < d; ++i) {
    base.sd.push_back(std::hypot(scale(), half_[i]));
    log_norm -= std::log(base.sd[i] / scale());
  }
  base.log_norm = {log_norm};
  write_bases(*engine, base);
  set_per_unit(*engine, ParameterLayout::log_zeta, {0});

  SmcOptions options;
  options.most_levels = kMaxLevels;
  options.moves = kMoves;
  options.launch.begin = std::uint32_t(round_) * kScoutIterations;  // a round's own, whoever else takes part
  options.launch.momentum = Purpose::scout_momentum;
  options.launch.accept = Purpose::scout_accept;
  options.launch.num_leapfrog = kLeapfrog;
  options.step_size = 0.7 / std::pow(double(d), 0.25);
  options.controller = {1, kAcceptance};
  for (std::size_t u = 0; u < units.size(); ++u)
    options.metric.insert(options.metric.end(), base.sd.begin(), base.sd.end());
  options.least_scale = 1e-6 * scale();

  const int chains = engine->chains();
  std::vector<double> x(std::size_t(d) * chains);
#pragma omp parallel for num_threads(context_.threads)
  for (int c = 0; c < chains; ++c) {
    const Draw<double> draw{context_.key, options.launch.begin, std::uint32_t(c % per), units[c / per]};
    const auto z = normals(draw, Purpose::scout, d);
    for (int i = 0; i < d; ++i) x[std::size_t(i) * chains + c] = middle_[i] + base.sd[i] * z[i];
  }
  return std::make_unique<SmcSampler>(context_, std::move(engine), units, x, options);
}

std::vector<bool> Scout::collect() {
  const int d = found_.dim, n = found_.particles;
  const auto x = pass_->position();
  const SmcState& state = pass_->state();
  std::vector<bool> stands(open_.size(), false);
  for (std::size_t k = 0; k < open_.size(); ++k) {
    const std::size_t u = open_[k];
    found_.gradients[u] += state.gradients[k];
    if (round_ > 0 && !(state.beta[k] >= 1 && state.log_z[k] > found_.log_z[u] - kLost)) continue;
    stands[k] = true;
    for (int i = 0; i < d; ++i) {
      const double* row = x.data() + (i * open_.size() + k) * n;
      for (int p = 0; p < n; ++p) found_.position[(u * n + p) * d + i] = row[p];
    }
    found_.measure(u);
    if (state.beta[k] >= 1) found_.measure_variance(u);
    found_.log_z[u] = state.log_z[k];
    found_.log_z_se[u] = std::sqrt(state.variance[k]);
    found_.levels[u] = state.raises[k];
  }
  return stands;
}

bool Scout::fills_scale(std::size_t u) const {
  for (int i = 0; i < found_.dim; ++i)
    if (found_.sd[u * found_.dim + i] > std::hypot(0.5 * scale(), half_[i])) return true;
  return false;
}

bool Scout::step() {
  while (round_ <= kMaxWidenings && !open_.empty()) {
    if (!pass_) pass_ = pass();
    if (pass_->step()) return true;
    const std::vector<bool> stands = collect();
    std::vector<std::size_t> wider;  // those not yet there are as wide as they are far from that
    for (std::size_t k = 0; k < open_.size(); ++k)
      if (stands[k] && pass_->state().beta[k] >= 1 && fills_scale(open_[k])) wider.push_back(open_[k]);
    open_ = std::move(wider);
    pass_.reset();
    ++round_;
  }
  return false;
}

void Scout::tell() const {
  const auto& beta = pass_->state().beta;
  context_.tell("scout", *std::min_element(beta.begin(), beta.end()), {pass_->total_gradients(), NAN});
}

ScoutResult Scout::finish() {
  for (std::size_t u = 0; u < units_.size(); ++u) include_known(found_, u, known_);
  return std::move(found_);
}

ScoutResult scout(const RunContext& context, const std::vector<std::uint32_t>& units, int particles,
                  double init_scale, const std::vector<Eigen::VectorXd>& known) {
  Scout run(context, units, particles, init_scale, known);
  return run_levels(*context.stages, run);
}

}  // namespace lockstep
