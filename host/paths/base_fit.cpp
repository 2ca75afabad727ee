// SPDX-License-Identifier: Apache-2.0
#include "host/paths/base_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/estimators/estimates.hpp"
#include "host/estimators/log_sums.hpp"
#include "host/modes/given_points.hpp"
#include "host/paths/advi.hpp"
#include "host/runs/chain_run.hpp"
#include "host/runs/starts.hpp"
#include "host/util/errors.hpp"
#include "host/util/interrupt.hpp"
#include "targets/registry.hpp"

namespace lockstep {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr int kMostFullDim = 256;  // beyond it variances alone

Matrix diagonal(const Vector& variance) { return variance.asDiagonal().toDenseMatrix(); }

/// Mean and covariance (or variances alone) of weighted points x [axis][point], weights summing to 1.
void weighted_fit(const Matrix& points_by_axis, const Vector& weight, bool full, Vector& mean,
                  Matrix& covariance) {
  mean = points_by_axis.transpose() * weight;
  const Matrix centred = points_by_axis.rowwise() - mean.transpose();
  if (full)
    covariance = centred.transpose() * weight.asDiagonal() * centred;
  else
    covariance = diagonal(centred.cwiseAbs2().transpose() * weight);
}

PathBase given(const EvidenceConfig& c) {
  const Eigen::Map<const Vector> mean(c.base_mean.data(), Eigen::Index(c.base_mean.size())),
      sd(c.base_sd.data(), Eigen::Index(c.base_sd.size()));
  return PathBase::from_moments(mean, diagonal(sd.cwiseAbs2()), 1, 0, "gaussian: given moments");
}

PathBase proposed(const RunContext& context, const EvidenceConfig& c) {
  const int d = context.target->dim();
  const BaseGuess g = context.target->base_guess(c.base_starts, context.key.k0);
  auto base = PathBase::from_moments(
      Eigen::Map<const Vector>(g.mean.data(), d), Eigen::Map<const Matrix>(g.covariance.data(), d, d), 1,
      g.log_zeta, fmt::format("mean-field: {} approximations from {} starts", g.components, c.base_starts));
  base.starts = c.base_starts;
  return base;
}

PathBase scouted(const RunContext& context, const EvidenceConfig& c, const RunOptions& run,
                 const ModeLibrary& modes) {
  ScoutResult found =
      scout(context, {0}, c.scout_particles, run.init_scale, near_starts(run.init, *context.target));
  correct_log_z(found, 0, modes, *context.target);
  const int d = found.dim, n = found.particles;
  const Eigen::Map<const Matrix> x(found.position.data(), d, n);
  const Vector mean = x.rowwise().mean();
  const Matrix centred = x.colwise() - mean;
  const Matrix covariance = d <= kMostFullDim ? Matrix(centred * centred.transpose() / (n - 1))
                                              : diagonal(centred.rowwise().squaredNorm() / (n - 1));
  auto base = PathBase::from_moments(mean, covariance, c.base_inflation, found.log_z[0], "scout");
  base.gradients = found.gradients[0];
  base.rough = true;
  return base;
}

/// log of the mean of density / base over draws of the base: what log Z looks like from there.
double importance_log_z(const RunContext& context, PathBase& base) {
  constexpr int draws = 1024;
  auto engine = base.path_engine(context, {0}, draws);
  engine->set_position(base.draws(context.key, 0, draws, draws));
  engine->initialize();
  base.gradients += draws;
  const auto cache = engine->cache();
  LogSum sum;
  for (int c = 0; c < draws; ++c) {
    const double log_weight = -cache[draws + c] + base.taken_out();  // Delta = base - (target - log zeta)
    if (std::isfinite(log_weight)) sum.add(log_weight);
  }
  const double log_z = sum.log() - std::log(double(draws));
  return std::isfinite(log_z) ? log_z : 0;
}

/// Moments of a short run of HMC, whose warm-up starts where `--init` says.
PathBase warmed_up(const RunContext& context, const EvidenceConfig& c, const RunOptions& run) {
  const int d = context.target->dim();
  RunOptions hmc;
  hmc.sampler = "hmc";
  SamplerConfig config = sampler_config(hmc, d, context.target->tails());
  config.scout_particles = c.scout_particles;
  config.num_leapfrog = std::max(c.num_leapfrog, 5);  // ChEES asks for far more where modes are apart
  ChainRunOptions options;
  options.units = {0};
  options.chains = c.base_starts;
  options.warmup = options.iterations = 100;
  options.init = run.init;
  options.superchains = false;  // as many starts as chains: what few starts weigh wrongly, stays so
  options.init_scale = run.init_scale;
  options.covariance = d <= kMostFullDim;
  const ChainRunResult r = run_chains(context, config, options);
  if (r.interrupted) throw Interrupted();  // half a run is no base
  const Estimates e = estimate(r.units[0]);
  Vector variance(d);
  for (int i = 0; i < d; ++i) variance[i] = e.variance(i);
  const Matrix covariance =
      options.covariance ? Matrix(Eigen::Map<const Matrix>(e.covariance.data(), d, d)) : diagonal(variance);
  auto base = PathBase::from_moments(Eigen::Map<const Vector>(e.mean.data(), d), covariance, c.base_inflation,
                                     0, fmt::format("warmup: {} chains", options.chains));
  base.starts = options.chains;
  base.gradients =
      r.frozen.preparation(0) + e.gradients + options.chains;  // and the first of each recorded chain
  base.log_zeta = r.frozen.scout_log_z.empty() ? importance_log_z(context, base) : r.frozen.scout_log_z[0];
  return base;
}

/// By variational inference: the best local approximation, or all of them together.
PathBase variational(const RunContext& context, const EvidenceConfig& c, double init_scale) {
  const LocalFits found = fit_local(context, {.starts = c.base_starts, .init_scale = init_scale});
  std::vector<LocalFit> parts = found.distinct();
  if (parts.empty())
    throw UserError(fmt::format(
        "sampler.base is {} (from no start did it find where the density is above zero). Use scout, or "
        "another --init-scale",
        c.base));
  const std::size_t distinct = parts.size();
  const bool all = c.base == "mixture";
  if (!all) parts.resize(1);
  const MixtureMoments m = mixture_moments(parts);
  auto base = PathBase::from_moments(m.mean, m.covariance, c.base_inflation, m.log_sum,
                                     fmt::format("{}: {} of {} starts converged, {} distinct", c.base,
                                                 found.converged(), c.base_starts, distinct));
  base.gradients = found.gradients;
  base.starts = c.base_starts;
  base.partial = !all && distinct > 1;
  if (base.partial)
    base.warning = fmt::format(
        "the base covers one of {} local approximations: chains may never find the others (try base mixture)",
        distinct);
  return base;
}

}  // namespace

