// SPDX-License-Identifier: Apache-2.0
#include "host/modes/search_result.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr int kForetoldStarts = 1 << 14;  // of a round, at most
// In high dimensions fewer modes, fewer descents at a time.
constexpr int kMostModes = 1000;
constexpr double kLibraryBytes = 1 << 26, kManyBytes = 1 << 28, kDescentBytes = 1 << 27;

}  // namespace

int most_modes(int dim) {
  const double each = 16.0 * dim * dim;
  return int(std::max(std::clamp(kManyBytes / each, 4.0, double(kManyModes)),
                      std::min(kLibraryBytes / each, double(kMostModes))));
}
int descents_at_once(int dim) {
  return int(std::clamp(kDescentBytes / (8.0 * 20 * dim), 64.0, double(kRoundStarts)));
}
int starts_at_once(int dim) {
  return int(std::clamp(kDescentBytes / (32.0 * dim), double(kRoundStarts), double(kForetoldStarts)));
}

double SearchResult::least_hits() const {
  double least = INFINITY;
  for (int k = 0; k < library.size(); ++k) least = std::min(least, library[k].hits);
  return least;
}

double SearchResult::total_hits() const {
  double sum = 0;
  for (int k = 0; k < library.size(); ++k) sum += library[k].hits;
  return sum;
}
bool SearchResult::unsettled() const {
  constexpr double kMost = 0.8;
  return stopped == kSearchBudget && total_hits() < kMost * starts;
}

}  // namespace lockstep
