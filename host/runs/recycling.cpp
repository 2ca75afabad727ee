// SPDX-License-Identifier: Apache-2.0
#include "host/runs/recycling.hpp"

#include <algorithm>
#include <cmath>

#include "host/runs/chain_result.hpp"
#include "host/runs/recording.hpp"
#include "host/runs/state_moments.hpp"

namespace lockstep {

Orbits::Orbits(const ModeLibrary& all) : library_(all.dim()) {
  for (const int k : all.most_used()) library_.add(all[k]);
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

/// The larger of the error that orbits tell and of what they cannot: chains may not have met some part yet, of which
/// kUnmet draws, each a standard deviation away, is more than they would leave out. Where something wider lies about a mode
/// as far as is known, which is such a part, nobody knows better than the chains.
struct LeastErrors {
  static constexpr double kUnmet = 30;
  double states;
  bool halos;
  double of(double recycled, double own, double scale) const {
    const double effective = std::min(states, scale * scale / (own * own));
    return std::fmax(recycled, halos ? own : std::fmin(own, kUnmet * scale / effective));
  }
};

/// Sum of squared errors over scales.
template <class Scale>
double spread(const std::vector<double>& se, Scale scale) {
  double sum = 0;
  for (std::size_t i = 0; i < se.size(); ++i) sum += std::pow(se[i] / scale(i), 2);
  return sum;
}

/// The estimates of chains with those of orbits in their place where these are known better: all means, or none; all second
/// moments and covariances, or none; and expectations one by one. Nothing where none is.
std::optional<WeightedMoments> better_of(const WeightedMoments& own, const WeightedMoments& orbits,
                                         const LeastErrors& least, const TargetInstance& target) {
  const std::size_t d = own.mean.size();
  const auto sd = [&](std::size_t i) { return std::sqrt(own.variance(int(i))); };
  const auto size = [&](std::size_t i) { return own.second[i]; };
  const bool means = spread(orbits.mean_se, sd) < spread(own.mean_se, sd),
             seconds = spread(orbits.second_se, size) < spread(own.second_se, size);
  WeightedMoments m = own;
  bool any = means || seconds;
  for (std::size_t i = 0; i < d && means; ++i) {
    m.mean[i] = orbits.mean[i];
    m.mean_se[i] = m.mean_unscaled_se[i] = least.of(orbits.mean_se[i], own.mean_se[i], sd(i));
    m.mean_df[i] = std::min(orbits.mean_df[i], own.mean_df[i]);
  }
  // About the means that are told: moments about 0 of places far from it would not belong to these.
  const WeightedMoments& from = seconds ? orbits : own;
  const auto apart = [&](std::size_t i) { return from.mean[i] - m.mean[i]; };
  for (std::size_t i = 0; i < d; ++i) {
    m.second[i] = from.variance(int(i)) + apart(i) * apart(i) + m.mean[i] * m.mean[i];
    if (seconds) m.second_se[i] = least.of(orbits.second_se[i], own.second_se[i], size(i));
    for (std::size_t j = 0; j < d && !m.covariance.empty(); ++j)
      m.covariance[i * d + j] = from.covariance[i * d + j] + apart(i) * apart(j);
  }
  for (std::size_t q = 0; q < own.quantity.size(); ++q) {
    if (!(orbits.quantity_se[q] < own.quantity_se[q])) continue;
    const double value = m.quantity[q] = orbits.quantity[q];
    const bool is_share = is_probability(target.quantities()[q]);
    const double scale = is_share ? std::sqrt(std::max(0.0, value * (1 - value))) : std::abs(value);
    m.quantity_se[q] = least.of(orbits.quantity_se[q], own.quantity_se[q], scale);
    any = true;
  }
  return any ? std::optional(m) : std::nullopt;
}

/// Sums as chains would leave them that had made `taken` iterations.
UnitMoments empty_moments(const UnitMoments& own, std::int64_t taken) {
  UnitMoments m;
  m.layout = own.layout;
  m.chains = own.chains;
  m.iterations = taken;
  const std::int64_t most = most_batches(own.chains);
  m.batch_length = (taken + most - 1) / most;
  m.batches = int((taken + m.batch_length - 1) / m.batch_length);
  m.stats = own.stats;
  m.sums.assign(std::size_t(m.chains) * m.batches * m.layout.rows(), 0.0);
  return m;
}

Recycled recycle_unit(const RunContext& context, std::uint32_t number, const ChainRunResult& run,
                      std::size_t unit) {
  const UnitMoments& own = run.units[unit];
  const ModeLibrary& library = run.modes[unit].library;
  const int d = library.dim(), chains = own.chains;
  Recycled recycled;
  if (library.size() == 0) return recycled;
  const Orbits orbits(library);
  const std::int64_t draws = run.overview.draws(), of_all = std::int64_t(run.units.size()) * chains;
  const double made = std::max(own.stats[stat_gradients], double(own.iterations) * chains),  // or densities
      paid = kRecyclingShare / (1 - kRecyclingShare) * made;
  std::int64_t taken = std::min(draws, std::int64_t(paid / orbits.size() / chains));
  // Not one in two: of chains that jump to and fro one side alone would be taken.
  if (taken > 0 && draws % (2 * taken) == 0) --taken;
  if (taken < 2) return recycled;
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
      const std::int64_t draw = (first + s) / chains * draws / taken, chain = (first + s) % chains;
      const float* from = &run.overview.x()[(draw * of_all + std::int64_t(unit) * chains + chain) * d];
      x.col(s) = Eigen::Map<const Eigen::VectorXf>(from, d).cast<double>();
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
  const LeastErrors least{double(states), orbits.halos()};
  recycled.moments = better_of(estimate(own), estimate(m), least, *context.target);
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
  e.ess_min = least_effective(e);
  return e;
}

}  // namespace lockstep
