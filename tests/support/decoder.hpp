// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small decoders with random weights.
#include "targets/decoder.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep::testing {

/// Layers of these widths, the first the latent dimension: weights normal with standard deviation scale /
/// sqrt(inputs).
inline std::map<std::string, DataArray> random_decoder(const std::vector<int>& widths, double scale = 1.5,
                                                       std::uint64_t seed = 1) {
  std::map<std::string, DataArray> t;
  ExactDraw draw(seed);
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const std::string number = std::to_string(2 * l);
    DataArray &w = t["decoder_W" + number], &b = t["decoder_b" + number];
    w.shape = {widths[l], widths[l + 1]};
    b.shape = {1, widths[l + 1]};
    for (int i = 0; i < widths[l] * widths[l + 1]; ++i)
      w.values.push_back(scale / std::sqrt(widths[l]) * draw.normal());
    for (int i = 0; i < widths[l + 1]; ++i) b.values.push_back(0.3 * draw.normal());
  }
  return t;
}
inline std::map<std::string, DataArray> small_decoder() { return random_decoder({3, 7, 5, 11}); }

inline MemoryInput decoder_input(std::map<std::string, DataArray> tensors, int images,
                                 const std::string& likelihood = "bernoulli", double noise = 0.7,
                                 const std::string& activation = "tanh") {
  MemoryInput in;
  in.named_tensors = std::move(tensors);
  in.choices = {{"weights", "w"},
                {"images", "simulate:" + std::to_string(images)},
                {"likelihood", likelihood},
                {"activation", activation}};
  if (likelihood == "gaussian") in.numbers["noise_sd"] = noise;
  return in;
}

}  // namespace lockstep::testing
