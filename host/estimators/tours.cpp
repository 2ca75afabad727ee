// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/tours.hpp"

#include <algorithm>

#include "kernels/regeneration.hpp"

namespace lockstep {

std::vector<TourMeans> tours_of(const std::vector<double>& fields, int units, int chains, int dim) {
  using R = Regeneration;
  int own = 0;
  for (const TransitionField& f : R::info().fields) own += f.rows(dim);
  const std::size_t total = std::size_t(units) * chains, first = fields.size() / total - own;
  std::vector<TourMeans> all(units);
  for (int u = 0; u < units; ++u) {
    const auto sum = [&](int row) {
      const double* from = fields.data() + (first + row) * total + std::size_t(u) * chains;
      double s = 0;
      for (int c = 0; c < chains; ++c) s += from[c];
      return s;
    };
    TourMeans& t = all[u];
    const double n = sum(R::sum_n), nn = sum(R::sum_nn), begun = sum(R::begun), made = sum(R::made);
    t.number = sum(R::closed);
    t.acceptance = sum(R::taken) / made;
    t.closed_share = n / made;
    if (t.number == 0) continue;
    t.mean_length = n / t.number;
    for (int j = 0; j < dim; ++j) {
      const auto of = [&](R::Row row) { return sum(R::kNumbers + row * dim + j); };
      const double s = of(R::sum_s), ss = of(R::sum_ss), ns = of(R::sum_ns);
      const double mean = (s + begun * ns / n) / (n + begun * nn / n);
      t.mean.push_back(mean);
      t.mean_se.push_back(std::sqrt(std::max(0.0, ss - 2 * mean * ns + mean * mean * nn)) / n);
    }
  }
  return all;
}

}  // namespace lockstep
