// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/ladder_estimators.hpp"

#include <Eigen/Dense>
#include <cassert>

#include "host/estimators/annealed_weights.hpp"
#include "host/estimators/pack_sums.hpp"
#include "host/estimators/tempering.hpp"

namespace lockstep {
namespace {

/// `by` Delta of each draw.
std::vector<double> scaled(std::span<const double> delta, double by) {
  std::vector<double> terms;
  for (double d : delta) terms.push_back(tempered(by, d));
  return terms;
}

/// sum_k sign log mean_{level k + from} exp(-sign (beta_{k+1} - beta_k) Delta).
Jackknife one_sided(const LadderSamples& s, int from, double sign) {
  const int steps = s.levels() - 1;
  BlockLogSums sums(s.copies, 2 * steps);  // of the terms, and their number
  std::vector<double> coefficients;
  for (int k = 0; k < steps; ++k) {
    for (int c = 0; c < s.copies; ++c) {
      sums.add(c, 2 * k, log_sum_of(scaled(s.at(c, k + from), sign * (s.ladder[k] - s.ladder[k + 1]))));
      sums.add(c, 2 * k + 1, LogSum{0, double(s.draws)});
    }
    coefficients.insert(coefficients.end(), {sign, -sign});
  }
  return sums.combine(coefficients);
}

/// The objective of mbar, sum_n log sum_k exp(f_k - beta_k Delta_n) - sum_k draws_k f_k, its gradient and
/// Hessian, of one copy's draws at the levels first .. first + size of f - 1.
struct Objective {
  double value = 0;
  Eigen::VectorXd gradient;
  Eigen::MatrixXd hessian;
};
Objective objective_of(const LadderSamples& s, int copy, int first, const Eigen::VectorXd& f) {
  constexpr int kTogether = 256;  // draws, so that their shares stay in the cache
  const int levels = int(f.size());
  const auto ladder = std::span(s.ladder).subspan(first, levels);
  Objective o{-s.draws * f.sum(), Eigen::VectorXd::Zero(levels), Eigen::MatrixXd::Zero(levels, levels)};
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> shares(levels, kTogether);
  for (int level = 0; level < levels; ++level)
    for (int begin = 0; begin < s.draws; begin += kTogether) {
      const int count = std::min(kTogether, s.draws - begin);
      const auto delta = s.at(copy, first + level).subspan(begin, count);
      o.value += level_shares(ladder, {f.data(), std::size_t(levels)}, delta, shares.data(), kTogether);
      o.gradient += shares.leftCols(count).rowwise().sum();
      o.hessian -= shares.leftCols(count).lazyProduct(shares.leftCols(count).transpose());
    }
  o.hessian.diagonal() += o.gradient;
  o.gradient.array() -= s.draws;
  return o;
}

/// f without a copy (none: an empty objective), by one Newton step; f_0 stays, which fixes the free constant.
Eigen::VectorXd newton_step(const Objective& all, const Objective& without) {
  const Eigen::Index n = all.gradient.size() - 1;
  Eigen::VectorXd step = Eigen::VectorXd::Zero(n + 1);
  step.tail(n) = -(all.hessian - without.hessian)
                      .bottomRightCorner(n, n)
                      .selfadjointView<Eigen::Lower>()
                      .ldlt()
                      .solve((all.gradient - without.gradient).tail(n));
  return step;
}

/// log z of the last over the first of the levels first .. first + size of f - 1; `f` is where to start.
Jackknife log_ratio(const LadderSamples& s, int first, Eigen::VectorXd f, int threads) {
  const Eigen::Index n = f.size();
  std::vector<Objective> copies(s.copies);
  const auto evaluate = [&](const Eigen::VectorXd& at) {
#pragma omp parallel for num_threads(threads)
    for (int c = 0; c < s.copies; ++c) copies[c] = objective_of(s, c, first, at);
    Objective all{0, Eigen::VectorXd::Zero(n), Eigen::MatrixXd::Zero(n, n)};
    for (const Objective& copy : copies) {
      all.value += copy.value;
      all.gradient += copy.gradient;
      all.hessian += copy.hessian;
    }
    return all;
  };
  const Objective none{0, Eigen::VectorXd::Zero(n), Eigen::MatrixXd::Zero(n, n)};
  Objective all = evaluate(f);
  for (int i = 0; i < 50; ++i) {
    Eigen::VectorXd step = newton_step(all, none);
    const double noise = 1e-13 * (1 + std::abs(all.value));
    Objective next = evaluate(f + step);
    for (int halving = 0; halving < 30 && next.value > all.value + noise; ++halving)
      next = evaluate(f + (step *= 0.5));
    f += step;
    all = next;
    if (!(step.cwiseAbs().maxCoeff() > 1e-10 * (1 + f.cwiseAbs().maxCoeff()))) break;
  }
  Jackknife result{-f[n - 1], {}};
  for (const Objective& copy : copies) result.left_out.push_back(-f[n - 1] - newton_step(all, copy)[n - 1]);
  return result;
}

/// Bennett's acceptance ratio from level k to k + 1.
double bridge(const LadderSamples& s, int k) {
  std::vector<double> forward, reverse;
  for (int c = 0; c < s.copies; ++c) {
    const double step = s.ladder[k + 1] - s.ladder[k];
    const auto down = scaled(s.at(c, k), -step), up = scaled(s.at(c, k + 1), step);
    forward.insert(forward.end(), down.begin(), down.end());
    reverse.insert(reverse.end(), up.begin(), up.end());
  }
  return bennett_acceptance_ratio(forward, reverse).estimate;
}

}  // namespace

LadderSamples LadderSamples::copy(int number) const {
  const auto size = std::ptrdiff_t(levels()) * draws, begin = number * size;
  return {ladder, 1, draws, {delta.begin() + begin, delta.begin() + begin + size}};
}

LadderSamples LadderSamples::slice(int first, int last) const {
  assert(0 <= first && first < last && last <= draws);
  LadderSamples part{ladder, copies, last - first, {}};
  for (int c = 0; c < copies; ++c)
    for (int k = 0; k < levels(); ++k) {
      const auto piece = at(c, k).subspan(first, last - first);
      part.delta.insert(part.delta.end(), piece.begin(), piece.end());
    }
  return part;
}

LadderSamples LadderSamples::thinned(int stride) const {
  LadderSamples part{ladder, copies, (draws + stride - 1) / stride, {}};
  for (int c = 0; c < copies; ++c)
    for (int k = 0; k < levels(); ++k)
      for (int i = 0; i < draws; i += stride) part.delta.push_back(at(c, k)[i]);
  return part;
}

Jackknife forward_stepping_stones(const LadderSamples& samples, double log_zeta) {
  return one_sided(samples, 0, 1) + log_zeta;
}
Jackknife backward_stepping_stones(const LadderSamples& samples, double log_zeta) {
  return one_sided(samples, 1, -1) + log_zeta;
}

Jackknife bridge_stepping_stones(const LadderSamples& samples, double log_zeta, int threads) {
  std::vector<Jackknife> steps(samples.levels() - 1);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (int k = 0; k < int(steps.size()); ++k)
    steps[k] = log_ratio(samples, k, Eigen::Vector2d(0, -bridge(samples, k)), 1);
  Jackknife sum{log_zeta, std::vector<double>(samples.copies, log_zeta)};
  for (const Jackknife& step : steps) sum = sum + step;
  return sum;
}

Jackknife mbar(const LadderSamples& samples, double log_zeta, int threads) {
  Eigen::VectorXd f = Eigen::VectorXd::Zero(samples.levels());
  for (int k = 0; k + 1 < samples.levels(); ++k) f[k + 1] = f[k] - bridge(samples, k);
  return log_ratio(samples, 0, f, threads) + log_zeta;
}

ThermodynamicIntegration thermodynamic_integration(const LadderSamples& s, double log_zeta) {
  const int steps = s.levels() - 1;
  // The trapezoid rule over every `stride`-th level and the last, on mean Delta by level.
  const auto integral = [&](const std::vector<double>& mean, int stride) {
    double sum = 0;
    for (int k = 0; k < steps; k += stride) {
      const int next = std::min(k + stride, steps);
      sum += (s.ladder[next] - s.ladder[k]) * 0.5 * (mean[k] + mean[next]);
    }
    return sum;
  };
  ThermodynamicIntegration result{{log_zeta, {}}, 0};
  double coarse = log_zeta;
  std::vector<double> by_copy;
  for (int c = 0; c < s.copies; ++c) {
    std::vector<double> mean(s.levels(), 0.0);
    for (int k = 0; k <= steps; ++k)
      for (double d : s.at(c, k)) mean[k] += d / s.draws;
    by_copy.push_back(integral(mean, 1));
    result.log_z.estimate -= by_copy.back() / s.copies;
    coarse -= integral(mean, 2) / s.copies;
  }
  for (double v : by_copy)
    result.log_z.left_out.push_back(result.log_z.estimate +
                                    (v + result.log_z.estimate - log_zeta) / (s.copies - 1));
  result.discretisation = steps > 1 ? (coarse - result.log_z.estimate) / 3 : NAN;
  return result;
}

}  // namespace lockstep
