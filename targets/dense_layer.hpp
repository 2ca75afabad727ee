// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dense layers of neural networks, and what is done element by element between their matrix products.
#include "kernels/elementary.hpp"
#include "kernels/rows.hpp"

namespace lockstep {

enum class Activation { identity, tanh, relu, sigmoid };

/// h -> activation(h W + b), W [in][out].
struct DenseLayer {
  int in = 0, out = 0;
  Activation activation = Activation::identity;
  ParameterArray weight, bias;
};

template <class L>
LOCKSTEP_FN L sigmoid(L y) {
  const L e = exp(-abs(y)), r = L(1) / (L(1) + e);
  return select(y > L(0), r, e * r);
}

template <class L>
LOCKSTEP_FN L activate(Activation activation, L y) {
  if (activation == Activation::identity) return y;
  if (activation == Activation::relu) return max(y, L(0));
  if (activation == Activation::sigmoid) return sigmoid(y);
  const L e = exp(abs(y) * L(scalar_t<L>(-2))), t = (L(1) - e) / (L(1) + e);
  return select(y > L(0), t, -t);
}
/// Its derivative, from its value h.
template <class L>
LOCKSTEP_FN L slope(Activation activation, L h) {
  if (activation == Activation::identity) return L(1);
  if (activation == Activation::relu) return select(h > L(0), L(1), L(0));
  if (activation == Activation::sigmoid) return h * (L(1) - h);
  return nfma(h, h, L(1));
}

}  // namespace lockstep
