// SPDX-License-Identifier: Apache-2.0
#include "host/util/program.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <cstdio>
#include <new>

#include "host/util/errors.hpp"
#include "host/util/processes.hpp"

namespace lockstep {

void say(const std::string& text) {
  if (Processes::all().first()) fmt::print(stderr, "{}\n", one_line(text));
}

void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int run_program(const char* name, const std::function<int()>& body, bool speaks) {
  keep_memory();
  int status = 1;
  try {
    status = body();
  } catch (const UserError& error) {
    if (speaks) fmt::print(stderr, "{}: {}\n", name, error.what());
    status = 2;
  } catch (const std::bad_alloc&) {
    if (speaks)
      fmt::print(stderr,
                 "{}: the memory does not suffice (nothing was written). Ask for less: fewer chains, runs, "
                 "replicates or images, or smaller files.\n",
                 name);
    status = 2;
  } catch (const std::exception& error) {
    if (speaks && !std::ferror(stdout)) fmt::print(stderr, "{}: {}\n", name, one_line(error.what()));
  }
  // A full disk often shows only when the last buffer is written.
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  fmt::print(stderr,
             "{}: standard output could not be written (what was to stand there is lost). Send it to a place "
             "with room.\n",
             name);
  return 1;
}

}  // namespace lockstep