RunContext with_own_numbers(const RunContext& context, const std::string& what) {
  RunContext own = context;
  own.key = make_stream_key(std::uint64_t(context.key.k1) << 32 | context.key.k0, what);
  return own;
}

/// The base that `auto` stands for.
std::string base_name(const TargetInstance& target, const EvidenceConfig& c) {
  if (c.base != "auto") return c.base;
  return target.has_base_guess() ? "mean-field" : "scout";
}

void check_base(const TargetInstance& target, const EvidenceConfig& c, const RunOptions& run) {
  if (c.of->both_ways && !c.exact_draws)
    throw UserError(
        "method bdmc anneals back from exact draws (sampler.exact_draws is none). Leave that out, or use "
        "ais");
  const std::string base = base_name(target, c);
  if (c.of->both_ways && !target.can_draw())
    throw UserError(fmt::format(
        "method bdmc needs exact draws of the target ({} has none). Use --method auto or ais", run.target));
  if (base == "mean-field" && !target.has_base_guess())
    throw UserError("sampler.base is mean-field (this target proposes none). Use auto, scout or mixture");
  const auto of_base = [&](const char* key, bool used) {
    if (!used && run.sampler_settings.contains(key))
      throw UserError(
          fmt::format("setting {} has no effect on base {} (method {} begins there). Leave it out", key, base,
                      c.method()));
  };
  of_base("base_starts", base != "gaussian" && base != "scout" && base != "modes");
  const bool scouts = base == "scout" || base == "modes";
  of_base("scout_particles", scouts || (base == "warmup" && run.init == "scout"));
  of_base("base_inflation", (base != "gaussian" && base != "mean-field") || c.bootstrap > 0);
  const RunOptions standard;
  const bool word = run.init.rfind("uniform:", 0) == 0;
  if (run.init != standard.init && base != "warmup" && (!scouts || word))
    throw UserError(
        fmt::format("--init {} has no effect on base {} (method {} begins there). Give --set "
                    "sampler.base={}, or leave it out",
                    run.init, base, c.method(), word ? "warmup" : "scout"));
  if ((run.init_scale != standard.init_scale || run.says("init_scale")) &&
      (base == "mean-field" || base == "gaussian" || (base == "warmup" && word)))
    throw UserError(fmt::format(
        "--init-scale has no effect on base {} (method {} begins there). Give --set sampler.base=scout, or "
        "leave it out",
        base, c.method()));
}

PathBase fit_base(const RunContext& context, const EvidenceConfig& c, const RunOptions& run,
                  const ModeLibrary& modes) {
  check_base(*context.target, c, run);
  const std::string base = base_name(*context.target, c);
  if (base == "gaussian") return given(c);
  if (base == "mean-field") return proposed(context, c);
  const RunContext own = with_own_numbers(context, "base");
  if (base == "warmup") return warmed_up(own, c, run);
  if (base == "advi" || base == "mixture") return variational(own, c, run.init_scale);
  return scouted(context, c, run, modes);
}

std::vector<double> pooled_weights(const Pilot& pilot) {
  auto weight = pilot.last_weight;
  const std::size_t per = weight.size() / pilot.group_log_z.size();
  const double most = *std::max_element(pilot.group_log_z.begin(), pilot.group_log_z.end());
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] *= std::exp(pilot.group_log_z[i / per] - most);
  return weight;
}

PathBase refit_base(const PathBase& old, const Pilot& pilot, double inflation) {
  const int d = old.dim();
  const auto pooled = pooled_weights(pilot);
  Vector weight = Eigen::Map<const Vector>(pooled.data(), Eigen::Index(pooled.size()));
  weight /= weight.sum();
  const double effective = 1 / weight.squaredNorm();
  PathBase next = old;
  if (effective >= 20) {
    const Eigen::Map<const Matrix> x(pilot.last.data(), weight.size(), d);
    Vector mean;
    Matrix covariance;
    weighted_fit(x, weight, d <= kMostFullDim && effective >= 10.0 * (d + 1), mean, covariance);
    next = PathBase::from_moments(mean, covariance, inflation, old.taken_out() + pilot.log_z.back(),
                                  old.how + "; refitted");
    next.fit_metric(pilot.curvature);
    next.partial = old.partial;  // particles of such a base tell nothing of the others
    next.warning = old.warning;
  } else {  // NaN too
    next.how += "; kept";
    if (next.warning.empty())
      next.warning = fmt::format("{:.0f} effective particles are too few to refit the base", effective);
  }
  next.starts = old.starts;
  next.gradients = old.gradients + pilot.gradients;
  return next;
}

}  // namespace lockstep
