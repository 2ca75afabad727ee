// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run found, whatever the command: the members of summary.json (contracts), each once. NaN or empty:
// unknown, or not applicable.
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/modes/mode_share.hpp"
#include "host/options/options.hpp"
#include "host/util/json_archive.hpp"

namespace lockstep {

/// Entry i; NaN where there is none.
inline double entry(const std::vector<double>& values, std::size_t i) {
  return i < values.size() ? values[i] : NAN;
}
/// The number of that name; NaN where there is none.
inline double entry(const NamedNumbers& numbers, const std::string& name) {
  for (const auto& [key, value] : numbers)
    if (key == name) return value;
  return NAN;
}

using Interval = std::array<double, 2>;
inline constexpr Interval kNoInterval = {NAN, NAN};

/// log Z with its intervals and bounds. Of a mean over items, `se` and its like are of the scatter over items,
/// and `mc_se` of the runs, the items given.
struct LogZSummary {
  double estimate = NAN, se = NAN, mc_se = NAN, lower_mc_se = NAN, upper_mc_se = NAN;
  Interval interval = kNoInterval;  // of a mean, by resampling items
  Interval interval95 = kNoInterval, interval997 = kNoInterval;
  double df = NAN;
  double lower = NAN, lower_se = NAN, upper = NAN, upper_se = NAN, gap = NAN, gap_se = NAN;

  template <class Archive>
  void fields(Archive& archive) {
    archive("estimate", estimate);
    archive("se", se);
    archive("mc_se", mc_se);
    archive("lower_mc_se", lower_mc_se);
    archive("upper_mc_se", upper_mc_se);
    archive("interval", interval);
    archive("interval95", interval95);
    archive("interval997", interval997);
    archive("df", df);
    archive("lower", lower);
    archive("lower_se", lower_se);
    archive("upper", upper);
    archive("upper_se", upper_se);
    archive("gap", gap);
    archive("gap_se", gap_se);
  }
};

struct TargetSummary {
  std::string name;
  int dim = 0;
  nlohmann::ordered_json settings;
  std::vector<std::string> parameters;
  std::string data;
  NamedNumbers facts;
  std::optional<int> items;

  template <class Archive>
  void fields(Archive& archive) {
    archive("name", name);
    archive("dim", dim);
    archive("settings", settings);
    archive("parameters", parameters);
    archive("data", data);
    archive("facts", facts);
    archive("items", items);
  }
};

struct SamplerSummary {
  std::string name;  // of the sampler, or of the method
  nlohmann::ordered_json settings;

  template <class Archive>
  void fields(Archive& archive) {
    archive("name", name);
    archive("settings", settings);
  }
};

/// Gradients of the target, and seconds.
struct Cost {
  double gradients = NAN, warmup_gradients = NAN, scout_gradients = NAN, search_gradients = NAN;
  double wall = NAN, sampling = NAN, gradients_per_s = NAN;

  template <class Archive>
  void fields(Archive& archive) {
    archive("gradients", gradients);
    archive("warmup_gradients", warmup_gradients);
    archive("scout_gradients", scout_gradients);
    archive("search_gradients", search_gradients);
    archive("wall_s", wall);
    archive("sampling_s", sampling);
    archive("gradients_per_s", gradients_per_s);
  }
};

/// Something for the 5, the 50 and the 95 % quantile.
template <class T>
struct Quantiles {
  T q5, q50, q95;

  template <class Archive>
  void fields(Archive& archive) {
    archive("5%", q5);
    archive("50%", q50);
    archive("95%", q95);
  }
};

/// Moments [d] with standard errors, and the target's own quantities by name.
struct EstimatesSummary {
  std::vector<double> mean, mean_se, second, second_se;
  std::vector<Interval> mean_interval95, mean_interval997;
  std::vector<double> mean_df, sd;
  std::vector<double> covariance;  // [d][d]
  NamedNumbers quantities, quantities_se;
  std::vector<std::string> not_visited;  // never, or never left: parameters and quantities without an error
  Quantiles<std::vector<double>> quantiles;
  NamedNumbers quantities_sd;
  Quantiles<NamedNumbers> quantities_quantiles;

