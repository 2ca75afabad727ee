// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "host/modes/mode_descents.hpp"
#include "host/modes/mode_keeper.hpp"
#include "host/modes/mode_mass.hpp"
#include "host/modes/mode_starts.hpp"
#include "host/modes/mode_visits.hpp"
#include "host/util/errors.hpp"

namespace lockstep {
namespace {

using ByRows = PointEngine::Rows;
using Vector = Eigen::VectorXd;

constexpr int kLeastStarts = 2048, kManyDescents = 131072, kManyStarts = 1 << 22, kLeastHits = 10;
constexpr double kGrowth = 4;  // of rounds, up to kRoundStarts
constexpr int kMostKnown =
    256;  // of the points that somebody gives; beyond them they are starts of chains alone
constexpr double kUsualTrajectory = 8;  // gradients
// It goes on until so many are made, or this share of what it may spend is spent, though it might rest: each mode found
// often is no sign that there is no other (of mixtures of four in 12 dimensions 8 in 20 lacked one at 2,048 starts).
constexpr double kEnough = 0.4;

/// A search in hand: the engines, what was found, what was spent.
class Search {
 public:
  Search(const RunContext& context, std::uint32_t unit, const SearchPlan& plan)
      : context_(context),
        unit_(unit),
        plan_(plan),
        budget_(plan.gradients > 0 ? plan.gradients
                                   : kSearchShare * plan.iterations),  // then by what a start costs
        dim_(context.target->dim()),
        descents_(context, unit, descents_at_once(dim_), 0.1 * plan.init_scale),
        points_(context, unit, std::clamp(2 * dim_, kMassDraws, kRoundStarts)),
        keeper_(context, unit, points_, result_) {
    result_.library = ModeLibrary(dim_);
    if (plan.residual != ResidualEnergyOf::none)
      residual_.emplace(context, unit, descents_at_once(dim_), 0.1 * plan.init_scale, plan);
  }

  /// Begins with what one before has found.
  Search(const RunContext& context, std::uint32_t unit, const SearchPlan& plan, const SearchResult& found)
      : Search(context, unit, plan) {
    result_ = found;
    keeper_.know();
  }

  SearchResult run() {
    if (!taken_up()) take_in_known();
    return rounds();
  }
  SearchResult on() {
    const double rejected = result_.rejected;
    if (!taken_up()) {
      round_ = 1;
      cost_ = result_.gradients / result_.starts;
      result_.stopped = "";
      result_.rejected = 0;  // the same places would count again
    }
    SearchResult more = rounds();
    more.rejected = std::max(more.rejected, rejected);
    return more;
  }
  SearchResult of(const std::vector<Vector>& places) {
    for (const Vector& x : places) {
      if (keeper_.consider(x, 1)) continue;
      const int before = result_.library.size();
      const double hits = result_.total_hits();
      descend(x);
      if (result_.library.size() == before && result_.total_hits() == hits)
        throw UserError(
            fmt::format("place {} of --modes leads to no mode (the log density there, or where a descent "
                        "from it ends, has no "
                        "highest point that differences of gradients can see). Leave it out",
                        &x - places.data() + 1));
    }
    result_.held = weigh_modes(result_.library, points_, context_, unit_);
    result_.stopped = keeper_.full() ? kSearchModes : kSearchGiven;
    result_.gradients = spent();
    result_.listed = result_.library.size();
    return std::move(result_);
  }

  SearchResult beside(const ByRows& from) {
    const SearchResult found = result_;
    const double least = keeper_.highest() + std::log(kExpectedShare);
    bool any = false;
    // The descents are paid for: each end is looked at.
    const double budget = std::exchange(budget_, INFINITY);
    descend(from);
    budget_ = budget;
    for (int k = found.library.size(); k < result_.library.size(); ++k)
      any = any || result_.library[k].laplace_log_mass > least;
    SearchResult more = ended(any);
    const double gradients = more.gradients;
    if (new_modes(more.library, found.library) == 0) more = found;
    more.met += std::max(0, more.library.size() - found.library.size());
    more.gradients = gradients;
    more.rejected = found.rejected;
    return more;
  }

