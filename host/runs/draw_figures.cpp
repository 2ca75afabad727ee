// SPDX-License-Identifier: Apache-2.0
#include "host/runs/draw_figures.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kOverviewNumbers = 1 << 20, kOverviewOfEach = 1 << 14, kMostNumbers = 3 << 24;

double largest_rhat(double of_means, const DrawFigures& f) {
  for (const DrawDiagnostics& figures : f.of)
    if (figures.rhat > of_means) of_means = figures.rhat;  // a NaN stays
  return of_means;
}

/// R-hat of single chains, in halves, by values of the log density: of 128 chains, at 32 of their draws.
double rhat_of_log_density(const TargetInstance& target, const std::vector<double>& values,
                           const DrawFigures& f, int threads) {
  const std::int64_t chains = std::min(f.chains, 128), draws = std::min<std::int64_t>(f.draws, 32) / 2 * 2;
  const std::size_t each = f.draws > 0 ? values.size() / (std::size_t(f.chains) * f.draws) : 0;
  std::vector<double> log_density(chains * draws);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t k = 0; k < chains * draws; ++k) {
    const std::int64_t chain = k / draws * f.chains / chains, draw = k % draws * f.draws / draws;
    log_density[k] = target.log_density(&values[std::size_t(chain * f.draws + draw) * each], nullptr);
  }
  return nested_rhat(log_density, 2 * chains, draws / 2, 2 * chains);
}

}  // namespace

std::int64_t overview_iterations(const TargetInstance& target, int chains) {
  const double dim = target.dim(), each = dim + double(target.quantities().size());
  const double draws = std::max(kOverviewNumbers / each, kOverviewOfEach);
  const double most = std::max(12.0, std::floor(std::min(draws, kMostNumbers / each) / chains));
  return most * chains * dim > kMostNumbers ? 0 : std::int64_t(most);
}

DrawFigures draw_figures(const TargetInstance& target, const ChainRunResult& run, const SamplerConfig& config,
                         int thin, int threads, bool of_log_density) {
  DrawFigures figures;
  const std::size_t d = target.dim(), q = target.quantities().size(), each = d + q;
  const int chains = run.units[0].chains;
  const bool all = run.overview.draws() == 0 && run.draws.chains.size() == std::size_t(chains);
  figures.chains = chains;
  figures.draws = all ? run.draws.draws : run.overview.draws();
  figures.every = all ? thin : run.overview.stride();
  std::vector<double> values(std::size_t(chains) * figures.draws * each);
  std::vector<float> of_chain(all ? figures.draws * d : 0), stored;
  if (all) stored = run.draws.values(draw_acceptance);
  const std::vector<float>& acceptance = all ? stored : run.overview.acceptance();
  std::vector<char> lost(chains * figures.draws);
  for (int c = 0; c < chains; ++c) {
    if (all) run.draws.read_x({c, 1, 0, run.draws.draws}, of_chain.data());
    for (std::int64_t t = 0; t < figures.draws; ++t) {
      const float* x = all ? &of_chain[t * d] : &run.overview.x()[(t * chains + c) * d];
      const std::size_t k = c * figures.draws + t;
      lost[k] = acceptance[all ? k : std::size_t(t * chains + c)] < kLostTrajectory;
      double* to = &values[k * each];
      std::copy_n(x, d, to);
      if (q > 0) target.quantities_at(to, to + d);
    }
  }
  figures.of = diagnose_all(values, chains, figures.draws, std::int64_t(each), threads);
  const int modes = run.modes.empty() ? 0 : run.modes[0].library.size();
  if (loses_by_energy(*config.transition, modes)) figures.lost = lost_ends(values, lost, d, threads);
  if (of_log_density) figures.log_density_rhat = rhat_of_log_density(target, values, figures, threads);
  return figures;
}

void judge_ranks(Estimates& e, const DrawFigures& f) {
  constexpr double kEnough = 1000;  // draws, to ask what they are worth
  if (f.draws < 4) return;
  for (std::size_t i = 0; i < e.mean.size() && !e.nested && double(f.draws) * f.chains >= kEnough; ++i)
    e.effective_draws = std::fmin(e.effective_draws, std::fmin(f.of[i].ess_bulk, f.of[i].ess_tail));
  if (f.chains < 2) return;
  if (e.nested)
    e.rhat_of_chains = largest_rhat(std::fmax(0, f.log_density_rhat), f);
  else
    e.rhat_max = largest_rhat(e.rhat_max, f);
}

void report_rhat(RunDiagnostics& d, const Estimates& e) {
  d.rhat_max = e.nested ? e.rhat_of_chains : e.rhat_max;
  if (e.nested) d.nested_rhat_max = e.rhat_max;
}

}  // namespace lockstep
