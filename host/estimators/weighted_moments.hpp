// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moments with their Monte Carlo errors, whatever they were estimated from.
#include <string>
#include <vector>

#include "kernels/launch_spec.hpp"

namespace lockstep {

/// Weighted moments at beta = 1 with standard errors.
struct WeightedMoments {
  std::vector<double> mean, mean_se, second, second_se;  // [d]
  std::vector<double> covariance;                        // [d][d], empty if not accumulated
  std::vector<double> quantity, quantity_se;             // the target's own
  /// Intervals of the means are mean +- t(mean_df) mean_unscaled_se (LogZ).
  std::vector<double> mean_unscaled_se, mean_df;  // [d]
  double weight_ess = 0;  // (sum w)^2 / sum w^2 over all draws: an upper bound, for draws are correlated
  double variance(int i) const { return second[i] - mean[i] * mean[i]; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("mean", mean);
    archive("mean_se", mean_se);
    archive("second", second);
    archive("second_se", second_se);
    archive("covariance", covariance);
    archive("quantity", quantity);
    archive("quantity_se", quantity_se);
    archive("mean_unscaled_se", mean_unscaled_se);
    archive("mean_df", mean_df);
    archive("weight_ess", weight_ess);
  }
};

/// Moments from sums in independent groups: rows as MomentLayout has them, [group][row]. Standard errors by
/// the jackknife over groups.
WeightedMoments weighted_moments(const MomentLayout& layout, const std::vector<std::vector<double>>& sums);

/// The first coordinate whose means differ by more than the worse of their errors allows (`differ`, of all coordinates), or -1.
int first_mean_that_differs(const WeightedMoments& one, const WeightedMoments& other);

/// Whether an estimate came out the same in every block, to rounding: of an indicator, a region that was never
/// visited, or never left; of a coordinate, chains that never moved. Its error is not zero but unknown.
inline bool never_varied(double value, double se) { return se <= 1e-12 * (value < 0 ? -value : value); }

/// Whether a target's own quantity is the probability of something, by its name.
inline bool is_probability(const std::string& name) { return name.starts_with("probability"); }

/// The same of one of a target's own quantities, after `draws` draws. A probability of
/// less than one draw, or of all but less than one, is nobody's visit: smooth indicators have tails of any
/// size.
bool never_varied(const std::string& name, double value, double se, double draws);

}  // namespace lockstep