  template <class Archive>
  void fields(Archive& archive) {
    archive("result", result_);
    archive("budget", budget_);
    archive("round", round_);
    archive("descents", descents_);
    archive("points", points_);
    if (residual_) archive("residual", *residual_);
    archive("keeper", keeper_);
    archive("cost", cost_);
  }

 private:
  std::string name() const { return fmt::format("rounds {}", unit_); }
  bool taken_up() { return plan_.kept && context_.stages->take_up(name(), *this); }
  SearchResult rounds() {
    while (result_.stopped.empty()) {
      const double before = of_descents(), made = result_.starts;
      const ByRows from = starts();
      if (result_.library.size() == 0 || !foretells()) {
        descend(residual_ && result_.library.size() > 0 ? beside_known(from) : from);
      } else {
        const auto [left, expected] = not_foretold(from);
        descend(left, expected);
      }
      cost_ = (of_descents() - before) / (result_.starts - made);
      if (round_ == 0 && plan_.iterations > 0) budget_ = share_of_iterations();
      ++round_;
      result_.stopped = reason();
      if (plan_.kept) context_.stages->save(name(), *this);
      context_.tell("modes", std::min(1.0, spent() / budget_), {spent(), NAN});
    }
    return ended(true);
  }
  SearchResult ended(bool anew) {
    if (anew) {
      // What a mode was thought to hold may be another's home now, and its halos would be found again.
      for (int k = 0; k < result_.library.size(); ++k) {
        Mode& mode = result_.library[k];
        mode.log_mass = mode.core_log_mass = mode.effective_share = NAN;
        mode.halos.clear();
      }
      keeper_.raise_specks();
      keeper_.drop_negligible();
      result_.held = weigh_modes(result_.library, points_, context_, unit_, effort());
    }
    result_.gradients += spent();
    return std::move(result_);
  }

  double of_descents() const { return descents_.evaluations() + (residual_ ? residual_->evaluations() : 0); }
  double spent() const { return of_descents() + points_.evaluations(); }
  std::string reason() {
    if (keeper_.full()) keeper_.drop_negligible();
    if (keeper_.full()) return kSearchModes;
    if (plan_.one_round) return kSearchStarts;
    const bool enough = result_.starts - result_.foretold >= kManyDescents || result_.starts >= kManyStarts ||
                        spent() + mass_cost() >= kEnough * budget_;
    const bool met = result_.library.size() == 0 || result_.total_hits() > 0;  // not by hints alone
    if (enough && met && result_.starts >= kLeastStarts && keeper_.least_hits() >= kLeastHits)
      return kSearchHits;
    if (spent() + mass_cost() >= budget_) return kSearchBudget;
    return "";
  }
  /// Where nobody has planned gradients: iterations cost about what a descent does, or a trajectory that mixes well. That
  /// may not pay for the least number of descents; then as if every iteration cost a descent. And a short run is no reason
  /// to look less than the scout has.
  double share_of_iterations() const {
    const double each = spent() / result_.starts, share = kSearchShare * plan_.iterations;
    return std::max(plan_.least, share * std::clamp(1.1 * kLeastStarts * each / share,
                                                    std::min(each, kUsualTrajectory), each));
  }
  double mass_cost() const {
    const int n = result_.library.size(), most = std::min(kMassModes, n);
    return double(kMassDraws) * most + double(kMomentDraws) * (n - most);
  }

  /// Where there are many modes it is worth more draws to know what they hold together, as far as they can be paid.
  int effort() const {
    if (result_.library.size() <= most_used_modes(dim_)) return 1;
    return int(std::clamp((budget_ - spent()) / mass_cost(), 1.0, double(kMostEffort)));
  }

