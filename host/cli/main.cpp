// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "host/cli/commands.hpp"
#include "host/util/processes.hpp"
#include "host/util/program.hpp"

int main(int argc, char** argv) {
  // OpenMP's idle threads spin by default, which on a busy machine makes short launches many times slower.
  // The policy is read when the library loads, so it takes a second start of the same program.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);
  }
  using namespace lockstep;
  const Launch launch = launched();
  const bool speaks = launch.rank == 0;
  Processes& processes = Processes::all();
  const auto body = [&] {
    CommandLine line;
    try {
      line = parse_command_line(argc, argv);
    } catch (const HelpRequest& help) {
      if (speaks) fmt::print(help.exit_status == 0 ? stdout : stderr, "{}", help.text);
      return help.exit_status;
    }
    if (!is_run(line.command)) return speaks ? run_command(line) : 0;
    processes.start(launch);
    return processes.together([&] { return run_command(line); });
  };
  return processes.finish(run_program("lockstep", body, speaks));
}
