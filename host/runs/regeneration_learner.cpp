// SPDX-License-Identifier: Apache-2.0
#include "host/runs/regeneration_learner.hpp"

#include <algorithm>
#include <numeric>

#include "host/engines/sharded_engine.hpp"
#include "host/estimators/log_sums.hpp"
#include "host/modes/mode_jumps.hpp"
#include "host/modes/mode_search.hpp"
#include "kernels/regeneration.hpp"

namespace lockstep {
namespace {

constexpr double kSearchPart = 0.1;
constexpr int kPlaces = 16;  // of chains, from which a search begins too

}  // namespace

RegenerationLearner::RegenerationLearner(const RunContext& context, const SamplerConfig& config,
                                         const ChainRunOptions& options,
                                         const std::vector<SearchResult>& modes)
    : context_(context), config_(config), options_(options) {
  if (!context.regeneration || !config.learns_modes()) return;
  spread_ = config.regeneration_settings[Regeneration::spread];
  level_ = config.regeneration_settings[Regeneration::level];
  most_ = config.regeneration_settings[Regeneration::adaptations];
  const UnitList lists = context.regeneration->of(options.units);
  for (std::size_t u = 0; u < options.units.size(); ++u) {
    const auto& list = lists.at(options.units[u]);
    known_.push_back(modes[u].library.size());
    units_.push_back({modes[u].library, std::vector<double>(modes[u].library.size(), 0.0), list, list});
  }
}

void RegenerationLearner::hand_on(Engine& engine) const {
  if (idle()) return;
  RunContext context = context_;
  auto lists = std::make_shared<SharedNumbers>();
  std::vector<SearchResult> modes(units_.size());
  bool grown = false;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    lists->of_unit[options_.units[u]] = units_[u].list;
    modes[u].library = units_[u].library;
    grown = grown || units_[u].library.size() > known_[u];
  }
  if (grown && context.jumps) context = with_jumps(context, options_.units, modes, {}, true);
  if (grown) context = with_lists(context, config_, options_.units, modes);
  context.regeneration = lists;
  set_lists(engine, context, *config_.transition, options_.units);
}

/// A search by itself: of random numbers of its own, with nothing to be saved.
bool RegenerationLearner::add_modes(Unit& unit, std::uint32_t number, const Eigen::MatrixXd& x, double most) {
  RunContext context = context_;
  context.jumps = context.regeneration = nullptr;  // of descents nothing follows
  const std::uint64_t seed = (std::uint64_t(context.key.k1) << 32) | context.key.k0;
  // One that found nothing is not made again from the same starts.
  context.key =
      make_stream_key(seed, unit.library.size() == 0 ? "first modes " + std::to_string(int(unit.due))
                                                     : "modes " + std::to_string(int(unit.epoch)));
  context.stages = std::make_shared<Stages>();
  context.progress = std::make_shared<Progress>();
  SearchPlan plan;
  plan.init_scale = options_.init_scale;
  plan.gradients = most;
  plan.first_starts = 4;
  plan.residual = ResidualEnergyOf(int(config_.regeneration_settings[Regeneration::residual]));
  for (int k = 0; k < unit.library.size() && plan.residual != ResidualEnergyOf::none; ++k) {
    const auto& place = unit.library[k].place;
    plan.known.push_back(Eigen::Map<const Eigen::VectorXd>(place.data(), Eigen::Index(place.size())));
  }
  for (Eigen::Index c = 0; c < std::min<Eigen::Index>(x.cols(), kPlaces); ++c)
    plan.particles.insert(plan.particles.end(), x.col(c).begin(), x.col(c).end());
  SearchResult found = search_modes(context, number, plan);
  unit.gradients += found.gradients;
  const int known = unit.library.size();
  for (int k = 0; k < found.library.size(); ++k) {
    if (unit.library.nearest(found.library[k].place.data(), 1) >= 0) continue;
    unit.library.add(std::move(found.library[k]));
    unit.visits.push_back(0);
  }
  return unit.library.size() > known;
}

