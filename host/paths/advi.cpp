// SPDX-License-Identifier: Apache-2.0
#include "host/paths/advi.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/engines/sharded_engine.hpp"
#include "host/estimators/log_sums.hpp"

namespace lockstep {
namespace {

constexpr int kDraws = 4;        // per restart and iteration, in pairs z, -z
constexpr int kElboDraws = 128;  // per restart, at the end
constexpr int kWindow = 25;      // iterations between looks at convergence
constexpr int kMostWindows = 24;
// Steps in standard deviations of q (mean) and in logs (sd): the first until parameters no longer drift, and
// so on.
constexpr double kRates[] = {0.1, 0.03, 0.01};
constexpr double kDrift = 2;      // of window means, in steps of the present rate: has come to rest
constexpr double kTravel = 0.98;  // an iteration's factor on the first steps, which may be longer than sd
constexpr double kClip = 10;      // of gradients in units of q, where 1 is large: Adam must soon forget them
constexpr double kFirstSd = 0.1;  // of the spread of starts: wide ones would all settle in one place

using Vector = Eigen::VectorXd;

/// Adam (Kingma & Ba 2015). Its epsilon equals the first rate: small gradients, in units of q, then make the
/// Newton step of a quadratic whose axes are independent.
class Adam {
 public:
  explicit Adam(int dim) : first_(Vector::Zero(dim)), second_(Vector::Zero(dim)) {}
  Vector step(const Vector& gradient, double rate) {
    ++count_;
    first_ += (1 - kFirst) * (gradient - first_);
    second_ += (1 - kSecond) * (gradient.cwiseAbs2() - second_);
    const double a = 1 / (1 - std::pow(kFirst, count_)), b = 1 / (1 - std::pow(kSecond, count_));
    return (rate * a * first_).array() / ((b * second_).array().sqrt() + kRates[0]);
  }

 private:
  static constexpr double kFirst = 0.9, kSecond = 0.95;
  Vector first_, second_;
  double count_ = 0;
};

struct Restart {
  explicit Restart(int dim) : mean(dim), log_sd(dim), of_mean(dim), of_sd(dim) {}
  Vector mean, log_sd, sum_mean, sum_log_sd, last_mean, last_log_sd;  // sums: of the present window
  Adam of_mean, of_sd;
  int rate = 0;
  bool done = false;

  void begin_window() {
    sum_mean = Vector::Zero(mean.size());
    sum_log_sd = sum_mean;
  }
  /// Cuts the rate where the window's means lie near the last window's; `long_steps`: still on the way.
  void end_window(bool first, bool long_steps) {
    sum_mean /= kWindow;
    sum_log_sd /= kWindow;
    if (!first && !long_steps) {
      const double drift =
          std::max(((sum_mean - last_mean).array() / sum_log_sd.array().exp()).abs().maxCoeff(),
                   (sum_log_sd - last_log_sd).cwiseAbs().maxCoeff());
      if (drift < kDrift * kRates[rate]) {
        mean = sum_mean;  // the mean of the iterates is nearer than the last of them
        log_sd = sum_log_sd;
        done = ++rate == int(std::size(kRates));
      }
    }
    last_mean = sum_mean;
    last_log_sd = sum_log_sd;
  }
};

class Ascent {
 public:
  Ascent(const RunContext& context, const AdviOptions& options)
      : context_(context), options_(options), dim_(context.target->dim()) {
    for (int r = 0; r < options.starts; ++r) {
      Restart one(dim_);
      const auto z = normals(draw(r, 0, 0), Purpose::start, dim_);
      for (int i = 0; i < dim_; ++i) one.mean[i] = options.init_scale * z[i];
      one.log_sd.setConstant(std::log(kFirstSd * options.init_scale));
      restarts_.push_back(std::move(one));
    }
  }

  void climb() {
    for (int window = 0; window < kMostWindows; ++window) {
      std::vector<std::uint32_t> open;
      for (std::size_t r = 0; r < restarts_.size(); ++r)
        if (!restarts_[r].done) open.push_back(std::uint32_t(r));
      if (open.empty()) return;
      auto engine = engine_of(open, kDraws);
      for (std::uint32_t r : open) restarts_[r].begin_window();
      for (int t = 0; t < kWindow; ++t) step(*engine, open, window * kWindow + t + 1);
      for (std::uint32_t r : open) {
        Restart& one = restarts_[r];
        const bool long_steps = travel((window + 1) * kWindow) > std::exp(one.log_sd.minCoeff());
        one.end_window(window == 0, long_steps);
      }
      context_.tell("base", double(window + 1) / kMostWindows, {gradients_, NAN});
    }
  }

  LocalFits result() {
    LocalFits out;
    for (const Restart& one : restarts_) {
      LocalFit fit;
      fit.mean = one.done ? one.mean : one.last_mean;
      fit.sd = (one.done ? one.log_sd : one.last_log_sd).array().exp();
      fit.converged = one.done;
      out.fits.push_back(std::move(fit));
    }
    measure(out.fits);
    std::stable_sort(out.fits.begin(), out.fits.end(),
                     [](const LocalFit& a, const LocalFit& b) { return a.elbo > b.elbo; });
    out.gradients = gradients_;
    return out;
  }

 private:
  Draw<double> draw(std::uint32_t restart, int pair, int iteration) const {
    return {context_.key, std::uint32_t(iteration), std::uint32_t(pair), restart};
  }
  double travel(int iteration) const { return options_.init_scale * std::pow(kTravel, iteration); }
  std::unique_ptr<Engine> engine_of(const std::vector<std::uint32_t>& who, int draws) const {
    return make_engine(context_, engine_spec(context_, ModelSpec{}, who, draws));
  }

