// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sequential Monte Carlo from the base of a path to its target: populations of particles that are reweighted
// from level to level of the inverse temperature, resampled and moved by HMC.
#include <functional>

#include "host/engines/units.hpp"
#include "host/runs/adaptation.hpp"

namespace lockstep {

/// A number of weight 0 among Deltas = log base - (log target - log zeta): what one that is not finite counts
/// as, where the target is zero or broken.
inline constexpr double kNoWeight = 1e300;

/// `count` of the weights' indices, in order, each as often as its share of their sum says but for less than
/// one: those in whose part of the sum the points (p + offset) / count of it lie, offset in [0, 1).
std::vector<int> systematic_resampling(const std::vector<double>& weight, int count, double offset);

/// The longest step towards `most` that fits, where shorter ones fit too: `most` itself, or what halving
/// [0, most] so many times comes to, and `least` at least.
double largest_step(double most, double least, int halvings, const std::function<bool(double)>& fits);

struct SmcOptions {
  /// How levels follow each other, what becomes of the weights, and whose step size it is.
  enum class Levels {
    /// Each unit has its own levels, and its own step size. From one to the next, weights from equal ones come
    /// to an effective sample size of half the particles; then the unit is resampled.
    own,
    /// One level after the other for all units, by the rate of increments (schedules.hpp), and one step size
    /// for them, by acceptance averaged by weight. Weights are kept; a unit is resampled where its effective
    /// sample size falls below half.
    common,
    /// The levels of `ladder`, and one step size. Weights are kept and nothing is resampled: annealed
    /// importance sampling.
    given
  };
  Levels levels = Levels::own;
  double rate = 0.25;              // common: of increments from level to level
  std::vector<double> ladder;      // given: from 0 to 1, as the engine holds it
  int most_levels = 400;           // with the base; of a common schedule the last is then 1
  double longest = 1;              // step in beta of a common schedule
  int moves = 1, first_moves = 0;  // transitions at every level, and at the base
  LaunchSpec launch;  // of a move: streams, leapfrog steps; `begin`: the first iteration's number
  double step_size = 0.3;
  StepSizeController controller;
  /// [unit][axis], of own levels: the first metric; later the standard deviations of the resampled particles,
  /// at least least_scale. Empty: the engine's metric, which stays.
  std::vector<double> metric;
  double least_scale = 0;
};

/// Where a population is.
struct SmcState {
  int levels = 0;               // done, with the base
  std::uint32_t iteration = 0;  // number of the next one
  // [unit]. raises: how often beta was raised; variance: of log_z, roughly (own levels).
  std::vector<double> beta, log_z, variance, gradients;
  std::vector<int> raises;
  std::vector<double> log_weight;             // [particle]; equal, and 0, for own levels
  std::vector<int> ancestor;                  // [particle]: which particle of the base it comes from
  std::vector<double> step_size, acceptance;  // [unit] or [1]; acceptance: of the last move
  std::vector<double> metric;                 // [unit][axis], or empty
  double divergences = 0, jumps_proposed = 0, jumps_accepted = 0;
  /// [unit][axis][particle], of units that have come to beta = 1 before others: their particles, whatever
  /// later launches do to their chains. Empty for all others.
  std::vector<std::vector<double>> arrived;

  template <class Archive>
  void fields(Archive& archive) {
    archive("levels", levels);
    archive("iteration", iteration);
    archive("beta", beta);
    archive("log_z", log_z);
    archive("variance", variance);
    archive("gradients", gradients);
    archive("raises", raises);
    archive("log_weight", log_weight);
    archive("ancestor", ancestor);
    archive("step_size", step_size);
    archive("acceptance", acceptance);
    archive("metric", metric);
    archive("divergences", divergences);
    archive("jumps_proposed", jumps_proposed);
    archive("jumps_accepted", jumps_accepted);
    archive("arrived", arrived);
  }
};

/// Source: Del Moral, Doucet & Jasra (2006); levels by the effective sample size: Jasra, Stephens, Doucet &
/// Tsagaris (2011), by the rate of increments: Zhou, Johansen & Aston (2016). Adaptive, so that log Z is
/// slightly biased.
///
/// It can be stopped between two levels: a new sampler, made the same way, that has read `fields` goes on
/// bit for bit.
class SmcSampler {
 public:
  /// `engine`: a path's, of these units, its base and log zeta set; `position`: draws of the base,
  /// [axis][chain]. The context must live as long.
  SmcSampler(const RunContext& context, std::unique_ptr<Engine> engine, std::vector<std::uint32_t> units,
             const std::vector<double>& position, SmcOptions options);

  /// One level further, first that of the base; false at the end.
  bool step();
  /// One more transition at the level where it is; weights stay.
  void linger() { move(); }

  const SmcState& state() const { return state_; }
  int particles() const { return particles_; }  // of a unit
  double total_gradients() const;
  std::vector<double> position() const;  // [axis][chain]
  std::vector<double> gradient() const { return engine_->gradient(); }
  /// Delta of every particle at its present place.
  std::vector<double> deltas() const;
  /// `count` particles of a unit by weight, as chain numbers: the same until it moves on.
  std::vector<int> resample(int unit, int count) const;

  template <class Archive>
  void fields(Archive& archive) {
    auto engine = engine_->state();
    archive("engine", engine);
    engine_->set_state(engine);
    archive("state", state_);  // the metric goes to the engine with the next resampling
  }

 private:
  using Levels = SmcOptions::Levels;
  bool waits(std::size_t unit) const { return !state_.arrived[unit].empty(); }
  bool finished() const;
  void raise();
  double next_level(const std::vector<double>& delta) const;
  /// Raises one unit, by as much as weights allow, or by `rise`; returns weights where it is to be resampled.
  std::vector<double> raise_alone(std::size_t unit, const double* delta);
  std::vector<double> reweight(std::size_t unit, const double* delta, double rise);
  std::vector<int> resample(int unit, int count, const std::vector<double>& weight) const;
  void take(const std::vector<int>& from);
  void learn_metric(const std::vector<double>& x);
  void restart_at(const std::vector<double>& x);
  void move();
  std::vector<double> acceptance(const std::vector<double>& stats) const;
  void keep_arrived();

  const RunContext& context_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::uint32_t> units_;
  SmcOptions options_;
  int particles_;
  SmcState state_;
};

}  // namespace lockstep
