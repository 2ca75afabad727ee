// SPDX-License-Identifier: Apache-2.0
#include "host/commands/run_report.hpp"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <sstream>

#include "host/commands/plot_scripts.hpp"
#include "host/runs/run_draws.hpp"
#include "host/util/program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScript = "plot_run.py";
constexpr const char* kDraws = "draws.nc";
constexpr std::chrono::seconds kPatience(4);  // a usual page takes one or two

void draw(const RunOptions& run, bool quiet) {
  std::vector<std::string> arguments = {"--summary", (run.out / "summary.json").string(), "--out",
                                        run.out.string()};
  for (const char* draws : {kDraws, kPictureDraws}) {
    if (!fs::exists(run.out / draws)) continue;
    arguments.insert(arguments.end(), {"--draws", (run.out / draws).string()});
    break;
  }
  auto drawing = std::async(std::launch::async, [&] { return run_plot(kScript, arguments, quiet); });
  if (drawing.wait_for(kPatience) != std::future_status::ready && !quiet)
    fmt::print(stderr, "drawing the pictures (--no-pictures leaves them out) ...\n");
  if (drawing.get() && !quiet) say("pictures in " + (run.out / "report.html").string());
}

}  // namespace

void draw_run(const RunOptions& run) {
  std::error_code ignored;
  const fs::path page = run.out / "report.html", summary = run.out / "summary.json";
  if (run.out.empty() || !fs::exists(summary)) return;
  // Of a finished run that --resume has met: nothing is new, and the draws for the pictures are gone.
  if (fs::exists(page) && fs::last_write_time(page) >= fs::last_write_time(summary)) return;
  fs::remove(page, ignored);
  std::istringstream older(LOCKSTEP_RUN_PICTURES);  // those of plot/pictures.list, set by the build
  for (std::string name; older >> name;) fs::remove(run.out / (name + ".png"), ignored);
  const bool quiet = run.quiet || run.json;
  if (run.pictures && can_plot(kScript, quiet)) draw(run, quiet);
  fs::remove(run.out / kPictureDraws, ignored);
}

}  // namespace lockstep
