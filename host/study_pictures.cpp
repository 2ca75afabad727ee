// SPDX-License-Identifier: Apache-2.0
#include "host/study_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "host/draws_file.hpp"
#include "host/files.hpp"
#include "host/run_context.hpp"
#include "host/sample.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kShownDraws = 10000;  // as many as the papers' figures show
constexpr int kGrid = 240;

std::string key_of(const std::string& label) {
  std::string key = label;
  for (char& c : key)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return key;
}

/// Panels that need draws, from `kind` or `panels`.
bool wants_draws(const nlohmann::json& plot) {
  static const std::set<std::string> with_draws = {"scatter", "trace", "density", "beta"};
  if (plot.contains("kind") && with_draws.count(plot["kind"].get<std::string>())) return true;
  if (plot.contains("panels"))
    for (const auto& p : plot["panels"])
      if (with_draws.count(p.get<std::string>())) return true;
  return false;
}

/// log density on a grid that covers the draws.
void write_contours(const std::filesystem::path& file, const TargetInstance& target,
                    const std::vector<float>& x) {
  const int d = target.dim();
  double low[2], high[2];
  for (int i = 0; i < d; ++i) {
    std::vector<double> axis;
    for (std::size_t k = i; k < x.size(); k += d) axis.push_back(x[k]);
    std::sort(axis.begin(), axis.end());
    const double a = axis[axis.size() / 1000], b = axis[axis.size() - 1 - axis.size() / 1000];
    low[i] = a - 0.08 * (b - a);
    high[i] = b + 0.08 * (b - a);
  }
  const auto at = [&](int i, int k) { return low[i] + (high[i] - low[i]) * k / (kGrid - 1); };
  nlohmann::ordered_json out;
  for (int k = 0; k < kGrid; ++k) out["x"].push_back(at(0, k));
  double p[2];
  if (d == 1) {
    for (int k = 0; k < kGrid; ++k) {
      p[0] = at(0, k);
      out["log_density"].push_back(target.log_density(p, nullptr));
    }
  } else {
    for (int k = 0; k < kGrid; ++k) out["y"].push_back(at(1, k));
    for (int r = 0; r < kGrid; ++r) {
      nlohmann::ordered_json row;
      for (int k = 0; k < kGrid; ++k) {
        p[0] = at(0, k);
        p[1] = at(1, r);
        row.push_back(target.log_density(p, nullptr));
      }
      out["log_density"].push_back(row);
    }
  }
  write_atomically(file, out.dump());
}

/// The first draws of replicate 0: the very chain behind its rows in results.csv.
void write_draws_of(const StudyTarget& t, const StudyArgs& command, const std::filesystem::path& folder) {
  const StudySetting& s = *t.setting;
  RunOptions run = s.run;
  run.threads = command.threads;
  run.device = "cpu";
  run.quiet = true;
  RunContext context = make_context(run, *t.target, s.label);
  ChainRunOptions o = chain_run_options(run, {0});
  o.pooled = s.adaptation == "pooled";
  o.draws = true;
  o.gradients = 0;
  o.iterations = std::min(kShownDraws, run.gradients > 0 ? kShownDraws : run.iterations);
  const ChainRunResult r = run_chains(context, *t.config, o);
  DrawsFile f;
  f.chains = run.chains;
  f.draws = r.draws.draws;
  f.dim = t.target->dim();
  f.pseudo_samples = t.config->model.pseudo_samples > 1 ? t.config->model.pseudo_samples : 0;
  f.x = r.draws.x;
  f.weighted_x = r.draws.weighted_x;
  f.log_weight = r.draws.log_weight;
  f.beta = r.draws.beta;
  write_draws(folder / "draws" / (key_of(s.label) + ".nc"), f);
  if (f.dim > 2) return;
  std::string name = s.run.target;
  if (s.run.target_settings.contains("scenario"))
    name += "_" + s.run.target_settings["scenario"].get<std::string>();
  const auto file = folder / "contours" / (name + ".json");
  // The widest draws make the best frame: those of the last setting of a target, which samples it best.
  write_contours(file, *t.target, r.draws.x);
}

std::string quoted(const std::string& s) {
  std::string q = "'";
  for (char c : s) q += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return q + "'";
}

}  // namespace

std::vector<std::filesystem::path> draw_study(const Study& study, const std::vector<StudyTarget>& targets,
                                              const StudyArgs& command) {
  std::filesystem::path plot_folder = LOCKSTEP_PLOT_DIR;
  if (const char* given = std::getenv("LOCKSTEP_PLOT_DIR")) plot_folder = given;
  if (!std::filesystem::exists(plot_folder / "plot_study.py")) {
    fmt::print(stderr, "no picture: {} has no plot_study.py (set LOCKSTEP_PLOT_DIR to bench/plot)\n",
               plot_folder.string());
    return {};
  }
  if (wants_draws(study.plot)) {
    std::filesystem::create_directories(command.out / "draws");
    std::filesystem::create_directories(command.out / "contours");
    for (const auto& t : targets) {
      const auto& labels = study.plot.contains("labels") ? study.plot["labels"] : nlohmann::json();
      if (labels.is_array() && std::find(labels.begin(), labels.end(), t.setting->label) == labels.end())
        continue;
      const auto& only = command.only;
      if (!only.empty() && std::find(only.begin(), only.end(), t.setting->label) == only.end()) continue;
      if (t.target->dim() <= 2 && t.setting->run.chains <= 4 && t.setting->run.command == "sample")
        write_draws_of(t, command, command.out);
    }
  }
  const char* python = std::getenv("LOCKSTEP_PYTHON");
  const std::string line =
      fmt::format("{} {} {} --study {} > /dev/null", quoted(python ? python : "/usr/bin/python3"),
                  quoted((plot_folder / "plot_study.py").string()), quoted(command.out.string()),
                  quoted(command.file.string()));
  const int status = std::system(line.c_str());
  std::vector<std::filesystem::path> pictures;
  if (status != 0)
    fmt::print(stderr,
               "no picture: {} did not run (it needs python3-matplotlib, python3-numpy, python3-netcdf4)\n",
               (plot_folder / "plot_study.py").string());
  else
    pictures.push_back(command.out / (study.name + ".png"));
  return pictures;
}

}  // namespace lockstep
