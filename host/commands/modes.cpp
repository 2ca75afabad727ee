// SPDX-License-Identifier: Apache-2.0
#include "host/commands/modes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>

#include "host/commands/plot_scripts.hpp"
#include "host/commands/run_files.hpp"
#include "host/formats/data.hpp"
#include "host/modes/given_points.hpp"
#include "host/modes/mode_mass.hpp"
#include "host/modes/mode_reach.hpp"
#include "host/modes/mode_search.hpp"
#include "host/options/target_input.hpp"
#include "host/runs/mode_gate.hpp"
#include "host/runs/run_context.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "host/util/program.hpp"

namespace lockstep {
namespace {

constexpr const char *kFile = "modes.json", *kPlotScript = "plot_modes.py";
constexpr int kShown = 20, kShownAxes = 6;

nlohmann::ordered_json as_json(const RunOptions& run, const TargetInstance& target, const SearchResult& found,
                               double narrowest) {
  using Json = nlohmann::ordered_json;
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const ModeLibrary& library = found.library;
  const auto shares = library.shares(), errors = share_errors(library);
  Json modes = Json::array();
  for (const int k : library.by_mass()) {
    const Mode& m = library[k];
    const Eigen::Map<const Rows> factor(m.factor.data(), library.dim(), library.dim());
    const Rows covariance = factor * factor.transpose();
    Json rows = Json::array();
    for (int i = 0; i < library.dim(); ++i)
      rows.push_back(std::vector<double>(covariance.row(i).begin(), covariance.row(i).end()));
    Json one = {{"place", m.place},
                {"share", shares[k]},
                {"hits", m.hits},
                {"log_density", m.log_density},
                {"laplace_log_mass", m.laplace_log_mass}};
    if (!std::isnan(m.log_mass)) {
      if (!std::isnan(errors[k])) one["share_se"] = errors[k];
      one["log_mass"] = m.log_mass;
      one["effective_share"] = m.effective_share;
    }
    for (const Halo& h : m.halos)
      one["halos"].push_back({{"place", h.place},
                              {"scale", scale_of(m, h)},
                              {"share", std::exp(h.log_mass - library.log_total())}});
    one["covariance"] = rows;
    modes.push_back(one);
  }
  Json all = {{"schema", 1},
              {"version", LOCKSTEP_VERSION},
              {"command", "modes"},
              {"target",
               {{"name", run.target},
                {"dim", target.dim()},
                {"settings", run.target_settings},
                {"parameters", target.names()}}},
              {"seed", run.seed},
              {"search",
               {{"stopped", found.stopped},
                {"starts", found.starts},
                {"foretold", found.foretold},
                {"ended", found.ended},
                {"rejected", found.rejected},
                {"gradients", found.gradients}}},
              {"modes", modes}};
  if (!std::isnan(narrowest)) all["search"]["narrowest"] = narrowest;
  if (const std::string why = why_unknown(found); !why.empty()) all["search"]["narrowest_unknown"] = why;
  if (!run.search_settings.empty()) all["search"]["settings"] = run.search_settings;
  return all;
}

std::string how_it_ended(const SearchResult& found) {
  const int n = found.library.size();
  if (found.stopped == kSearchDimension)
    return fmt::format("nothing is searched for in over {} dimensions", kMostSearchedDim);
  if (found.stopped == kSearchModes) return fmt::format("the library is full: there are more than {}", n);
  if (found.stopped == kSearchBudget)
    return n == 0 ? "the budget is spent"
                  : fmt::format("the budget is spent; hits of the mode that was found least: {:.0f}",
                                found.least_hits());
  int hints = 0;
  for (int k = 0; k < n; ++k) hints += found.library[k].hits == 0;
  return n == 0 ? "as many as are made where nothing is found"
         : hints > 0
             ? fmt::format("every mode was found 10 times or more, but for {} by the hint alone", hints)
             : fmt::format("every mode was found {:.0f} times or more", found.least_hits());
}

void print_modes(const SearchResult& found) {
  const ModeLibrary& library = found.library;
  const int n = library.size();
  if (n == 0) {
    fmt::print("no modes found: {:.0f} descents, of which {:.0f} came to rest, ended at no highest point\n",
               found.starts, found.ended);
    return;
  }
  const auto shares = library.shares(), errors = share_errors(library);
  std::vector<int> order = library.by_mass();
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return shares[a] > shares[b]; });
  const int axes = std::min(kShownAxes, library.dim());
  fmt::print("{:>4} {:>8} {:>8} {:>10} {:>10} {:>6} {:>9}  {}\n", "mode", "share", "se", "log mass",
             "(Laplace)", "hits", "effective", "place");
  for (int i = 0; i < std::min(n, kShown); ++i) {
    const Mode& m = library[order[i]];
    std::vector<std::string> place;
    for (int a = 0; a < axes; ++a) {
      const Eigen::Map<const Eigen::RowVectorXd> row(&m.factor[std::size_t(a) * library.dim()],
                                                     library.dim());
      place.push_back(fmt::format("{:.4g}", std::abs(m.place[a]) < 1e-6 * row.norm() ? 0 : m.place[a]));
    }
    const bool weighed = !std::isnan(m.log_mass);
    fmt::print("{:>4} {:>8.4f} {:>8} {:>10} {:>10.3f} {:>6.0f} {:>9}  {}{}\n", i + 1, shares[order[i]],
               std::isnan(errors[order[i]]) ? "?"
               : weighed                    ? fmt::format("{:.2g}", errors[order[i]])
                                            : "",
               weighed ? fmt::format("{:.3f}", m.log_mass) : "", m.laplace_log_mass, m.hits,
               weighed ? fmt::format("{:.0f}%", 100 * m.effective_share) : "", fmt::join(place, " "),
               axes < library.dim() ? " .." : "");
  }
  for (int i = 0; i < std::min(n, kShown); ++i)
    for (const Halo& h : library[order[i]].halos)
      fmt::print("     about mode {} lies something {:.3g} times as wide, with some {:.2g} of all\n", i + 1,
                 scale_of(library[order[i]], h), std::exp(h.log_mass - library.log_total()));
  if (n > kShown) fmt::print("     and {} more (--json or --out has them all)\n", n - kShown);
  if (const int unknown =
          int(std::count_if(errors.begin(), errors.end(), [](double e) { return std::isnan(e); })))
    fmt::print(
        "\nse ?: {} of these shares {} no error: masses of under {:.0f} % effective draws (heavy tails, "
        "ridges, modes within "
        "others) are guesses\nthat may be far off, and so are shares beside them. lockstep sample and "
        "evidence tell\n",
        unknown, unknown == 1 ? "has" : "have", 100 * Mode::kLeastEffective);
}

