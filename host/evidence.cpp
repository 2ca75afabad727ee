// SPDX-License-Identifier: Apache-2.0
#include "host/evidence.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "host/annealed_weights.hpp"
#include "host/annealing.hpp"
#include "host/config.hpp"
#include "host/errors.hpp"
#include "host/evidence_config.hpp"
#include "host/files.hpp"
#include "host/run_context.hpp"
#include "host/sample.hpp"
#include "host/schedules.hpp"
#include "host/scout.hpp"
#include "host/summary.hpp"
#include "host/target_input.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

GaussianBase scouted_base(const RunContext& context, const EvidenceConfig& c, double init_scale) {
  const ScoutResult found = scout(context, {0}, c.scout_particles, init_scale);
  const int d = found.dim, n = found.particles;
  const Eigen::Map<const Eigen::MatrixXd> x(found.position.data(), d, n);
  const Eigen::VectorXd mean = x.rowwise().mean();
  const Eigen::MatrixXd centred = x.colwise() - mean;
  const Eigen::MatrixXd covariance =
      d <= 256 ? Eigen::MatrixXd(centred * centred.transpose() / (n - 1))
               : Eigen::MatrixXd((centred.rowwise().squaredNorm() / (n - 1)).asDiagonal());
  auto base = GaussianBase::from_moments(mean, covariance, c.base_inflation, found.log_z[0], "scout");
  base.gradients = found.gradients[0];
  return base;
}

GaussianBase make_base(const RunContext& context, const EvidenceConfig& c, double init_scale) {
  if (c.base == "given") {
    const int d = context.target->dim();
    const Eigen::VectorXd mean = Eigen::Map<const Eigen::VectorXd>(c.base_mean.data(), d),
                          sd = Eigen::Map<const Eigen::VectorXd>(c.base_sd.data(), d);
    return GaussianBase::from_moments(mean, sd.cwiseAbs2().asDiagonal().toDenseMatrix(), 1, 0, "given");
  }
  if (c.base == "guess" && !context.target->has_base_guess())
    throw UserError("sampler.base is guess (this target proposes none). Use auto or scout");
  if (c.base != "scout" && context.target->has_base_guess()) {
    const int d = context.target->dim();
    const BaseGuess g = context.target->base_guess(c.base_starts, context.key.k0);
    return GaussianBase::from_moments(
        Eigen::Map<const Eigen::VectorXd>(g.mean.data(), d),
        Eigen::Map<const Eigen::MatrixXd>(g.covariance.data(), d, d), 1, g.log_zeta,
        fmt::format("guess: {} approximations from {} starts", g.components, c.base_starts));
  }
  return scouted_base(context, c, init_scale);
}

/// What a method found, in one form.
struct Found {
  LogZ log_z{NAN, NAN}, lower{NAN, NAN}, upper{NAN, NAN};
  WeightedMoments moments;
  double acceptance = 0, divergences = 0, gradients = 0, iterations = 0, seconds = 0;
  bool interrupted = false;
  Json diagnostics = Json::object();
  std::vector<std::string> failed, warnings;
};

/// The bounds cannot both hold, or the other estimator is far: beyond three standard errors.
bool differ(const LogZ& a, const LogZ& b) {
  return !(std::abs(a.estimate - b.estimate) <= 3 * std::max(a.se, b.se));
}

Found tempered(const RunContext& context, const GaussianBase& base, const Pilot& pilot,
               const EvidenceConfig& c, const RunOptions& run, bool covariance) {
  TemperedOptions o;
  o.tempering = c.method == "ct-gibbs" ? Tempering::gibbs : Tempering::levels;
  o.groups = c.groups;
  o.chains = c.chains;
  o.num_leapfrog = c.num_leapfrog;
  o.gradients = c.gradients - base.gradients - pilot.gradients;
  o.discard = c.discard;
  o.se = run.se;
  o.covariance = covariance;
  const TemperedResult r = run_tempered(context, base, pilot, o);
  Found f;
  f.log_z = r.stepping;
  f.moments = r.moments;
  f.acceptance = r.acceptance;
  f.divergences = r.divergences;
  f.gradients = r.gradients;
  f.iterations = double(r.iterations);
  f.seconds = r.seconds;
  f.interrupted = r.interrupted;
  const double each = r.gradients / c.chains, trips = r.round_trips / c.chains;
  f.diagnostics["rao_blackwell"] = {{"estimate", r.rao_blackwell.estimate}, {"se", r.rao_blackwell.se}};
  f.diagnostics["drift"] = {{"estimate", r.drift.estimate}, {"se", r.drift.se}};
  f.diagnostics["gradients_per_chain"] = each;
  f.diagnostics["discarded"] = r.discarded;
  f.diagnostics["round_trips"] = r.round_trips;
  if (differ(r.stepping, r.rao_blackwell)) f.failed.push_back("estimators_disagree");
  if (!(std::abs(r.drift.estimate) <= 3 * r.drift.se)) f.failed.push_back("drift");
  if (!(trips >= 1)) f.failed.push_back("round_trips");
  if (trips < 1)
    f.warnings.push_back(
        fmt::format("chains are short: {:.0f} gradients and {:.2g} round trips each", each, trips));
  if (run.se > 0 && !(r.stepping.se <= run.se)) f.failed.push_back("se");
  return f;
}

