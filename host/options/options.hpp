// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "host/util/settings.hpp"

namespace lockstep {

/// More threads than any machine gains from.
inline constexpr int kMostThreads = 1024;

/// How many draws of a parameter a run stores where it is not told: at most so many, over all stored chains;
/// and where it is to store every one.
inline constexpr std::int64_t kUsualDraws = 1000, kAllDraws = -1;

/// What an option may be.
struct Text {};
struct Toggle {};
struct Seed {};
struct Positive {};
struct NonNegative {};
struct Table {};  ///< settings, KEY -> value
struct Draws {};  ///< a number of draws from 1, all, or whether to store any
struct Real {
  double low, high;
};
struct Whole {
  std::int64_t low, high = std::numeric_limits<std::int64_t>::max();
};
struct OneOf {
  std::vector<std::string> names;
};

/// Where a run computes, writes and speaks: one that was stopped may go on with others. What its numbers depend on has
/// no place here.
struct Surroundings {
  std::string device = "auto";  // auto | cpu | cuda
  int threads = 0;              // 0: all
  std::filesystem::path out;    // empty: no files
  bool pictures = true;         // of --out: report.html and what it shows
  double checkpoint = 0;        // seconds between checkpoints; 0: none
  bool resume = false;
  bool force = false;  // overwrite what an earlier run has left in `out`
  bool json = false;
  bool quiet = false;
};

/// How chains run, and what is kept of them: what run_chains takes of the options as it is.
struct ChainOptions {
  int chains = 256;                // per replicate; 0 (evidence): by the budget
  std::int64_t warmup = 1000;      // iterations
  std::int64_t iterations = 1000;  // ignored when gradients > 0
  double gradients = 0;            // budget of target gradients over all chains of a replicate; 0: none
  double se = 0;                   // stop at this standard error; 0: none
  std::string init = "scout";      // scout | uniform:R | FILE
  double init_scale = 10;
  std::filesystem::path modes;  // a library of modes, or places of the user's; empty: searched for
  std::int64_t draws = 0;       // stored, at most so many of a parameter, or kAllDraws; 0: none
  bool weighted_draws = false;  // the weighted states that they come from too
  bool warmup_draws = false;    // those of the warm-up too
  int thin = 1;
};

/// What one run was asked to do; the same fields serve `sample`, `evidence` and each setting of a study.
struct RunOptions : Surroundings, ChainOptions {
  std::string command = "sample";
  std::string target;
  std::string sampler;  // the sampler, or the method of `evidence`
  Settings target_settings = Settings::object();
  Settings sampler_settings = Settings::object();
  Settings search_settings = Settings::object();  // of `modes`
  std::filesystem::path data;                     // empty: none
  std::filesystem::path data_dir;                 // empty: $LOCKSTEP_DATA
  bool usual_length = false;      // sample: nothing was said of how long, and `iterations` is a default
  std::vector<std::string> said;  // the options of the command line, which must have an effect
  bool says(const std::string& key) const { return std::find(said.begin(), said.end(), key) != said.end(); }
  bool unbounded = false;  // evidence: nothing was said of how long, and `gradients` and `se` are defaults
  std::uint64_t seed = 1;
  std::string precision = "mixed";  // single | mixed | double
  bool paper_settings = false;

  /// Calls `field(key, member, what it may be)` for every option, in the order of run.toml: all that files and
  /// the command line know of it, but for its line of help (cli_options.cpp).
  template <class Self, class Field>
  static void fields(Self& run, Field&& field) {
    field("command", run.command, OneOf{{"sample", "evidence", "check", "modes"}});
    field("target", run.target, Text{});
    field("sampler", run.sampler, Text{});
    field("data", run.data, Text{});
    field("data_dir", run.data_dir, Text{});
    field("paper_settings", run.paper_settings, Toggle{});
    field("chains", run.chains, Whole{1});
    field("warmup", run.warmup, Whole{0});
    field("iterations", run.iterations, Whole{1});
    field("gradients", run.gradients, Real{1, 1e18});
    field("se", run.se, Positive{});
    field("seed", run.seed, Seed{});
    field("init", run.init, Text{});
    field("init_scale", run.init_scale, Positive{});
    field("modes", run.modes, Text{});
    field("device", run.device, OneOf{{"auto", "cpu", "cuda"}});
    field("threads", run.threads, Whole{0, kMostThreads});
    field("precision", run.precision, OneOf{{"single", "mixed", "double"}});
    field("out", run.out, Text{});
    field("draws", run.draws, Draws{});
    field("weighted_draws", run.weighted_draws, Toggle{});
    field("warmup_draws", run.warmup_draws, Toggle{});
    field("pictures", run.pictures, Toggle{});
    field("thin", run.thin, Whole{1});
    field("checkpoint", run.checkpoint, NonNegative{});
    field("resume", run.resume, Toggle{});
    field("force", run.force, Toggle{});
    field("json", run.json, Toggle{});
    field("quiet", run.quiet, Toggle{});
    field("target_settings", run.target_settings, Table{});
    field("sampler_settings", run.sampler_settings, Table{});
    field("search_settings", run.search_settings, Table{});
  }
};

/// One row of a study: a run of `replicates` independent replicates, and what a paper printed for it.
struct StudySetting {
  std::string label;
  RunOptions run;
  std::string adaptation = "replicate";                      // or "pooled"
  nlohmann::json published = nlohmann::json::object();       // quantity -> [mean, sd]
  nlohmann::json published_rmse = nlohmann::json::object();  // quantity -> RMSE, where a paper prints no more
};

struct Study {
  std::string name, title, description;
  int replicates = 20;
  std::uint64_t seed = 1;
  std::vector<StudySetting> settings;
  std::vector<std::string> quantities;             // shown in table.md; empty: all
  std::vector<std::string> pooled;                 // of its first table, over all data sets; empty: none
  std::filesystem::path source;                    // the TOML file
  nlohmann::json plot = nlohmann::json::object();  // [plot] table, handed to plot/ untouched
};

}  // namespace lockstep