/// Tours by a q that lacks a mode seldom or never come to it: their sums are those of the target without it, balanced only
/// by tours so long and rare that a run has none, and their errors do not show it. So they are forgotten, the open ones
/// too: every chain is as at its beginning, in no tour, and goes by the newest list at once. What it was before does not
/// matter: the next tour begins with a draw of the new Q, independent of where the chain is and of why this was done
/// now, so that the tours from here on are independent and alike.
void RegenerationLearner::drop_tours(Engine& engine, std::size_t unit) {
  std::size_t rows = 1;  // behind them is one of the state's own
  for (const TransitionField& f : Regeneration::info().fields)
    if (f.saved) rows += f.rows(engine.dim());
  const std::size_t total = engine.chains(), per = total / units_.size();
  auto state = engine.state();
  for (std::size_t row = 0; row + 1 < rows; ++row) {
    const auto of_unit = state.end() - std::ptrdiff_t((rows - row) * total - unit * per);
    if (row == Regeneration::made)
      units_[unit].dropped += std::accumulate(of_unit, of_unit + std::ptrdiff_t(per), 0.0);
    std::fill_n(of_unit, per, 0.0);
  }
  engine.set_state(state);
}

/// The list's newest mixture, with log c of the chains' places.
std::vector<double> RegenerationLearner::mixture(const Unit& unit, const Eigen::MatrixXd& x,
                                                 const std::vector<double>& log_density) const {
  const int d = unit.library.dim();
  const double widened = 1 + spread_ / std::sqrt(double(d));
  double visits = double(unit.library.size());
  for (const double n : unit.visits) visits += n;
  ModeLibrary by_visits(d);
  for (int k = 0; k < unit.library.size(); ++k) {
    Mode mode = unit.library[k];
    mode.laplace_log_mass = mode.log_mass = std::log((unit.visits[k] + 1) / visits);
    by_visits.add(std::move(mode));
  }
  auto list = mixture_list(by_visits, widened);
  const auto order = by_visits.by_mass();
  const int length = ModeMixture::length(d);
  double log_w = 0;
  for (Eigen::Index c = 0; c < x.cols(); ++c) {
    const Eigen::VectorXd at = x.col(c);
    LogSum log_q;
    for (int k = 0; k < int(list[0]); ++k)
      log_q.add(list[ModeMixture::kHeader + (k + 1) * length - 2] -
                0.5 * by_visits.distance(order[k], at.data()) / widened);
    log_w += (log_density[c] - log_q.log()) / double(x.cols());
  }
  list[1] = log_w + level_;
  return list;
}

void RegenerationLearner::update(Engine& engine, std::int64_t t, double spent) {
  if (idle() || t % 64 != 0) return;
  const auto rows = engine.position(), fields = engine.fields(), cache = engine.cache();
  const int total = engine.chains(), d = engine.dim(), per = total / int(units_.size());
  int own = 0;
  for (const TransitionField& f : Regeneration::info().fields) own += f.rows(d);
  const double* of_tours = fields.data() + (fields.size() / total - own) * total;
  bool changed = false;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    Unit& unit = units_[u];
    const std::size_t first = u * per;
    Eigen::MatrixXd x(d, per);
    bool ready = t >= unit.due && unit.epoch < most_;
    for (int c = 0; c < per; ++c) {
      for (int i = 0; i < d; ++i) x(i, c) = rows[std::size_t(i) * total + first + c];
      const auto field = [&](int row) { return of_tours[std::size_t(row) * total + first + c]; };
      ready = ready && field(Regeneration::waits) == 0 &&
              (field(Regeneration::begun) == 0 || field(Regeneration::epoch) == unit.epoch);
    }
    for (const int k : unit.library.of_points(x, ModeLibrary::By::density, 1))
      if (k >= 0) unit.visits[k] += 1;
    if (!ready) continue;
    if (add_modes(unit, options_.units[u], x, kSearchPart * spent)) drop_tours(engine, u);
    if (unit.library.size() == 0) {
      unit.due = 2 * double(t);
      continue;
    }
    const auto before = std::exchange(unit.newest, mixture(unit, x,
                                                           {cache.begin() + std::ptrdiff_t(first),
                                                            cache.begin() + std::ptrdiff_t(first + per)}));
    unit.epoch += 1;
    unit.due = 2 * double(t);
    unit.list = unit.newest;
    unit.list.insert(unit.list.end(), before.begin(), before.end());
    unit.list.push_back(unit.epoch);
    changed = true;
  }
  if (changed) hand_on(engine);
}

void RegenerationLearner::finish(ChainRunResult& result) const {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    result.frozen.search_gradients[u] += gradients(u);
    result.tours[u].dropped_draws = dropped_draws(u);
    result.tours[u].adaptations = epoch(u);
    // What it has learned a search has found.
    SearchResult& found = result.modes[u];
    const int known = found.library.size();
    for (int k = known; k < units_[u].library.size(); ++k) found.library.add(units_[u].library[k]);
    if (found.library.size() > known) found.held = {};
  }
}

}  // namespace lockstep
