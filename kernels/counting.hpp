// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lane that computes like double and counts floating-point operations: a fused multiply-add counts two, an
// elementary function what its polynomial costs on a pack of floats (kernels/elementary.hpp). For throughput
// figures.
#include "kernels/elementary.hpp"

namespace lockstep {

struct Counting {
  double v = 0;
  static inline double operations = 0;
  Counting() = default;
  template <class T>
  requires std::is_arithmetic_v<T> Counting(T a) : v(static_cast<double>(a)) {}
  static Counting counted(double v, double cost) {
    operations += cost;
    return Counting(v);
  }
};

template <>
struct LaneTraits<Counting> {
  using scalar = double;
  using mask = bool;
  static constexpr int width = 1;
};

/// Rows for a density to read and write, one chain.
struct CountingRows {
  double* p;
  Counting operator[](int row) const { return Counting(p[row]); }
  void set(int row, Counting value) const { p[row] = value.v; }
};

inline Counting operator+(Counting a, Counting b) { return Counting::counted(a.v + b.v, 1); }
inline Counting operator-(Counting a, Counting b) { return Counting::counted(a.v - b.v, 1); }
inline Counting operator*(Counting a, Counting b) { return Counting::counted(a.v * b.v, 1); }
inline Counting operator/(Counting a, Counting b) { return Counting::counted(a.v / b.v, 1); }
inline Counting operator-(Counting a) { return Counting(-a.v); }
inline bool operator<(Counting a, Counting b) { return a.v < b.v; }
inline bool operator>(Counting a, Counting b) { return a.v > b.v; }
inline bool operator<=(Counting a, Counting b) { return a.v <= b.v; }
inline bool operator>=(Counting a, Counting b) { return a.v >= b.v; }
inline Counting fma(Counting a, Counting b, Counting c) {
  return Counting::counted(std::fma(a.v, b.v, c.v), 2);
}
inline Counting nfma(Counting a, Counting b, Counting c) {
  return Counting::counted(std::fma(-a.v, b.v, c.v), 2);
}
inline Counting min(Counting a, Counting b) { return Counting::counted(lockstep::min(a.v, b.v), 1); }
inline Counting max(Counting a, Counting b) { return Counting::counted(lockstep::max(a.v, b.v), 1); }
inline Counting abs(Counting a) { return Counting::counted(std::abs(a.v), 1); }
inline Counting sqrt(Counting a) { return Counting::counted(std::sqrt(a.v), 1); }
inline Counting round(Counting a) { return Counting::counted(std::rint(a.v), 1); }
inline Counting floor(Counting a) { return Counting::counted(std::floor(a.v), 1); }
inline Counting select(bool m, Counting a, Counting b) { return m ? a : b; }
inline bool is_finite(Counting a) { return std::isfinite(a.v); }
inline double reduce_max(Counting a) { return a.v; }
inline Counting exp2(Counting a) {
  return Counting::counted(std::exp2(a.v), 18);
}  // clamp, round, 6 fma, scale
inline Counting exp(Counting a) { return Counting::counted(std::exp(a.v), 23); }
inline Counting log(Counting a) { return Counting::counted(std::log(a.v), 22); }
inline Counting log1p(Counting a) { return Counting::counted(std::log1p(a.v), 27); }
inline void sincospi(Counting a, Counting& s, Counting& c) {
  s = Counting::counted(std::sin(3.14159265358979323846 * a.v), 40);
  c = Counting(std::cos(3.14159265358979323846 * a.v));
}

}  // namespace lockstep
