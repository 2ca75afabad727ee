// SPDX-License-Identifier: Apache-2.0
#include "host/runs/scout.hpp"

#include <algorithm>
#include <cmath>

#include "host/runs/base_rows.hpp"
#include "targets/registry.hpp"

namespace lockstep {
namespace {

constexpr int kMoves = 3;     // HMC iterations per level
constexpr int kLeapfrog = 4;  // mean leapfrog steps of each
constexpr double kAcceptance = 0.75;
constexpr int kMaxLevels = 200;
constexpr int kMaxWidenings = 6;
constexpr double kFar = 3;  // standard deviations of the particles, beyond which a known point is left out

/// The middle and half the width, on each axis, of the box that spans the origin and the known points.
struct KnownBox {
  Eigen::VectorXd middle, half;
  KnownBox(const std::vector<Eigen::VectorXd>& known, int dim) {
    Eigen::VectorXd low = Eigen::VectorXd::Zero(dim), high = low;
    for (const auto& x : known) {
      low = low.cwiseMin(x);
      high = high.cwiseMax(x);
    }
    middle = 0.5 * (low + high);
    half = 0.5 * (high - low);
  }
};

/// One pass from base to target of the given units, each from its own scale about the box.
class Pass {
 public:
  Pass(const RunContext& context, const std::vector<std::uint32_t>& units, int particles, double scale,
       const KnownBox& box, std::uint32_t first_iteration)
      : context_(context),
        units_(units),
        particles_(particles),
        scale_(scale),
        box_(box),
        iteration_(first_iteration) {
    engine_ = context.target->engine(engine_spec(context, {.kind = ModelKind::path}, units, particles));
    dim_ = engine_->dim();
    beta_.assign(units.size(), 0.0);
    log_z_.assign(units.size(), 0.0);
    variance_.assign(units.size(), 0.0);
    gradients_.assign(units.size(), 0.0);
    levels_.assign(units.size(), 0);
    step_.assign(units.size(), 0.7 / std::pow(double(dim_), 0.25));
    metric_.resize(units.size() * dim_);
    final_.resize(units.size() * dim_ * particles);
    done_.assign(units.size(), false);
  }

  void run() {
    const Tally tally(context_, [&] {
      return RunHealth::Counts{std::accumulate(gradients_.begin(), gradients_.end(), 0.0), NAN};
    });
    start();
    for (int level = 0; level < kMaxLevels; ++level) {
      if (!reweight_and_resample()) break;
      for (int move = 0; move < kMoves; ++move) move_particles();
    }
    // Out of levels: where the particles have come to is a better start than nothing.
    const auto x = engine_->position();
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (!done_[u]) keep(u, x);
  }

  void collect(ScoutResult& out, const std::vector<std::size_t>& index) const {
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const std::size_t to = index[u];
      for (int i = 0; i < dim_; ++i) {
        const auto value = [&](int p) { return final_[(u * dim_ + i) * particles_ + p]; };
        double mean = 0, square = 0;
        for (int p = 0; p < particles_; ++p) {
          out.position[(to * particles_ + p) * dim_ + i] = value(p);
          mean += value(p) / particles_;
        }
        for (int p = 0; p < particles_; ++p)
          square += (value(p) - mean) * (value(p) - mean) / (particles_ - 1);
        out.mean[to * dim_ + i] = mean;
        out.sd[to * dim_ + i] = std::sqrt(square);
      }
      out.log_z[to] = log_z_[u];
      out.log_z_se[to] = std::sqrt(variance_[u]);
      out.gradients[to] += gradients_[u];
      out.levels[to] = levels_[u];
    }
  }