  /// Sends the engine's chains to mean + sd z of their restarts; z [axis][chain], halves of opposite sign.
  Eigen::MatrixXd scatter(Engine& engine, const std::vector<std::uint32_t>& who, int iteration,
                          bool same_draws, const auto& mean_of, const auto& sd_of) {
    const int n = engine.chains(), per = n / int(who.size());
    Eigen::MatrixXd z(n, dim_), x(n, dim_);
    for (std::size_t k = 0; k < who.size(); ++k) {
      const int first = int(k) * per;
      for (int pair = 0; pair < per / 2; ++pair) {
        const auto v = normals(draw(same_draws ? 0 : who[k], pair, iteration), Purpose::base, dim_);
        for (int i = 0; i < dim_; ++i) {
          z(first + pair, i) = v[i];
          z(first + per / 2 + pair, i) = -v[i];
        }
      }
      const Vector mean = mean_of(who[k]), sd = sd_of(who[k]);
      for (int i = 0; i < dim_; ++i)
        x.col(i).segment(first, per) = (mean[i] + sd[i] * z.col(i).segment(first, per).array()).matrix();
    }
    engine.set_position({x.data(), std::size_t(x.size())});
    engine.initialize();
    gradients_ += n;
    return z;
  }

  void step(Engine& engine, const std::vector<std::uint32_t>& open, int iteration) {
    const auto z = scatter(
        engine, open, iteration, false, [&](std::uint32_t r) { return restarts_[r].mean; },
        [&](std::uint32_t r) -> Vector { return restarts_[r].log_sd.array().exp(); });
    const auto rows = engine.gradient();
    const Eigen::Map<const Eigen::MatrixXd> gradient(rows.data(), engine.chains(), dim_);
    for (std::size_t k = 0; k < open.size(); ++k) {
      Restart& one = restarts_[open[k]];
      const Eigen::ArrayXd sd = one.log_sd.array().exp();
      Vector of_mean = Vector::Zero(dim_), of_sd = Vector::Zero(dim_);
      for (int i = 0; i < dim_; ++i)
        for (int c = int(k) * kDraws; c < int(k + 1) * kDraws; ++c) {
          // d/dmean of log density(mean + sd z) - log q(mean + sd z), with q held; times sd.
          const double u = sd[i] * gradient(c, i) + z(c, i);
          if (!std::isfinite(u)) continue;
          of_mean[i] += u / kDraws;
          of_sd[i] += u * z(c, i) / kDraws;
        }
      const double rate = kRates[one.rate];
      const Vector move = one.of_mean.step(of_mean.cwiseMax(-kClip).cwiseMin(kClip), rate);
      one.mean.array() += move.array() * sd.max(one.rate == 0 ? travel(iteration) : 0);
      one.log_sd += one.of_sd.step(of_sd.cwiseMax(-kClip).cwiseMin(kClip), rate);
      one.sum_mean += one.mean;
      one.sum_log_sd += one.log_sd;
    }
  }

  /// ELBOs from fresh draws, the same for all: else the best of many like fits would be the luckiest.
  void measure(std::vector<LocalFit>& fits) {
    std::vector<std::uint32_t> all(fits.size());
    std::iota(all.begin(), all.end(), 0u);
    auto engine = engine_of(all, kElboDraws);
    const auto z = scatter(
        *engine, all, kMostWindows * kWindow + 1, true, [&](std::uint32_t r) { return fits[r].mean; },
        [&](std::uint32_t r) { return fits[r].sd; });
    const auto cache = engine->cache();
    for (std::size_t r = 0; r < fits.size(); ++r) {
      LocalFit& fit = fits[r];
      const double log_norm = -0.5 * dim_ * std::log(2 * kPi) - fit.sd.array().log().sum();
      for (int c = int(r) * kElboDraws; c < int(r + 1) * kElboDraws; ++c)
        fit.elbo += (cache[c] - log_norm + 0.5 * z.row(c).squaredNorm()) / kElboDraws;
      if (!std::isfinite(fit.elbo)) fit.elbo = -INFINITY;
    }
  }

  const RunContext& context_;
  const AdviOptions& options_;
  int dim_;
  std::vector<Restart> restarts_;
  double gradients_ = 0;
};

}  // namespace

int LocalFits::converged() const {
  return int(std::count_if(fits.begin(), fits.end(), [](const LocalFit& f) { return f.converged; }));
}

std::vector<LocalFit> LocalFits::distinct() const {
  std::vector<LocalFit> kept;
  for (const LocalFit& fit : fits) {
    const auto within = [&](const LocalFit& better) {
      return ((better.mean - fit.mean).array() / fit.sd.array()).matrix().norm() < kApart;
    };
    if (std::isfinite(fit.elbo) && std::none_of(kept.begin(), kept.end(), within)) kept.push_back(fit);
  }
  return kept;
}

LocalFits fit_local(const RunContext& context, const AdviOptions& options) {
  Ascent ascent(context, options);
  ascent.climb();
  return ascent.result();
}

MixtureMoments mixture_moments(const std::vector<LocalFit>& fits) {
  const Eigen::Index d = fits[0].mean.size();
  LogSum total;
  for (const LocalFit& f : fits) total.add(f.elbo);
  MixtureMoments m{Vector::Zero(d), Eigen::MatrixXd::Zero(d, d), total.log()};
  for (const LocalFit& f : fits) m.mean += std::exp(f.elbo - m.log_sum) * f.mean;
  for (const LocalFit& f : fits) {
    const double w = std::exp(f.elbo - m.log_sum);
    const Vector apart = f.mean - m.mean;
    m.covariance.noalias() += w * apart * apart.transpose();
    m.covariance.diagonal() += w * f.sd.cwiseAbs2();
  }
  return m;
}

}  // namespace lockstep
