// SPDX-License-Identifier: Apache-2.0
#include "host/diagnostics.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <unsupported/Eigen/FFT>
#include <unsupported/Eigen/SpecialFunctions>

namespace lockstep {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Complex = std::complex<double>;
using Chain = Eigen::Map<const ArrayXd>;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr Index min_draws = 4;  // two per half chain

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

double potential_scale_reduction(const ArrayXd& chain_mean, const ArrayXd& chain_variance,
                                 double chain_length) {
  const double between = chain_length * variance_of(chain_mean), within = chain_variance.mean();
  return std::sqrt((between / within + chain_length - 1) / chain_length);
}

/// Bits of a double, rearranged to sort as the double does; -0 and 0 must tie, hence the addition.
std::uint64_t ordered_bits(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);
  return bits ^ ((bits >> 63) != 0 ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}

double from_ordered_bits(std::uint64_t key) {
  return std::bit_cast<double>(key ^ ((key >> 63) != 0 ? std::uint64_t{1} << 63 : ~std::uint64_t{0}));
}

struct Ranked {
  std::uint64_t key;    // equal keys are tied values
  std::uint32_t index;  // where the value stands in the split chains
};

/// Sorts by key: a radix sort by the upper 33 bits of the range of keys, in three digits, then each run of
/// items that agree in them by itself. Sorting is much of the cost of `diagnose`, and std::sort takes far
/// longer.
void radix_sort(std::vector<Ranked>& items, std::vector<Ranked>& scratch) {
  constexpr int digit_bits = 11, num_digits = 3, num_values = 1 << digit_bits;
  const auto by_key = [](const Ranked& a, const Ranked& b) { return a.key < b.key; };
  const auto [lowest, highest] = std::minmax_element(items.begin(), items.end(), by_key);
  const std::uint64_t base = lowest->key;
  const int unsorted_bits = std::max(0, static_cast<int>(std::bit_width(highest->key - base)) - 33);
  const auto digit = [=](const Ranked& item, int d) {
    return ((item.key - base) >> (unsorted_bits + d * digit_bits)) & (num_values - 1);
  };
  std::array<std::array<std::uint32_t, num_values>, num_digits> start{};
  for (const Ranked& item : items)
    for (int d = 0; d < num_digits; ++d) ++start[d][digit(item, d)];
  scratch.resize(items.size());
  for (int d = 0; d < num_digits; ++d) {
    std::exclusive_scan(start[d].begin(), start[d].end(), start[d].begin(), std::uint32_t{0});
    for (const Ranked& item : items) scratch[start[d][digit(item, d)]++] = item;
    items.swap(scratch);
  }
  const auto prefix = [=](const Ranked& item) { return (item.key - base) >> unsorted_bits; };
  for (auto first = items.begin(), end = first; first != items.end(); first = end) {
    while (end != items.end() && prefix(*end) == prefix(*first)) ++end;
    if (end - first > 1 && unsorted_bits > 0) std::sort(first, end, by_key);
  }
}

/// The next length from n on whose only prime factors are 2, 3 and 5, for which the transform has fast code.
Index fast_length(Index n) {
  for (;; ++n) {
    Index rest = n;
    for (const Index factor : {2, 3, 5})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return n;
  }
}

/// Quantile of sorted draws by linear interpolation between order statistics (type 7 of Hyndman and Fan).
/// Written so that it rounds as ArviZ's does: the indicators x <= quantile hang on its last bit when draws
/// are tied.
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
      : num_draws_(num_draws),
        half_(num_draws / 2),
        num_halves_(2 * num_chains),
        split_(half_ * num_halves_),
        scores_(split_.size()),
        scratch_(split_.size()),
        score_of_rank_(split_.size()) {
    assert(num_chains * num_draws < std::numeric_limits<std::uint32_t>::max());
    for (Index i = 0; i < score_of_rank_.size(); ++i)
      score_of_rank_[i] = normal_score(static_cast<double>(i + 1));
    const Index padded = fast_length(2 * half_);
    packed_.resize(padded);
    spectrum_.resize(padded);
  }