Found sequential(const RunContext& context, const Pilot& pilot, const GaussianBase& base,
                 const EvidenceConfig& c, bool covariance) {
  Found f;
  BlockLogSums sums(c.groups, 1);
  for (int g = 0; g < c.groups; ++g) sums.add(g, 0, pilot.group_log_z[g]);
  f.log_z = (sums.combine({1}) + (base.log_zeta - std::log(double(c.groups)))).value();
  // A group counts by its own estimate of Z: the union is then one weighted sample.
  auto weight = pilot.last_weight;
  const int per = int(weight.size()) / c.groups;
  const double most = *std::max_element(pilot.group_log_z.begin(), pilot.group_log_z.end());
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] *= std::exp(pilot.group_log_z[i / per] - most);
  f.moments = moments_of_states(*context.target, pilot.last, weight, c.groups, covariance);
  f.acceptance = pilot.acceptance;
  return f;
}

Found annealed(const RunContext& context, const GaussianBase& base, const Pilot& pilot,
               const EvidenceConfig& c, bool covariance) {
  AnnealingOptions o;
  const int k = c.temperatures;
  const CommunicationBarrier barrier(pilot.ladder, std::vector<double>(pilot.ladder.size() - 1, 1.0));
  o.ladder = c.schedule == "linear"      ? linear_ladder(k)
             : c.schedule == "sigmoid"   ? sigmoid_ladder(k)
             : c.schedule == "quadratic" ? quadratic_ladder(k)
                                         : barrier.equal_ladder(k);
  for (double beta : o.ladder) {  // between the pilot's levels: interpolated in the barrier
    const double at = barrier.cumulative(beta);
    const int low = std::min(int(at), int(pilot.step_size.size()) - 2);
    o.step_size.push_back(pilot.step_size[low] *
                          std::pow(pilot.step_size[low + 1] / pilot.step_size[low], at - low));
  }
  const bool both = c.method == "bdmc";
  const double left = c.gradients - base.gradients - pilot.gradients;
  o.runs = c.groups * std::max(2, int(left / ((both ? 2.0 : 1.0) * c.groups * k * c.num_leapfrog)));
  o.num_leapfrog = c.num_leapfrog;
  o.groups = c.groups;
  o.covariance = covariance;
  const AnnealingResult forward = anneal(context, base, o);
  Found f;
  f.moments = forward.moments;
  f.acceptance = forward.acceptance;
  f.divergences = forward.divergences;
  f.gradients = forward.gradients;
  f.iterations = k;
  f.seconds = forward.seconds;
  const auto shifted = [&](LogZ z) { return LogZ{z.estimate + base.log_zeta, z.se}; };
  const WeightSummary s = summarise_weights(forward.log_weight);
  f.log_z = shifted(s.log_mean);
  f.lower = shifted(s.mean_log);
  f.diagnostics["runs"] = o.runs;
  f.diagnostics["annealing_ess"] = s.ess;
  if (!(s.ess >= 20)) f.failed.push_back("weight_ess");
  if (!both) return f;
  o.reverse = true;
  const AnnealingResult back = anneal(context, base, o);
  const Bidirectional b = bidirectional(forward.log_weight, back.log_weight);
  f.gradients += back.gradients;
  f.seconds += back.seconds;
  f.log_z = shifted({b.bennett.estimate, std::max(b.bennett.se, b.bennett_bootstrap_se)});
  f.upper = shifted(b.upper);
  f.diagnostics["forward"] = {{"estimate", b.forward.estimate + base.log_zeta}, {"se", b.forward.se}};
  f.diagnostics["reverse"] = {{"estimate", b.reverse.estimate + base.log_zeta}, {"se", b.reverse.se}};
  f.diagnostics["reverse_ess"] = b.reverse_ess;
  if (f.lower.estimate - f.upper.estimate > 3 * std::hypot(f.lower.se, f.upper.se))
    f.failed.push_back("bounds_cross");
  return f;
}

Json log_z_json(const Found& f) {
  Json z = {{"estimate", f.log_z.estimate}, {"se", f.log_z.se}};
  z["lower"] = f.lower.estimate;
  z["upper"] = f.upper.estimate;
  z["gap"] = f.upper.estimate - f.lower.estimate;
  return z;
}

}  // namespace

