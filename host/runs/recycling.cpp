// SPDX-License-Identifier: Apache-2.0
#include "host/runs/recycling.hpp"

#include <algorithm>
#include <cmath>

#include "host/runs/chain_run.hpp"
#include "host/runs/state_moments.hpp"

namespace lockstep {

Orbits::Orbits(const ModeLibrary& all) : library_(all.dim()) {
  const auto order = all.by_mass();
  for (int k = 0; k < std::min(all.size(), most_used_modes(all.dim())); ++k) library_.add(all[order[k]]);
}

OrbitPoints Orbits::of(const Eigen::MatrixXd& x, int threads) const {
  const int d = library_.dim();
  const auto place = [&](int k) { return Eigen::Map<const Eigen::VectorXd>(library_[k].place.data(), d); };
  const auto factor = [&](int k) {
    return Eigen::Map<const PointEngine::Rows>(library_[k].factor.data(), d, d)
        .triangularView<Eigen::Lower>();
  };
  const auto home = library_.of_points(x, ModeLibrary::By::distance, threads);
  Eigen::MatrixXd y(d, x.cols() * size());
  Eigen::VectorXd log_volume(y.cols());
#pragma omp parallel for num_threads(threads)
  for (Eigen::Index c = 0; c < x.cols(); ++c) {
    const Eigen::VectorXd z = factor(home[c]).solve(x.col(c) - place(home[c]));
    for (int k = 0; k < library_.size(); ++k) {
      const Eigen::Index to = c * size() + 2 * k;
      const Eigen::VectorXd away = factor(k) * z;
      y.col(to) = place(k) + away;
      y.col(to + 1) = place(k) - away;
      log_volume.segment(to, 2).setConstant(library_.log_volume(k));
    }
  }
  const auto nearest = library_.of_points(y, ModeLibrary::By::distance, threads);
  for (Eigen::Index to = 0; to < y.cols(); ++to)
    if (nearest[to] != int(to % size()) / 2) log_volume[to] = -INFINITY;
  return {y, log_volume};
}

namespace {

/// Adds an orbit's points by weight to sums as MomentLayout has them; the draw itself where no point has a density.
void add_orbit(const TargetInstance& target, const MomentLayout& layout, const PointEngine::Rows& points,
               const Eigen::VectorXd& log_weight, const Eigen::VectorXd& x, std::vector<double>& sums) {
  const double top = log_weight.maxCoeff();
  if (!(top > -INFINITY)) return add_state(target, layout, x.data(), 1, sums);
  const Eigen::VectorXd weight = (log_weight.array() - top).exp(), share = weight / weight.sum();
  for (Eigen::Index p = 0; p < share.size(); ++p) {
    const Eigen::VectorXd y = points.col(p);
    add_state(target, layout, y.data(), share[p], sums);
  }
}

double least_ess(const WeightedMoments& m) {
  double least = INFINITY;
  for (std::size_t i = 0; i < m.mean.size(); ++i)
    least = std::min(least, m.variance(int(i)) / (m.mean_se[i] * m.mean_se[i]));
  return least;
}

/// Where modes are normal all orbits say the same but those of states between them, which may be too few to have been met:
/// one of those, which is off as a single draw would be.
WeightedMoments with_unmet(WeightedMoments m, double states, const TargetInstance& target) {
  const auto widen = [&](double& se, double scale) { se = std::hypot(se, scale / states); };
  for (std::size_t i = 0; i < m.mean.size(); ++i) {
    widen(m.mean_se[i], std::sqrt(m.variance(int(i))));
    widen(m.mean_unscaled_se[i], std::sqrt(m.variance(int(i))));
    widen(m.second_se[i], m.second[i]);
  }
  for (std::size_t q = 0; q < m.quantity.size(); ++q) {
    const double value = m.quantity[q];
    const bool is_share = is_probability(target.quantities()[q]);
    widen(m.quantity_se[q], is_share ? std::sqrt(std::max(0.0, value * (1 - value))) : std::abs(value));
  }
  return m;
}

/// Sums as chains would leave them that had made `taken` iterations.
UnitMoments empty_moments(const UnitMoments& own, std::int64_t taken) {
  constexpr int kMostSums = 8192;  // batches of all chains, as Batches
  UnitMoments m;
  m.layout = own.layout;
  m.chains = own.chains;
  m.iterations = taken;
  const std::int64_t most = std::clamp(kMostSums / own.chains, 8, 128);
  m.batch_length = (taken + most - 1) / most;
  m.batches = int((taken + m.batch_length - 1) / m.batch_length);
  m.stats = own.stats;
  m.sums.assign(std::size_t(m.chains) * m.batches * m.layout.rows(), 0.0);
  return m;
}

Recycled recycle_unit(const RunContext& context, std::uint32_t number, const ChainRunResult& run,
                      std::size_t unit) {
  const UnitMoments& own = run.units[unit];
  const ModeLibrary& library = run.modes[run.modes.size() == 1 ? 0 : unit].library;
  const int d = library.dim(), chains = own.chains;
  const std::vector<float> all = run.overview.of_chains(int(unit) * chains, chains);
  const std::int64_t draws = std::int64_t(all.size()) / (std::int64_t(chains) * d);
  Recycled recycled;
  if (library.size() == 0 || draws < 2) return recycled;
  const Orbits orbits(library);
  const double made = std::max(own.stats[stat_gradients], double(own.iterations) * chains),  // or densities
      paid = kRecyclingShare / (1 - kRecyclingShare) * made;
  // Not one in two: of chains that jump to and fro one side alone would be taken.
  const std::int64_t affordable = std::max<std::int64_t>(2, std::int64_t(paid / orbits.size() / chains)),
                     step = (draws + affordable - 1) / affordable | 1, taken = (draws + step - 1) / step;
  UnitMoments m = empty_moments(own, taken);
  const int rows = m.layout.rows();
  PointEngine engine(context, number, std::clamp((1 << 21) / d, 64, 4096));
  const std::int64_t states = taken * chains, at_once = std::max(1, engine.points() / orbits.size());
  PointEngine::Rows gradient;
  Eigen::VectorXd log_density;
  for (std::int64_t first = 0; first < states; first += at_once) {
    context.tell("recycling", double(first) / double(states));
    const std::int64_t count = std::min(at_once, states - first);
    Eigen::MatrixXd x(d, count);
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int64_t draw = (first + s) / chains * step, chain = (first + s) % chains;
      x.col(s) = Eigen::Map<const Eigen::VectorXf>(&all[(draw * chains + chain) * d], d).cast<double>();
    }
    const OrbitPoints orbit = orbits.of(x, context.threads);
    engine.evaluate(orbit.y, log_density, gradient);
    log_density += orbit.log_volume;
    for (std::int64_t s = 0; s < count; ++s) {
      std::vector<double> sums(rows, 0.0);
      const Eigen::Index begin = s * orbits.size();
      add_orbit(*context.target, m.layout, orbit.y.middleCols(begin, orbits.size()),
                log_density.segment(begin, orbits.size()), x.col(s), sums);
      sums[MomentLayout::count] = sums[MomentLayout::beta_mean] = 1;
      const std::int64_t batch = (first + s) / chains / m.batch_length, chain = (first + s) % chains;
      double* to = m.sums.data() + (chain * m.batches + batch) * rows;
      for (int r = 0; r < rows; ++r) to[r] += sums[r];
    }
  }
  recycled.states = double(states);
  recycled.evaluations = engine.evaluations();
  auto moments = with_unmet(estimate(m), recycled.states, *context.target);
  if (least_ess(moments) > least_ess(estimate(own))) recycled.moments = std::move(moments);
  return recycled;
}

}  // namespace

std::vector<Recycled> recycle(const RunContext& context, const std::vector<std::uint32_t>& units,
                              const ChainRunResult& run) {
  std::vector<Recycled> all;
  for (std::size_t u = 0; u < units.size(); ++u) all.push_back(recycle_unit(context, units[u], run, u));
  return all;
}

Estimates estimate_unit(const ChainRunResult& run, std::size_t unit) {
  Estimates e = estimate(run.units[unit]);
  if (run.recycled.empty()) return e;
  const Recycled& recycled = run.recycled[unit];
  e.gradients += recycled.evaluations;
  if (!recycled.moments) return e;
  const double weight_ess = e.weight_ess;
  static_cast<WeightedMoments&>(e) = *recycled.moments;
  e.weight_ess = weight_ess;
  e.ess_min = least_ess(e);
  return e;
}

}  // namespace lockstep