void write_files(const RunOptions& run, const std::string& text, const SearchResult& found) {
  if (run.out.empty()) return;
  write_atomically(run.out / kFile, text);
  std::filesystem::remove(run.out / "modes.png");  // of an earlier search
  if (run.pictures && found.library.size() > 0 && can_plot(kPlotScript, run.quiet))
    run_plot(kPlotScript, {"--modes", (run.out / kFile).string(), "--out", run.out.string()}, run.quiet);
  if (!run.quiet) say("files in " + run.out.string());
}

void read_search_settings(const RunOptions& run, SearchPlan& plan) {
  SettingsReader reader(run.search_settings, "the search");
  const std::vector<std::string> names(std::begin(kResidualNames), std::end(kResidualNames));
  const auto form = std::find(names.begin(), names.end(), reader.one_of("residual", names[0], names));
  plan.residual = ResidualEnergyOf(form - names.begin());
  plan.first_starts = int(reader.integer("starts", plan.first_starts, 1, 1024));
  const bool given = reader.has("temperature");
  plan.temperature = reader.in_range("temperature", plan.temperature, 1, 1e3);
  reader.finish();
  if (given && plan.residual == ResidualEnergyOf::none)
    throw UserError(
        "search.temperature is given without search.residual (it is the temperature of that energy). Give "
        "both, or "
        "neither.");
  if (!run.modes.empty() && !plan.known.empty())
    throw UserError(
        "--modes and --init are both given (the modes of the first are shown, and not searched for). Keep "
        "one, or put the points of both into one file.");
  if (!run.modes.empty() && !run.search_settings.empty())
    throw UserError(
        "--modes and settings of the search are both given (modes that are given are not searched for). "
        "Keep one.");
}

}  // namespace

