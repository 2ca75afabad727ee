// SPDX-License-Identifier: Apache-2.0
#include "host/runs/weighted_draws.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "host/options/options.hpp"
#include "host/runs/run_draws.hpp"
#include "host/runs/smc_sampler.hpp"

namespace lockstep {
namespace {

constexpr std::uint32_t kResampling = 0x70000000u;  // an iteration number that no chain reaches

}  // namespace

namespace {

/// Every second of the draws [draw][chain][..] goes, the first stays.
template <class T>
void halve(std::vector<T>& v, int draws) {
  const std::size_t of_draw = v.size() / draws, kept = (std::size_t(draws) + 1) / 2;
  for (std::size_t k = 1; k < kept; ++k)
    std::copy_n(v.begin() + 2 * k * of_draw, of_draw, v.begin() + k * of_draw);
  v.resize(kept * of_draw);
}

}  // namespace

void WeightedDraws::add(Engine& engine, Control control) {
  if (added++ % stride != 0) return;
  const auto position = engine.position(), cache = engine.cache(), level = engine.beta();
  const int n = engine.chains();
  std::vector<double> weight(n);
  dim = engine.dim();
  for (int c = 0; c < n; ++c) {
    weight[c] = std::log(cache[std::size_t(2) * n + c]);
    if (control == Control::none) beta.push_back(level[c]);
    if (control == Control::logistic) beta.push_back(1 / (1 + std::exp(-position[std::size_t(dim) * n + c])));
  }
  add(position, weight);
  if (limit == 0 || draws <= limit) return;
  halve(x, draws);
  halve(log_weight, draws);
  halve(beta, draws);
  draws = (draws + 1) / 2;
  stride *= 2;
}

void WeightedDraws::add(const std::vector<double>& position, const std::vector<double>& log_weight_of) {
  chains = int(log_weight_of.size());
  for (int c = 0; c < chains; ++c)
    for (int i = 0; i < dim; ++i) x.push_back(float(position[std::size_t(i) * chains + c]));
  log_weight.insert(log_weight.end(), log_weight_of.begin(), log_weight_of.end());
  ++draws;
}

void write_weighted_draws(const std::filesystem::path& path, const WeightedDraws& stored,
                          const TargetInstance& target, int groups, const StreamKey& key,
                          WeightedDrawsAsked asked) {
  const int n = stored.chains, per = n / groups;
  const double most =
      stored.log_weight.empty() ? 0 : *std::max_element(stored.log_weight.begin(), stored.log_weight.end());
  const auto index = [&](int g, std::size_t k) {  // the k-th state of a group: its draws one after another
    return (k / per) * n + std::size_t(g) * per + k % per;
  };
  const auto weight = [&](int g, std::size_t k) {
    const double w = std::exp(stored.log_weight[index(g, k)] - most);
    return w >= 0 ? w : 0;  // a NaN counts for nothing
  };
  const std::size_t states = std::size_t(stored.draws) * per;
  double effective = double(states);
  for (int g = 0; g < groups; ++g) {
    double total = 0, square = 0;
    for (std::size_t k = 0; k < states; ++k) {
      total += weight(g, k);
      square += weight(g, k) * weight(g, k);
    }
    effective = std::min(effective, square > 0 ? total * total / square : 0);
  }
  DrawsFile f;
  f.chains = groups;
  f.draws = int(asked.most == kAllDraws
                    ? effective
                    : std::min(effective, std::max(1.0, std::floor(double(asked.most) / groups))));
  f.dim = stored.dim;
  f.names = own_names(target);
  std::vector<float> posterior;
  for (int g = 0; g < groups; ++g) {
    const Draw<double> draw{key, kResampling, 0, std::uint32_t(g)};
    std::vector<double> weights(states);
    for (std::size_t k = 0; k < states; ++k) weights[k] = weight(g, k);
    for (int from : systematic_resampling(weights, f.draws, draw.uniform(Purpose::resample))) {
      const float* x = &stored.x[index(g, from) * stored.dim];
      posterior.insert(posterior.end(), x, x + stored.dim);
    }
  }
  const DrawsSource<float> of_posterior = source_of(posterior, f.draws, std::size_t(f.dim));
  f.x = of_posterior;
  f.quantities = quantities_of(target);
  f.quantity_values = quantity_values(target, of_posterior, 1);
  f.attributes = std::move(asked.attributes);
  f.attributes["resampled"] = "systematic, within groups of chains, by exp(log_weight)";
  f.attributes["states"] =
      std::vector<std::int64_t>{std::int64_t(states * groups)};  // that they are drawn from
  if (!asked.weighted) return write_draws(path, f);
  // [chain][draw] as everywhere in the file.
  std::vector<float> x;
  std::vector<double> log_weight, beta;
  for (int c = 0; c < n; ++c)
    for (int t = 0; t < stored.draws; ++t) {
      const std::size_t at = std::size_t(t) * n + c;
      x.insert(x.end(), &stored.x[at * stored.dim], &stored.x[at * stored.dim] + stored.dim);
      log_weight.push_back(stored.log_weight[at]);
      if (!stored.beta.empty()) beta.push_back(stored.beta[at]);
    }
  f.weighted_chains = n;
  f.weighted_draws = stored.draws;
  f.pseudo_samples = 1;
  f.weighted_x = std::move(x);
  f.log_weight = std::move(log_weight);
  f.beta = std::move(beta);
  write_draws(path, f);
}

}  // namespace lockstep
