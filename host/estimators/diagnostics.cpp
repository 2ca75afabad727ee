// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/diagnostics.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <complex>
#include <limits>
#include <unsupported/Eigen/FFT>
#include <unsupported/Eigen/SpecialFunctions>

#include "host/estimators/rank_order.hpp"

namespace lockstep {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Chain = Eigen::Map<const ArrayXd>;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr Index min_draws = 4;           // two per half chain
constexpr std::int64_t first_lags = 32;  // computed by direct sums
constexpr DrawDiagnostics undefined{nan_value, nan_value, nan_value, nan_value, nan_value,
                                    nan_value, nan_value, nan_value, nan_value};

/// The second pass removes the rounding of the first, so that equal values have exactly zero variance.
template <class Values>
double mean_of(const Values& x) {
  const double first = x.mean();
  return first + (x - first).mean();
}

/// Variance with denominator n - 1; 0 for a single value.
template <class Values>
double variance_of(const Values& x) {
  return x.size() < 2 ? 0 : (x - mean_of(x)).square().sum() / static_cast<double>(x.size() - 1);
}

/// R-hat of chains of length n, from their means and variances.
double potential_scale_reduction(const ArrayXd& mean, const ArrayXd& variance, double n) {
  return std::sqrt((n * variance_of(mean) / variance.mean() + n - 1) / n);
}

struct ChainMoments {
  ArrayXd mean, variance;
  /// values: [chain][draw], num_chains chains of `length` draws.
  ChainMoments(const double* values, Index num_chains, Index length)
      : mean(num_chains), variance(num_chains) {
    for (Index c = 0; c < num_chains; ++c) {
      const Chain chain(values + c * length, length);
      mean[c] = mean_of(chain);
      variance[c] = variance_of(chain);
    }
  }
};

/// Quantile of sorted draws, linear between order statistics (type 7 of Hyndman and Fan). Rounds as ArviZ's
/// does: the indicators x <= quantile hang on its last bit when draws are tied.
double quantile(const std::vector<Ranked>& sorted, double probability) {
  const double n = static_cast<double>(sorted.size());
  const double place = n * probability + (1 - probability);
  const double below = std::floor(std::clamp(place, 1.0, n - 1));
  const double weight = std::clamp(place - below, 0.0, 1.0);
  const auto at = static_cast<std::size_t>(below);
  const double low = (1 - weight) * from_ordered_bits(sorted[at - 1].key);
  return low + weight * from_ordered_bits(sorted[at].key);
}

/// Analyses any number of components of one shape; keeps what depends on the shape alone.
class Analyser {
 public:
  Analyser(Index num_chains, Index num_draws)
      : num_draws_(num_draws), half_(num_draws / 2), num_halves_(2 * num_chains) {
    assert(num_chains * num_draws < std::numeric_limits<std::uint32_t>::max());
    for (Index i = 0; i < size_; ++i) score_of_rank_[i] = normal_score(static_cast<double>(i + 1));
  }

  DrawDiagnostics operator()(const ArrayXd& draws) {
    if (!draws.isFinite().all()) return undefined;
    split_and_sort(draws);
    const double low = quantile(sorted_, 0.05), high = quantile(sorted_, 0.95);
    DrawDiagnostics out{};
    out.ess_mean = effective_size(split_);
    out.sd = std::sqrt(variance_of(draws));
    out.mcse_mean = out.sd / std::sqrt(out.ess_mean);
    out.q5 = low;
    out.q50 = quantile(sorted_, 0.5);
    out.q95 = high;
    indicator_ = (split_ <= low).cast<double>();
    out.ess_tail = effective_size(indicator_);
    indicator_ = (split_ <= high).cast<double>();
    out.ess_tail = std::min(out.ess_tail, effective_size(indicator_));

    std::erase_if(sorted_, [this](const Ranked& item) { return item.index == size_; });
    score_ranks();
    out.ess_bulk = effective_size(scores_);
    const double bulk = rhat_of_scores();
    fold();
    score_ranks();
    const double tail = rhat_of_scores();
    out.rhat = tail > bulk ? tail : bulk;  // the folded one alone is undefined for two equally likely values
    if (num_halves_ == 2) out.rhat = nan_value;  // as ArviZ
    return out;
  }

 private:
  /// Normal score of a rank among all split draws, with Blom's offsets.
  double normal_score(double rank) const {
    return Eigen::numext::ndtri((rank - 0.375) / (static_cast<double>(size_) + 0.25));
  }

  /// Fills split_ ([half chain][draw]) and sorted_ (all draws; those in neither half have index size_).
  void split_and_sort(const ArrayXd& draws) {
    sorted_.resize(draws.size());
    const Index second = num_draws_ - half_;
    for (Index i = 0, start = 0; start < draws.size(); start += num_draws_)
      for (Index t = 0; t < num_draws_; ++t) {
        const double x = draws[start + t];
        const bool middle = t >= half_ && t < second;
        sorted_[start + t] = {ordered_bits(x), static_cast<std::uint32_t>(middle ? size_ : i)};
        if (!middle) split_[i++] = x;
      }
    radix_sort(sorted_, merged_);
  }

