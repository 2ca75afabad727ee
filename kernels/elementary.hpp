// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementary functions on lanes. Packs get polynomials written on the lane operations (bit-identical at every
// width); scalar lanes take the C library's on the host and CUDA's on the device.
// Accuracy of the packs, measured in tests/kernels/unit_elementary.cpp: within 2 units in the last place
// (log1p and log_sigmoid: 3).
#include "kernels/lanes.hpp"

#ifndef __CUDACC__
#include "kernels/pack.hpp"
#endif

namespace lockstep {

inline constexpr double kLn2 = 0.693147180559945309417;
inline constexpr double kLog2E = 1.442695040888963407360;

// --- scalar lanes ---------------------------------------------------------------------------------
/// 2^a; a below about -126 (float) or -1022 (double) may return the smallest normal number instead of zero.
template <ScalarLane T>
LOCKSTEP_FN T exp2(T a) {
  return ::exp2(a);
}
template <ScalarLane T>
LOCKSTEP_FN T exp(T a) {
  return ::exp(a);
}
template <ScalarLane T>
LOCKSTEP_FN T log(T a) {
  return ::log(a);
}
template <ScalarLane T>
LOCKSTEP_FN T log1p(T a) {
  return ::log1p(a);
}
/// sin(pi a) and cos(pi a) for |a| <= 1.
template <ScalarLane T>
LOCKSTEP_FN void sincospi(T a, T& s, T& c) {
#if defined(__CUDA_ARCH__)
  ::sincospi(a, &s, &c);
#else
  s = ::sin(T(3.14159265358979323846) * a);
  c = ::cos(T(3.14159265358979323846) * a);
#endif
}
#if defined(__CUDA_ARCH__)
template <>
LOCKSTEP_FN float exp2(float a) {
  return ::exp2f(a);
}
template <>
LOCKSTEP_FN float exp(float a) {
  return ::expf(a);
}
template <>
LOCKSTEP_FN float log(float a) {
  return ::logf(a);
}
template <>
LOCKSTEP_FN float log1p(float a) {
  return ::log1pf(a);
}
template <>
LOCKSTEP_FN void sincospi(float a, float& s, float& c) {
  ::sincospif(a, &s, &c);
}
#endif

#ifndef __CUDACC__
// --- packs ----------------------------------------------------------------------------------------
inline namespace HWY_NAMESPACE {

/// Horner's rule with coefficients from the highest degree down.
template <class L, std::size_t K>
LOCKSTEP_FN L polynomial(L x, const scalar_t<L> (&c)[K]) {
  L r = L(c[0]);
  LOCKSTEP_UNROLL_FIXED
  for (std::size_t k = 1; k < K; ++k) r = fma(r, x, L(c[k]));
  return r;
}

/// Added to a number below 2^22 (2^51), it rounds it to an integer that stands in the low bits of the sum.
template <class T>
inline constexpr T kRounder = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);  // 1.5 2^23, 1.5 2^52

/// p 2^n, given rounded = n + kRounder: adds n to the exponent bits of p in [0.7, 1.5).
template <class T, int W>
LOCKSTEP_FN Pack<T, W> scale_by_power(Pack<T, W> p, Pack<T, W> rounded) {
  using P = Pack<T, W>;
  const hn::RebindToSigned<typename P::Tag> di;
  constexpr int bits = sizeof(T) == 4 ? 23 : 52;
  for (int k = 0; k < P::registers; ++k)
    p.v[k] = hn::BitCast(typename P::Tag(), hn::Add(hn::BitCast(di, p.v[k]),
                                                    hn::ShiftLeft<bits>(hn::BitCast(di, rounded.v[k]))));
  return p;
}

/// 2^f for |f| <= 1/2: minimax polynomials of degree 6 (relative error 2e-9) and 11 (3e-18).
template <int W>
LOCKSTEP_FN Pack<float, W> exp2_fraction(Pack<float, W> f) {
  constexpr float c[] = {1.53458172256382638e-4f,
                         1.33999311633451444e-3f,
                         9.61848893757904087e-3f,
                         5.55032877716165622e-2f,
                         2.40226468908067217e-1f,
                         6.93147205737176546e-1f,
                         1.0f};
  return polynomial(f, c);
}
template <int W>
LOCKSTEP_FN Pack<double, W> exp2_fraction(Pack<double, W> f) {
  constexpr double c[] = {4.43528239851589376e-10, 7.07410560482893094e-9, 1.01781980236048852e-7,
                          1.3215433089731072e-6,   1.52527334899844576e-5, 1.54035304625143175e-4,
                          1.3333558146789925e-3,   9.61812910758833534e-3, 5.55041086648199216e-2,
                          2.40226506959101562e-1,  6.9314718055994533e-1,  1.0};
  return polynomial(f, c);
}

template <class T>
inline constexpr T kExp2Low = T(std::numeric_limits<T>::min_exponent - 1);  // -126, -1022
template <class T>
inline constexpr T kExp2High = T(std::numeric_limits<T>::max_exponent - 1);  // 127, 1023

template <class T, int W>
LOCKSTEP_FN Pack<T, W> exp2(Pack<T, W> a) {
  // The argument is the second operand, so that NaN passes through.
  a = min(Pack<T, W>(kExp2High<T>), max(Pack<T, W>(kExp2Low<T>), a));
  const auto rounded = a + kRounder<T>;
  return scale_by_power(exp2_fraction(a - (rounded - kRounder<T>)), rounded);
}
template <class T, int W>
LOCKSTEP_FN Pack<T, W> exp(Pack<T, W> a) {
  constexpr T low = kExp2Low<T> * T(kLn2), high = kExp2High<T> * T(kLn2);
  a = min(Pack<T, W>(high), max(Pack<T, W>(low), a));
  const auto rounded = a * T(kLog2E) + kRounder<T>;
  const auto n = rounded - kRounder<T>;
  // ln 2 in two parts, so that n ln2_high is exact.
  constexpr T ln2_high = sizeof(T) == 4 ? T(0.693359375) : T(0.693147180369123816490);
  constexpr T ln2_low = sizeof(T) == 4 ? T(-2.12194440054690583e-4) : T(1.90821492927058770002e-10);
  const auto r = nfma(n, Pack<T, W>(ln2_low), nfma(n, Pack<T, W>(ln2_high), a));
  return scale_by_power(exp2_fraction(r * T(kLog2E)), rounded);
}

/// a = m 2^e with m in [sqrt(1/2), sqrt(2)), for positive normal a.
template <class T, int W>
LOCKSTEP_FN void split_exponent(Pack<T, W> a, Pack<T, W>& m, Pack<T, W>& e) {
  using P = Pack<T, W>;
  const hn::RebindToSigned<typename P::Tag> di;
  using I = hn::TFromD<decltype(di)>;
  constexpr int bits = sizeof(T) == 4 ? 23 : 52;
  constexpr I sqrt_half = sizeof(T) == 4 ? I(0x3f3504f3) : I(0x3fe6a09e667f3bcdLL);
  for (int k = 0; k < P::registers; ++k) {
    const auto x = hn::BitCast(di, a.v[k]);
    const auto n = hn::ShiftRight<bits>(hn::Sub(x, hn::Set(di, sqrt_half)));
    m.v[k] = hn::BitCast(typename P::Tag(), hn::Sub(x, hn::ShiftLeft<bits>(n)));
    e.v[k] = hn::ConvertTo(typename P::Tag(), n);
  }
}
/// log m for m in [sqrt(1/2), sqrt(2)). With f = m - 1 and t = f / (m + 1), |t| < 0.172, log m = 2 atanh(t) =
/// f - (h - t (h + R)), where h = f^2 / 2 and R = 2 t^2/3 + 2 t^4/5 + ...: f is exact, so the rest may round.
template <class T, int W>
LOCKSTEP_FN Pack<T, W> log_fraction(Pack<T, W> m) {
  const auto f = m - T(1), t = f / (m + T(1)), s = t * t, h = f * f * T(0.5);
  auto rest = [&](const auto& c) { return f - nfma(t, fma(s, polynomial(s, c), h), h); };
  if constexpr (sizeof(T) == 4) {
    constexpr T c[] = {T(2) / 11, T(2) / 9, T(2) / 7, T(2) / 5, T(2) / 3};
    return rest(c);
  } else {
    constexpr T c[] = {T(2) / 21, T(2) / 19, T(2) / 17, T(2) / 15, T(2) / 13,
                       T(2) / 11, T(2) / 9,  T(2) / 7,  T(2) / 5,  T(2) / 3};
    return rest(c);
  }
}
/// log a for positive normal a; -inf at 0, NaN below and for NaN.
template <class T, int W>
LOCKSTEP_FN Pack<T, W> log(Pack<T, W> a) {
  Pack<T, W> m, e;
  split_exponent(a, m, e);
  auto r = fma(e, Pack<T, W>(T(kLn2)), log_fraction(m));
  constexpr T inf = std::numeric_limits<T>::infinity();
  r = select(a < std::numeric_limits<T>::min(), Pack<T, W>(-inf), r);
  r = select(a < T(0), Pack<T, W>(std::numeric_limits<T>::quiet_NaN()), r);
  return select(a < inf, r, a + a);  // +inf and NaN pass through
}
/// log(1 + a) for finite a > -1, accurate for small |a|.
template <class T, int W>
LOCKSTEP_FN Pack<T, W> log1p(Pack<T, W> a) {
  // With u = fl(1 + a): log1p(a) = log(u) a / (u - 1), and a itself where u = 1.
  const auto u = a + T(1);
  const auto d = u - T(1);
  const auto exact = mask_and(d <= T(0), d >= T(0));
  return select(exact, a, log(u) * (a / select(exact, Pack<T, W>(T(1)), d)));
}

template <class T, int W>
LOCKSTEP_FN void sincospi(Pack<T, W> a, Pack<T, W>& s, Pack<T, W>& c) {
  using P = Pack<T, W>;
  const P q = round(a * T(2));
  const P r = (a - q * T(0.5)) * T(3.14159265358979323846);  // |r| <= pi/4
  const P z = r * r;
  P sr, cr;
  if constexpr (sizeof(T) == 4) {
    constexpr T sc[] = {T(1) / 362880, T(-1) / 5040, T(1) / 120, T(-1) / 6};
    constexpr T cc[] = {T(-1) / 3628800, T(1) / 40320, T(-1) / 720, T(1) / 24, T(-1) / 2, T(1)};
    sr = fma(r * z, polynomial(z, sc), r);
    cr = polynomial(z, cc);
  } else {
    constexpr T sc[] = {T(-1) / 1307674368000.0,
                        T(1) / 6227020800.0,
                        T(-1) / 39916800,
                        T(1) / 362880,
                        T(-1) / 5040,
                        T(1) / 120,
                        T(-1) / 6};
    constexpr T cc[] = {T(1) / 20922789888000.0,
                        T(-1) / 87178291200.0,
                        T(1) / 479001600,
                        T(-1) / 3628800,
                        T(1) / 40320,
                        T(-1) / 720,
                        T(1) / 24,
                        T(-1) / 2,
                        T(1)};
    sr = fma(r * z, polynomial(z, sc), r);
    cr = polynomial(z, cc);
  }
  const P half = q * T(0.5);
  const auto odd = abs(half - floor(half)) > T(0.25);  // a quarter turn: sine and cosine change places
  const P turns = (q + T(1)) * T(0.25);
  const auto cos_negative = (turns - floor(turns)) >= T(0.5);  // quadrants 1 and 2
  const auto sin_negative = (q * T(0.25) - floor(q * T(0.25))) >= T(0.5);
  const P ss = select(odd, cr, sr), cs = select(odd, sr, cr);
  s = select(sin_negative, -ss, ss);
  c = select(cos_negative, -cs, cs);
}

}  // namespace HWY_NAMESPACE
#endif

/// log sigmoid(a) = min(a, 0) - log(1 + exp(-|a|)).
template <class L>
LOCKSTEP_FN L log_sigmoid(L a) {
  return min(a, L(0)) - log1p(exp(-abs(a)));
}

}  // namespace lockstep
