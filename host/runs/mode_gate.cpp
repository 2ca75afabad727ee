// SPDX-License-Identifier: Apache-2.0
#include "host/runs/mode_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/runs/mode_search.hpp"
#include "host/runs/mode_shape.hpp"
#include "host/runs/mode_starts.hpp"

namespace lockstep {
namespace {

constexpr double kLeastShare = 0.01, kFactor = 3, kReported = 2, kCoverage = 2;
// Of so many draws that should be in a mode fewer than a third are once in 3,000 right runs.
constexpr double kFewVisits = 20;
constexpr std::size_t kMostDraws = 1 << 15;  // looked at, evenly spread

/// Shares of the draws, by weight: those that each mode is the home of, as its mass is counted, and those that it is
/// nearest to, of which a mode among wider or denser ones may have some where it is no draw's home. And how many of equal
/// weight they are worth.
struct Visits {
  std::vector<double> home, near;
  double effective = 0;
  double of(int k, bool mass_known) const { return mass_known ? home[k] : near[k]; }
};
Visits visited(const ModeLibrary& library, const SeenDraws& draws, int threads) {
  const std::size_t d = library.dim(), all = draws.x.size() / d;
  std::size_t step = std::max<std::size_t>(1, all / kMostDraws);
  while (std::gcd(step, draws.chains) != 1) ++step;  // else some chains would never be looked at
  const std::int64_t count = std::int64_t((all + step - 1) / step);
  double most = -INFINITY;
  for (std::size_t n = 0; n < draws.log_weight.size(); n += step) most = std::max(most, draws.log_weight[n]);
  std::vector<int> home(count), near(count);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    const float* from = draws.x.data() + std::size_t(i) * step * d;
    const std::vector<double> x(from, from + d);
    home[i] = library.home(x.data());
    near[i] = library.nearest(x.data());
  }
  const std::vector<double> none(library.size(), 0.0);
  Visits v{none, none};
  double total = 0, square = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double w = draws.log_weight.empty() ? 1 : std::exp(draws.log_weight[i * step] - most);
    if (home[i] < 0 || near[i] < 0 || !(w > 0)) continue;
    v.home[home[i]] += w;
    v.near[near[i]] += w;
    total += w;
    square += w * w;
  }
  for (auto* shares : {&v.home, &v.near})
    for (double& s : *shares) s /= total > 0 ? total : 1;
  v.effective = square > 0 ? total * total / square : 0;
  return v;
}

/// What mode k should hold of exp(log_z), and whether that is known, or Laplace's approximation.
struct Due {
  double share;
  bool known;
};
Due due_of(const Mode& m, double log_z) {
  const bool known = m.mass_known();
  return {std::exp((known ? m.log_mass : m.laplace_log_mass) - log_z), known};
}

void judge_visits(ModesVerdict& v, const ModeLibrary& library, const Visits& visits, double log_z) {
  std::vector<int> expected;
  for (const int k : library.by_mass())
    if (due_of(library[k], log_z).share > kLeastShare) expected.push_back(k);
  // So many draws would have to be in a mode for none to be there once in 1,000 right runs, all modes together.
  const double none = std::log(1000.0 * double(expected.size() + 1));
  int unseen = 0, missed = 0, fewer = 0, first = -1;
  for (const int k : expected) {
    const Due due = due_of(library[k], log_z);
    const double draws = visits.effective * due.share, share = visits.of(k, due.known);
    unseen += !(share > 0);
    const bool misses =
        share > 0 ? due.known && share < due.share / kFactor && draws >= kFewVisits : draws >= none;
    missed += misses;
    fewer += due.known && share < due.share / kReported && draws >= 2 * kFewVisits;
    if (misses && first < 0) first = k;
  }
  v.summary.expected = int(expected.size());
  v.summary.visited = int(expected.size()) - std::max(unseen, missed);
  if (missed > 0) {
    const Due due = due_of(library[first], log_z);
    v.failed = "modes";
    v.warnings.push_back(fmt::format(
        "{} of the {} modes that should hold over 1 % were visited less than a third as often as they should "
        "be; "
        "the largest, at x[0] = {:.4g}, holds {:.2g} of the draws and should hold {:.2g}: run longer, with "
        "more chains, or by another method",
        missed, expected.size(), library[first].place[0], visits.of(first, due.known), due.share));
  } else if (unseen > 0) {
    if (2 * unseen > int(expected.size())) v.failed = "modes_mass";
    v.warnings.push_back(fmt::format(
        "{} of the {} modes that should hold over 1 % were visited by none of some {:.0f} independent draws, "
        "which are too "
        "few to call that a fault: run longer",
        unseen, expected.size(), visits.effective));
  } else if (fewer > 0) {
    v.warnings.push_back(fmt::format(
        "{} of the {} modes that should hold over 1 % were visited less than half as often as they "
        "should be: run longer",
        fewer, expected.size()));
  }
}

