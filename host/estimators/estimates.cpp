// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/estimates.hpp"

#include <algorithm>
#include <cmath>

#include "host/estimators/diagnostics.hpp"

namespace lockstep {
namespace {

constexpr int kChainsForSpread = 32;

struct RowEstimate {
  double mean, se, df;  // df: independent blocks less one
};

struct SumVariance {
  double value, blocks;  // of so many independent blocks, it seems
};

/// Variance of the sum of residuals that stand in order, batch by batch, in each chain: Geyer's initial
/// positive monotone sequence on the batches, pooled over chains, so that batches shorter than the
/// autocorrelation do not make an error look small. residual: [chain][batch], their sum over everything is
/// zero.
SumVariance sum_variance(const std::vector<double>& residual, int chains, int batches) {
  const auto gamma = [&](int lag) {  // mean over the pairs there are
    double s = 0;
    for (int c = 0; c < chains; ++c)
      for (int b = 0; b + lag < batches; ++b)
        s += residual[c * batches + b] * residual[c * batches + b + lag];
    return s / (double(chains) * (batches - lag));
  };
  const double first = gamma(0);
  double pair = first + (batches > 1 ? gamma(1) : 0), total = -first + 2 * std::max(pair, 0.75 * first);
  for (int lag = 2; lag + 1 < batches / 2; lag += 2) {
    const double next = gamma(lag) + gamma(lag + 1);
    if (!(next > 0)) break;
    pair = std::min(pair, next);
    total += 2 * pair;
  }
  const double n = double(chains) * batches;
  // The mean was estimated too: as from the number of independent blocks that there seem to be.
  const double blocks = std::max(2.0, n * first / std::max(total, first));
  return {n * total * blocks / (blocks - 1), blocks};
}

/// Mean of one row over all blocks, and its standard error from the blocks' scatter (ratio estimator: the
/// last batch may be shorter).
RowEstimate row_estimate(const UnitMoments& m, int row) {
  const bool by_chain = m.chains >= kChainsForSpread;
  const int blocks = by_chain ? m.chains : m.chains * m.batches;
  std::vector<double> sum(blocks, 0.0), count(blocks, 0.0);
  for (int c = 0; c < m.chains; ++c)
    for (int b = 0; b < m.batches; ++b) {
      const int k = by_chain ? c : c * m.batches + b;
      sum[k] += m.batch(c, b)[row];
      count[k] += m.batch(c, b)[MomentLayout::count];
    }
  double total = 0, n = 0, square = 0;
  for (int k = 0; k < blocks; ++k) {
    total += sum[k];
    n += count[k];
  }
  const double mean = total / n;
  for (int k = 0; k < blocks; ++k) {
    sum[k] -= mean * count[k];
    square += sum[k] * sum[k];
  }
  if (blocks < 2) return {mean, NAN, NAN};
  const SumVariance variance = by_chain ? SumVariance{square * blocks / (blocks - 1.0), double(blocks)}
                                        : sum_variance(sum, m.chains, m.batches);
  return {mean, std::sqrt(variance.value) / n, std::max(1.0, std::floor(variance.blocks - 1))};
}

double nested_rhat_of(const UnitMoments& m, int i, int superchains) {
  if (m.chains % superchains != 0 || superchains < 2) return NAN;
  std::vector<double> count(m.chains, 0.0), mean(m.chains, 0.0), variance(m.chains, 0.0);
  for (int c = 0; c < m.chains; ++c) {
    for (int b = 0; b < m.batches; ++b) {
      count[c] += m.batch(c, b)[MomentLayout::count];
      mean[c] += m.batch(c, b)[m.layout.mean() + i];
      variance[c] += m.batch(c, b)[m.layout.second() + i];
    }
    mean[c] /= count[c];
    variance[c] = variance[c] / count[c] - mean[c] * mean[c];
  }
  return nested_rhat(count, mean, variance, superchains);
}

/// Batches of one length: the last may be shorter.
int equal_batches(const UnitMoments& m) {
  return m.iterations % m.batch_length == 0 ? m.batches : m.batches - 1;
}

double split_rhat_of(const UnitMoments& m, int i) {
  const int batches = equal_batches(m);
  if (batches < 2) return NAN;
  std::vector<double> mean, variance;
  for (int c = 0; c < m.chains; ++c)
    for (int b = 0; b < batches; ++b) {
      const double n = m.batch(c, b)[MomentLayout::count], mu = m.batch(c, b)[m.layout.mean() + i] / n;
      mean.push_back(mu);
      variance.push_back(std::max(0.0, m.batch(c, b)[m.layout.second() + i] / n - mu * mu) * n / (n - 1));
    }
  return split_rhat_from_batches(mean, variance, m.chains, batches, m.batch_length);
}

/// Short chains against those that started elsewhere; a single one against itself. Groups of short chains
/// that agree have forgotten where they began, but where the user began them in several modes, each chain is
/// to have been in all of them: each is a group of its own.
bool is_short(const UnitMoments& m) { return m.iterations < 500 && m.chains > 1; }
bool nests(const UnitMoments& m) { return is_short(m) && m.known_starts < 2; }
double rhat_of(const UnitMoments& m, int i) {
  if (!is_short(m)) return split_rhat_of(m, i);
  if (!nests(m)) return std::fmax(nested_rhat_of(m, i, m.chains), split_rhat_of(m, i));
  return nested_rhat_of(m, i, m.superchain.empty() ? m.chains : m.superchain.back() + 1);
}

double beta_spread_of(const UnitMoments& m) {
  constexpr int kLeast = 4, kMost = 8, kLeastChains = 8;
  constexpr double kRoundingOfSums = 1e-20;
  const int batches = equal_batches(m);
  if (batches < kLeast || m.chains < kLeastChains) return NAN;
  const int stretches = std::min(batches, kMost), per = batches / stretches;
  std::vector<double> mean(m.chains, 0.0);
  double within = 0, between = 0, all = 0;
  for (int c = 0; c < m.chains; ++c) {
    std::vector<double> of(stretches, 0.0);
    for (int b = 0; b < stretches * per; ++b)
      of[b / per] += m.batch(c, b)[MomentLayout::beta_mean] / double(per * m.batch_length);
    for (const double v : of) mean[c] += v / stretches;
    for (const double v : of) within += std::pow(v - mean[c], 2) / (stretches - 1) / m.chains;
    all += mean[c] / m.chains;
  }
  for (const double of : mean) between += std::pow(of - all, 2) / (m.chains - 1);
  return std::max(within, between) > kRoundingOfSums ? stretches * between / within : NAN;
}

}  // namespace

double worst_rhat(const UnitMoments& m) {
  double worst = 0;
  for (int i = 0; i < m.layout.dim; ++i) {
    const double r = rhat_of(m, i);
    if (!(r <= worst)) worst = r;  // a NaN stays
  }
  return worst;
}

double least_effective(const WeightedMoments& m) {
  double least = INFINITY;
  for (std::size_t i = 0; i < m.mean.size(); ++i)
    least = std::min(least, m.variance(int(i)) / (m.mean_se[i] * m.mean_se[i]));
  return least;
}

Estimates estimate(const UnitMoments& m) {
  Estimates e;
  const MomentLayout& l = m.layout;
  auto fill = [&](int first, int count, std::vector<double>& value, std::vector<double>& se) {
    for (int i = 0; i < count; ++i) {
      const RowEstimate r = row_estimate(m, first + i);
      value.push_back(r.mean);
      se.push_back(r.se);
    }
  };
  for (int i = 0; i < l.dim; ++i) {
    const RowEstimate r = row_estimate(m, l.mean() + i);
    e.mean.push_back(r.mean);
    e.mean_se.push_back(r.se);
    e.mean_df.push_back(r.df);
  }
  e.mean_unscaled_se = e.mean_se;
  fill(l.second(), l.dim, e.second, e.second_se);
  fill(l.quantity(), l.quantities, e.quantity, e.quantity_se);
  if (l.covariance) {
    e.covariance.resize(std::size_t(l.dim) * l.dim);
    for (int i = 0; i < l.dim; ++i) {
      e.covariance[i * l.dim + i] = e.variance(i);
      for (int j = 0; j < i; ++j)
        e.covariance[i * l.dim + j] = e.covariance[j * l.dim + i] =
            row_estimate(m, l.cross() + i * (i - 1) / 2 + j).mean - e.mean[i] * e.mean[j];
    }
  }
  const double count = double(m.iterations) * m.chains;
  e.weight_ess = count / row_estimate(m, MomentLayout::weight_square).mean;
  e.beta_mean = row_estimate(m, MomentLayout::beta_mean).mean;
  e.beta_spread = beta_spread_of(m);
  e.nested = nests(m);
  e.rhat_max = 0;
  for (int i = 0; i < l.dim; ++i) {
    e.rhat.push_back(rhat_of(m, i));
    if (!(e.rhat[i] <= e.rhat_max)) e.rhat_max = e.rhat[i];  // a NaN stays
  }
  e.ess_min = least_effective(e);
  e.acceptance = m.stats[stat_acceptance] / count;
  e.divergence_rate = m.stats[stat_divergences] / count;
  e.switches = m.stats[stat_switches];
  e.gradients = m.stats[stat_gradients];
  return e;
}

}  // namespace lockstep
