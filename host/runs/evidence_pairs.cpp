// SPDX-License-Identifier: Apache-2.0
#include "host/runs/evidence_pairs.hpp"

namespace lockstep {

void add_pairs(std::vector<PseudoExtendedEvidence>& evidence, Engine& engine, int threads,
               const std::function<int(std::size_t unit, int chain)>& block) {
  const auto cache = engine.cache();
  const int total = engine.chains(), samples = engine.samples(), per = total / int(evidence.size());
  const double* deltas = cache.data() + std::size_t(1 + samples) * total;
  std::vector<double> integral(std::size_t(samples) * total);
#pragma omp parallel for num_threads(threads)
  for (std::size_t p = 0; p < integral.size(); ++p)
    integral[p] = evidence[p % std::size_t(total) / std::size_t(per)].integral().log(deltas[p]);
  for (int c = 0; c < total; ++c) {
    const std::size_t u = std::size_t(c / per);
    const int to = block(u, c % per);
    if (to < 0) continue;
    for (int i = 0; i < samples; ++i) {
      double others = 0;
      for (int j = 0; j < samples; ++j)
        if (j != i) others += cache[std::size_t(1 + j) * total + c];
      const std::size_t pair = std::size_t(i) * total + c;
      evidence[u].add(to, others, deltas[pair], integral[pair]);
    }
  }
}

}  // namespace lockstep