  /// Normal scores of the ranks in sorted_; tied values share their average rank.
  void score_ranks() {
    const std::size_t n = sorted_.size();
    for (std::size_t first = 0, end = 0; first < n; first = end) {
      while (end < n && sorted_[end].key == sorted_[first].key) ++end;
      const double score = end - first == 1 ? score_of_rank_[static_cast<Index>(first)]
                                            : normal_score(0.5 * static_cast<double>(first + 1 + end));
      for (std::size_t i = first; i < end; ++i) scores_[sorted_[i].index] = score;
    }
  }

  /// Replaces sorted_ by the order of |x - median|: its two sides are sorted already and only need a merge.
  void fold() {
    const std::size_t n = sorted_.size();
    const auto value = [](const Ranked& item) { return from_ordered_bits(item.key); };
    const double median = 0.5 * (value(sorted_[n / 2 - 1]) + value(sorted_[n / 2]));
    for (Ranked& item : sorted_) item.key = ordered_bits(std::fabs(value(item) - median));
    merged_.resize(n);
    const auto middle = sorted_.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::merge(std::make_reverse_iterator(middle), sorted_.rend(), middle, sorted_.end(), merged_.begin(),
               [](const Ranked& a, const Ranked& b) { return a.key < b.key; });
    sorted_.swap(merged_);
  }

  double rhat_of_scores() const {
    const ChainMoments moments(scores_.data(), num_halves_, half_);
    return potential_scale_reduction(moments.mean, moments.variance, static_cast<double>(half_));
  }

  /// Autocovariance at the first lags (denominator half_), averaged over the half chains, by direct sums:
  /// often all that is needed, and then much faster than all lags. Zeros follow each chain, for lags beyond
  /// its end.
  ArrayXd first_autocovariances(const ArrayXd& values, const ArrayXd& mean) const {
    using Lags = Eigen::Array<double, first_lags, 1>;
    Lags sum = Lags::Zero();
    ArrayXd chain = ArrayXd::Zero(half_ + first_lags);
    for (Index c = 0; c < num_halves_; ++c) {
      chain.head(half_) = values.segment(c * half_, half_) - mean[c];
      Lags products = Lags::Zero();
      for (Index t = 0; t < half_; ++t) products += chain[t] * chain.segment<first_lags>(t);
      sum += products;
    }
    return sum / static_cast<double>(size_);
  }

  /// The same at every lag. Power spectra are averaged before going back, and two real chains share a
  /// transform: |FFT(a + ib)|^2, made even in frequency, is |FFT(a)|^2 + |FFT(b)|^2. Zeros keep lags from
  /// wrapping around.
  ArrayXd all_autocovariances(const ArrayXd& values, const ArrayXd& mean) {
    const auto padded = static_cast<Index>(std::bit_ceil(static_cast<std::size_t>(2 * half_)));
    Eigen::ArrayXcd chains = Eigen::ArrayXcd::Zero(padded), spectrum(padded);
    ArrayXd power = ArrayXd::Zero(padded);
    for (Index c = 0; c < num_halves_; c += 2) {
      chains.head(half_).real() = values.segment(c * half_, half_) - mean[c];
      chains.head(half_).imag() = values.segment((c + 1) * half_, half_) - mean[c + 1];
      fft_.fwd(spectrum.data(), chains.data(), padded);
      power += spectrum.abs2();
    }
    chains = power.cast<std::complex<double>>();
    fft_.fwd(spectrum.data(), chains.data(), padded);
    return spectrum.head(half_).real() / static_cast<double>(padded * size_);
  }

  double effective_size(const ArrayXd& values) {
    const double size = static_cast<double>(size_), n = static_cast<double>(half_);
    if (values.maxCoeff() - values.minCoeff() < 1e-15) return size;  // as ArviZ: a constant is known exactly
    ArrayXd mean(num_halves_);
    for (Index c = 0; c < num_halves_; ++c) mean[c] = mean_of(Chain(values.data() + c * half_, half_));
    ArrayXd covariance = first_autocovariances(values, mean);
    const double within = covariance[0] * n / (n - 1), total = covariance[0] + variance_of(mean);
    if (!std::isfinite(total)) return nan_value;  // overflow
    const auto correlation = [&](Index lag) { return 1 - (within - covariance[lag]) / total; };

    // Pairs of an even and the next odd lag are positive and decreasing for a reversible chain (Geyer). Sum
    // them while positive, none above its predecessor; of the pair after the last, the even lag alone may
    // count.
    double even = 1, pair = 1 + correlation(1), sum = 0, ceiling = pair;
    for (Index lag = 2; lag < half_ - 2 && pair > 0; lag += 2) {
      if (lag + 1 >= covariance.size()) covariance = all_autocovariances(values, mean);
      ceiling = std::min(ceiling, pair);
      sum += ceiling;
      even = correlation(lag);
      pair = even + correlation(lag + 1);
    }
    const double rest = even > 0 || pair >= 0 ? even : 0;
    const double tau =
        std::max(2 * sum - 1 + rest, 1 / std::log10(size));  // bounds the gain of antithetic chains
    return size / tau;
  }