 private:
  void keep(std::size_t u, const std::vector<double>& x) {
    for (int i = 0; i < dim_; ++i)
      std::copy_n(x.begin() + std::size_t(i) * engine_->chains() + u * particles_, particles_,
                  final_.begin() + (u * dim_ + i) * particles_);
  }
  void start() {
    const int chains = engine_->chains();
    std::vector<double> x(std::size_t(dim_) * chains);
#pragma omp parallel for num_threads(context_.threads)
    for (int c = 0; c < chains; ++c) {
      const std::uint32_t unit = units_[c / particles_];
      const Draw<double> draw{context_.key, iteration_, std::uint32_t(c % particles_), unit};
      draw.normals(Purpose::scout, dim_, [&](int i, double z) {
        x[std::size_t(i) * chains + c] = box_.middle[i] + first_sd(i) * z;
      });
    }
    double log_norm = -dim_ * (0.5 * std::log(2 * kPi) + std::log(scale_));
    BaseRows base{{box_.middle.begin(), box_.middle.end()}, {}, {}, {}};
    for (int i = 0; i < dim_; ++i) {
      log_norm -= std::log(first_sd(i) / scale_);
      base.sd.push_back(first_sd(i));
      for (std::size_t u = 0; u < units_.size(); ++u) metric_[u * dim_ + i] = first_sd(i);
    }
    base.log_norm = {log_norm};
    write_base(*engine_, base);
    set_per_unit(*engine_, ParameterLayout::log_zeta, {0});
    restart_at(x);
  }
  double first_sd(int i) const { return std::hypot(scale_, box_.half[i]); }

  void restart_at(const std::vector<double>& x) {
    set_per_unit(*engine_, ParameterLayout::beta, beta_);
    set_axis(*engine_, engine_->layout().scale(), metric_, dim_);
    engine_->set_position(x);
    engine_->initialize();
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (!done_[u]) gradients_[u] += particles_;
  }

  /// Raises each unit's beta by as much as half its particles' weight allows and resamples. False: all have
  /// arrived.
  bool reweight_and_resample() {
    const auto cache = engine_->cache();
    const int chains = engine_->chains();
    const auto old = engine_->position();
    auto x = old;
    bool any = false;
#pragma omp parallel for num_threads(context_.threads) reduction(|| : any) schedule(dynamic)
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (done_[u]) continue;
      if (beta_[u] >= 1) {  // has had its last moves: what later launches do to it is not looked at
        done_[u] = true;
        keep(u, old);
        continue;
      }
      any = true;
      ++levels_[u];
      std::vector<double> weight(particles_), cumulative(particles_);
      const double* delta = cache.data() + chains + u * particles_;  // base - (target - log zeta)
      double lowest = std::numeric_limits<double>::infinity();
      for (int p = 0; p < particles_; ++p)
        if (std::isfinite(delta[p])) lowest = std::min(lowest, delta[p]);
      auto weigh = [&](double step) {  // sets weights, returns the effective sample size
        double sum = 0, square = 0;
        for (int p = 0; p < particles_; ++p) {
          weight[p] = std::isfinite(delta[p]) ? std::exp(-step * (delta[p] - lowest)) : 0;
          sum += weight[p];
          square += weight[p] * weight[p];
        }
        return sum > 0 ? sum * sum / square : 0;
      };
      double low = 0, high = 1 - beta_[u];
      if (weigh(high) < 0.5 * particles_) {
        for (int k = 0; k < 60; ++k) {
          const double middle = 0.5 * (low + high);
          (weigh(middle) < 0.5 * particles_ ? high : low) = middle;
        }
        high = std::max(low, 1e-12);
      }
      const double ess = weigh(high);
      double sum = 0;
      for (int p = 0; p < particles_; ++p) cumulative[p] = sum += weight[p];
      log_z_[u] += std::log(sum / particles_) - high * lowest;
      variance_[u] += (particles_ / std::max(ess, 1.0) - 1) / particles_;
      beta_[u] = high >= 1 - beta_[u] ? 1.0 : beta_[u] + high;
      // Systematic resampling.
      const Draw<double> draw{context_.key, iteration_, 0, units_[u]};
      const double offset = draw.uniform(Purpose::resample);
      int from = 0;
      for (int p = 0; p < particles_; ++p) {
        while (from + 1 < particles_ && cumulative[from] < (p + offset) / particles_ * sum) ++from;
        for (int i = 0; i < dim_; ++i)
          x[std::size_t(i) * chains + u * particles_ + p] =
              old[std::size_t(i) * chains + u * particles_ + from];
      }
      for (int i = 0; i < dim_; ++i) {
        const double* row = x.data() + std::size_t(i) * chains + u * particles_;
        double mean = 0, square = 0;
        for (int p = 0; p < particles_; ++p) mean += row[p] / particles_;
        for (int p = 0; p < particles_; ++p) square += (row[p] - mean) * (row[p] - mean) / particles_;
        metric_[u * dim_ + i] = std::max(std::sqrt(square), 1e-6 * scale_);
      }
    }
    if (any) restart_at(x);
    return any;
  }