Json evidence(const RunOptions& asked, bool& was_interrupted, const std::string& label,
              const std::filesystem::path& folder) {
  const auto start = std::chrono::steady_clock::now();
  RunOptions run = asked;
  const auto target = build_target(run, folder);
  const int d = target->dim();
  const EvidenceConfig c = evidence_config(run, d);
  run.chains = c.chains;  // for run.toml
  if (c.method == "bdmc" && !target->can_draw())
    throw UserError(
        fmt::format("method bdmc needs exact draws of the target ({} has none). Use --method auto or "
                    "ais",
                    run.target));
  RunContext context = make_context(run, *target, label);
  context.progress = interruptible(progress_printer(run.quiet, run.target));
  ModelSpec model;
  model.kind = ModelKind::path;
  RunSize size;
  size.dim = d;
  size.chains = std::max(c.chains, c.particles);
  size.particles = c.scout_particles;
  size.covariance = d <= 64;
  const double bytes = planned_bytes(model, size) + 4.0 * d * c.chains * 2 * 25;  // seeds at every level
  check_memory(bytes, true);
  if (!run.out.empty()) ensure_writable_folder(run.out);
  say_device(run, context);
  check_memory(bytes, run.quiet);

  const GaussianBase base = make_base(context, c, run.init_scale);
  PilotOptions p;
  p.groups = c.groups;
  p.particles = c.particles;
  p.seeds = c.chains;
  p.num_leapfrog = c.method == "ais" || c.method == "bdmc" ? 5 : c.num_leapfrog;
  p.target_acceptance = c.target_acceptance;
  p.rate = c.rate;
  double trial_gradients = 0;
  if (c.method ==
      "smc") {  // the whole budget is the pilot's: a small one first says how many levels there are
    PilotOptions small = p;
    small.particles = small.seeds = 32 * c.groups;
    const Pilot trial = run_pilot(context, base, small);
    trial_gradients = trial.gradients;
    const double each = double(trial.ladder.size() + 3) * p.num_leapfrog * c.groups;
    p.particles =
        c.groups * int(std::clamp((c.gradients - base.gradients - trial_gradients) / each, 4.0, 1e6));
  }
  const Pilot pilot = run_pilot(context, base, p);
  const bool covariance = d <= 64;
  Found f = c.method == "smc"                         ? sequential(context, pilot, base, c, covariance)
            : c.method == "ais" || c.method == "bdmc" ? annealed(context, base, pilot, c, covariance)
                                                      : tempered(context, base, pilot, c, run, covariance);
  was_interrupted = f.interrupted;
  const double gradients = f.gradients + base.gradients + pilot.gradients + trial_gradients;
  if (gradients > 1.2 * c.gradients)
    f.warnings.push_back(
        fmt::format("base, pilot and the shortest run took {:.2g} gradients, beyond the budget", gradients));
  if (!(f.acceptance >= 0.2)) f.failed.push_back("acceptance");
  if (!(f.divergences < 1e-4 * std::max(1.0, f.iterations * c.chains))) f.failed.push_back("divergences");
  if (!std::isfinite(f.log_z.estimate)) f.failed.push_back("log_z");
  if (f.interrupted) f.warnings.push_back("interrupted");
  const Truth& truth = target->truth();
  if (std::abs(f.log_z.estimate - truth.log_z) > 5 * f.log_z.se)
    f.warnings.push_back(fmt::format("log_z is {:.1f} standard errors from the truth",
                                     std::abs(f.log_z.estimate - truth.log_z) / f.log_z.se));

  Json s = summary_head(run, *target, context, "evidence");
  s["verdict"] = f.failed.empty() ? "pass" : "fail";
  s["failed_gates"] = f.failed;
  s["warnings"] = f.warnings;
  s["sampler"] = {{"name", c.method}, {"settings", c.effective}};
  s["chains"] = c.chains;
  s["iterations"] = std::int64_t(f.iterations);
  s["cost"] = {{"gradients", gradients},
               {"warmup_gradients", base.gradients + pilot.gradients},
               {"wall_s", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()},
               {"sampling_s", f.seconds},
               {"gradients_per_s", f.gradients / f.seconds}};
  s["estimates"] = {{"mean", f.moments.mean},
                    {"mean_se", f.moments.mean_se},
                    {"second_moment", f.moments.second},
                    {"second_moment_se", f.moments.second_se}};
  if (covariance) s["estimates"]["covariance"] = matrix_json(f.moments.covariance, d);
  for (std::size_t q = 0; q < f.moments.quantity.size(); ++q) {
    s["estimates"]["quantities"][target->quantities()[q]] = f.moments.quantity[q];
    s["estimates"]["quantities_se"][target->quantities()[q]] = f.moments.quantity_se[q];
  }
  s["log_z"] = log_z_json(f);
  s["truth"] = truth_json(*target);
  Json diagnostics = {{"acceptance", f.acceptance},         {"step_size", pilot.step_size.back()},
                      {"num_leapfrog", c.num_leapfrog},     {"divergences", std::int64_t(f.divergences)},
                      {"weight_ess", f.moments.weight_ess}, {"base", base.how},
                      {"base_log_zeta", base.log_zeta},     {"barrier", pilot.barrier},
                      {"pilot_particles", p.particles},     {"schedule", pilot.ladder}};
  diagnostics.update(f.diagnostics);
  s["diagnostics"] = diagnostics;
  s = finish_summary(std::move(s));
  if (!run.out.empty()) {
    write_atomically(run.out / "run.toml", write_run_toml(run));
    write_summary(run.out / "summary.json", s);
  }
  return s;
}

}  // namespace lockstep
