// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums over many numbers on packs, eight partial sums each: the same bits on every machine, by any thread.
#include <span>

#include "host/estimators/log_sums.hpp"

namespace lockstep {

double sum_of(std::span<const double> values);

/// What LogSum::add of each term comes to: a term exp(-infinity) counts as 0, a NaN stays.
LogSum log_sum_of(std::span<const double> log_terms);

/// Of s = 1 / (1 + exp(-(v + shift))) over all v: sums of s, of s^2, and of its slope s (1 - s).
struct LogisticSums {
  double sum = 0, squares = 0, slope = 0;
};
LogisticSums logistic_sums(std::span<const double> values, double shift);

/// Of each draw's Delta, its shares in the levels of a ladder:
///   share[k][n] = exp(f_k - beta_k Delta_n) / sum_l exp(f_l - beta_l Delta_n),
/// in rows of `stride` numbers, a multiple of 8 and not below the number of draws; beta_k Delta_n is 0 at
/// beta_k = 0. Returns the sum over draws of the logs of the denominators.
double level_shares(std::span<const double> ladder, std::span<const double> f, std::span<const double> delta,
                    double* share, std::size_t stride);

}  // namespace lockstep
