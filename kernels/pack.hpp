// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pack<T, W>: W chains side by side in SIMD registers, on Google Highway
// (docs/decisions/0003-pack-library.md). W may exceed the machine's register; a pack is then several
// registers. Every operation is exact per lane, so the same chain gives the same bits at every width. The
// namespace carries the instruction set's name, so that code built for two sets can never be mixed by the
// linker. One instruction set per build (-march), so static dispatch only; AES is not needed, and
// x86-64-v3/v4 lack it.
#define HWY_COMPILE_ONLY_STATIC
#define HWY_DISABLE_PCLMUL_AES
#define HWY_WANT_AVX3_DL
#include <hwy/highway.h>

#include "kernels/lanes.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, int W>
struct PackLayout {
  static constexpr int native = HWY_MAX_BYTES / int(sizeof(T));
  static constexpr int lanes = W < native ? W : native;  // per register
  static constexpr int registers = W / lanes;
  using Tag = hn::FixedTag<T, lanes>;
  using Vec = hn::Vec<Tag>;
  using Mask = hn::Mask<Tag>;
};

template <class T, int W>
struct PackMask {
  typename PackLayout<T, W>::Mask m[PackLayout<T, W>::registers];
};

template <class T, int W>
struct Pack {
  using Layout = PackLayout<T, W>;
  using Tag = typename Layout::Tag;
  static constexpr int registers = Layout::registers;
  typename Layout::Vec v[registers];

  Pack() = default;
  LOCKSTEP_FN Pack(T a) {
    for (auto& r : v) r = hn::Set(Tag(), a);
  }
  template <class S>
  requires(std::is_arithmetic_v<S> && !std::is_same_v<S, T>) LOCKSTEP_FN explicit Pack(S a)
      : Pack(static_cast<T>(a)) {}
};

}  // namespace HWY_NAMESPACE

template <class T, int W>
struct LaneTraits<Pack<T, W>> {
  using scalar = T;
  using mask = PackMask<T, W>;
  static constexpr int width = W;
};

template <class T, int W>
struct WideLane<Pack<T, W>> {
  using type = Pack<double, W>;
};
template <class T, int W>
struct OneLane<Pack<T, W>> {
  using type = Pack<T, 1>;
};

template <class T, int W>
struct IntLane<Pack<T, W>> {
  using type = Pack<std::uint32_t, W>;
};

