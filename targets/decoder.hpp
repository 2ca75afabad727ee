// SPDX-License-Identifier: Apache-2.0
#pragma once
// The posterior of a generative model's latent variables given an image: a neural decoder with a Bernoulli
// likelihood (Kingma & Welling 2014), its evidence estimated image by image (Wu et al. 2017; Graham & Storkey
// 2017, section 7.4).
#include "kernels/device_code.hpp"
#include "targets/dense_layer.hpp"
#include "targets/target.hpp"

#ifdef LOCKSTEP_DEVICE_CODE
#include "targets/decoder_cuda.cuh"
#else
#include "targets/decoder_block.hpp"
#endif

namespace lockstep {

/// z ~ N(0, I), x | z ~ Bernoulli(sigmoid(y)), y the last of the layers from z:
///
///   log density = log N(z; 0, I) + sum_p (x_p y_p - log(1 + exp y_p)),
///
/// or, with normal noise, log N(z; 0, I) + log N(x; y, noise^2 I); normalised in x, so that the integral over
/// z is the model's p(x). One unit of a batch is one image. Gradients come from matrix products over many
/// chains (Block); `log_density` is the same chain by chain, for image 0: the reference.
struct Decoder : DensityDefaults {
  static constexpr bool kBatch = true;
  static constexpr int kMostLayers = 16;
  int dim = 0, num_layers = 0, pixels = 0, items = 0;
  double noise = 0;                // standard deviation of a normal likelihood; 0: Bernoulli
  DenseLayer layers[kMostLayers];  // the last gives the logits
  ParameterArray images;           // [item][pixel]: 0 or 1

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    for (int l = 0; l < num_layers; ++l) {
      f(layers[l].weight, layers[l].in * layers[l].out);
      f(layers[l].bias, layers[l].out);
    }
    f(images, items * pixels);
  }

#ifdef LOCKSTEP_DEVICE_CODE
  template <class R, class E>
  using Block = DecoderCuda<Decoder, R, E>;
#else
  template <class L, class E>
  using Block = DecoderBlock<Decoder, L, E>;
#endif

  /// Of the prior and of normal noise.
  double log_norm() const {
    return -0.5 * dim * std::log(2 * kPi) -
           (noise > 0 ? pixels * (0.5 * std::log(2 * kPi) + std::log(noise)) : 0.0);
  }

#ifndef LOCKSTEP_DEVICE_CODE
  template <int D, class L, class X, class G>
  L log_density(const X& z, const G& g) const {
    using R = scalar_t<L>;
    std::vector<std::vector<L>> h(num_layers + 1);  // activations, the last of them the logits
    L square = L(0);
    for (int i = 0; i < dim; ++i) {
      h[0].push_back(z[i]);
      square = fma(h[0][i], h[0][i], square);
    }
    for (int l = 0; l < num_layers; ++l) {
      const R *w = layers[l].weight.template get<L>(), *b = layers[l].bias.template get<L>();
      for (int j = 0; j < layers[l].out; ++j) {
        L y = L(b[j]);
        for (int i = 0; i < layers[l].in; ++i) y = fma(L(w[i * layers[l].out + j]), h[l][i], y);
        h[l + 1].push_back(activate(layers[l].activation, y));
      }
    }
    const R* image = images.template get<L>();
    L value = L(R(log_norm()));
    std::vector<L> back;
    for (int p = 0; p < pixels; ++p) {
      const L y = h[num_layers][p], x = L(image[p]), error = (x - y) * L(R(noise > 0 ? 1 / noise : 0));
      if (noise > 0) {
        value = fma(error * L(R(-0.5)), error, value);
        back.push_back(error * L(R(1 / noise)));
      } else {
        value = fma(x, y, value) + log_sigmoid(-y);
        back.push_back(x - sigmoid(y));
      }
    }
    if constexpr (gradient_wanted<G>()) {
      for (int l = num_layers - 1; l >= 0; --l) {
        const R* w = layers[l].weight.template get<L>();
        std::vector<L> below(layers[l].in, L(0));
        for (int i = 0; i < layers[l].in; ++i) {
          for (int j = 0; j < layers[l].out; ++j)
            below[i] = fma(L(w[i * layers[l].out + j]), back[j], below[i]);
          if (l > 0) below[i] = below[i] * slope(layers[l - 1].activation, h[l][i]);
        }
        back = std::move(below);
      }
      for (int i = 0; i < dim; ++i) g.set(i, back[i] - h[0][i]);
    }
    return fma(L(R(-0.5)), square, value);
  }
#endif
};

struct DecoderTarget {
  using Density = Decoder;
  static TargetInfo info();
  static Built<Decoder> build(TargetInput& in);
};

}  // namespace lockstep
