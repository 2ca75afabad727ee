// SPDX-License-Identifier: Apache-2.0
#include "host/plot_scripts.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "host/errors.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The scripts that draw: where $LOCKSTEP_PLOT_DIR says, else beside an installed program, else in the source
/// tree.
fs::path plot_folder(const std::string& script) {
  if (const char* given = std::getenv("LOCKSTEP_PLOT_DIR")) return given;
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  const fs::path installed = (program.parent_path() / LOCKSTEP_PLOT_FROM_PROGRAM).lexically_normal();
  return !unknown && fs::exists(installed / script) ? installed : fs::path(LOCKSTEP_PLOT_DIR);
}

std::string quoted(const std::string& s) {
  std::string q = "'";
  for (char c : s) q += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return q + "'";
}

}  // namespace

bool can_plot(const std::string& script, bool quiet) {
  const fs::path folder = plot_folder(script);
  if (fs::exists(folder / script)) return true;
  if (!quiet)
    fmt::print(stderr, "no picture: {} has no {} (set LOCKSTEP_PLOT_DIR to bench/plot)\n",
               one_line(folder.string(), 160), script);
  return false;
}

bool run_plot(const std::string& script, const std::vector<std::string>& arguments, bool quiet) {
  const std::string path = (plot_folder(script) / script).string();
  const char* python = std::getenv("LOCKSTEP_PYTHON");
  std::string line = quoted(python ? python : "/usr/bin/python3") + " " + quoted(path);
  for (const std::string& a : arguments) line += " " + quoted(a);
  if (std::system((line + (quiet ? " > /dev/null 2>&1" : " > /dev/null")).c_str()) == 0) return true;
  if (!quiet)
    fmt::print(stderr,
               "no picture: {} drew none (it needs python3-matplotlib, python3-numpy, python3-netcdf4)\n",
               one_line(path, 160));
  return false;
}

}  // namespace lockstep
