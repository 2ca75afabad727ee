// SPDX-License-Identifier: Apache-2.0
#include "host/commands/plot_scripts.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "host/util/errors.hpp"
#include "host/util/program.hpp"

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
    say(fmt::format("no picture: {} has no {} (set LOCKSTEP_PLOT_DIR to the folder plot/ of the sources)",
                    folder.string(), script));
  return false;
}

bool run_plot(const std::string& script, const std::vector<std::string>& arguments, bool quiet) {
  const std::string path = (plot_folder(script) / script).string();
  const char* given = std::getenv("LOCKSTEP_PYTHON");
  const std::string python = given ? given : "/usr/bin/python3";
  std::string line = quoted(python) + " " + quoted(path);
  for (const std::string& a : arguments) line += " " + quoted(a);
  FILE* pipe =
      popen((line + " 2>&1 > /dev/null < /dev/null").c_str(), "r");  // what it says on standard error
  if (pipe == nullptr) {
    if (!quiet) say(fmt::format("no picture: {} cannot be started", python));
    return false;
  }
  // Its own lines are passed on; of a traceback and the warnings of libraries, the last line says enough.
  const std::string own = fs::path(script).stem().string() + ": ";
  std::string last, text;
  for (char letter; std::fread(&letter, 1, 1, pipe) == 1;) {
    if (letter != '\n') {
      text += letter;
      continue;
    }
    if (!quiet && text.starts_with(own)) say(text);
    if (!text.empty()) last = text;
    text.clear();
  }
  const int status = pclose(pipe);
  if (status == 0) return true;
  if (quiet || last.starts_with(own)) return false;
  if (WIFEXITED(status) && WEXITSTATUS(status) >= 126)
    say(fmt::format("no picture: {} cannot be started (LOCKSTEP_PYTHON names another Python)", python));
  else
    say(fmt::format("no picture: {} stopped ({})", path, last));
  return false;
}

}  // namespace lockstep
