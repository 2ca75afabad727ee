// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_mass.hpp"

#include <algorithm>
#include <cmath>

#include "host/modes/mode_halos.hpp"

namespace lockstep {
namespace {

using ByRows = PointEngine::Rows;
using Vector = Eigen::VectorXd;

constexpr int kMassDegrees = 3;
constexpr double kMassWidening = 2.5;  // of covariances

/// A mode's mass and effective share by its draws' weights; whether any counts.
bool sum_up(Mode& mode, const Vector& log_w) {
  const double most = log_w.maxCoeff();
  if (!std::isfinite(most)) return false;
  const Eigen::ArrayXd w = (log_w.array() - most).exp();
  mode.log_mass = most + std::log(w.mean());
  mode.effective_share = w.sum() * w.sum() / w.square().sum() / kMassDraws;
  return true;
}

/// Draws of Student t's around modes, as many of each, one mode's after another's: the logs of their weights,
/// -infinity where another mode is home, and their squared Mahalanobis distances.
struct MassDraws {
  ByRows x;
  Vector log_w, distance;
};

class Weigher {
 public:
  Weigher(ModeLibrary& library, PointEngine& points, const RunContext& context, std::uint32_t unit)
      : library_(library), points_(points), context_(context), unit_(unit), dim_(library.dim()) {}

  HeldMoments weigh_all(int effort) {
    const auto order = library_.by_mass();
    const int all = int(order.size()), most = std::min(kMassModes, all);
    HeldMoments held;
    const bool holds = all > most_used_modes(dim_);
    if (holds) {
      const std::vector<double> none(std::size_t(all) * rows(), 0.0);
      held = {library_[order[0]].laplace_log_mass, none, none};
    }
    for (int m = 0; m < most; ++m) {
      const MassDraws draws = draws_of({order[m]}, effort * kMassDraws);
      weigh(library_[order[m]], draws);
      if (holds) add_to(held, order[m], draws.x, draws.log_w);
    }
    // Those that are not weighed one by one, side by side.
    const int each = effort * kMomentDraws, at_once = points_.points() / each;
    for (int first = most; first < all; first += at_once) {
      const std::vector<int> modes(order.begin() + first, order.begin() + std::min(all, first + at_once));
      const MassDraws draws = draws_of(modes, each);
      for (std::size_t m = 0; m < modes.size(); ++m)
        add_to(held, modes[m], draws.x.middleCols(m * each, each), draws.log_w.segment(m * each, each));
    }
    return held;
  }

 private:
  std::size_t rows() const { return 2 * std::size_t(dim_) + context_.target->quantities().size() + 1; }
  MassDraws draws_of(const std::vector<int>& modes, int each) {
    const Eigen::Index count = Eigen::Index(modes.size()) * each;
    MassDraws draws{ByRows(dim_, count), Vector(count), Vector(count)};
    Vector log_q(count);
    for (std::size_t m = 0; m < modes.size(); ++m) draw(modes[m], m * each, each, draws, log_q);
    ByRows gradient;
    points_.evaluate(draws.x, draws.log_w, gradient);
    draws.log_w -= log_q;
    const std::vector<int> home = library_.of_points(draws.x, ModeLibrary::By::density, context_.threads);
    for (Eigen::Index n = 0; n < count; ++n)
      if (home[n] != modes[n / each]) draws.log_w[n] = -INFINITY;
    return draws;
  }
  /// Places the draws [first, first + count) around mode k.
  void draw(int k, Eigen::Index first, int count, MassDraws& draws, Vector& log_q) const {
    const Mode& mode = library_[k];
    const ByRows factor = Eigen::Map<const ByRows>(mode.factor.data(), dim_, dim_) * std::sqrt(kMassWidening);
    const Eigen::Map<const Vector> place(mode.place.data(), dim_);
    RandomStream random(Purpose::mode_mass, context_.key, (std::uint64_t(unit_) << 32) | std::uint64_t(k));
    Eigen::MatrixXd z(dim_, count);
    const double norm = std::lgamma(0.5 * (kMassDegrees + dim_)) - std::lgamma(0.5 * kMassDegrees) -
                        0.5 * dim_ * std::log(kMassDegrees * kPi) - factor.diagonal().array().log().sum();
    for (int n = 0; n < count; ++n) {
      for (int i = 0; i < dim_; ++i) z(i, n) = random.normal();
      double chi = 0;
      for (int i = 0; i < kMassDegrees; ++i) chi += std::pow(random.normal(), 2);
      z.col(n) *= std::sqrt(kMassDegrees / chi);
    }
    auto x = draws.x.middleCols(first, count);
    x = factor.triangularView<Eigen::Lower>() * z;
    x.colwise() += place;
    const Eigen::ArrayXd square = z.colwise().squaredNorm();
    draws.distance.segment(first, count) = kMassWidening * square;
    log_q.segment(first, count) = norm - 0.5 * (kMassDegrees + dim_) * (square / kMassDegrees).log1p();
  }