  DrawDiagnostics operator()(const ArrayXd& draws) {
    if (!draws.isFinite().all()) return {nan_value, nan_value, nan_value, nan_value, nan_value};
    split_and_sort(draws);
    const double low = quantile(sorted_, 0.05), high = quantile(sorted_, 0.95);
    DrawDiagnostics out{};
    out.ess_mean = effective_size(split_);
    out.mcse_mean = std::sqrt(variance_of(draws)) / std::sqrt(out.ess_mean);
    scratch_ = (split_ <= low).cast<double>();
    out.ess_tail = effective_size(scratch_);
    scratch_ = (split_ <= high).cast<double>();
    out.ess_tail = std::min(out.ess_tail, effective_size(scratch_));

    std::erase_if(sorted_, [this](const Ranked& item) { return item.index == split_.size(); });
    score_ranks();
    out.ess_bulk = effective_size(scores_);
    if (num_halves_ == 2) {
      out.rhat = nan_value;
      return out;
    }
    const double bulk = rhat_of_scores();
    fold();
    score_ranks();
    const double tail = rhat_of_scores();
    out.rhat =
        tail > bulk ? tail : bulk;  // the folded one alone may be undefined, for two equally likely values
    return out;
  }

 private:
  /// Normal score of a rank among all split draws, with Blom's offsets.
  double normal_score(double rank) const {
    return Eigen::numext::ndtri((rank - 0.375) / (static_cast<double>(split_.size()) + 0.25));
  }

  /// Fills split_ ([half chain][draw]) and sorted_ (all draws; those in neither half have index
  /// split_.size()).
  void split_and_sort(const ArrayXd& draws) {
    sorted_.resize(draws.size());
    const Index second = num_draws_ - half_;
    for (Index i = 0, start = 0; start < draws.size(); start += num_draws_)
      for (Index t = 0; t < num_draws_; ++t) {
        const double x = draws[start + t];
        const bool middle = t >= half_ && t < second;
        sorted_[start + t] = {ordered_bits(x), static_cast<std::uint32_t>(middle ? split_.size() : i)};
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
    const double median =
        0.5 * (from_ordered_bits(sorted_[n / 2 - 1].key) + from_ordered_bits(sorted_[n / 2].key));
    for (Ranked& item : sorted_) item.key = ordered_bits(std::fabs(from_ordered_bits(item.key) - median));
    merged_.resize(n);
    const auto middle = sorted_.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::merge(std::make_reverse_iterator(middle), sorted_.rend(), middle, sorted_.end(), merged_.begin(),
               [](const Ranked& a, const Ranked& b) { return a.key < b.key; });
    sorted_.swap(merged_);
  }

  double rhat_of_scores() const {
    ArrayXd mean(num_halves_), variance(num_halves_);
    for (Index c = 0; c < num_halves_; ++c) {
      const Chain chain(scores_.data() + c * half_, half_);
      mean[c] = mean_of(chain);
      variance[c] = variance_of(chain);
    }
    return potential_scale_reduction(mean, variance, static_cast<double>(half_));
  }

  /// Autocovariance at the first lags (denominator half_), averaged over the half chains, by direct sums:
  /// often all that is needed, and then much faster than all lags. Column l of `lagged` is the chain, l draws
  /// later.
  ArrayXd first_autocovariances(const ArrayXd& values, const ArrayXd& mean) const {
    const Index num_lags = std::min<Index>(32, half_);
    Eigen::VectorXd chain = Eigen::VectorXd::Zero(half_ + num_lags), sum = Eigen::VectorXd::Zero(num_lags);
    const Eigen::Map<const Eigen::MatrixXd, 0, Eigen::OuterStride<>> lagged(chain.data(), half_, num_lags,
                                                                            Eigen::OuterStride<>(1));
    for (Index c = 0; c < num_halves_; ++c) {
      chain.head(half_) = values.segment(c * half_, half_) - mean[c];
      sum.noalias() += lagged.transpose() * chain.head(half_);
    }
    return sum / static_cast<double>(half_ * num_halves_);
  }

  /// The same at every lag. Power spectra can be averaged before going back, and two real chains share a
  /// complex transform: |FFT(a + ib)|^2, made even in frequency, is |FFT(a)|^2 + |FFT(b)|^2. Chains are
  /// padded with as many zeros, so that lags do not wrap around.
  ArrayXd all_autocovariances(const ArrayXd& values, const ArrayXd& mean) {
    const Index padded = packed_.size();
    ArrayXd power = ArrayXd::Zero(padded);
    packed_.tail(padded - half_).setZero();
    for (Index c = 0; c < num_halves_; c += 2) {
      packed_.head(half_).real() = values.segment(c * half_, half_) - mean[c];
      packed_.head(half_).imag() = values.segment((c + 1) * half_, half_) - mean[c + 1];
      fft_.fwd(spectrum_.data(), packed_.data(), padded);
      power += spectrum_.abs2();
    }
    packed_ = power.cast<Complex>();
    fft_.fwd(spectrum_.data(), packed_.data(), padded);
    return spectrum_.head(half_).real() / static_cast<double>(padded * half_ * num_halves_);
  }

  double effective_size(const ArrayXd& values) {
    const double size = static_cast<double>(values.size()), n = static_cast<double>(half_);
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
        std::max(-1 + 2 * sum + rest, 1 / std::log10(size));  // antithetic chains: bounded gain
    return size / tau;
  }

  Index num_draws_, half_, num_halves_;
  ArrayXd split_, scores_, scratch_, score_of_rank_;
  std::vector<Ranked> sorted_, merged_;
  Eigen::Array<Complex, Eigen::Dynamic, 1> packed_, spectrum_;
  Eigen::FFT<double> fft_;
};

}  // namespace

