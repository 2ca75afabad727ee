// SPDX-License-Identifier: Apache-2.0
#include "host/runs/mode_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/estimators/log_sums.hpp"
#include "host/modes/mode_mass.hpp"
#include "host/modes/mode_moments.hpp"
#include "host/modes/mode_reach.hpp"
#include "host/modes/mode_starts.hpp"
#include "host/modes/mode_visits.hpp"
#include "host/modes/search_result.hpp"

namespace lockstep {
namespace {

constexpr double kFactor = 3, kReported = 2, kCoverage = 2;
// Of the hits: where so many descents come to rest at a mode, it is not one of the many that hold nothing.
constexpr double kSought = 0.05;
// Of so many draws that should be in a mode fewer than a third are once in 3,000 right runs.
constexpr double kFewVisits = 20;

void judge_visits(ModesVerdict& v, const ModeLibrary& library, const HousedDraws& draws, double log_z,
                  int threads) {
  std::vector<int> expected, nearest;
  bool all_known = true;
  for (const int k : library.by_mass()) {
    const Due due = due_of(library[k], log_z);
    if (!(due.share > kExpectedShare)) continue;
    expected.push_back(k);
    all_known = all_known && due.known;
  }
  if (!all_known) nearest = library.of_points(draws.x, ModeLibrary::By::distance, threads);
  const Visits visits = visited(library, draws, nearest, threads);
  // So many draws would have to be in a mode for none to be there once in 1,000 right runs, all modes together.
  const double none = std::log(1000.0 * double(expected.size() + 1));
  const auto misses = [&](double share, double due) {
    const double draws = visits.effective * due;
    return share > 0 ? share < due / kFactor && draws >= kFewVisits : draws >= none;
  };
  int unseen = 0, missed = 0, fewer = 0;
  std::string largest;  // of those missed
  for (const int k : expected) {
    const Due due = due_of(library[k], log_z);
    const double share = visits.of(k, due.known), of_core = due_of_core(library, k, log_z);
    const bool is_missed = (share == 0 || due.known) && misses(share, due.share);
    const bool lacks_core = !is_missed && misses(visits.core[k], of_core);
    unseen += !(share > 0);
    missed += is_missed || lacks_core;
    fewer += due.known && share < due.share / kReported && visits.effective * due.share >= 2 * kFewVisits;
    if ((is_missed || lacks_core) && largest.empty())
      largest = fmt::format("at x[0] = {:.4g}, holds {:.2g} of the draws{} and should hold {:.2g}",
                            library[k].place[0], lacks_core ? visits.core[k] : share,
                            lacks_core ? " in its core" : "", lacks_core ? of_core : due.share);
  }
  v.summary.shares = shares_of(library, draws, log_z, threads);
  v.summary.expected = int(expected.size());
  v.summary.visited = int(expected.size()) - std::max(unseen, missed);
  if (missed > 0) {
    v.failed = "modes";
    std::string which = "the mode that should hold over 1 %";
    if (expected.size() > 1)
      which = fmt::format(
          "{} of the {} modes that should hold over 1 % were visited less than a third as often as they "
          "should "
          "be; the largest",
          missed, expected.size());
    v.warnings.push_back(
        fmt::format("{}, {}: run longer, with more chains, or by another method", which, largest));
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

/// What lies about a mode, which no trajectory from its core reaches: where most draws of a halo's normal would be is a tenth of
/// the draws that it should hold, for its mass is a guess.
void judge_halos(ModesVerdict& v, const ModeLibrary& library, const HousedDraws& draws, double log_z) {
  constexpr double kNear = 1.7, kGuessed = 10;
  const double most = library.dim() * kNear * kNear, least = library.dim() / (kNear * kNear);
  double total = 0, square = 0;
  for (const double w : draws.weight) {
    if (!(w > 0)) continue;
    total += w;
    square += w * w;
  }
  const double effective = total * total / square;
  for (int k = 0; k < library.size(); ++k)
    for (const Halo& halo : library[k].halos) {
      const double due = std::min(1.0, std::exp(halo.log_mass - log_z));
      ModeLibrary alone(library.dim());
      alone.add(as_mode(halo));
      double near = 0;
      for (std::size_t i = 0; i < draws.weight.size(); ++i) {
        const double distance = alone.distance(0, draws.x.col(Eigen::Index(i)).data(), most);
        if (draws.weight[i] > 0 && distance > least && distance < most) near += draws.weight[i];
      }
      const double share = near / total;
      if (share >= due / kGuessed) continue;
      const bool few = effective * due < kFewVisits;
      if (!few || v.failed.empty()) v.failed = few ? "modes_mass" : "modes";
      v.warnings.push_back(
          fmt::format("what lies about the mode at x[0] = {:.4g}, {:.3g} times as wide, holds {:.2g} of the "
                      "draws and should hold some {:.2g}{}: run longer, or by another method",
                      library[k].place[0], scale_of(library[k], halo), share, due,
                      few ? ", for which there are too few draws" : ""));
    }
}

/// Of modes that resemble no normal, and hold little as far as one drawn from their curvature can tell (there may be a peak
/// on top of something wide): where many descents came to rest a run has to have been, if it would be much were the mode as
/// wide as any that is known.
void judge_sought(ModesVerdict& v, const SearchResult& found, const HousedDraws& draws, double log_z,
                  int threads) {
  const ModeLibrary& library = found.library;
  std::vector<int> sought;
  double widest = -INFINITY;
  for (int k = 0; k < library.size(); ++k) widest = std::max(widest, library.log_volume(k));
  for (int k = 0; k < library.size(); ++k) {
    const double share = due_of(library[k], log_z).share;
    if (!resembles_normal(library[k].effective_share, library.dim()) && share <= kExpectedShare &&
        share * std::exp(widest - library.log_volume(k)) > kExpectedShare &&
        library[k].hits > kSought * found.total_hits())
      sought.push_back(k);
  }
  if (sought.empty()) return;
  const Visits visits =
      visited(library, draws, library.of_points(draws.x, ModeLibrary::By::distance, threads), threads);
  for (const int k : sought) {
    if (visits.near[k] * visits.effective >= 1) continue;
    if (v.failed.empty()) v.failed = "modes_mass";
    v.warnings.push_back(
        fmt::format("{:.0f} % of the descents came to rest at x[0] = {:.4g}, nobody knows how much that mode "
                    "holds, and no draw is near it: another base, or a longer run",
                    100 * library[k].hits / found.total_hits(), library[k].place[0]));
  }
}

/// Of the only mode, where nobody knows Z: that it is visited at all.
void judge_unknown(ModesVerdict& v, const ModeLibrary& library, const HousedDraws& draws, int threads) {
  if (std::isnan(library[0].core_log_mass) || visited(library, draws, {}, threads).core[0] > 0) return;
  v.failed = "modes_mass";
  v.warnings.push_back(
      fmt::format("no draw lies in the core of the mode found, at x[0] = {:.4g}, and nobody knows how much "
                  "it should hold: a sampler "
                  "with a log Z can tell (pe, or lockstep evidence)",
                  library[0].place[0]));
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

/// What the modes hold together, by the draws that say what each does: then errors that all have in common are none. Nothing where
/// over a hundredth of it is a guess.
std::optional<LogZ> z_of_modes(const ModeLibrary& library, const HeldMoments& held) {
  constexpr double kMostGuessed = 0.01;
  const std::vector<double> share = library.shares();
  double guessed = 0, all = 0;
  for (int k = 0; k < library.size(); ++k)
    if (!std::isnan(library[k].effective_share) && !library[k].mass_known()) guessed += share[k];
  if (guessed > kMostGuessed) return std::nullopt;
  const std::size_t rows = held.part.size() / share.size();
  for (std::size_t k = 0; k < share.size(); ++k) all += held.part[(k + 1) * rows - 1];
  return LogZ{held.log_scale + std::log(all), 0};
}

/// Where modes are given only a few descents have looked for others: of these the draws say that lie where no mode that is
/// like a normal reaches.
void judge_left_out(ModesVerdict& v, const ModeLibrary& library, const HousedDraws& draws) {
  constexpr double kMostBeyond = 0.05;
  for (int k = 0; k < library.size(); ++k)
    if (!resembles_normal(library[k].effective_share, library.dim())) return;
  const double beyond = share_beyond(library, draws);
  if (!(beyond > kMostBeyond)) return;
  if (v.failed.empty()) v.failed = "modes_mass";
  v.warnings.push_back(
      fmt::format("{:.2g} of the draws lie far from the modes given: there are others, which a few descents "
                  "did not find; give them too, or these by --init, beside which others are",
                  beyond));
}

/// Where no start of the search led, though chains came there, others may be where none has come.
void judge_met(ModesVerdict& v, const SearchResult& found) {
  if (found.met == 0) return;
  if (v.failed.empty()) v.failed = "modes_mass";
  v.warnings.push_back(fmt::format(
      "chains came upon {} of the {} modes known, {}: there may be others. Where these are all, give them by "
      "--modes{}",
      found.met, found.library.size(),
      found.stopped == kSearchGiven ? "which are not among those given" : "where no start of the search led",
      found.library.size() <= int(kMostShares) ? " (summary.json of this run lists them)" : ""));
}

/// A search that ended before it was done, with modes met once, has more to meet (Good 1953); one that its budget ended
/// has not said what there is. Another mode as large and as hard to meet as one met h times was missed with a chance of e^-h:
/// beside one that holds over 1 % and was met fewer than five times, or a list that left some out, or where modes that nobody
/// met likely hold over a twentieth, nothing is established where no log Z tells of what is missing.
void warn_of_unseen(ModesVerdict& v, const SearchResult& found, bool has_log_z) {
  constexpr double kSeldom = 5, kUnmet = 0.05;
  const int n = found.library.size();
  judge_met(v, found);
  if (const std::string beyond = beyond_starts(found); !beyond.empty()) v.warnings.push_back(beyond);
  if (found.stopped == kSearchStarts) {
    if (v.failed.empty()) v.failed = "modes_mass";
    v.warnings.push_back(
        "the search for modes was of a few descents (sampler.starts), and chains learned the others: nothing "
        "says that "
        "there are no more; leave sampler.starts out for the usual search");
  }
  if (found.stopped != kSearchBudget && found.stopped != kSearchModes) return;
  int once = 0, twice = 0, seldom = 0;
  double held_by_once = 0;
  for (int k = 0; k < n; ++k) {
    const Mode& mode = found.library[k];
    const double share = due_of(mode, found.library.log_total()).share;
    once += !mode.given && mode.hits == 1;
    twice += !mode.given && mode.hits == 2;
    held_by_once += !mode.given && mode.hits == 1 ? share : 0;
    seldom += !has_log_z && !mode.given && mode.hits < kSeldom && share > kExpectedShare;
  }
  const bool left_out = !has_log_z && found.listed > 0 && found.listed < n;
  // Those not met, about once^2 / (2 twice) of them (Chao 1984), are like those met once.
  const bool open = !has_log_z && held_by_once * once / (2.0 * std::max(1, twice)) > kUnmet;
  if ((seldom > 0 || left_out || open) && v.failed.empty()) v.failed = "modes_mass";
  const std::string ended = found.stopped == kSearchModes ? "ended at as many as are kept"
                                                          : "ended with its budget",
                    advice = found.full() ? "give those you know by --modes FILE"
                                          : "more --gradients, or give those you know by --modes FILE";
  const auto warn = [&](const std::string& what) {
    v.warnings.push_back(fmt::format("the search for modes {}{}; {}", ended, what, advice));
  };
  if (seldom > 0)
    warn(
        fmt::format(", and of the {} found, {} that hold{} over 1 % {} met fewer than {:g} times: there may "
                    "well be others",
                    n, seldom, seldom == 1 ? "s" : "", seldom == 1 ? "was" : "were", kSeldom));
  else if (left_out)
    warn(", and those given had left some out: there may well be others");
  else if (once > 0)
    warn(fmt::format(", and {} of the {} found were met once: there are likely more", once, n));
  else if (found.unsettled())
    warn(fmt::format(" after {:.0f} starts, of which {:.0f} led to the {} found: there may be more",
                     found.starts, found.total_hits(), n == 1 ? "one mode" : fmt::format("{} modes", n)));
}

/// Of several modes, where nothing says how much each should hold.
void say_unknown(ModesVerdict& v, const ModeLibrary& library, const SeenDraws& draws, bool has_log_z,
                 int threads) {
  v.failed = "modes_mass";
  if (!draws.x.empty())
    v.summary.shares = shares_of(library, HousedDraws(library, draws, threads), NAN, threads);
  v.warnings.push_back(fmt::format(
      "{} modes were found, and {} to say whether this run visits them as it should: {}", library.size(),
      draws.x.empty() ? "no draws are kept" : "how much each holds is not known well enough",
      draws.x.empty() ? "fewer chains, or --draws"
      : has_log_z     ? "its own log Z is no number; run longer"
                      : "a sampler with a log Z can tell (pe, or lockstep evidence)"));
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

ModesVerdict judge_modes(const SearchResult& found, const SeenDraws& draws, std::optional<LogZ> log_z,
                         std::optional<double> scout_log_z, int threads,
                         const std::vector<double>& second_se) {
  const ModeLibrary& library = found.library;
  ModesVerdict v;
  v.summary.found = library.size();
  v.summary.stopped = found.stopped;
  v.summary.starts = found.starts;
  v.summary.gradients = found.gradients;
  v.summary.met = found.met;
  if (found.listed > 0) v.summary.listed = found.listed;
  if (found.beside > 0) v.summary.beside = found.beside;
  v.summary.narrowest = narrowest_met(found);
  v.summary.narrowest_unknown = why_unknown(found);
  const bool own = log_z.has_value() && std::isfinite(log_z->estimate);
  warn_of_unseen(v, found, own);
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
  if (!own && found.unsettled()) v.failed = "modes_mass";
  if (library.size() == 0) return v;
  const double total = v.summary.log_total = library.log_total();
  double z = own ? log_z->estimate : total;
  if (library.size() == 1) {
    if (own) judge_total(v, library, z);
    if (draws.x.empty() || v.failed == "modes") return v;
    // Without a log Z of its own: no more than the particles saw, and the mode, if they did not.
    if (!own && scout_log_z && std::isfinite(*scout_log_z)) {
      LogSum both;
      for (const double part : {total, *scout_log_z}) both.add(part);
      z = both.log();
    } else if (!own) {
      judge_unknown(v, library, HousedDraws(library, draws, threads), threads);
      return v;
    }
  } else if (draws.x.empty() ||
             (!own && !(scout_log_z && std::abs(total - *scout_log_z) <= std::log(kCoverage)))) {
    say_unknown(v, library, draws, log_z.has_value(), threads);
    return v;
  }
  const HousedDraws housed(library, draws, threads);
  judge_visits(v, library, housed, z, threads);
  judge_halos(v, library, housed, z);
  if (found.stopped == kSearchGiven) judge_left_out(v, library, housed);
  if (library.size() > 1) judge_sought(v, found, housed, z, threads);
  if (own && v.failed != "modes" && library.size() > 1) judge_total(v, library, z);
  const auto by = found.held.part.empty() ? std::nullopt : own ? log_z : z_of_modes(library, found.held);
  if (!by) return v;
  const MomentsByModes of_modes = moments_by_modes(library, found.held, housed, *by);
  v.least = of_modes.least;
  double most = 0;
  for (std::size_t i = 0; i < second_se.size(); ++i) most = std::max(most, v.least.second[i] / second_se[i]);
  constexpr double kTold = 2;
  if (most > kTold)
    v.warnings.push_back(
        fmt::format("many of the {} modes are visited more or less often than they should be: errors of "
                    "moments, which say so, are up to {:.2g} times those that chains alone tell",
                    library.size(), most));
  if (const auto& lacks = of_modes.lacking; lacks && v.failed != "modes") {
    v.failed = "modes";
    v.warnings.push_back(fmt::format(
        "of second_moment[{}] the {} hold {:.3g}, by importance sampling, and this run has {:.3g} +- {:.2g} "
        "there: what it leaves out is rare and far out, and moments are not to be relied on; more "
        "--gradients, or another method",
        lacks->axis,
        lacks->first == 0 ? "modes found" : fmt::format("modes found but the {} largest", lacks->first),
        lacks->due, lacks->seen, lacks->seen_se));
  }
  return v;
}

ModesVerdict judge_modes(const ChainRunResult& run, std::size_t unit, const WeightedMoments& moments,
                         int threads) {
  if (run.modes.empty()) return {};
  const std::vector<double> equally;
  const Frozen& f = run.frozen;
  const auto of_unit = [&](const auto& values) {
    return values.empty() ? std::nullopt : std::optional(values[std::min(unit, values.size() - 1)]);
  };
  const int chains = run.units[unit].chains;
  std::vector<float> some;  // of one unit all are taken where they are
  if (run.units.size() > 1) some = run.overview.of_chains(int(unit) * chains, chains);
  const std::vector<float>& x = run.units.size() > 1 ? some : run.overview.x();
  ModesVerdict v = judge_modes(run.modes[unit], {x, equally, std::size_t(chains)}, of_unit(run.log_z),
                               of_unit(f.scout_log_z), threads, moments.second_se);
  const ModeLibrary& library = run.modes[unit].library;
  if (library.parts() > library.size() && !x.empty()) {
    const HousedDraws housed(library, {x, equally, std::size_t(chains)}, threads);
    const double log_z = run.log_z.empty() ? library.log_total() : run.log_z[unit].estimate;
    add_errors_of_halos(v.least, library, housed, log_z, moments);
  }
  v.summary.jump_acceptance = run.jump_acceptance;
  v.summary.base = run.of_modes();
  return v;
}

}  // namespace lockstep
