// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "host/commands.hpp"
#include "host/errors.hpp"

int main(int argc, char** argv) {
  try {
    return lockstep::run_command(lockstep::parse_command_line(argc, argv));
  } catch (const lockstep::HelpRequest& help) {
    fmt::print(help.exit_status == 0 ? stdout : stderr, "{}", help.text);
    return help.exit_status;
  } catch (const lockstep::UserError& error) {
    fmt::print(stderr, "lockstep: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lockstep: {}\n", error.what());
    return 1;
  }
}
