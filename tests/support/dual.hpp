// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dual: a lane type that carries a derivative, for forward-mode differentiation of the targets. It has the
// closed list of lane operations (kernels/lanes.hpp, kernels/elementary.hpp) and nothing else: a density that
// steps outside the list does not compile with it. Comparisons look at values only, so that `select`, `min`
// and `max` differentiate the branch taken.
#include "targets/target.hpp"

namespace lockstep::testing {

struct Dual {
  double v = 0, d = 0;  // value, derivative

  Dual() = default;
  Dual(double value) : v(value) {}
  Dual(double value, double derivative) : v(value), d(derivative) {}
  template <class S>
  requires(std::is_arithmetic_v<S> && !std::is_same_v<S, double>) explicit Dual(S a)
      : v(static_cast<double>(a)) {}
};

inline Dual operator-(Dual a) { return {-a.v, -a.d}; }
inline Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
inline Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
inline Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
inline Dual operator/(Dual a, Dual b) { return {a.v / b.v, (a.d - a.v / b.v * b.d) / b.v}; }
inline bool operator<(Dual a, Dual b) { return a.v < b.v; }
inline bool operator<=(Dual a, Dual b) { return a.v <= b.v; }
inline bool operator>(Dual a, Dual b) { return a.v > b.v; }
inline bool operator>=(Dual a, Dual b) { return a.v >= b.v; }

inline Dual fma(Dual a, Dual b, Dual c) { return {std::fma(a.v, b.v, c.v), a.d * b.v + a.v * b.d + c.d}; }
inline Dual nfma(Dual a, Dual b, Dual c) { return fma(-a, b, c); }
inline Dual select(bool m, Dual a, Dual b) { return m ? a : b; }
inline Dual min(Dual a, Dual b) { return a < b ? a : b; }
inline Dual max(Dual a, Dual b) { return a > b ? a : b; }
inline Dual abs(Dual a) { return a.v < 0 ? -a : a; }
inline Dual round(Dual a) { return {std::rint(a.v)}; }
inline Dual floor(Dual a) { return {std::floor(a.v)}; }
inline bool is_finite(Dual a) { return std::isfinite(a.v); }
inline Dual reduce_max(Dual a) { return a; }

inline Dual sqrt(Dual a) { return {std::sqrt(a.v), a.d / (2 * std::sqrt(a.v))}; }
inline Dual exp(Dual a) { return {std::exp(a.v), a.d * std::exp(a.v)}; }
inline Dual exp2(Dual a) { return {std::exp2(a.v), a.d * std::exp2(a.v) * kLn2}; }
inline Dual log(Dual a) { return {std::log(a.v), a.d / a.v}; }
inline Dual log1p(Dual a) { return {std::log1p(a.v), a.d / (1 + a.v)}; }
inline void sincospi(Dual a, Dual& s, Dual& c) {
  const double sine = std::sin(kPi * a.v), cosine = std::cos(kPi * a.v);
  s = {sine, kPi * cosine * a.d};
  c = {cosine, -kPi * sine * a.d};
}

/// A position whose derivative is the i-th unit vector, as the rows a density reads.
struct DualPosition {
  const double* x;
  int i;
  Dual operator[](int row) const { return {x[row], row == i ? 1.0 : 0.0}; }
  DualPosition from(int row) const { return {x + row, i - row}; }
};

}  // namespace lockstep::testing

namespace lockstep {
template <>
struct LaneTraits<testing::Dual> {
  using scalar = double;
  using mask = bool;
  static constexpr int width = 1;
};
}  // namespace lockstep
