// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every target header builds on: its description, its settings and data as the host hands them over, and
// what it gives back. No file or command-line code here: the host implements TargetInput.
#include <cmath>
#include <concepts>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/elementary.hpp"
#include "kernels/random_stream.hpp"
#include "kernels/rows.hpp"

namespace lockstep {

inline constexpr double kPi = 3.14159265358979323846;

struct TargetInfo {
  std::string name, summary, formula;
  std::vector<std::pair<std::string, std::string>> settings;  // key, meaning with its default
  std::string data = {};                                      // format of --data; empty: none taken
  std::string truth = {};
};

/// A dense array of numbers from a data file, row by row.
struct DataArray {
  std::vector<double> values;
  std::vector<int> shape;
};

/// The user's settings and data, typed and checked; a wrong one throws a one-line error. Implemented by the
/// host.
class TargetInput {
 public:
  virtual ~TargetInput() = default;
  virtual double number(const std::string& key, double standard, double low, double high) = 0;
  virtual int integer(const std::string& key, int standard, int low, int high) = 0;
  virtual std::string choice(const std::string& key, const std::string& standard,
                             const std::vector<std::string>& allowed) = 0;
  virtual std::string text(const std::string& key, const std::string& standard) = 0;
  virtual bool has_data() = 0;
  virtual bool has(const std::string& name) = 0;
  virtual DataArray array(const std::string& name) = 0;  // finite numbers, rectangular
  /// Named arrays of a folder or a file, found as data are: .npy files, .npz, .safetensors.
  virtual std::map<std::string, DataArray> tensors(const std::string& path) = 0;
  /// One array, [image][..]: .npy, .npz, IDX.
  virtual DataArray images(const std::string& path) = 0;
  /// Throws the one-line error of a bad input.
  [[noreturn]] virtual void fail(const std::string& message) = 0;
  /// Fails where one of these settings of simulated data, whole numbers from 0, is given: for targets that have data.
  void refuse_beside_data(std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (integer(key, -1, -1, std::numeric_limits<int>::max()) != -1)
        fail(std::string("target.") + key + " is given beside data (it is for simulated ones). Leave it out");
  }
};

/// What is known exactly. NaN where nothing is. For reports and tests only: no adapter, base or gate reads
/// it.
struct Truth {
  static constexpr int kFullDim = 1000;  // beyond it the variances alone are kept
  std::vector<double> mean, covariance;  // [d]; [d][d], or [d] beyond kFullDim
  double log_z = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> quantities;  // the target's own, in the order of their names
  double variance(int i) const {
    return covariance[covariance.size() == mean.size() ? i : i * mean.size() + i];
  }
  double second_moment(int i) const { return variance(i) + mean[i] * mean[i]; }
  void set_covariance(int i, int j, double value) {
    if (covariance.size() != mean.size())
      covariance[i * mean.size() + j] = value;
    else if (i == j)
      covariance[i] = value;
  }
};

/// A Gaussian that a target's own approximation makes of it, and an estimate of its log normaliser: where a
/// base for tempering can start. Made from the density alone, never from the truth.
struct BaseGuess {
  std::vector<double> mean, covariance;  // [d], [d][d]
  double log_zeta = 0;
  int components = 0;  // distinct local approximations it was matched to
};

/// Items (images) of a target that has a density for each, all of one dimension: unit u of a batch is item u.
struct Items {
  int count = 0;
  std::vector<double> base_mean, base_sd;  // [item][dim]: the normal base of each item's path
  std::vector<double> exact;               // [item][dim]: an exact draw of each, where they were simulated
  std::vector<double> log_z;               // [item]: where it is known
  std::string base = "prior";              // how these bases were made
  int rows = 0, columns = 0;
  std::vector<float> values;  // [item][row][column], to be shown
};

/// Uniform and normal draws for what a target makes on the host: exact draws, each from the stream of its
/// number, and data. A seed that serves several ends has a label for each.
class ExactDraw : public RandomStream {
 public:
  explicit ExactDraw(StreamKey key, std::uint64_t number = 0) : RandomStream(Purpose::exact, key, number) {}
  explicit ExactDraw(std::uint64_t seed, std::string_view label = "")
      : ExactDraw(make_stream_key(seed, label)) {}
};

/// Owns parameter arrays in both precisions; addresses stay put.
class ParameterPool {
 public:
  ParameterArray add(std::vector<double> values) {
    doubles_.push_back(std::move(values));
    floats_.emplace_back(doubles_.back().begin(), doubles_.back().end());
    return {floats_.back().data(), doubles_.back().data()};
  }