  /// By the first kMassDraws.
  void weigh(Mode& mode, const MassDraws& draws) const {
    if (!sum_up(mode, draws.log_w.head(kMassDraws))) return;
    const Vector near = (draws.distance.array() > core_distance(dim_)).select(-INFINITY, draws.log_w);
    Mode core = mode;
    constexpr double kFewDraws = 10;
    if (!sum_up(core, near.head(kMassDraws)) || core.effective_share < kFewDraws / kMassDraws) return;
    mode.core_log_mass = core.core_log_mass = core.log_mass;
    // All is home to the only mode. Where it is the core of something wider, a few draws from far out carry
    // the sum.
    if (library_.size() == 1 && !resembles_normal(mode.effective_share, dim_) &&
        resembles_normal(core.effective_share, dim_))
      mode = core;
  }
  void add_to(HeldMoments& held, int k, const ByRows& x, const Vector& log_w) const {
    Eigen::ArrayXd w = (log_w.array() - held.log_scale).exp();
    const double n = double(w.size());
    w = w.min(std::sqrt(n) * w.mean());
    Eigen::ArrayXXd f = Eigen::ArrayXXd::Ones(w.size(), Eigen::Index(rows()));
    f.leftCols(dim_) = x.transpose();
    f.middleCols(dim_, dim_) = f.leftCols(dim_).square();
    std::vector<double> quantities(context_.target->quantities().size());
    for (Eigen::Index c = 0; c < w.size() && !quantities.empty(); ++c) {
      if (!(w[c] > 0)) continue;
      context_.target->quantities_at(Vector(x.col(c)).data(), quantities.data());
      for (std::size_t q = 0; q < quantities.size(); ++q) f(c, 2 * dim_ + Eigen::Index(q)) = quantities[q];
    }
    for (std::size_t r = 0; r < rows(); ++r) {
      const Eigen::ArrayXd part = (w > 0).select(w * f.col(Eigen::Index(r)), 0);
      const std::size_t at = std::size_t(k) * rows() + r;
      held.part[at] = part.mean();
      held.variance[at] = (part - part.mean()).square().sum() / (n * (n - 1));
    }
  }

  ModeLibrary& library_;
  PointEngine& points_;
  const RunContext& context_;
  const std::uint32_t unit_;
  const int dim_;
};

}  // namespace

bool halos_for_specks(ModeLibrary& library, PointEngine& points, const RunContext& context,
                      std::uint32_t unit) {
  constexpr double kSpeck = 1e-3;
  find_halos(library, points, context, unit);
  ModeLibrary other(library.dim());
  bool any = false;
  for (int k = 0; k < library.size(); ++k) {
    Mode m = library[k];
    const double held = std::fmax(m.log_mass, m.laplace_log_mass);
    const auto by_mass = [](const Halo& a, const Halo& b) { return a.log_mass < b.log_mass; };
    const auto most = std::max_element(m.halos.begin(), m.halos.end(), by_mass);
    if (most != m.halos.end() && held < most->log_mass + std::log(kSpeck)) {
      any = true;
      m.place = most->place;
      m.factor = most->factor;
      m.laplace_log_mass = most->log_mass;
      m.log_density = most->log_mass - 0.5 * library.dim() * std::log(2 * kPi);
      for (int i = 0; i < library.dim(); ++i) m.log_density -= std::log(m.factor[i * (library.dim() + 1)]);
    }
    m.log_mass = m.effective_share = m.core_log_mass = NAN;
    m.halos.clear();
    other.add(std::move(m));
  }
  if (any) library = std::move(other);
  return any;
}

HeldMoments weigh_modes(ModeLibrary& library, PointEngine& points, const RunContext& context,
                        std::uint32_t unit, int effort) {
  HeldMoments held = Weigher(library, points, context, unit).weigh_all(effort);
  if (halos_for_specks(library, points, context, unit)) {
    held = Weigher(library, points, context, unit).weigh_all(effort);
    find_halos(library, points, context, unit);
  }
  return held;
}

std::vector<double> share_errors(const ModeLibrary& library) {
  const std::vector<double> p = library.shares();
  std::vector<double> part(p.size(), 0.0), errors(p.size());  // p_k^2 v_k
  if (library.size() == 1)  // all of what was found; of which little is known where its mass is a guess
    return {std::isnan(library[0].log_mass) || library[0].mass_known() ? 0.0 : NAN};
  double all = 0, guessed = 0;
  const double total = library.log_total();
  for (int k = 0; k < library.size(); ++k) {
    const Mode& m = library[k];
    if (std::isnan(m.log_mass)) continue;  // not weighed
    if (!m.mass_known()) {
      part[k] = NAN;
      guessed += std::exp(std::max(m.log_mass, m.laplace_log_mass) - total);
      continue;
    }
    part[k] = p[k] * p[k] * (1 / m.effective_share - 1) / kMassDraws;
    all += part[k];
  }
  if (guessed > 0.01) all = NAN;
  for (std::size_t k = 0; k < p.size(); ++k)
    errors[k] = std::sqrt((1 - p[k]) * (1 - p[k]) * part[k] + p[k] * p[k] * (all - part[k]));
  return errors;
}

}  // namespace lockstep
