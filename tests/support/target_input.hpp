// SPDX-License-Identifier: Apache-2.0
#pragma once
// Settings and data of a target held in memory, in place of the host's command line and files.
#include <algorithm>
#include <map>
#include <set>

#include "host/util/errors.hpp"
#include "targets/registry.hpp"

namespace lockstep::testing {

/// Give what differs from the defaults; `asked` collects the settings the target reads. Out-of-range and
/// unknown values throw UserError, as the host's do.
class MemoryInput : public TargetInput {
 public:
  std::map<std::string, double> numbers;  // integers too
  std::map<std::string, std::string> choices;
  std::map<std::string, DataArray> arrays;
  std::map<std::string, DataArray> named_tensors;  // of any file
  DataArray image_array;
  std::set<std::string> asked;

  double number(const std::string& key, double standard, double low, double high) override {
    asked.insert(key);
    const auto found = numbers.find(key);
    if (found == numbers.end()) return standard;
    if (!(found->second >= low && found->second <= high)) fail("setting " + key + " is out of range");
    return found->second;
  }
  int integer(const std::string& key, int standard, int low, int high) override {
    const double v = number(key, standard, low, high);
    if (v != std::floor(v)) fail("setting " + key + " is no whole number");
    return static_cast<int>(v);
  }
  std::string choice(const std::string& key, const std::string& standard,
                     const std::vector<std::string>& allowed) override {
    asked.insert(key);
    const auto found = choices.find(key);
    const std::string value = found == choices.end() ? standard : found->second;
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      fail("setting " + key + " is unknown");
    return value;
  }
  std::string text(const std::string& key, const std::string& standard) override {
    asked.insert(key);
    const auto found = choices.find(key);
    return found == choices.end() ? standard : found->second;
  }
  std::map<std::string, DataArray> tensors(const std::string&) override { return named_tensors; }
  DataArray images(const std::string&) override { return image_array; }
  bool has_data() override { return !arrays.empty(); }
  bool has(const std::string& name) override { return arrays.count(name) > 0; }
  DataArray array(const std::string& name) override {
    if (!has(name)) fail("the data have no " + name);
    return arrays.at(name);
  }
  [[noreturn]] void fail(const std::string& message) override { throw UserError(message); }
};

/// A target as the program makes it. (TargetOf in a test is compiled once more, slower, and stands in for the program's.)
template <class Definition>
std::unique_ptr<TargetInstance> listed_target(TargetInput& in) {
  return find_target(Definition::info().name)->make(in);
}

/// Three spherical components in three dimensions, for target mixture.
inline MemoryInput spherical_mixture() {
  MemoryInput in;
  in.arrays["means"] = {{0, 0, 0, 3, -1, 2, -2, 4, 1}, {3, 3}};
  in.arrays["weights"] = {{2, 1, 1}, {3}};  // scaled to sum to one by the target
  in.arrays["sds"] = {{1, 0.5, 1.5}, {3}};
  return in;
}

/// The same with correlated components.
inline MemoryInput full_mixture() {
  MemoryInput in = spherical_mixture();
  in.arrays.erase("sds");
  in.arrays["covariances"] = {{1,   0.3,  0,   0.3,  2,   -0.5, 0,   -0.5, 1,    //
                               0.5, -0.2, 0.1, -0.2, 0.4, 0,    0.1, 0,    0.3,  //
                               2,   1,    0,   1,    1.5, 0.2,  0,   0.2,  0.7},
                              {3, 3, 3}};
  return in;
}

/// A dimension that is no multiple of the rows that target scattered works on at a time.
inline MemoryInput scattered_in_six() {
  MemoryInput in;
  in.numbers = {{"modes", 3}, {"dim", 6}};
  return in;
}

/// Rubin's data, which target eight_schools has by itself.
inline MemoryInput eight_schools() {
  MemoryInput in;
  in.arrays["y"] = {{28, 8, -3, 7, -1, 1, 18, 12}, {8}};
  in.arrays["sigma"] = {{15, 10, 16, 11, 9, 11, 10, 18}, {8}};
  return in;
}

/// Three sensors and two anchors for target sensors, with errors and a range as wide as the network: contracts move
/// chains by steps of 0.02.
inline MemoryInput three_sensors() {
  MemoryInput in;
  in.arrays["sensors"] = {{3}, {1}};
  in.arrays["anchors"] = {{0.2, 0.3, 0.8, 0.6}, {2, 2}};
  in.arrays["distances"] = {{1, 2, 0.4, 3, 1, 0.2, 1, 4, 0.5, 5, 2, 0.3}, {4, 3}};
  in.numbers = {{"R", 1}, {"sd", 0.3}};
  return in;
}

/// Data for target welling_teh.
inline MemoryInput two_means() {
  MemoryInput in;
  in.arrays["x"] = {{-2.1, 0.3, 1.2, 2.4, -0.7, 3.1, 0.9, 1.5, -1.3, 0.1, 2.2, 0.4}, {12}};
  return in;
}

/// A short series for target ark, of order 2.
inline MemoryInput short_series() {
  MemoryInput in;
  in.arrays["y"] = {{0.7, 0.8, 0.2, 1.0, 0.9, 1.3, 0.4, 0.1, -0.3, 0.2, -0.6, 0.3, 0.5, 1.1}, {14}};
  in.arrays["K"] = {{2}, {1}};
  return in;
}

/// Points for target gp_regr.
inline MemoryInput six_points() {
  MemoryInput in;
  in.arrays["x"] = {{-9, -5, 1, 4, 8, 13}, {6}};
  in.arrays["y"] = {{2.3, 0.4, -1.7, 0.9, 2.6, -0.8}, {6}};
  return in;
}

}  // namespace lockstep::testing