  /// Whether gradients say enough of where descents end to be worth asking first: what they have spared is more than they
  /// have cost.
  bool foretells() const {
    constexpr double kTrial = 1024;
    if (round_ == 0 || dim_ == 1 || residual_) return false;
    const double each =
        (result_.gradients + of_descents() - result_.forecast.asked()) / (result_.starts - result_.foretold);
    return result_.forecast.asked() < kTrial || result_.forecast.share() * each > 1;
  }
  /// As many as the budget pays, by what a start of the last round has cost.
  int round_size() const {
    if (round_ == 0) return plan_.first_starts;
    const double left = (budget_ - spent() - mass_cost()) / cost_;
    // Foretold starts leave few descents, which are made side by side: then more starts at a time.
    const double most = cost_ < 2 ? starts_at_once(dim_) : kRoundStarts;
    return int(std::clamp(left, 1.0, std::min(plan_.first_starts * std::pow(kGrowth, round_), most)));
  }

  ByRows starts() {
    const int extra = round_ == 0 ? int(plan_.particles.size()) / dim_ : 0;
    result_.scale = std::max(result_.scale, widened(result_.library, plan_.init_scale));
    ByRows x = mode_starts(context_, unit_, result_.library, plan_.init_scale, std::uint64_t(result_.starts),
                           round_size());
    const Eigen::Index n = x.cols();
    x.conservativeResize(dim_, n + extra);
    for (int c = 0; c < extra; ++c)
      for (int i = 0; i < dim_; ++i) x(i, n + c) = plan_.particles[std::size_t(c) * dim_ + i];
    return x;
  }

  /// Counts those whose end is foretold, and believed, as hits, but for a few that are tried; returns the others, with the modes that they should end at
  /// (-1: unknown).
  std::pair<ByRows, std::vector<int>> not_foretold(const ByRows& from) {
    Vector value;
    ByRows gradient;
    descents_.evaluate(from, value, gradient);
    const std::vector<int> mode = result_.forecast.of(result_.library, from, gradient, context_.threads);
    constexpr int kTried = 128;  // one in so many descends all the same, for belief to be kept
    std::vector<int> left, expected;
    for (int c = 0; c < int(mode.size()); ++c) {
      if (mode[c] < 0 || !result_.forecast.believed(mode[c]) || c % kTried == 0) {
        left.push_back(c);
        expected.push_back(mode[c]);
        continue;
      }
      result_.library[mode[c]].hits += 1;
      result_.starts += 1;
      result_.ended += 1;
      result_.foretold += 1;
    }
    return {ByRows(from(Eigen::all, left)), expected};
  }

  /// Lets them all descend, and takes in where they come to rest, the highest first.
  /// `expected`: the modes that forecasts say, if they were asked.
  void descend(const ByRows& from, const std::vector<int>& expected = {}) {
    for (Eigen::Index first = 0; first < from.cols(); first += descents_.at_once()) {
      if (first > 0 && !expected.empty() && spent() + mass_cost() >= budget_)
        break;  // more descend than had been foretold
      const auto count = std::min<Eigen::Index>(from.cols() - first, descents_.at_once());
      const DescentEnds ends = descents_.run(from.middleCols(first, count));
      result_.starts += double(count);
      result_.ended += double(ends.rested.size());
      // What differences of gradients cost is kept in proportion to the descents, and within the budget.
      const double share = std::max(of_descents(), 64.0 * dim_),
                   most = points_.evaluations() + std::min(share, std::max(budget_ - spent(), 8.0 * dim_));
      const std::vector<int> at = keeper_.take_in(ends, most);
      for (Eigen::Index c = 0; c < count && !expected.empty(); ++c)
        if (const int k = expected[first + c]; k >= 0) result_.forecast.came(k, at[c] == k);
    }
  }
  /// Lets them descend on the residual energy of the modes known, and returns what comes to rest elsewhere, to be refined
  /// without it; at a known mode it is found again.
  ByRows beside_known(const ByRows& from) {
    residual_->set_known(result_.library);
    std::vector<Vector> others;
    for (Eigen::Index first = 0; first < from.cols(); first += residual_->at_once()) {
      const auto count = std::min<Eigen::Index>(from.cols() - first, residual_->at_once());
      const DescentEnds ends = residual_->run(from.middleCols(first, count));
      for (const int c : ends.rested) {
        others.push_back(ends.place.col(c));
        const int k = keeper_.found_again(others.back(), ends.log_density[c]);
        if (k < 0) continue;
        others.pop_back();
        result_.library[k].hits += 1;
        result_.ended += 1;
      }
    }
    result_.starts += double(from.cols()) - double(others.size());  // these count when they go on
    ByRows on(dim_, others.size());
    for (std::size_t c = 0; c < others.size(); ++c) on.col(Eigen::Index(c)) = others[c];
    return on;
  }

