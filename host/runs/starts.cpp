// SPDX-License-Identifier: Apache-2.0
// What the scout's particles become: starting positions, and a full base and metric.
#include "host/runs/starts.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <cmath>

#include "host/runs/known_modes.hpp"
#include "host/runs/mode_base.hpp"
#include "host/runs/points_file.hpp"
#include "host/util/errors.hpp"
#include "kernels/base.hpp"
#include "kernels/iterations.hpp"

namespace lockstep {
namespace {

bool is_uniform(const std::string& init, double& half_width) {
  if (init.rfind("uniform:", 0) != 0) return false;
  half_width = std::strtod(init.c_str() + 8, nullptr);  // the options have been checked
  return true;
}

/// Covariance of one unit's particles, its off-diagonal shrunk by dim / particles (they are few).
Eigen::MatrixXd particle_covariance(const ScoutResult& found, std::size_t unit) {
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int d = found.dim, n = found.particles;
  const Rows x = Eigen::Map<const Rows>(found.position.data() + unit * n * d, n, d);
  const Eigen::MatrixXd centred = x.rowwise() - x.colwise().mean();
  Eigen::MatrixXd s = centred.transpose() * centred / (n - 1);
  const Eigen::VectorXd variance = s.diagonal();
  s *= 1 - std::min(0.9, double(d) / n);
  s.diagonal() = variance;
  return s;
}

/// The points again; UserError where log density or slope is not finite, in single precision.
std::vector<Eigen::VectorXd> usable(std::vector<Eigen::VectorXd> points, const TargetInstance& target,
                                    const std::string& what, const std::string& file) {
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

}  // namespace

void include_modes(ScoutResult& found, std::size_t unit, const ModeLibrary& library, RandomStream random) {
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  if (found.particles == 0) return;
  const auto shares = library.shares();
  std::vector<double> mass;
  double total = 0, covered = 0;  // shares of what was found; of the scout's Z
  int good = 0;
  for (int k = 0; k < library.size(); ++k) {
    const bool known = library[k].mass_known();
    good += known;
    covered += known ? std::exp(library[k].log_mass - found.log_z[unit]) : 0;
    mass.push_back(total += known ? shares[k] : 0);
  }
  if (good < 2 || !(total >= 0.5) || !(covered >= 0.5)) return;
  const int d = found.dim, n = found.particles;
  Eigen::Map<Rows> x(found.position.data() + unit * n * d, n, d);
  for (int p = 1; p < n; p += 2) {
    const auto k = std::upper_bound(mass.begin(), mass.end() - 1, total * random.uniform()) - mass.begin();
    const Mode& mode = library[int(k)];
    const Eigen::Map<const Rows> factor(mode.factor.data(), d, d);
    Eigen::VectorXd z(d);
    for (int i = 0; i < d; ++i) z[i] = random.normal();
    x.row(p) =
        Eigen::Map<const Eigen::VectorXd>(mode.place.data(), d) + factor.triangularView<Eigen::Lower>() * z;
  }
  found.measure(unit);
}

std::vector<Eigen::VectorXd> read_starts(const std::string& init, int dim) {
  double half_width;
  if (init == "scout" || is_uniform(init, half_width)) return {};
  return read_points(init, dim, "--init");
}

std::vector<Eigen::VectorXd> usable_starts(const std::string& init, const TargetInstance& target) {
  return usable(read_starts(init, target.dim()), target, "row", "--init " + init);
}

std::vector<Eigen::VectorXd> usable_places(const std::filesystem::path& modes, const TargetInstance& target) {
  if (modes.empty()) return {};
  return usable(read_points(modes, target.dim(), "--modes"), target, "place", "--modes " + modes.string());
}

SearchResult find_modes(const RunContext& context, std::uint32_t unit, const std::string& init,
                        const std::filesystem::path& modes, SearchPlan plan) {
  const int d = context.target->dim();
  plan.known = read_starts(init, d);
  if (!modes.empty()) {
    const auto places = read_points(modes, d, "--modes");
    SearchResult given = modes_at(context, unit, places);
    if (given.library.size() > 1) return given;
    plan.known.insert(plan.known.end(), places.begin(), places.end());
  }
  return search_modes(context, unit, plan);
}

std::vector<std::string> judge_given(const TargetInstance& target, const std::string& init,
                                     const std::filesystem::path& modes, const SearchResult& found) {
  constexpr double kFar = 4;  // times the core, of squares
  std::vector<std::string> warnings;
  const int d = target.dim(), n = found.library.size() - found.met;
  double lowest = INFINITY;
  for (int k = 0; k < n; ++k) lowest = std::min(lowest, found.library[k].log_density);
  const double least = lowest - 1000 - 10.0 * d;  // a draw is d / 2 below its mode
  const auto rows = read_starts(init, d);
  std::vector<std::size_t> far;
  Eigen::VectorXd gradient(d);
  for (std::size_t r = 0; n > 0 && r < rows.size(); ++r)
    if (!(target.log_density(rows[r].data(), gradient.data()) >= least)) far.push_back(r + 1);
  if (!far.empty())
    warnings.push_back(fmt::format(
        "row {} of --init{} lies far out, where the log density is over {:.0f} below every mode found: it is "
        "no hint of a mode, and chains that begin there may not arrive; give points near the modes",
        far[0], far.size() > 1 ? fmt::format(", and {} more,", far.size() - 1) : "", 1000 + 10.0 * d));
  const auto given = modes.empty() ? std::vector<Eigen::VectorXd>{} : read_points(modes, d, "--modes");
  const int places = int(given.size());
  if (found.stopped == kSearchGiven && places > n)
    warnings.push_back(fmt::format("the {} places of --modes lead to {} mode{}: the others are the same",
                                   places, n, n == 1 ? "" : "s"));
  else if (found.stopped != kSearchGiven && found.stopped != kSearchModes && places > 0)
    warnings.push_back(fmt::format("{} of --modes {} to one mode, which leaves nothing to compare{}",
                                   places > 1 ? fmt::format("the {} places", places) : "the one place",
                                   places > 1 ? "lead" : "leads",
                                   found.stopped == kSearchDimension ? "" : ": modes were searched for"));
  for (int p = 0; p < places && n > 0; ++p)
    if (const int k = found.library.nearest(given[p].data());
        found.library.distance(k, given[p].data()) > kFar * core_distance(d)) {
      warnings.push_back(fmt::format(
          "place {} of --modes is {:.0f} standard deviations from the mode that it leads to or any other: if "
          "a mode was meant there, it is not among those known",
          p + 1, std::sqrt(found.library.distance(k, given[p].data()))));
      break;
    }
  return warnings;
}

std::vector<double> starts(const RunContext& context, const Engine& engine, const StartPlan& plan) {
  const auto& [init, box, units, found, known, superchain] = plan;
  const int chains = engine.chains(), dim = engine.dim(), n = engine.samples(),
            per = chains / int(units.size());
  std::vector<double> x(std::size_t(engine.rows()) * chains);
  std::vector<int> dealt;
  if (!known.empty()) {
    // Climbs of some 500 gradients; points beyond start one superchain each.
    constexpr std::size_t most = 256;
    const std::vector<Eigen::VectorXd> climbed(known.begin(), known.begin() + std::min(known.size(), most));
    double gradients = 0;  // on the host, a few thousand at most: in no cost of the run's
    dealt = deal_points(known_modes(*context.target, climbed, gradients), int(known.size()),
                        superchain.back() + 1);
  }
  double half_width = 0;
  const bool uniform = is_uniform(init, half_width);
  for (int c = 0; c < chains; ++c) {
    const int u = c / per;
    const Draw<double> draw{context.key, kWarmupIterations, std::uint32_t(superchain[c % per]), units[u]};
    for (int s = 0; s < n; ++s) {
      // Each pseudo-sample picks its own particle; the u are spread over the temperatures.
      const auto pick = [&](int count) {
        return std::min(count - 1, int(draw.uniform(Purpose::pseudo_start, std::uint32_t(s)) * count));
      };
      if (uniform) {
        for (int i = 0; i < dim; ++i)
          x[std::size_t(s * dim + i) * chains + c] =
              half_width * (2 * draw.uniform(Purpose::start, std::uint32_t(s * dim + i)) - 1);
      } else if (!known.empty()) {
        const auto& row = known[dealt[superchain[c % per]]];
        for (int i = 0; i < dim; ++i) x[std::size_t(s * dim + i) * chains + c] = row[i];
      } else {
        const std::size_t p = std::size_t(u) * found.particles + pick(found.particles);
        for (int i = 0; i < dim; ++i) x[std::size_t(s * dim + i) * chains + c] = found.position[p * dim + i];
      }
      if (engine.rows() > n * dim)
        x[std::size_t(n * dim + s) * chains + c] =
            3 * draw.uniform(Purpose::pseudo_start, std::uint32_t(1000 + s)) - 1.5;
    }
  }
  if (std::isfinite(box))
    for (int j = 0; j < n * dim * chains; ++j) x[j] = std::clamp(x[j], -box, box);
  return x;
}

bool correlated(const ScoutResult& found) {
  const Eigen::MatrixXd s = particle_covariance(found, 0);
  for (int i = 0; i < found.dim; ++i)
    for (int j = 0; j < i; ++j)
      if (std::abs(s(i, j)) > 0.6 * std::sqrt(s(i, i) * s(j, j))) return true;
  return false;
}

void reach_modes(const std::vector<SearchResult>& modes, Frozen& f) {
  constexpr double kLeastShare = 1e-6, kReach = 3, kMostWider = 5, kMostInAll = 10;
  for (std::size_t u = 0; u < modes.size(); ++u) {
    const ModeLibrary& library = modes[u].library;
    const auto shares = library.shares();
    const int d = library.dim();
    const Eigen::Map<const Eigen::VectorXd> mean(f.base_mean.data() + u * d, d);
    Eigen::Map<Eigen::VectorXd> sd(f.base_sd.data() + u * d, d);
    Eigen::ArrayXd wider = Eigen::ArrayXd::Ones(d);
    for (int k = 0; k < library.size(); ++k) {
      if (!(shares[k] >= kLeastShare)) continue;
      const Eigen::Map<const Eigen::VectorXd> place(library[k].place.data(), d);
      wider = wider.max((place - mean).array().abs() / (kReach * sd.array()));
    }
    wider = wider.min(kMostWider).log();
    sd.array() *= (wider * std::min(1.0, kMostInAll / std::max(1e-300, wider.sum()))).exp();
  }
}

void set_mode_bases(const ScoutResult& found, const SamplerConfig& config,
                    const std::vector<SearchResult>& modes, Frozen& f) {
  // Of modes narrow beyond measure no inverse temperature that is ever drawn is small enough to see that part: log Z may
  // be off by its weight.
  constexpr double kDefensive = 0.02;
  const int d = found.dim;
  if (config.base == "modes" && modes.empty())
    throw UserError("sampler.base is modes (studies of samplers search for none). Use auto or scout");
  const bool may = config.mode_jumps && !std::isfinite(config.model.box);
  const auto begins_there = [&](std::size_t u) {
    return begins_at_modes(config.base, may, modes[u], found.log_z[u]);
  };
  bool any = false, tied = false;
  for (std::size_t u = 0; u < modes.size(); ++u) {
    any |= begins_there(u);
    tied |= begins_there(u) && wants_tied_base(modes[u].library);
  }
  if (!any) return;
  std::vector<BaseDensity> bases;
  for (std::size_t u = 0; u < modes.size(); ++u) {
    const ModeLibrary& library = modes[u].library;
    const Eigen::Map<const Eigen::VectorXd> mean(found.mean.data() + u * d, d),
        sd(f.base_sd.data() + u * d, d);
    if (begins_there(u)) {
      bases.push_back(mode_base(library, mean, particle_covariance(found, u), tied, kDefensive));
      f.log_zeta[u] = double(float(library.log_total() + config.tilt));
    } else {
      bases.push_back(!f.full_base.empty() ? f.full_base[u]
                                           : BaseDensity::normal(mean, sd.asDiagonal(), false));
      bases.back().tied = tied;
    }
  }
  f.full_base = std::move(bases);
  f.model.base = f.full_base[0].number();
}

void set_full_base(const ScoutResult& found, const SamplerConfig& config, Frozen& f) {
  const int d = found.dim, triangle = d * (d + 1) / 2, units = int(f.step_size.size());
  f.model.base = base_number<NormalMixture>();
  f.model.dense_metric = config.metric != "unit";
  f.factor.resize(std::size_t(units) * triangle);
  for (int u = 0; u < units; ++u) {
    const Eigen::MatrixXd s = particle_covariance(found, u);
    const Eigen::MatrixXd c = s.llt().matrixL();
    const Eigen::Map<const Eigen::VectorXd> mean(f.base_mean.data() + std::size_t(u) * d, d);
    f.full_base.push_back(BaseDensity::normal(mean, config.base_inflation * c, false));
    for (int i = 0; i < d; ++i)
      for (int j = 0; j <= i; ++j) f.factor[u * triangle + i * (i + 1) / 2 + j] = c(i, j);
  }
}

}  // namespace lockstep
