// SPDX-License-Identifier: Apache-2.0
#include "host/modes/given_points.hpp"

#include <fmt/format.h>

#include <cmath>

#include "host/engines/points_file.hpp"
#include "host/modes/mode_search.hpp"
#include "host/modes/mode_visits.hpp"
#include "host/options/config.hpp"
#include "host/util/errors.hpp"

namespace lockstep {
namespace {

using Points = std::vector<Eigen::VectorXd>;

/// The points again; UserError where log density or slope is not finite, in single precision.
Points usable(Points points, const TargetInstance& target, const std::string& what, const std::string& file) {
  Eigen::VectorXd gradient(target.dim());
  for (const auto& x : points)
    if (const double value = target.log_density(x.data(), gradient.data());
        !std::isfinite(float(value)) || !gradient.cast<float>().allFinite())
      throw UserError(
          fmt::format("{} {} of {} is no place to begin (log density {:.3g}: this, or its slope, is "
                      "not finite in single precision). Correct it, or leave it out",
                      what, &x - points.data() + 1, file, value));
  return points;
}

Points places_of(const ModeLibrary& library) {
  Points places;
  for (int k = 0; k < library.size(); ++k)
    places.push_back(Eigen::Map<const Eigen::VectorXd>(library[k].place.data(), library.dim()));
  return places;
}

/// How far below a mode's a log density is that says nothing of it: a draw is d / 2 below.
double far_below(int dim) { return 1000 + 10.0 * dim; }

/// What rows of --init lie so far out that they are no hint.
std::string judge_rows(const TargetInstance& target, const std::string& init, const SearchResult& found) {
  const int d = target.dim(), n = found.library.size() - found.met;
  double lowest = INFINITY;
  for (int k = 0; k < n; ++k) lowest = std::min(lowest, found.library[k].log_density);
  const double beyond = far_below(d);
  const Points rows = read_starts(init, d);
  std::vector<std::size_t> far;
  Eigen::VectorXd gradient(d);
  for (std::size_t r = 0; n > 0 && r < rows.size(); ++r)
    if (!(target.log_density(rows[r].data(), gradient.data()) >= lowest - beyond)) far.push_back(r + 1);
  if (far.empty()) return "";
  return fmt::format(
      "row {} of --init{} lies far out, where the log density is over {:.0f} below every mode found: it is "
      "no hint of a mode, and chains do not begin there; give points near the modes",
      far[0], far.size() > 1 ? fmt::format(", and {} more,", far.size() - 1) : "", beyond);
}

/// What became of a list of places.
std::string judge_list(const Points& places, const SearchResult& found) {
  const int count = int(places.size());
  if (found.stopped == kSearchGiven)
    return count <= found.listed
               ? ""
               : fmt::format("the {} places of --modes lead to {} mode{}: the others are the same", count,
                             found.listed, found.listed == 1 ? "" : "s");
  if (found.listed > 1)
    return found.beside == 0
               ? ""
               : fmt::format(
                     "--modes leaves modes out, which a search from {:.0f} starts came upon: all were "
                     "searched for, and {} are known",
                     found.beside, found.library.size() - found.met);
  return fmt::format("{} of --modes {} to one mode, which leaves nothing to compare{}",
                     count > 1 ? fmt::format("the {} places", count) : "the one place",
                     count > 1 ? "lead" : "leads",
                     found.stopped == kSearchDimension ? "" : ": modes were searched for");
}

/// The first place that no mode is at.
std::string judge_far(const Points& places, const SearchResult& found) {
  constexpr double kFar = 4;  // times the core, of squares
  const ModeLibrary& library = found.library;
  for (const auto& place : places) {
    const double distance = library.distance(library.nearest(place.data()), place.data());
    if (distance > kFar * core_distance(library.dim()))
      return fmt::format(
          "place {} of --modes is {:.0f} standard deviations from the mode that it leads to or any other: if "
          "a mode was meant there, it is not among those known",
          &place - places.data() + 1, std::sqrt(distance));
  }
  return "";
}

}  // namespace

Points near_starts(const std::string& init, const TargetInstance& target) {
  Points rows = read_starts(init, target.dim());
  std::vector<double> log_density;
  Eigen::VectorXd gradient(target.dim());
  double highest = -INFINITY;
  for (const auto& x : rows) {
    log_density.push_back(target.log_density(x.data(), gradient.data()));
    highest = std::fmax(highest, log_density.back());
  }
  std::erase_if(rows, [&](const Eigen::VectorXd& x) {
    return !(log_density[std::size_t(&x - rows.data())] >= highest - far_below(target.dim()));
  });
  return rows;
}

Points usable_starts(const std::string& init, const TargetInstance& target) {
  return usable(read_starts(init, target.dim()), target, "row", "--init " + init);
}

Points usable_places(const std::filesystem::path& modes, const TargetInstance& target) {
  if (modes.empty()) return {};
  return usable(read_points(modes, target.dim(), "--modes"), target, "place", "--modes " + modes.string());
}

SearchResult modes_listed(const RunContext& context, std::uint32_t unit, const Points& places,
                          const SearchPlan& plan) {
  constexpr double kShare = 0.25, kLeast = 2e4;  // of what a search may spend; gradients
  SearchResult list = modes_at(context, unit, places);
  if (list.library.size() < 2 || !list.grows()) return list;
  SearchPlan check = plan;
  if (plan.gradients > 0) check.gradients = std::max(kLeast, kShare * plan.gradients);
  check.iterations *= kShare;
  check.least = std::max(kLeast, kShare * plan.least);
  check.known = places_of(list.library);
  check.kept = false;
  const SearchResult found = search_modes(context, unit, check);
  const ModeLibrary listed = list.library;
  const double least = found.library.log_total() + std::log(kExpectedShare);
  for (int k = 0; k < found.library.size(); ++k) {
    const Mode& mode = found.library[k];
    if (!(mode.best_log_mass() > least) || listed.nearest(mode.place.data(), 1) >= 0) continue;
    list.library.add(mode);
    list.met += 1;
  }
  list.gradients += found.gradients;
  list.beside = found.starts;
  list.scale = found.scale;
  return list;
}

void check_places(const RunContext& context, const std::filesystem::path& modes) {
  if (!modes.empty()) modes_at(context, 0, read_points(modes, context.target->dim(), "--modes"));
}

SearchResult find_modes(const RunContext& context, std::uint32_t unit, const std::string& init,
                        const std::filesystem::path& modes, SearchPlan plan) {
  const int d = context.target->dim();
  plan.known = read_starts(init, d);
  if (modes.empty()) return search_modes(context, unit, plan);
  SearchResult list = modes_listed(context, unit, read_points(modes, d, "--modes"), plan);
  if (list.library.size() > 1 && list.met == 0) return list;
  const Points known = places_of(list.library);  // before the rows of --init, of which a search takes so many
  plan.known.insert(plan.known.begin(), known.begin(), known.end());
  if (plan.gradients > 0) plan.gradients = std::max(1.0, plan.gradients - list.gradients);
  SearchResult found = search_modes(context, unit, plan);
  found.gradients += list.gradients;
  found.listed = list.listed;
  found.beside = list.beside;
  return found;
}

std::vector<std::string> judge_given(const TargetInstance& target, const std::string& init,
                                     const std::filesystem::path& modes, const SearchResult& found) {
  std::vector<std::string> warnings = {judge_rows(target, init, found)};
  const Points places = modes.empty() ? Points{} : read_points(modes, target.dim(), "--modes");
  if (!places.empty()) warnings.push_back(judge_list(places, found));
  if (found.library.size() > 0) warnings.push_back(judge_far(places, found));
  std::erase(warnings, "");
  return warnings;
}

}  // namespace lockstep
