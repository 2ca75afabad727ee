// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace lockstep {

// Ladders of inverse temperatures 0 = beta_0 < .. < beta_K = 1; `steps` is K, at least 1.

/// beta_k = k / K.
std::vector<double> linear_ladder(int steps);
/// beta_k = (s(r (2k / K - 1)) - s(-r)) / (s(r) - s(-r)), s the logistic function: dense at both ends.
std::vector<double> sigmoid_ladder(int steps, double r = 4);
/// beta_k = (k / K)^2: dense at the base.
std::vector<double> quadratic_ladder(int steps);
/// Throws UserError unless the ladder runs from 0 to 1 and increases.
void check_ladder(const std::vector<double>& ladder);

/// How far apart two levels are, from one step of sequential Monte Carlo, its log weights before and log
/// increments log g = -step Delta, Delta = log base - (log target - log zeta): sqrt(log(sum W g^2 / (sum W g)^2)),
/// the step times the sd of Delta for small steps. Where Delta is Gaussian the rejection rate is this over sqrt(pi).
/// Source: the conditional effective sample size of Zhou, Johansen & Aston (2016), JCGS 25(3).
double increment_rate(const std::vector<double>& log_weights, const std::vector<double>& log_increments);

/// Step sizes of levels, which wander with the noise of acceptance: each becomes the geometric mean over its
/// neighbours, `reach` either side.
std::vector<double> smoothed_steps(const std::vector<double>& step_size, int reach);

/// The communication barrier of a path, from the rate (of rejection, of increments) of each step of a ladder.
///
/// Lambda(beta) runs through the sums of the rates at the levels and is monotone between them (cubic, slopes
/// by Fritsch & Butland 1984). Rates close to 1 hide how far apart two levels are: Lambda is then too small,
/// and a second pilot on the re-spaced ladder is due.
class CommunicationBarrier {
 public:
  /// rates: one for each step, >= 0.
  CommunicationBarrier(std::vector<double> ladder, const std::vector<double>& rates);
  /// Lambda(1). Ideal even-odd swaps make 1 / (2 + 2 Lambda) round trips per iteration at most (Syed et al.
  /// 2022).
  double global() const { return sum_.back(); }
  /// Lambda(beta).
  double cumulative(double beta) const;
  /// The ladder with the same barrier in every step; evenly spaced where there is no barrier at all.
  std::vector<double> equal_ladder(int steps) const;

 private:
  std::size_t step_of(double beta) const;
  std::vector<double> ladder_, sum_, slope_;
};

/// The names of ladders: of that with the same barrier in every step, and of those above.
inline const std::vector<std::string> kLadders = {"barrier", "linear", "sigmoid", "quadratic"};
std::vector<double> named_ladder(const std::string& name, int steps, const CommunicationBarrier& barrier);

}  // namespace lockstep
