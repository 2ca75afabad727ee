// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "host/commands/plot_scripts.hpp"
#include "host/commands/sample.hpp"
#include "host/formats/draws_file.hpp"
#include "host/runs/chain_run.hpp"
#include "host/runs/run_context.hpp"
#include "host/runs/run_draws.hpp"
#include "host/studies/config_plot.hpp"
#include "host/util/files.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kShownDraws = 10000;  // as many as the papers' figures show
constexpr int kShownChains = 4;              // of a replicate
constexpr int kGrid = 240;
constexpr int kExactDraws = 4000;  // behind the draws, where the density has more than two axes
constexpr const char* kScript = "plot_study.py";

/// Where the draws of one density lie, over all settings that have it: the frame of its picture.
struct Frame {
  const TargetInstance* target;
  double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};

  /// Draws x [draw][axis], but for the outermost thousandth on either side.
  void add(const std::vector<float>& x) {
    const int d = target->dim();
    for (int i = 0; i < d; ++i) {
      std::vector<double> axis;
      for (std::size_t k = i; k < x.size(); k += d) axis.push_back(x[k]);
      std::sort(axis.begin(), axis.end());
      const double a = axis[axis.size() / 1000], b = axis[axis.size() - 1 - axis.size() / 1000];
      low[i] = std::min(low[i], a - 0.08 * (b - a));
      high[i] = std::max(high[i], b + 0.08 * (b - a));
    }
  }
};

/// log density on a grid over the frame.
void write_contours(const fs::path& file, const Frame& frame) {
  const TargetInstance& target = *frame.target;
  const int d = target.dim();
  const auto &low = frame.low, &high = frame.high;
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

/// Exact draws of a target that has them: what a projection of its density looks like.
void write_exact_draws(const fs::path& file, const TargetInstance& target) {
  DrawsFile f;
  f.chains = 1;
  f.draws = kExactDraws;
  f.dim = target.dim();
  std::vector<float> all;
  std::vector<double> x(target.dim());
  for (int k = 0; k < kExactDraws; ++k) {
    ExactDraw random(StreamKey{}, std::uint64_t(k));
    target.draw(random, x.data());
    all.insert(all.end(), x.begin(), x.end());
  }
  f.x = std::move(all);
  write_draws(file, f);
}

/// What belongs to kShownChains chains, evenly spread, in an array [chain][..]; all of it where there are no
/// more.
template <class T>
std::vector<T> of_few_chains(std::vector<T> all, int chains) {
  if (chains <= kShownChains) return all;
  const std::size_t width = all.size() / chains;
  std::vector<T> few;
  for (int k = 0; k < kShownChains; ++k) {
    const auto from =
        all.begin() + std::ptrdiff_t(width * ((2 * k + 1) * std::int64_t(chains) / (2 * kShownChains)));
    few.insert(few.end(), from, from + std::ptrdiff_t(width));
  }
  return few;
}

/// The first draws of replicate 0, which are returned too: chains behind its rows in results.csv.
std::vector<float> write_draws_of(const StudyTarget& t, const Study& study, const StudyArgs& command) {
  const StudySetting& s = *t.setting;
  RunOptions run = s.run;
  run.threads = command.threads;
  run.device = "cpu";
  run.quiet = true;
  RunContext context = make_context(run, *t.target, s.label);
  ChainRunOptions o{run, {0}};
  o.searches = t.config->needs_modes;
  o.pooled = s.adaptation == "pooled";
  // Pooled replicates adapt together, so all of them must run again for the draws of the first.
  for (std::uint32_t u = 1; o.pooled && u < std::uint32_t(study.replicates); ++u) o.units.push_back(u);
  o.draws = kAllDraws;
  o.weighted_draws = true;
  o.draw_units = 1;
  o.longest = run.chains > kShownChains ? kShownDraws / kShownChains : kShownDraws;
  ChainRunResult r = run_chains(context, *t.config, o);
  DrawsFile f;
  f.chains = std::min(run.chains, kShownChains);
  f.draws = r.draws.draws;
  f.dim = t.target->dim();
  f.names = own_names(*t.target);
  f.pseudo_samples = t.config->model.pseudo_samples > 1 ? t.config->model.pseudo_samples : 0;
  std::vector<float> x = of_few_chains(r.draws.x(), run.chains);
  f.x = x;
  f.weighted_x = of_few_chains(r.draws.values(r.draws.weighted_x), run.chains);
  f.log_weight = of_few_chains(r.draws.values(r.draws.log_weight), run.chains);
  f.beta = of_few_chains(r.draws.values(r.draws.beta), run.chains);
  f.attributes["chains_of_replicate"] = std::vector<std::int64_t>{run.chains};  // which the pictures name
  write_draws(command.out / "draws" / (file_key(s.label) + ".nc"), f);
  return x;
}

/// Draws of every setting shown, and the density of each target among them: in a file named after the first
/// setting that has it, where plot/ looks for it. Densities of more than two axes leave exact draws
/// there.
void write_draws_and_contours(const Study& study, const std::vector<StudyTarget>& targets,
                              const StudyArgs& command) {
  fs::create_directories(command.out / "draws");
  fs::create_directories(command.out / "contours");
  std::map<std::string, std::pair<std::string, Frame>> frames;  // density -> its first label and its frame
  const auto chosen = [](const auto& labels, const std::string& label) {
    return labels.empty() || std::find(labels.begin(), labels.end(), label) != labels.end();
  };
  const auto shown = study.plot.value("labels", std::vector<std::string>{});
  for (const auto& t : targets) {
    const StudySetting& s = *t.setting;
    if (!chosen(shown, s.label) || !chosen(command.only, s.label)) continue;
    if (s.run.command != "sample") continue;
    const auto x = write_draws_of(t, study, command);
    const std::string density =
        fmt::format("{}\n{}\n{}", s.run.target, s.run.target_settings.dump(), s.run.data.string());
    Frame& frame = frames.try_emplace(density, s.label, Frame{t.target}).first->second.second;
    if (t.target->dim() <= 2) frame.add(x);
  }
  for (const auto& [density, of] : frames) {
    const auto& [label, frame] = of;
    const fs::path folder = command.out / "contours";
    if (frame.target->dim() <= 2)
      write_contours(folder / (file_key(label) + ".json"), frame);
    else if (frame.target->can_draw())
      write_exact_draws(folder / (file_key(label) + ".nc"), *frame.target);
  }
}

}  // namespace

std::string file_key(const std::string& label) {
  std::string key;
  for (const char c : label) {
    if (c == ' ')
      key += '_';
    else if (std::string_view("+-.=").find(c) != std::string_view::npos ||
             std::isalnum(static_cast<unsigned char>(c)))
      key += c;
    else
      key += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return key;
}

std::vector<std::filesystem::path> draw_study(const Study& study, const std::vector<StudyTarget>& targets,
                                              const StudyArgs& command) {
  if (!can_plot(kScript, command.quiet)) return {};
  if (wants_draws(study.plot)) write_draws_and_contours(study, targets, command);
  if (!run_plot(kScript, {command.out.string(), "--study", command.file.string()}, command.quiet)) return {};
  return {command.out / (study.name + ".png")};
}

}  // namespace lockstep
