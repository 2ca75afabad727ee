// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace lockstep {

/// Some draws of some chains.
struct DrawsPart {
  int chain, chains, draw, draws;  // the first, and how many
};
/// Writes the values of a part to `out`, for values that are made as the file is written: all of them may be most of
/// what memory holds.
template <class T>
using DrawsSource = std::function<void(const DrawsPart& part, T* out)>;
/// Of values that are there, [chain][draw][each], and stay.
template <class T>
DrawsSource<T> source_of(const std::vector<T>& values, int draws, std::size_t each) {
  return [&values, draws, each](const DrawsPart& part, T* out) {
    for (int c = part.chain; c < part.chain + part.chains; ++c)
      out = std::copy_n(&values[(std::size_t(c) * draws + part.draw) * each], part.draws * each, out);
  };
}

/// Values of one variable, row-major (last index fastest). The file keeps the type; `std::uint8_t` holds
/// flags and is read back as booleans.
using DrawsArray = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int32_t>,
                                std::vector<std::int64_t>, std::vector<std::uint8_t>, DrawsSource<float>,
                                DrawsSource<double>, DrawsSource<std::int32_t>, DrawsSource<std::uint8_t>>;

/// A quantity of the target beside x: a number for each draw, or `size` of them.
struct DrawsQuantity {
  std::string name;
  int size = 0;  // 0: a scalar
};

/// A text, a seed, or whole numbers (one alone: a scalar).
using DrawsAttribute = std::variant<std::string, std::uint64_t, std::vector<std::int64_t>>;

/// The recorded draws of one run, as draws.nc holds them.
struct DrawsFile {
  int chains = 0, draws = 0, dim = 0;
  std::vector<std::string> names;                  // of x's coordinates; empty: 0, 1, 2, ..
  std::vector<DrawsQuantity> quantities;           // of the posterior
  DrawsSource<float> quantity_values;              // [chains][draws][all of these]
  int pseudo_samples = 0;                          // 0: no group `weighted`
  int weighted_chains = -1, weighted_draws = -1;   // of that group; -1: those of the posterior
  DrawsArray x;                                    // [chains][draws][dim], unweighted draws of the target
  std::map<std::string, DrawsArray> sample_stats;  // each [chains][draws]; ArviZ names: acceptance_rate, lp,
                                                   // diverging, step_size, n_steps
  DrawsArray weighted_x;                           // [chains][draws][pseudo_samples][dim]
  DrawsArray log_weight, beta;                     // [chains][draws][pseudo_samples]; beta may be empty
  int warmup_draws = 0;                            // 0: no warm-up groups
  DrawsArray warmup_x;                             // [chains][warmup_draws][dim]
  DrawsSource<float> warmup_quantity_values;       // [chains][warmup_draws][all quantities]
  std::map<std::string, DrawsArray> warmup_sample_stats;  // each [chains][warmup_draws]
  std::map<std::string, DrawsAttribute> attributes;  // of every group, such as inference_library_version,
                                                     // resampled
};

/// Writes `file` as netCDF-4 in ArviZ's InferenceData schema, atomically; `arviz.from_netcdf` opens it.
/// Groups: `posterior` (x, and the quantities by their names), `sample_stats` when there are any, `weighted`
/// (x, log_weight, beta), `warmup_posterior` and `warmup_sample_stats`; dimensions chain, draw,
/// pseudo_sample, x_dim_0, NAME_dim_0 of a quantity, each with its coordinate: the names along x_dim_0, else
/// 0, 1, 2, ... Values are compressed (deflate after shuffling bytes), but arrays of over 2^17 that are not in
/// double. Sources are called from another thread, one at a time. The attribute inference_library is
/// `lockstep`; there is no created_at, so that the same draws give the same bytes. Zero draws (an early
/// interrupt) give a valid file with an empty dimension. Not thread-safe: the netCDF library keeps global
/// state. Throws std::logic_error when an array does not have the size the dimensions ask for,
/// std::runtime_error when writing fails, and what a source throws. Source of the schema: python.arviz.org,
/// "InferenceData schema specification".
void write_draws(const std::filesystem::path& path, const DrawsFile& file);

}  // namespace lockstep