 private:
  std::deque<std::vector<double>> doubles_;
  std::deque<std::vector<float>> floats_;
};

/// How the density falls off, for the propriety check of pure tempering.
enum class Tails { gaussian, heavy };

/// What a density without modes or expectations of its own inherits.
struct DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;  // dimensions compiled apart, for speed
  static constexpr bool kBatch = false;  // gradients of many chains at once (kernels/block_density.hpp)
  /// Number of the target's own expectations, and each one's integrand at x through put(index, value).
  LOCKSTEP_FN int quantities() const { return 0; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X&, Put&&) const {}
  /// The mode x belongs to, as a lane value.
  template <int D, class L, class X>
  LOCKSTEP_FN L mode(const X&) const {
    return L(0);
  }
};

/// What a target's density is: targets/gaussian.hpp has one. DensityDefaults has all but the first three.
template <class D>
concept HasDim = requires(const D& density) {
  { density.dim } -> std::convertible_to<int>;
};
template <class D>
concept HasLogDensity = requires(const D& density, const Rows<double>& x) {
  { density.template log_density<0, double>(x, x) } -> std::same_as<double>;
  { density.template log_density<0, double>(x, NoGradient{}) } -> std::same_as<double>;
};
template <class D>
concept HasArrays = requires(D& density) {
  density.arrays([](ParameterArray&, int) {});
};
template <class D>
concept HasDensityDefaults = requires(const D& density, const Rows<double>& x) {
  { density.quantities() } -> std::convertible_to<int>;
  density.template quantity<0, double>(x, [](int, double) {});
  { density.template mode<0, double>(x) } -> std::same_as<double>;
  typename D::SpecialisedDims;
  { D::kBatch } -> std::convertible_to<bool>;
};
template <class D>
concept DensityFunction = HasDim<D> && HasLogDensity<D> && HasArrays<D> && HasDensityDefaults<D>;

/// Says in one line what a density lacks. (Of a concept a compiler says it in a dozen.)
template <class D>
constexpr bool check_density() {
  constexpr bool dim = HasDim<D>, log_density = HasLogDensity<D>, arrays = HasArrays<D>,
                 rest = HasDensityDefaults<D>;
  static_assert(dim, "DensityFunction: a density has a member  int dim");
  static_assert(
      log_density,
      "DensityFunction: a density has  template <int D, class L, class X, class G> L log_density(const X& x, "
      "const G& g) const, which also takes NoGradient for g");
  static_assert(arrays, "DensityFunction: a density has  template <class F> LOCKSTEP_FN void arrays(F&& f)");
  static_assert(rest,
                "DensityFunction: a density inherits DensityDefaults, or has its members with their types");
  return DensityFunction<D>;
}

/// A density with all that belongs to it.
template <class Density>
struct Built {
  Density density;
  ParameterPool pool;
  Truth truth;
  Tails tails = Tails::gaussian;
  std::vector<std::string> quantities;  // names of the target's own expectations
  std::vector<std::string> names;       // of the coordinates; empty: x[0], x[1], ..
  std::shared_ptr<const Items> items;   // where there is more than one density
  /// Numbers about the target itself, named: reported in summaries.
  std::vector<std::pair<std::string, double>> facts;
  std::function<void(ExactDraw&, double*)> draw;  // an exact draw, where there is one
  /// From this many random starts, by this seed; where the target knows how.
  std::function<BaseGuess(int starts, std::uint64_t seed)> base_guess;
  explicit Built(int dim) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    truth.mean.assign(dim, nan);
    truth.covariance.assign(dim > Truth::kFullDim ? dim : std::size_t(dim) * dim, 0.0);
  }
};

}  // namespace lockstep
