// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_base.hpp"

#include <algorithm>
#include <cmath>

#include "host/util/errors.hpp"
#include "kernels/base.hpp"
#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Matrix = Eigen::MatrixXd;

constexpr int kMostOwnRows = 50, kMostOwn = 16, kMostOwnNumbers = 1 << 17;
constexpr double kDefensiveWidening = 1.5, kWidening = 1.2;  // of covariances
constexpr double kFloor = 0.02;                              // of an even share
constexpr double kDefensiveOfOne = 0.5;

/// How far normals of one matrix times a number each are from these, in nats (Kullback & Leibler 1951), the mean by weight:
/// d/2 log of the mean eigenvalue of F^-1 L (F^-1 L)' less half the sum of their logs.
double nats_apart(const std::vector<NormalComponent>& components, const Matrix& factor) {
  const double d = double(factor.rows());
  double sum = 0, total = 0;
  for (const auto& c : components) {
    const Matrix z = factor.triangularView<Eigen::Lower>().solve(c.factor);
    sum += c.weight * (0.5 * d * std::log(z.squaredNorm() / d) - z.diagonal().array().abs().log().sum());
    total += c.weight;
  }
  return sum / total;
}

/// The matrix that the covariances of these components resemble, each divided by det^(1/d); its factor.
Matrix common_factor(const std::vector<NormalComponent>& components) {
  const auto d = components[0].mean.size();
  Matrix sum = Matrix::Zero(d, d);
  for (const auto& c : components)
    sum += std::exp(-2 * c.log_det() / double(d)) * c.factor * c.factor.transpose();
  return Matrix((sum / double(components.size())).eval().llt().matrixL());
}

}  // namespace

ModeCoverage coverage_of(const ModeLibrary& library, double log_z) {
  ModeCoverage c;
  c.modes = library.size();
  const auto order = library.by_mass();
  double top = -INFINITY, all = 0, held = 0, by_mass = 0, by_mode = 0, weighed = 0;
  for (int k = 0; k < c.modes; ++k) top = std::fmax(top, library[k].log_mass);
  for (int k = 0; k < c.modes; ++k) {
    const Mode& m = library[order[k]];
    if (std::isnan(m.log_mass)) continue;
    double mass = std::exp(m.log_mass - top);
    for (const Halo& h : m.halos) mass += std::exp(h.log_mass - top);
    all += mass;
    if (k >= most_used_modes(library.dim())) continue;
    held += mass;
    by_mass += mass * m.effective_share;
    by_mode += m.effective_share;
    ++weighed;
  }
  if (!(held > 0)) return c;
  constexpr double kBeyond = 500;  // nats: a scout that was lost
  c.covered = held * std::exp(std::min(top - log_z, kBeyond));
  c.of_known = held / all;
  c.effective = std::min(by_mass / held, by_mode / weighed) / usual_effective_share(library.dim());
  return c;
}

bool begins_at_modes(const std::string& base, bool may, const SearchResult& found, double scout_log_z) {
  const ModeLibrary& library = found.library;
  if (base == "modes" && library.size() == 0)
    throw UserError("sampler.base is modes (none was found). Use auto or scout, or give some by --modes");
  if (base != "auto" || !may || found.full()) return base == "modes";
  const bool cheap = library.size() > 1 || library.dim() <= BaseDensity::kMostDense;
  const double log_z = found.stopped == kSearchGiven ? library.log_total() : scout_log_z;
  return cheap && coverage_of(library, log_z).suffices();
}

std::vector<double> width_of(const BaseDensity& base) {
  std::vector<double> width = base.sd();
  for (int i = 0; i < base.dim(); ++i) width[i] = std::max(width[i], base.components[0].factor.row(i).norm());
  return width;
}

std::vector<NormalComponent> mode_normals(const ModeLibrary& library) {
  const int d = library.dim();
  std::vector<NormalComponent> normals, halos;  // weights: logs of masses at first
  for (const int k : library.most_used()) {
    const Mode& mode = library[k];
    const Eigen::Map<const Eigen::VectorXd> place(mode.place.data(), d);
    const Eigen::Map<const ByRows> factor(mode.factor.data(), d, d);
    normals.push_back({mode.best_log_mass(), place, factor});
    for (const Halo& h : mode.halos)
      halos.push_back({h.log_mass, Eigen::Map<const Eigen::VectorXd>(h.place.data(), d),
                       Eigen::Map<const ByRows>(h.factor.data(), d, d)});
  }
  const auto by_weight = [](const NormalComponent& a, const NormalComponent& b) {
    return a.weight < b.weight;
  };
  // Halos hold what no descent and no trajectory finds: before the smallest modes.
  std::stable_sort(halos.rbegin(), halos.rend(), by_weight);
  halos.resize(std::min(halos.size(), std::size_t(most_used_modes(d) / 2)));
  normals.resize(std::min(normals.size(), std::size_t(most_used_modes(d)) - halos.size()));
  normals.insert(normals.end(), halos.begin(), halos.end());
  const double most = std::max_element(normals.begin(), normals.end(), by_weight)->weight;
  for (NormalComponent& n : normals) n.weight = std::exp(0.5 * (n.weight - most));
  return normals;
}

bool wants_tied_base(const ModeLibrary& library) {
  constexpr double kAlike = 0.1;
  const int d = library.dim(), count = std::min(library.parts(), most_used_modes(d));
  if (count * d <= kMostOwnRows) return false;
  if (count > kMostOwn || double(count) * d * d > kMostOwnNumbers) return true;
  const std::vector<NormalComponent> modes = mode_normals(library);
  return nats_apart(modes, common_factor(modes)) < kAlike;
}

double most_base_numbers(int dim) {
  const int own = 1 + std::max({1, kMostOwnRows / dim, std::min(kMostOwn, kMostOwnNumbers / (dim * dim))});
  return std::max(NormalMixture::length(own, dim), TiedMixture::length(1 + most_used_modes(dim), dim));
}

BaseDensity mode_base(const ModeLibrary& library, const Eigen::VectorXd& mean, const Matrix& covariance,
                      bool tied, double defensive) {
  if (library.size() == 1) defensive = kDefensiveOfOne;
  const int d = library.dim();
  const Eigen::LLT<Matrix> llt((kDefensiveWidening * covariance).eval());
  BaseDensity base;
  base.components.push_back(
      {defensive, mean,
       llt.info() == Eigen::Success
           ? Matrix(llt.matrixL())
           : Matrix((kDefensiveWidening * covariance.diagonal()).cwiseSqrt().asDiagonal())});
  std::vector<NormalComponent> modes = mode_normals(library);
  double total = 0, floored = 0;
  for (auto& m : modes) {
    m.factor *= std::sqrt(kWidening);
    total += m.weight;
  }
  for (auto& m : modes) floored += m.weight = std::max(m.weight / total, kFloor / double(modes.size()));
  for (auto& m : modes) m.weight *= (1 - defensive) / floored;
  base.tied = tied;
  if (tied) {
    const Matrix factor = common_factor(modes);
    for (auto& m : modes) {
      const Matrix z = factor.triangularView<Eigen::Lower>().solve(m.factor);
      m.factor = std::sqrt(z.squaredNorm() / d) * factor;
    }
  }
  base.components.insert(base.components.end(), modes.begin(), modes.end());
  return base;
}

}  // namespace lockstep
