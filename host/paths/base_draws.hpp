// SPDX-License-Identifier: Apache-2.0
#pragma once
// Importance sampling from a path's base, beside the chains that travel along the path.
#include <optional>

#include "host/engines/point_engine.hpp"
#include "host/estimators/weighted_moments.hpp"
#include "host/paths/base_controls.hpp"
#include "host/paths/tempered_run.hpp"

namespace lockstep {

/// What draws x of a density b (DrawnDensity: the base, made for it) say of the part of a target where gamma(x) / base(x)
/// <= c = 100 Z: the rest, which few of them meet and then count for much, is left to chains.
struct BaseDraws {
  static constexpr double kLimit = 100;  // c / Z
  double number = 0, seconds = 0;        // of the trial too; a draw costs a gradient
  double effective = NAN;                // (sum w)^2 / sum w^2 of each draw, by the trial
  /// What draws say of those that were not made, in units of e^log_scale.
  struct Unmet {
    double greatest = 0;  // weight
    /// The greatest w |x_i - E x_i|, then w |x_i^2 - E x_i^2|, [2 d]; and their sums over draws beyond c.
    std::vector<double> moment, beyond;
    void take_in(const Unmet& other);
    template <class Archive>
    void fields(Archive& archive) {
      archive("greatest", greatest);
      archive("moment", moment);
      archive("beyond", beyond);
    }
  } unmet;
  double log_limit = NAN, log_scale = 0;  // log c; of what the sums are multiples, an estimate of log Z
  /// [group][MomentLayout row]: means of w f(x), w = gamma / b (of weight_square: of w^2 over the number of draws), over a group's draws, by control variates; empty: draws are not worth it.
  std::vector<std::vector<double>> sums;
  bool taken() const { return !sums.empty(); }
  /// Of the part up to c alone, with its standard error over groups.
  LogZ log_z() const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("number", number);
    archive("seconds", seconds);
    archive("effective", effective);
    archive("unmet", unmet);
    archive("log_limit", log_limit);
    archive("log_scale", log_scale);
    archive("sums", sums);
  }
};

struct BaseDrawsOptions {
  int groups = 8;
  double gradients = 0;  // that they may take
  double se = 0;         // enough where that of log Z is below, 0: never; after
  double least = 0;      // gradients
  bool covariance = false;
};

/// Draws of the base, weighed, each for one gradient. A trial fits the control variates (BaseControls) and says what a draw
/// is worth: where log Z or means of the target vary more than by two independent draws' worth, or over a hundredth of the
/// target is beyond c, none are made; nor where the base has not all modes that are known. Coefficients are the trial's
/// and its draws are not used again, so that means are unbiased.
BaseDraws run_base_draws(const RunContext& context, const PathBase& base, const BaseDrawsOptions& options);

/// Bytes that it takes at its largest.
double base_draws_memory(int dim, int groups);

/// Draws of the base and chains as one estimate: of the target's part up to c the draws', of the rest the chains', which
/// say how much that is (q) and what is there:
///
///   Z = E_b[w; up to c] / (1 - q),   E f = (1 - q) E_b[w f; up to c] / E_b[w; up to c] + q E[f | beyond].
///
/// Errors by the jackknife over groups of both, and beside them what neither may have met: one more draw of the greatest
/// weight, or that weighs most for a moment, what draws beyond c say of it where chains have hardly been there, one visit of
/// the chains, and what no state was kept of. Nothing where draws were not made, or over a fiftieth of the target is
/// beyond c.
struct Combined {
  static constexpr double kMostBeyond = 0.02;
  /// What so many draws leave uncertain of Z for want of one more, over Z.
  static double unmet(const BaseDraws& draws) { return draws.unmet.greatest / draws.number; }
  LogZ log_z{NAN, NAN};
  WeightedMoments moments;
  double beyond = NAN;  // q
};
std::optional<Combined> combined(const TargetInstance& target, bool covariance, const BaseDraws& draws,
                                 const TemperedResult& chains);

}  // namespace lockstep