DrawDiagnostics diagnose(std::span<const double> draws, std::int64_t num_chains, std::int64_t num_draws) {
  return diagnose_all(draws, num_chains, num_draws, 1).front();
}

std::vector<DrawDiagnostics> diagnose_all(std::span<const double> draws, std::int64_t num_chains,
                                          std::int64_t num_draws, std::int64_t dim) {
  assert(num_chains >= 0 && num_draws >= 0 && dim >= 0);
  assert(static_cast<std::int64_t>(draws.size()) == num_chains * num_draws * dim);
  std::vector<DrawDiagnostics> out(dim, {nan_value, nan_value, nan_value, nan_value, nan_value});
  if (num_chains < 1 || num_draws < min_draws) return out;
  Analyser analyse(num_chains, num_draws);
  for (Index i = 0; i < dim; ++i)
    out[i] = analyse(Eigen::Map<const ArrayXd, 0, Eigen::InnerStride<>>(
        draws.data() + i, num_chains * num_draws, Eigen::InnerStride<>(dim)));
  return out;
}

double nested_rhat(std::span<const double> draws, std::int64_t num_chains, std::int64_t num_draws,
                   std::int64_t num_superchains) {
  assert(static_cast<std::int64_t>(draws.size()) == num_chains * num_draws);
  std::vector<double> count(num_chains, static_cast<double>(num_draws)), mean(num_chains),
      variance(num_chains);
  for (Index c = 0; c < num_chains && num_draws > 0; ++c) {
    const Chain chain(draws.data() + c * num_draws, num_draws);
    mean[c] = mean_of(chain);
    variance[c] = variance_of(chain);
  }
  return nested_rhat(count, mean, variance, num_superchains);
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
    const Chain n(count.data() + k * size, size), m(mean.data() + k * size, size),
        v(variance.data() + k * size, size);
    if ((n < 1).any() || !m.isFinite().all()) return nan_value;
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
    const double squares =
        (batch_size > 1 ? (inner - 1) * v.sum() : 0) + inner * (m - mean[h]).square().sum();
    variance[h] = squares / (length - 1);
  }
  if (!mean.isFinite().all() || !variance.isFinite().all()) return nan_value;
  return potential_scale_reduction(mean, variance, length);
}

}  // namespace lockstep