  /// Points that somebody gives: modes, or what descents from them find. Those are no hits, for nobody met them by chance.
  void take_in_known() {
    std::vector<Vector> others;
    for (int n = 0; n < std::min<int>(plan_.known.size(), kMostKnown); ++n)
      if (keeper_.full() || !keeper_.consider(plan_.known[n], 0)) others.push_back(plan_.known[n]);
    for (std::size_t first = 0; first < others.size(); first += descents_.at_once()) {
      ByRows from(dim_, std::min<std::size_t>(others.size() - first, descents_.at_once()));
      for (Eigen::Index c = 0; c < from.cols(); ++c) from.col(c) = others[first + c];
      const DescentEnds ends = descents_.run(from);
      for (const int c : ends.rested) {
        if (keeper_.full() || spent() >= budget_) return;
        const Vector x = ends.place.col(c);
        if (keeper_.found_again(x, ends.log_density[c]) < 0) keeper_.consider(x, 0);
      }
    }
  }

  const RunContext& context_;
  const std::uint32_t unit_;
  const SearchPlan& plan_;
  double budget_;  // gradients
  const int dim_;
  ModeDescents descents_;
  std::optional<ResidualDescents> residual_;
  PointEngine points_;
  SearchResult result_;
  ModeKeeper keeper_;
  int round_ = 0;
  double cost_ = 0;  // of a start of the last round, in gradients
};

}  // namespace

SearchResult search_modes(const RunContext& context, std::uint32_t unit, const SearchPlan& plan) {
  if (context.target->dim() > kMostSearchedDim) {
    SearchResult none;
    none.library = ModeLibrary(context.target->dim());
    none.stopped = kSearchDimension;
    return none;
  }
  return Search(context, unit, plan).run();
}

SearchResult search_on(const RunContext& context, std::uint32_t unit, const SearchPlan& plan,
                       const SearchResult& found) {
  const bool given = found.stopped == kSearchGiven || found.stopped == kSearchDimension;
  if (given || found.full() || plan.gradients < 2 * found.gradients) return found;
  SearchPlan more = plan;
  more.gradients -= found.gradients;
  return Search(context, unit, more, found).on();
}

SearchResult modes_beside(const RunContext& context, std::uint32_t unit, const SearchPlan& plan,
                          const SearchResult& found, const ByRows& from) {
  return Search(context, unit, plan, found).beside(from);
}

int new_modes(const ModeLibrary& library, const ModeLibrary& other) {
  constexpr double kNear = 9;  // squared Mahalanobis distance
  const double least = library.log_total() + std::log(kExpectedShare);
  std::vector<int> known, added;
  for (int k = 0; k < library.size(); ++k) {
    const auto is_k = [&](int o) { return other[o].place == library[k].place; };
    bool is_known = false;
    for (int o = 0; o < other.size(); ++o) is_known = is_known || is_k(o);
    (is_known ? known : added).push_back(k);
  }
  const auto counts = [&](int k) {
    const Mode& mode = library[k];
    const auto beside = [&](int o) {
      return library.distance(o, mode.place.data(), kNear) < kNear &&
             library.distance(k, library[o].place.data(), kNear) < kNear;
    };
    return resembles_normal(mode.effective_share, library.dim()) && mode.log_mass > least &&
           std::none_of(known.begin(), known.end(), beside);
  };
  return int(std::count_if(added.begin(), added.end(), counts));
}

SearchResult modes_at(const RunContext& context, std::uint32_t unit, const std::vector<Vector>& places) {
  return Search(context, unit, {}).of(places);
}

}  // namespace lockstep
