// SPDX-License-Identifier: Apache-2.0
// What the scout's particles become: starting positions, and a full base and metric.
#include "host/runs/starts.hpp"

#include <cmath>

#include "host/estimators/log_sums.hpp"
#include "host/modes/mode_base.hpp"
#include "host/runs/known_modes.hpp"
#include "host/util/errors.hpp"
#include "kernels/base.hpp"
#include "kernels/iterations.hpp"
#include "targets/decompositions.hpp"

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

void correct_log_z(ScoutResult& found, std::size_t unit, const ModeLibrary& library,
                   const TargetInstance& target) {
  constexpr int kLooked = 256;
  constexpr double kExplained = 0.9;
  const int d = found.dim, count = std::min(kLooked, found.particles);
  if (count == 0 || library.size() == 0 || !(found.log_z[unit] > library.log_total() + std::log(2))) return;
  ModeLibrary normals = library;
  for (int k = 0; k < library.size(); ++k)
    for (const Halo& h : library[k].halos) normals.add(as_mode(h));
  double explained = 0;
  Eigen::VectorXd gradient(d);
  for (int n = 0; n < count; ++n) {
    const double* x =
        &found.position[(unit * found.particles + std::size_t(n) * found.particles / count) * d];
    LogSum q;
    for (int k = 0; k < normals.size(); ++k) q.add(normals.log_density(k, x));
    if (const double p = target.log_density(x, gradient.data()); std::isfinite(p))
      explained += std::exp(std::min(0.0, q.log() - p)) / count;
  }
  found.gradients[unit] += count;
  if (explained >= kExplained) found.log_z[unit] = library.log_total();
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