  const Index num_draws_, half_, num_halves_, size_ = half_ * num_halves_;
  ArrayXd split_ = ArrayXd(size_), scores_ = split_, indicator_ = split_, score_of_rank_ = split_;
  std::vector<Ranked> sorted_, merged_;
  Eigen::FFT<double> fft_;
};

}  // namespace

DrawDiagnostics diagnose(std::span<const double> draws, std::int64_t num_chains, std::int64_t num_draws) {
  return diagnose_all(draws, num_chains, num_draws, 1).front();
}

std::vector<DrawDiagnostics> diagnose_all(std::span<const double> draws, std::int64_t num_chains,
                                          std::int64_t num_draws, std::int64_t dim, int threads) {
  assert(num_chains >= 0 && num_draws >= 0 && dim >= 0);
  assert(static_cast<std::int64_t>(draws.size()) == num_chains * num_draws * dim);
  std::vector<DrawDiagnostics> out(dim, undefined);
  if (num_chains < 1 || num_draws < min_draws || dim == 0) return out;
#pragma omp parallel num_threads(static_cast <int>(std::min <std::int64_t>(threads, dim)))
  {
    Analyser analyse(num_chains, num_draws);
#pragma omp for schedule(dynamic)
    for (Index i = 0; i < dim; ++i)
      out[i] = analyse(Eigen::Map<const ArrayXd, 0, Eigen::InnerStride<>>(
          draws.data() + i, num_chains * num_draws, Eigen::InnerStride<>(dim)));
  }
  return out;
}

double nested_rhat(std::span<const double> draws, std::int64_t num_chains, std::int64_t num_draws,
                   std::int64_t num_superchains) {
  assert(static_cast<std::int64_t>(draws.size()) == num_chains * num_draws);
  if (num_draws < 1) return nan_value;
  const std::vector<double> count(num_chains, static_cast<double>(num_draws));
  const ChainMoments moments(draws.data(), num_chains, num_draws);
  return nested_rhat(count, {moments.mean.data(), count.size()}, {moments.variance.data(), count.size()},
                     num_superchains);
}

double nested_rhat(std::span<const double> count, std::span<const double> mean,
                   std::span<const double> variance, std::int64_t num_superchains) {
  assert(mean.size() == count.size() && variance.size() == count.size());
  const Index num_chains = static_cast<Index>(count.size());
  if (num_superchains < 2 || num_chains == 0) return nan_value;
  assert(num_chains % num_superchains == 0);
  const Index size = num_chains / num_superchains;
  ArrayXd superchain_mean(num_superchains), within(num_superchains);
  for (Index k = 0; k < num_superchains; ++k) {
    const Chain n(count.data() + k * size, size), m(mean.data() + k * size, size);
    const Chain v(variance.data() + k * size, size);
    if (!(n >= 1).all() || !m.isFinite().all()) return nan_value;
    superchain_mean[k] = mean_of(m);
    within[k] = variance_of(m) + (n > 1).select(v, 0.0).mean();
  }
  const double result = std::sqrt(1 + variance_of(superchain_mean) / within.mean());
  return within.isFinite().all() ? result : nan_value;
}

double split_rhat_from_batches(std::span<const double> batch_mean, std::span<const double> batch_variance,
                               std::int64_t num_chains, std::int64_t num_batches, std::int64_t batch_size) {
  assert(batch_mean.size() == batch_variance.size());
  assert(static_cast<std::int64_t>(batch_mean.size()) == num_chains * num_batches);
  const Index half = num_batches / 2;
  const double length = static_cast<double>(half * batch_size), inner = static_cast<double>(batch_size);
  if (num_chains < 1 || half < 1 || batch_size < 1 || length < 2) return nan_value;
  ArrayXd mean(2 * num_chains), variance(2 * num_chains);
  for (Index h = 0; h < 2 * num_chains; ++h) {
    const Index start = h / 2 * num_batches + h % 2 * (num_batches - half);
    const Chain m(batch_mean.data() + start, half), v(batch_variance.data() + start, half);
    mean[h] = mean_of(m);
    // Sum of squares within batches, and of the batch means about the half chain's mean.
    const double inside = batch_size > 1 ? (inner - 1) * v.sum() : 0;
    variance[h] = (inside + inner * (m - mean[h]).square().sum()) / (length - 1);
  }
  if (!mean.isFinite().all() || !variance.isFinite().all()) return nan_value;
  return potential_scale_reduction(mean, variance, length);
}

}  // namespace lockstep
