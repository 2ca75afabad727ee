// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "host/formats/toml_file.hpp"
#include "host/options/options.hpp"

namespace lockstep {

/// Run options as somebody gave them, before they are checked: keys are the fields of RunOptions (`sampler`
/// also holds the method of `evidence`).
struct GivenOptions {
  Settings values = Settings::object();
  std::map<std::string, std::string>
      names;  ///< how an error names a key: "--chains", "chains (a.toml, line 2)"

  std::string name(const std::string& key) const;
  void set(const std::string& key, Settings value, const std::string& name);
  /// Takes over everything in `stronger`: its values win, its settings are added key by key, its budget
  /// (iterations or gradients) replaces ours.
  void override_with(const GivenOptions& stronger);
};

/// Whether `--init` names a way to start, `scout` or `uniform:R`: else it is a file.
bool is_init_word(const std::string& init);

/// The options in the table at a JSON pointer of a file. Keys may be written with `-` for `_`, and `method`
/// for `sampler`. An init file, and with `data_too` the data, beside the TOML file is found from anywhere.
GivenOptions options_in(const TomlFile& file, const std::string& pointer, bool data_too);

/// Sets those fields of `run` that are given and sees to the budget of `evidence`: without iterations,
/// gradients and se it is se 0.02; without iterations and gradients it ends at 1e8 gradients. Throws
/// UserError for unknown keys, wrong types and values out of range.
void apply_run_options(const GivenOptions& given, RunOptions& run);

/// Sets what the options file of `--config` gives (the form that write_run_toml writes).
void load_run_config(const std::filesystem::path& path, RunOptions& run);

/// Every option as key and value, in the order of run.toml; also where the defaults in the help come from.
nlohmann::ordered_json run_option_values(const RunOptions& run);

/// Of a study, at most.
inline constexpr int kMostReplicates = 1'000'000;

/// The text of run.toml: load_run_config on it gives `run` again, but for `resume` and `force` (a repeated
/// run starts afresh, in another folder) and files that are there, which are named by their absolute paths.
/// Defaults are written out, so that later versions with other defaults repeat the run too.
std::string write_run_toml(const RunOptions& run);

/// Reads a study file (docs/studies.md). Top-level chains, warmup, iterations, gradients and
/// precision are defaults for every setting. Throws UserError with file and line for whatever is unknown,
/// missing or wrong.
Study load_study(const std::filesystem::path& path);

}  // namespace lockstep
