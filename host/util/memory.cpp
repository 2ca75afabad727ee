// SPDX-License-Identifier: Apache-2.0
#include "host/util/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace lockstep {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

/// The number after `key` in a file of lines "KEY NUMBER ..."; kUnknown where there is none.
double number_after(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  for (double number = 0; file >> word;) {
    if (word == key) return file >> number ? number : kUnknown;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kUnknown;
}

double left_by_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  double pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return std::max(0.0, double(limit.rlim_cur) - pages * double(sysconf(_SC_PAGESIZE)));
}

/// Of version 2, which has one hierarchy. What files leave in its caches is not counted as used.
double left_by_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::")) continue;
    const std::string folder = "/sys/fs/cgroup" + line.substr(3) + "/";
    double most = 0;
    const double used = number_after(folder + "memory.stat", "anon");
    if (std::ifstream(folder + "memory.max") >> most && used < kUnknown) return std::max(0.0, most - used);
  }
  return kUnknown;
}

}  // namespace

double available_memory() {
  const double kilobytes = number_after("/proc/meminfo", "MemAvailable:");
  return std::min({kilobytes * 1024, left_by_limit(), left_by_group()});
}

}  // namespace lockstep
