// SPDX-License-Identifier: Apache-2.0
#pragma once
// Data and reference draws of posteriordb, where $LOCKSTEP_DATA has them.
#include <cstdlib>
#include <sstream>

#include "tests/support/points.hpp"
#include "tests/support/run_python.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {

/// The file posteriordb/`name` under $LOCKSTEP_DATA, or an empty path.
inline std::filesystem::path posteriordb_file(const std::string& name) {
  const char* root = std::getenv("LOCKSTEP_DATA");
  if (root == nullptr) return {};
  const auto file = std::filesystem::path(root) / "posteriordb" / name;
  return std::filesystem::exists(file) ? file : std::filesystem::path();
}

/// These entries of a data set; nothing where it is not there.
inline MemoryInput posteriordb_input(const std::string& data, const std::vector<std::string>& names) {
  MemoryInput in;
  const auto file = posteriordb_file(data + ".data.json.zip");
  if (file.empty()) return in;
  std::istringstream lines(run_python("posteriordb_data.py", file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    DataArray a;
    for (double v; words >> v;) a.values.push_back(v);
    a.shape = {int(a.values.size())};
    if (std::find(names.begin(), names.end(), name) != names.end()) in.arrays[name] = a;
  }
  return in;
}

/// The 10,000 reference draws of a posterior in `dim` dimensions, each moved to the target's coordinates by `to_state`; they
/// are nearly independent: posteriordb asks for effective sizes of 90 % and more.
template <class ToState>
std::vector<Point> reference_draws(const std::string& posterior, std::size_t dim, ToState to_state) {
  const auto file = posteriordb_file(posterior + ".draws.json.zip");
  if (file.empty()) throw std::runtime_error("no draws of " + posterior);
  std::istringstream text(run_python("posteriordb_draws.py", file));
  std::string names;
  std::getline(text, names);
  std::vector<Point> draws;
  for (Point x(dim);;) {
    for (double& v : x)
      if (!(text >> v)) return draws;
    draws.push_back(x);
    to_state(draws.back());
  }
}

/// Means and covariances of the reference draws against a truth, by joint errors: of the truth there is none. For what
/// effective sizes may lack of the number of draws the limit is widened.
template <class ToState>
void expect_reference_draws(const Truth& truth, const std::string& posterior, ToState to_state) {
  const int d = int(truth.mean.size());
  std::vector<RunningMean> mean(d), covariance(d * d);
  for (const Point& x : reference_draws(posterior, truth.mean.size(), to_state))
    for (int i = 0; i < d; ++i) {
      mean[i].add(x[i]);
      for (int j = 0; j <= i; ++j) covariance[i * d + j].add((x[i] - truth.mean[i]) * (x[j] - truth.mean[j]));
    }
  ASSERT_EQ(mean[0].count(), 10000u) << posterior;
  const double limit = family_quantile(1e-5, d + d * (d + 1) / 2) / std::sqrt(0.9);
  for (int i = 0; i < d; ++i) {
    EXPECT_LT(std::abs(mean[i].z(truth.mean[i])), limit) << posterior << ", axis " << i;
    for (int j = 0; j <= i; ++j)
      EXPECT_LT(std::abs(covariance[i * d + j].z(truth.covariance[i * d + j])), limit)
          << posterior << ", axes " << i << ", " << j;
  }
}

}  // namespace lockstep::testing