void show_modes(const RunOptions& run) {
  const auto target = build_target(run);
  if (target->items() != nullptr && target->items()->count > 1)
    throw UserError(
        fmt::format("target {} has {} items (modes are those of one density). Give --set "
                    "target.items=1, or simulate:1.",
                    run.target, target->items()->count));
  RunContext context = make_context(run, *target, "");
  context.progress = progress_printer(run.quiet || run.json, run.target);
  SearchPlan plan = search_plan(run.init_scale, run.gradients > 0 ? run.gradients : kPlannedGradients);
  if (run.init.starts_with("uniform:"))
    throw UserError(
        fmt::format("--init {} has no effect on lockstep modes (its descents begin in normals of "
                    "--init-scale, and at points of a file). Leave it out",
                    run.init));
  plan.known = usable_starts(run.init, *target);
  read_search_settings(run, plan);
  const auto places = usable_places(run.modes, *target);
  FolderLock lock;
  if (!run.out.empty()) {
    lock = FolderLock(run.out);
    if (!run.force && std::filesystem::exists(run.out / kFile))
      throw UserError(
          fmt::format("{} holds the modes of an earlier search, {} (they would be overwritten). Give another "
                      "--out, or --force to overwrite them.",
                      run.out.string(), kFile));
    std::error_code missing;
    if (std::filesystem::equivalent(run.modes, run.out / kFile, missing))
      throw UserError(fmt::format("--modes reads {} (--force overwrites it). Give another --out",
                                  (run.out / kFile).string()));
  }
  RunSize size;
  size.dim = target->dim();
  size.searches = true;
  check_memory(planned_memory(context, {}, size), run.quiet || run.json, "Give fewer dimensions");
  if (!run.json) say_simulated(run);
  const SearchResult found =
      run.modes.empty() ? search_modes(context, 0, plan) : modes_listed(context, 0, places, plan);
  const double narrowest = narrowest_met(found);
  const std::string text = summary_text(as_json(run, *target, found, narrowest));
  if (run.json) {
    fmt::print("{}", text);
  } else {
    print_modes(found);
  }
  if (const std::string beyond = beyond_starts(found); !beyond.empty()) say("warning: " + beyond);
  for (const auto& warning : judge_given(*target, run.init, run.modes, found)) say("warning: " + warning);
  const std::string of_further = of_others(narrowest, found.library.size(), why_unknown(found));
  if (!run.json && run.modes.empty()) {
    fmt::print(
        "\n{} mode{} from {:.0f} starts ({:.0f} of them led to a known mode by their gradient alone), {:.3g} "
        "gradients: {}.\n",
        found.library.size(), found.library.size() == 1 ? "" : "s", found.starts, found.foretold,
        found.gradients, how_it_ended(found));
    fmt::print("Shares are of what was found. {}.\n", of_further);
  } else if (!run.json) {
    const int others = found.library.size() - found.listed;
    if (others > 0)
      fmt::print("\nOf these {} {} not among those given; without --modes all are searched for.\n", others,
                 others == 1 ? "is" : "are");
    else
      fmt::print("\nGiven by --modes{}. {}.\n",
                 found.beside > 0
                     ? fmt::format("; {:.0f} starts elsewhere led to no other of over 1 %", found.beside)
                     : "",
                 of_further);
  }
  write_files(run, text, found);
}

}  // namespace lockstep
