// SPDX-License-Identifier: Apache-2.0
#include "host/runs/lost_ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace lockstep {
namespace {

constexpr double kLostShare = 0.2;
constexpr std::size_t kLeast = 16, kMostOfAll = 20;  // draws; one in so many

/// How many of the draws `order`, the farthest first, are an end.
std::size_t end_of(const std::vector<std::size_t>& order, std::size_t most, const std::vector<char>& lost) {
  std::size_t end = 0, gone = 0;
  for (std::size_t m = 1; m <= most; ++m) {
    gone += lost[order[m - 1]];
    if (m >= kLeast && double(gone) >= kLostShare * double(m)) end = m;
  }
  return end;
}

/// What the ends of f add to its mean, and to that of its square; 0 where it has none.
struct Added {
  double first = 0, second = 0;
};
Added added_by_ends(const std::vector<double>& f, const std::vector<char>& lost,
                    std::vector<std::size_t>& order) {
  const std::size_t n = f.size(), most = n / kMostOfAll;
  const double mean = std::accumulate(f.begin(), f.end(), 0.0) / double(n),
               square = std::inner_product(f.begin(), f.end(), f.begin(), 0.0) / double(n);
  Added all;
  const auto add = [&](auto farther) {
    std::partial_sort(
        order.begin(), order.begin() + std::ptrdiff_t(most), order.end(),
        [&](std::size_t a, std::size_t b) { return f[a] == f[b] ? a < b : farther(f[a], f[b]); });
    Added one;
    for (std::size_t m = end_of(order, most, lost); m-- > 0;) {
      const double x = f[order[m]];
      one.first += (x - mean) / double(n);
      one.second += (x * x - square) / double(n);
    }
    all = {std::hypot(all.first, one.first), std::hypot(all.second, one.second)};
  };
  add(std::greater<>());
  add(std::less<>());
  return all;
}

}  // namespace

LostEnds lost_ends(const std::vector<double>& values, const std::vector<char>& lost, std::size_t dim,
                   int threads) {
  const std::size_t n = lost.size(), each = n == 0 ? 0 : values.size() / n;
  LostEnds ends;
  if (n < kLeast * kMostOfAll ||
      std::accumulate(lost.begin(), lost.end(), std::size_t(0)) < kLeast * kLostShare)
    return ends;
  ends.least = {std::vector<double>(dim), std::vector<double>(dim), std::vector<double>(each - dim)};
#pragma omp parallel num_threads(threads)
  {
    std::vector<double> f(n);
    std::vector<std::size_t> order(n);
#pragma omp for schedule(dynamic)
    for (std::size_t i = 0; i < each; ++i) {
      for (std::size_t k = 0; k < n; ++k) f[k] = values[k * each + i];
      std::iota(order.begin(), order.end(), std::size_t(0));
      const Added by = added_by_ends(f, lost, order);
      (i < dim ? ends.least.mean[i] : ends.least.quantity[i - dim]) = by.first;
      if (i < dim) ends.least.second[i] = by.second;
    }
  }
  return ends;
}

std::string warning_of(const LostEnds& lost, const WeightedMoments& m, const TargetInstance& target) {
  double most = 1;
  std::string where;
  const auto look = [&](const std::vector<double>& least, const std::vector<double>& se, const auto& names) {
    for (std::size_t i = 0; i < least.size(); ++i)
      if (least[i] > most * se[i]) most = least[i] / se[i], where = names[i];
  };
  look(lost.least.mean, m.mean_se, target.names());
  look(lost.least.quantity, m.quantity_se, target.quantities());
  if (where.empty()) return "";
  return fmt::format(
      "trajectories from the farthest draws of {} are lost: there may be more of its tail. Errors allow for "
      "as "
      "much as is seen of it, and are up to {:.2g} times those by the spread of chains; raise "
      "sampler.target_acceptance",
      where, most);
}

}  // namespace lockstep