  template <class Archive>
  void fields(Archive& archive) {
    archive("mean", mean);
    archive("mean_se", mean_se);
    archive("second_moment", second);
    archive("second_moment_se", second_se);
    archive("mean_interval95", mean_interval95);
    archive("mean_interval997", mean_interval997);
    archive("mean_df", mean_df);
    archive("sd", sd);
    archive.matrix("covariance", covariance);
    archive("quantities", quantities);
    archive("quantities_se", quantities_se);
    archive.some("not_visited", not_visited);
    archive("quantiles", quantiles);
    archive("quantities_sd", quantities_sd);
    archive("quantities_quantiles", quantities_quantiles);
  }
};

/// What is known exactly.
struct TruthSummary {
  std::vector<double> mean, second, covariance;
  double log_z = NAN;
  NamedNumbers quantities;
  std::vector<double> items;  // log Z of each

  template <class Archive>
  void fields(Archive& archive) {
    archive("mean", mean);
    archive("second_moment", second);
    archive.matrix("covariance", covariance);
    archive("log_z", log_z);
    archive("quantities", quantities);
    archive("items", items);
  }
};

/// The search for modes, and how many of those that should hold over 1 % were visited as they should be.
struct ModesSummary {
  std::optional<int> found;  // none: not searched for
  std::string stopped;
  double starts = NAN, gradients = NAN, least_hits = NAN, most_hits = NAN;
  double log_total = NAN;         // of what they hold together
  int met = 0;                    // that chains came upon, not the search
  std::optional<int> listed;      // that the places of --modes lead to
  double beside = NAN;            // descents that looked for others than these
  double narrowest = NAN;         // down to so many times the widest's width another would have been met
  std::string narrowest_unknown;  // why that is not known
  std::optional<int> expected, visited;
  double jump_acceptance = NAN;   // of jumps between them, in warm-up or pilot
  bool base = false;              // whether the base is a mixture of them
  std::vector<ModeShare> shares;  // of the largest, where there are several

  template <class Archive>
  void fields(Archive& archive) {
    archive("found", found);
    archive("stopped", stopped);
    archive.whole("starts", starts);
    archive.whole("gradients", gradients);
    archive.whole("least_hits", least_hits);
    archive.whole("most_hits", most_hits);
    archive("log_total", log_total);
    archive("met", met);
    archive("listed", listed);
    archive.whole("beside", beside);
    archive("narrowest", narrowest);
    archive("narrowest_unknown", narrowest_unknown);
    archive("expected", expected);
    archive("visited", visited);
    archive("jump_acceptance", jump_acceptance);
    archive("base", base);
    archive("shares", shares);
  }
};

/// Those diagnostics that all commands have.
struct RunDiagnostics {
  double acceptance = NAN, step_size = NAN, num_leapfrog = NAN, divergences = NAN;
  double rhat_max = NAN, nested_rhat_max = NAN, weight_ess = NAN;
  NamedNumbers counters;  // of the transition
  ModesSummary modes;
};

struct RunResult {
  int schema = 1;
  std::string version, command, verdict;
  std::vector<std::string> failed_gates, warnings;
  TargetSummary target;
  SamplerSummary sampler;
  std::uint64_t seed = 0;
  std::string device, precision;
  int threads = 0;
  std::int64_t chains = 0, iterations = 0;
  Cost cost;
  EstimatesSummary estimates;  // not of items
  LogZSummary log_z;
  TruthSummary truth;
  bool interrupted = false;
  // Of a run with --out.
  std::string identity, checksum;  // of the run, and of what summary.json says
  std::vector<std::string> files;  // beside it
  std::string lost;                // which could not be written, and why; never stored

  /// What summary.json repeats of the options.
  void repeat(const RunOptions& run) {
    target.name = run.target;
    target.settings = run.target_settings;
    target.data = run.data.string();
    seed = run.seed;
    precision = run.precision;
  }

 protected:
  template <class Archive>
  void head(Archive& archive) {
    archive("schema", schema);
    archive("version", version);
    archive("command", command);
    archive("verdict", verdict);
    archive("failed_gates", failed_gates);
    archive("warnings", warnings);
    archive("target", target);
    archive("sampler", sampler);
    archive("seed", seed);
    archive("device", device);
    archive("precision", precision);
    archive("threads", threads);
  }
  template <class Archive>
  void tail(Archive& archive) {
    archive("identity", identity);
    if (identity.empty()) return;
    archive("interrupted", interrupted);
    archive("files", files);
    archive("checksum", checksum);
  }
};

}  // namespace lockstep