  void move_particles() {
    context_.progress("scout", *std::min_element(beta_.begin(), beta_.end()));
    set_per_unit(*engine_, ParameterLayout::step_size, step_);
    LaunchSpec spec;
    spec.key = context_.key;
    spec.begin = iteration_;
    spec.end = ++iteration_;
    spec.momentum = Purpose::scout_momentum;
    spec.accept = Purpose::scout_accept;
    spec.num_leapfrog = kLeapfrog;
    engine_->advance(spec);
    const auto stats = engine_->take_stats();
    const auto acceptance = unit_means(stats, stat_acceptance, engine_->chains(), int(units_.size()));
    const auto gradients = unit_means(stats, stat_gradients, engine_->chains(), int(units_.size()));
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (done_[u]) continue;
      gradients_[u] += gradients[u] * particles_;
      step_[u] = std::clamp(step_[u] * std::exp(acceptance[u] - kAcceptance), 1e-6, 2.0);
    }
  }

  const RunContext& context_;
  std::vector<std::uint32_t> units_;
  int particles_, dim_ = 0;
  double scale_;
  const KnownBox& box_;
  std::uint32_t iteration_;
  std::unique_ptr<Engine> engine_;
  std::vector<double> beta_, log_z_, variance_, gradients_, step_, metric_;
  std::vector<double> final_;  // [unit][axis][particle], once done
  std::vector<char> done_;     // no bits, which threads would share
  std::vector<int> levels_;
};

/// Mean and standard deviation of a unit's particles, and an equal share of them for each known point that
/// they left out.
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
  mean = x.colwise().mean();
  sd = ((x.rowwise() - mean.transpose()).colwise().squaredNorm() / (n - 1)).cwiseSqrt();
}

}  // namespace

ScoutResult scout(const RunContext& context, const std::vector<std::uint32_t>& units, int particles,
                  double init_scale, const std::vector<Eigen::VectorXd>& known) {
  ScoutResult out;
  const std::size_t n = units.size();
  const int d = context.target->dim();
  out.particles = particles;
  out.dim = d;
  out.position.resize(n * particles * d);
  out.mean.resize(n * d);
  out.sd.resize(n * d);
  out.log_z.resize(n);
  out.log_z_se.resize(n);
  out.gradients.assign(n, 0.0);
  out.levels.resize(n);
  std::vector<std::size_t> open(n);
  for (std::size_t u = 0; u < n; ++u) open[u] = u;
  const KnownBox box(known, d);
  double scale = init_scale;
  for (int round = 0; round <= kMaxWidenings && !open.empty(); ++round, scale *= 4) {
    std::vector<std::uint32_t> who;
    who.reserve(open.size());
    for (std::size_t u : open) who.push_back(units[u]);
    // Iteration numbers of a round are its own, whoever else takes part.
    Pass pass(context, who, particles, scale, box, std::uint32_t(round) << 24);
    pass.run();
    pass.collect(out, open);
    std::erase_if(open, [&](std::size_t u) {
      for (int i = 0; i < d; ++i)
        if (out.sd[u * d + i] > std::hypot(0.5 * scale, box.half[i])) return false;
      return true;
    });
  }
  for (std::size_t u = 0; u < n; ++u) include_known(out, u, known);
  return out;
}

}  // namespace lockstep