inline namespace HWY_NAMESPACE {

#define LOCKSTEP_PACK       \
  template <class T, int W> \
  LOCKSTEP_FN
#define LOCKSTEP_MAP(EXPR)                                       \
  Pack<T, W> r;                                                  \
  for (int k = 0; k < Pack<T, W>::registers; ++k) r.v[k] = EXPR; \
  return r;
#define LOCKSTEP_BINARY(OP, FN)                                                                     \
  LOCKSTEP_PACK Pack<T, W>                                                                          \
  OP(Pack<T, W> a, Pack<T, W> b){LOCKSTEP_MAP(hn::FN(a.v[k], b.v[k]))} LOCKSTEP_PACK Pack<T, W> OP( \
      Pack<T, W> a, std::type_identity_t<T> b) {                                                    \
    return OP(a, Pack<T, W>(b));                                                                    \
  }                                                                                                 \
  LOCKSTEP_PACK Pack<T, W> OP(std::type_identity_t<T> a, Pack<T, W> b) { return OP(Pack<T, W>(a), b); }
#define LOCKSTEP_COMPARE(OP, FN)                                                     \
  LOCKSTEP_PACK PackMask<T, W> OP(Pack<T, W> a, Pack<T, W> b) {                      \
    PackMask<T, W> r;                                                                \
    for (int k = 0; k < Pack<T, W>::registers; ++k) r.m[k] = hn::FN(a.v[k], b.v[k]); \
    return r;                                                                        \
  }                                                                                  \
  LOCKSTEP_PACK PackMask<T, W> OP(Pack<T, W> a, std::type_identity_t<T> b) { return OP(a, Pack<T, W>(b)); }

LOCKSTEP_BINARY(operator+, Add)
LOCKSTEP_BINARY(operator-, Sub)
LOCKSTEP_BINARY(operator*, Mul)
LOCKSTEP_BINARY(operator/, Div)
LOCKSTEP_COMPARE(operator<, Lt)
LOCKSTEP_COMPARE(operator<=, Le)
LOCKSTEP_COMPARE(operator>, Gt)
LOCKSTEP_COMPARE(operator>=, Ge)

LOCKSTEP_PACK Pack<T, W> operator-(Pack<T, W> a){
    LOCKSTEP_MAP(hn::Neg(a.v[k]))} LOCKSTEP_PACK Pack<T, W> fma(Pack<T, W> a, Pack<T, W> b, Pack<T, W> c){
    LOCKSTEP_MAP(hn::MulAdd(a.v[k], b.v[k],
                            c.v[k]))} LOCKSTEP_PACK Pack<T, W> nfma(Pack<T, W> a, Pack<T, W> b, Pack<T, W> c){
    LOCKSTEP_MAP(hn::NegMulAdd(a.v[k], b.v[k], c.v[k]))} LOCKSTEP_PACK Pack<T, W> select(PackMask<T, W> m,
                                                                                         Pack<T, W> a,
                                                                                         Pack<T, W> b){
    LOCKSTEP_MAP(hn::IfThenElse(m.m[k], a.v[k], b.v[k]))}
// select, not the hardware minimum, would cost a compare: x86 min/max return the second operand on NaN, which
// is what the scalar lanes do too.
LOCKSTEP_PACK Pack<T, W> min(Pack<T, W> a, Pack<T, W> b){
    LOCKSTEP_MAP(hn::Min(a.v[k], b.v[k]))} LOCKSTEP_PACK Pack<T, W> max(Pack<T, W> a, Pack<T, W> b){
    LOCKSTEP_MAP(hn::Max(a.v[k], b.v[k]))} LOCKSTEP_PACK Pack<T, W> abs(Pack<T, W> a){
    LOCKSTEP_MAP(hn::Abs(a.v[k]))} LOCKSTEP_PACK Pack<T, W> sqrt(Pack<T, W> a){
    LOCKSTEP_MAP(hn::Sqrt(a.v[k]))} LOCKSTEP_PACK Pack<T, W> round(Pack<T, W> a){
    LOCKSTEP_MAP(hn::Round(a.v[k]))} LOCKSTEP_PACK Pack<T, W> floor(Pack<T, W> a){
    LOCKSTEP_MAP(hn::Floor(a.v[k]))} LOCKSTEP_PACK PackMask<T, W> is_finite(Pack<T, W> a) {
  PackMask<T, W> r;
  for (int k = 0; k < Pack<T, W>::registers; ++k)
    r.m[k] = hn::Eq(hn::Sub(a.v[k], a.v[k]), hn::Zero(typename Pack<T, W>::Tag()));
  return r;
}
LOCKSTEP_PACK bool any(PackMask<T, W> m) {
  bool r = false;
  for (int k = 0; k < Pack<T, W>::registers; ++k) r |= !hn::AllFalse(typename Pack<T, W>::Tag(), m.m[k]);
  return r;
}
LOCKSTEP_PACK PackMask<T, W> mask_and(PackMask<T, W> a, PackMask<T, W> b) {
  for (int k = 0; k < Pack<T, W>::registers; ++k) a.m[k] = hn::And(a.m[k], b.m[k]);
  return a;
}
LOCKSTEP_PACK PackMask<T, W> mask_not(PackMask<T, W> a) {
  for (int k = 0; k < Pack<T, W>::registers; ++k) a.m[k] = hn::Not(a.m[k]);
  return a;
}

template <class L>
requires(!ScalarLane<L>) LOCKSTEP_FN L load(const scalar_t<L>* p) {
  L r;
  for (int k = 0; k < L::registers; ++k) r.v[k] = hn::LoadU(typename L::Tag(), p + k * L::Layout::lanes);
  return r;
}
template <class T, int W>
LOCKSTEP_FN void store(T* p, Pack<T, W> a) {
  for (int k = 0; k < Pack<T, W>::registers; ++k)
    hn::StoreU(a.v[k], typename Pack<T, W>::Tag(), p + k * Pack<T, W>::Layout::lanes);
}

LOCKSTEP_PACK T reduce_max(Pack<T, W> a) {
  alignas(64) T x[W];
  store(x, a);
  T r = x[0];
  for (int i = 1; i < W; ++i) r = x[i] > r ? x[i] : r;
  return r;
}

/// Conversion between lane types of one width (float <-> double), through memory: once per trajectory.
template <class L, class T, int W>
requires(lane_width<L> == W) LOCKSTEP_FN L cast(Pack<T, W> a) {
  if constexpr (std::is_same_v<L, Pack<T, W>>) {
    return a;
  } else {
    alignas(64) T x[W];
    alignas(64) scalar_t<L> y[W];
    store(x, a);
    for (int i = 0; i < W; ++i) y[i] = static_cast<scalar_t<L>>(x[i]);
    return load<L>(y);
  }
}
template <class L, class T>
requires(!ScalarLane<L> && std::is_arithmetic_v<T>) LOCKSTEP_FN L cast(T a) {
  return L(static_cast<scalar_t<L>>(a));
}
template <class L, class T, int W>
requires(lane_width<L> == W) LOCKSTEP_FN mask_t<L> cast_mask(PackMask<T, W> m) {
  if constexpr (std::is_same_v<mask_t<L>, PackMask<T, W>>) {
    return m;
  } else {
    return cast<L>(select(m, Pack<T, W>(T(1)), Pack<T, W>(T(0)))) > scalar_t<L>(0.5);
  }
}

// --- integers for random numbers ------------------------------------------------------------------
template <class L>
requires(!ScalarLane<L>) LOCKSTEP_FN int_lane_t<L> load_int(const std::uint32_t* p) {
  return load<int_lane_t<L>>(p);
}
template <class L>
requires(!ScalarLane<L>) LOCKSTEP_FN L from_signed(int_lane_t<L> a) {
  using T = scalar_t<L>;
  alignas(64) std::uint32_t x[lane_width<L>];
  alignas(64) T y[lane_width<L>];
  store(x, a);
  for (int i = 0; i < lane_width<L>; ++i) y[i] = static_cast<T>(static_cast<std::int32_t>(x[i]));
  return load<L>(y);
}
template <class T, int W>
LOCKSTEP_FN Pack<std::uint32_t, W> to_int(Pack<T, W> a) {
  alignas(64) T x[W];
  alignas(64) std::uint32_t y[W];
  store(x, a);
  for (int i = 0; i < W; ++i) y[i] = static_cast<std::uint32_t>(x[i]);
  return load<Pack<std::uint32_t, W>>(y);
}
template <int S, int W>
LOCKSTEP_FN Pack<std::uint32_t, W> shift_right(Pack<std::uint32_t, W> a) {
  for (auto& r : a.v) r = hn::ShiftRight<S>(r);
  return a;
}
template <class L>
requires(!ScalarLane<L>) LOCKSTEP_FN L from_int31(int_lane_t<L> a) {
  return from_signed<L>(shift_right<1>(a));
}
template <class L>
requires(!ScalarLane<L>) LOCKSTEP_FN L from_int23(int_lane_t<L> a) {
  return from_signed<L>(shift_right<9>(a));
}
template <int W>
LOCKSTEP_FN Pack<std::uint32_t, W> operator^(Pack<std::uint32_t, W> a, Pack<std::uint32_t, W> b) {
  for (int k = 0; k < Pack<std::uint32_t, W>::registers; ++k) a.v[k] = hn::Xor(a.v[k], b.v[k]);
  return a;
}
/// The low and high halves of the 64-bit products of 32-bit lanes.
template <int W>
LOCKSTEP_FN void multiply_wide(Pack<std::uint32_t, W> a, std::uint32_t b, Pack<std::uint32_t, W>& hi,
                               Pack<std::uint32_t, W>& lo) {
  using P = Pack<std::uint32_t, W>;
  constexpr int n = P::Layout::lanes;
  if constexpr (n < 4) {  // one chain: no room for a product beside it
    alignas(64) std::uint32_t x[W], high[W], low[W];
    store(x, a);
    for (int i = 0; i < W; ++i) {
      const std::uint64_t product = static_cast<std::uint64_t>(x[i]) * b;
      high[i] = static_cast<std::uint32_t>(product >> 32);
      low[i] = static_cast<std::uint32_t>(product);
    }
    hi = load<P>(high);
    lo = load<P>(low);
  } else {
    const typename P::Tag d;
    const hn::Repartition<std::uint64_t, typename P::Tag> d64;
    const auto factor = hn::Set(d, b);
    for (int k = 0; k < P::registers; ++k) {
      const auto even = hn::MulEven(a.v[k], factor);  // 64-bit products of lanes 0, 2, 4, ...
      const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a.v[k]))), factor);
      lo.v[k] = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
      hi.v[k] = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
    }
  }
}

#undef LOCKSTEP_PACK
#undef LOCKSTEP_MAP
#undef LOCKSTEP_BINARY
#undef LOCKSTEP_COMPARE
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
