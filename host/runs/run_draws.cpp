// SPDX-License-Identifier: Apache-2.0
#include "host/runs/run_draws.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "host/util/bare_vector.hpp"

namespace lockstep {

std::vector<std::string> own_names(const TargetInstance& target) {
  for (int i = 0; i < target.dim(); ++i)
    if (target.names()[i] != fmt::format("x[{}]", i)) return target.names();
  return {};
}

std::vector<DrawsQuantity> quantities_of(const TargetInstance& target) {
  std::vector<DrawsQuantity> all;
  for (const std::string& name : target.quantities()) {
    const std::string base = name.substr(0, name.find('['));
    if (!all.empty() && all.back().size > 0 && all.back().name == base &&
        name == fmt::format("{}[{}]", base, all.back().size))
      ++all.back().size;
    else if (name == base + "[0]")
      all.push_back({base, 1});
    else
      all.push_back({name, 0});
  }
  return all;
}

DrawsSource<float> quantity_values(const TargetInstance& target, DrawsSource<float> x, int threads) {
  return [&target, x = std::move(x), threads](const DrawsPart& part, float* out) {
    const std::size_t d = target.dim(), count = target.quantities().size(),
                      draws = std::size_t(part.chains) * part.draws;
    BareVector<float> of_part(draws * d);
    x(part, of_part.data());
#pragma omp parallel num_threads(threads)
    {
      std::vector<double> position(d), values(count);
#pragma omp for
      for (std::size_t k = 0; k < draws; ++k) {
        std::copy_n(&of_part[k * d], d, position.begin());
        target.quantities_at(position.data(), values.data());
        std::copy_n(values.begin(), count, out + k * count);
      }
    }
  };
}

void write_run_draws(const std::filesystem::path& path, const ChainRunResult& r, const RunOptions& run,
                     const RunContext& context, const SamplerConfig& config) {
  const TargetInstance& target = *context.target;
  const int threads = context.threads;
  const auto x = [&](const StoredDraws& draws) -> DrawsSource<float> {
    return [&](const DrawsPart& part, float* out) { draws.read_x(part, out); };
  };
  const auto statistic = [&]<class T>(T, const StoredDraws& draws, DrawRow row) -> DrawsSource<T> {
    return [&, row](const DrawsPart& part, T* out) { draws.read(row, part, out); };
  };
  const auto weighted = [&](const std::vector<double>& values) -> DrawsSource<double> {
    if (values.empty()) return {};
    return [&](const DrawsPart& part, double* out) { r.draws.read(values, part, out); };
  };
  const auto stats = [&](const StoredDraws& draws, DrawsSource<float> step_size) {
    std::map<std::string, DrawsArray> all;
    all["n_steps"] = statistic(std::int32_t(), draws, draw_steps);
    all["acceptance_rate"] = statistic(float(), draws, draw_acceptance);
    all["lp"] = statistic(float(), draws, draw_log_density);
    all["step_size"] = std::move(step_size);
    if (!config.transition->gradients) return all;  // which has no integrator
    all["diverging"] = statistic(std::uint8_t(), draws, draw_diverging);
    all["energy"] = statistic(float(), draws, draw_energy);
    return all;
  };
  DrawsFile f;
  f.chains = int(r.draws.chains.size());
  f.draws = r.draws.draws;
  f.dim = target.dim();
  f.names = own_names(target);
  f.pseudo_samples = r.draws.log_weight.empty() ? 0 : config.model.pseudo_samples;
  f.quantities = quantities_of(target);
  f.x = x(r.draws);
  f.quantity_values = quantity_values(target, x(r.draws), threads);
  f.sample_stats = stats(r.draws, [&](const DrawsPart& part, float* out) {
    std::fill_n(out, std::size_t(part.chains) * part.draws, float(r.frozen.step_size[0]));
  });
  if (r.warmup.draws > 0) {
    f.warmup_draws = r.warmup.draws;
    f.warmup_x = x(r.warmup);
    f.warmup_quantity_values = quantity_values(target, x(r.warmup), threads);
    f.warmup_sample_stats = stats(r.warmup, [&](const DrawsPart& part, float* out) {  // one for all chains
      for (int c = 0; c < part.chains; ++c)
        out = std::copy_n(&r.warmup_step_size[part.draw], part.draws, out);
    });
  }
  f.weighted_x = weighted(r.draws.weighted_x);
  f.log_weight = weighted(r.draws.log_weight);
  f.beta = weighted(r.draws.beta);
  using Numbers = std::vector<std::int64_t>;
  f.attributes = {{"inference_library_version", LOCKSTEP_VERSION},
                  {"target", run.target},
                  {"sampler", run.sampler},
                  {"seed", run.seed},
                  {"chains_kept", Numbers(r.draws.chains.begin(), r.draws.chains.end())},
                  {"chains_run", Numbers{run.chains}},
                  {"first_iteration", Numbers{r.draws.first}},
                  {"thin", Numbers{run.thin}},
                  {"iterations", Numbers{r.units[0].iterations}}};
  write_draws(path, f);
}

}  // namespace lockstep
