// SPDX-License-Identifier: Apache-2.0
// How many starts a search looks at in many dimensions, and what it holds: no more than the plan of memory says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "host/modes/mode_search.hpp"
#include "host/runs/run_context.hpp"
#include "targets/gaussian.hpp"
#include "targets/mixture.hpp"
#include "tests/support/search_case.hpp"

namespace lockstep {
namespace {

using testing::MemoryInput;
using testing::SearchCase;

/// Normals in 40 dimensions, some 50 standard deviations apart, of weights 1 to 10 in 55 and nearly one width.
MemoryInput ten_in_forty() {
  constexpr int kDim = 40, kModes = 10;
  std::vector<double> means, weights, sds;
  for (int k = 0; k < kModes; ++k) {
    for (int i = 0; i < kDim; ++i) means.push_back(8 * std::sin(1.0 + 3 * k * k + 2.3 * i));
    weights.push_back((k + 1) / 55.0);
    sds.push_back(1 + 0.02 * (k % 3));
  }
  MemoryInput in;
  in.arrays["means"] = {means, {kModes, kDim}};
  in.arrays["weights"] = {weights, {kModes}};
  in.arrays["sds"] = {sds, {kModes}};
  return in;
}

// A search by descents alone, some nine gradients each, would make half as many starts of what this one may spend.
TEST(ModeSearchSize, LooksAtManyThousandStartsInManyDimensions) {
  SearchCase<MixtureTarget> c(ten_in_forty());
  const SearchResult r = search_modes(c.context, 0, {.gradients = 4e5});
  ASSERT_EQ(r.library.size(), 10);
  EXPECT_EQ(r.stopped, kSearchHits);
  EXPECT_GE(r.starts, 32768);
  EXPECT_LT(r.gradients, 4e5);
  EXPECT_GT(r.foretold, r.starts / 2);
  EXPECT_EQ(r.total_hits(), r.ended);
  EXPECT_GT(r.ended, 0.99 * r.starts);
  EXPECT_GE(r.least_hits(), 10);
  auto shares = r.library.shares();
  std::sort(shares.begin(), shares.end());
  for (int k = 0; k < 10; ++k) EXPECT_NEAR(shares[k], (k + 1) / 55.0, 4 * 0.02);
}

// The engines of a search, of as many descents and differences side by side as it makes, a round's starts with their
// gradients, and the modes that it may keep.
TEST(ModeSearchSize, IsWithinThePlanOfMemory) {
  for (const int dim : {1, 2, 10, 40, 400, 2000}) {
    MemoryInput in;
    in.numbers["dim"] = dim;
    SearchCase<GaussianTarget> c(in);
    RunSize size;
    size.dim = dim;
    size.searches = true;
    const double planned = planned_memory(c.context, {}, size).host;
    PointEngine descents(c.context, 0, descents_at_once(dim), find_transition("lbfgs"), {1}),
        points(c.context, 0, std::clamp(2 * dim, 256, 1024));
    const double engines = double(descents.engine().bytes()) + double(points.engine().bytes()),
                 library = 8.0 * most_modes(dim) * dim * (dim + 1),
                 starts = 8.0 * 2 * dim * starts_at_once(dim);
    EXPECT_GE(planned, engines + library + starts) << dim;
    EXPECT_LT(planned, 4 * (engines + library + starts)) << dim;
    size.searches = false;
    EXPECT_LT(planned_memory(c.context, {}, size).host, engines)
        << dim << ": it is the search that is seen here";
  }
}

}  // namespace
}  // namespace lockstep
