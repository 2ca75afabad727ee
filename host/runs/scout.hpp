// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Core>

#include "host/estimators/log_sums.hpp"
#include "host/runs/smc_sampler.hpp"

namespace lockstep {

/// What the scout learned of one replicate's target, [unit] or [unit][axis] or [unit][particle][axis].
struct ScoutResult {
  int particles = 0, dim = 0;
  std::vector<double> position;  // equally weighted draws of the target, roughly
  std::vector<double> mean, sd;
  /// Before points that the user knows were made room for, with errors by blocks of particles that lie side by side, which
  /// resampling keeps in order: descendants of one are in one block. NaN of particles that did not come to beta = 1.
  std::vector<LogZ> variance;
  std::vector<double> log_z, log_z_se;  // with a rough standard error
  std::vector<double> gradients;        // target gradients spent
  std::vector<int> levels;

  /// Mean and standard deviations of a unit, of its particles as they are: summed one after the other, for in which order
  /// Eigen would goes by where the memory lies.
  void measure(std::size_t unit);
  void measure_variance(std::size_t unit);

  template <class Archive>
  void fields(Archive& archive) {
    archive("particles", particles);
    archive("dim", dim);
    archive("position", position);
    archive("mean", mean);
    archive("sd", sd);
    archive("variance", variance);
    archive("log_z", log_z);
    archive("log_z_se", log_z_se);
    archive("gradients", gradients);
    archive("levels", levels);
  }
};

/// Sequential Monte Carlo from N(0, init_scale^2 I) to the target, for every unit on its own: adaptive levels
/// (effective sample size of half the particles), systematic resampling, HMC moves with the particles'
/// standard deviations as metric and a step size steered by acceptance. A unit whose final spread exceeds
/// half the initial one starts again four times wider; where that loses 10 nats of log Z, or does not arrive within
/// 200 levels, the pass before it stands. Adaptive, so its log Z is slightly biased: it serves
/// as a start, never as an answer. Source: Del Moral, Doucet & Jasra (2006); levels: Jasra, Stephens, Doucet
/// & Tsagaris (2011).
///
/// `known`: points in modes that the user knows of. The first normal then covers the box that spans the origin
/// and all of them (on each axis its middle, and init_scale^2 + (half its width)^2), and particles make room
/// for the points that they left out (beyond 3 of their standard deviations on some axis), an equal share for
/// each and for the rest: what is made of the particles, such as a base, covers every known mode.
///
/// The context must live as long. Between two levels it can be stopped: a new scout, made the same way, that
/// has read `fields` goes on bit for bit.
class Scout {
 public:
  Scout(const RunContext& context, std::vector<std::uint32_t> units, int particles, double init_scale,
        std::vector<Eigen::VectorXd> known = {});
  /// One level further; false at the end.
  bool step();
  /// Between two levels.
  void tell() const;
  /// What was found, once, at the end.
  ScoutResult finish();

  template <class Archive>
  void fields(Archive& archive) {
    archive("found", found_);
    archive("round", round_);
    archive("open", open_);
    if (!pass_) pass_ = pass();  // to be read into
    archive("pass", *pass_);
  }

 private:
  double scale() const;
  std::unique_ptr<SmcSampler> pass() const;
  /// Whether of each open unit this pass stands: a wider one may have lost the target.
  std::vector<bool> collect();
  bool fills_scale(std::size_t unit) const;

  const RunContext& context_;
  std::vector<std::uint32_t> units_;
  double init_scale_;
  std::vector<Eigen::VectorXd> known_;
  Eigen::VectorXd middle_, half_;  // of the box that spans the origin and the known points: half its widths
  ScoutResult found_;
  int round_ = 0;
  std::vector<std::size_t> open_;     // units that take part in this round
  std::unique_ptr<SmcSampler> pass_;  // from base to target, of the open units
};

/// Target gradients that a unit's first pass takes at most: all levels that it may have, trajectories of their mean length.
double most_scout_gradients(std::int64_t particles);

/// Made, run and saved.
ScoutResult scout(const RunContext& context, const std::vector<std::uint32_t>& units, int particles,
                  double init_scale, const std::vector<Eigen::VectorXd>& known = {});

}  // namespace lockstep