/// Importance masses err low: where those that are known come to more than the run's Z, it left something out.
void judge_total(ModesVerdict& v, const ModeLibrary& library, double log_z) {
  constexpr double kErrors = 4, kMost = 1.2;
  double total = 0, square = 0;
  for (int k = 0; k < library.size(); ++k) {
    const Due due = due_of(library[k], log_z);
    if (!due.known) continue;
    total += due.share;
    square += due.share * due.share / (kMassDraws * library[k].effective_share);
  }
  if (!(total - kErrors * std::sqrt(square) > kMost)) return;
  v.failed = "modes";
  v.warnings.push_back(
      fmt::format("the {} found hold{} {:.2g} times exp(log Z), by importance sampling: this run leaves "
                  "something out; another base (sampler.base=modes), or method",
                  library.size() == 1 ? "mode" : "modes", library.size() == 1 ? "s" : "", total));
}

/// A search that ended before it was done, with modes met once, has more to meet (Good 1953); one that its budget ended
/// has not said what there is.
void warn_of_unseen(ModesVerdict& v, const SearchResult& found) {
  const int n = found.library.size();
  if (const std::string beyond = beyond_starts(found); !beyond.empty()) v.warnings.push_back(beyond);
  if (found.stopped != kSearchBudget && found.stopped != kSearchModes) return;
  int once = 0;
  for (int k = 0; k < n; ++k) once += found.library[k].hits == 1;  // 0: where somebody says that one is
  const char* advice = found.full() ? "give those you know by --modes FILE"
                                    : "more --gradients, or give those you know by --modes FILE";
  if (once > 0)
    v.warnings.push_back(fmt::format(
        "the search for modes ended {}, and {} of the {} found were met once: there are likely more; {}",
        found.stopped == kSearchModes ? "at as many as are kept" : "with its budget", once, n, advice));
  else if (found.unsettled())
    v.warnings.push_back(fmt::format(
        "the search for modes ended with its budget after {:.0f} starts, of which {:.0f} led "
        "to the {} found: there may be more; {}",
        found.starts, found.total_hits(), n == 1 ? "one mode" : fmt::format("{} modes", n), advice));
}

}  // namespace

std::string beyond_starts(const SearchResult& found) {
  const ModeLibrary& modes = found.library;
  if (modes.size() == 0 || found.stopped == kSearchGiven) return "";
  const double wider = widened(modes, found.scale);
  if (wider <= found.scale) return "";
  return fmt::format(
      "the search for modes ended before it looked as far from the origin as what it found calls for: it "
      "mostly began within {:.3g} on an axis, and others may be missed; --init-scale {:.2g} or more "
      "gradients look there",
      found.scale, wider);
}

ModesVerdict judge_modes(const SearchResult& found, const SeenDraws& draws, std::optional<double> log_z,
                         std::optional<double> scout_log_z, int threads) {
  const ModeLibrary& library = found.library;
  ModesVerdict v;
  v.summary.found = library.size();
  v.summary.stopped = found.stopped;
  v.summary.starts = found.starts;
  v.summary.gradients = found.gradients;
  warn_of_unseen(v, found);
  if (found.astray()) {
    v.failed = "modes_mass";
    v.warnings.push_back(fmt::format(
        "descents of the search came to rest at {:.0f} places that are no mode as far as differences of "
        "gradients tell, and {:.0f} times at the {} found: what else there is nobody knows; scale the "
        "parameters alike, or give the modes by --modes FILE",
        found.rejected, found.total_hits(), library.size() == 1 ? "mode" : "modes"));
  }
  if (library.size() > 0) {
    v.summary.least_hits = found.least_hits();
    for (int k = 0; k < library.size(); ++k)
      v.summary.most_hits = std::fmax(v.summary.most_hits, library[k].hits);
  }
  const bool own = log_z.has_value() && std::isfinite(*log_z);
  if (!own && found.unsettled()) v.failed = "modes_mass";
  if (library.size() < 2) {
    if (own && v.failed != "modes") judge_total(v, library, *log_z);
    return v;
  }
  const double total = library.log_total(), z = own ? *log_z : total;
  if (draws.x.empty() || (!own && !(scout_log_z && std::abs(total - *scout_log_z) <= std::log(kCoverage)))) {
    v.failed = "modes_mass";
    v.warnings.push_back(fmt::format(
        "{} modes were found, and {} to say whether this run visits them as it should: {}", library.size(),
        draws.x.empty() ? "no draws are kept" : "how much each holds is not known well enough",
        draws.x.empty() ? "fewer chains, or --draws"
                        : "a sampler with a log Z can tell (pe, or lockstep evidence)"));
    return v;
  }
  judge_visits(v, library, visited(library, draws, threads), z);
  if (own && v.failed != "modes") judge_total(v, library, z);
  return v;
}

ModesVerdict judge_modes(const ChainRunResult& run, int threads) {
  if (run.modes.empty()) return {};
  const std::vector<double> equally;
  const Frozen& f = run.frozen;
  const auto first = [](const auto& values) {
    return values.empty() ? std::optional<double>() : std::optional<double>(values[0]);
  };
  const auto log_z =
      run.log_z.empty() ? std::optional<double>() : std::optional<double>(run.log_z[0].estimate);
  ModesVerdict v = judge_modes(run.modes[0], {run.overview.x(), equally, std::size_t(run.units[0].chains)},
                               log_z, first(f.scout_log_z), threads);
  v.summary.jump_acceptance = run.jump_acceptance;
  v.summary.base = run.of_modes();
  return v;
}

}  // namespace lockstep
