// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lane types, and the closed list of operations on them. One lane is one chain.
//
//   float, double      one chain: a CUDA thread, or the scalar reference that the tests trust
//   Pack<T, W>         W chains in SIMD registers (kernels/pack.hpp; CPU only)
//
// Targets and transitions are templates on the lane type and use nothing but this list:
//   + - * /  < <= > >=  fma(a,b,c) = a b + c   nfma(a,b,c) = c - a b   min max abs sqrt round floor select
//   is_finite  any  reduce_max  cast<L>   and the elementary functions of kernels/elementary.hpp.
// No branch may depend on a lane value except through `select`, or on `any`/`reduce_max` of a whole pack.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__CUDACC__)
#define LOCKSTEP_FN __host__ __device__ __forceinline__
// Rows kept in registers need every index to be a constant: loops over rows are unrolled where their bounds
// are.
#define LOCKSTEP_UNROLL _Pragma("unroll")
#define LOCKSTEP_UNROLL_FIXED _Pragma("unroll")
#else
#ifdef LOCKSTEP_CALLS
// Calls stay calls where the compiler sees fit: large functions of packs compile in a third of the time. For tests, and
// for transitions whose time goes elsewhere.
#define LOCKSTEP_FN inline
#else
#define LOCKSTEP_FN inline __attribute__((always_inline))
#endif
#define LOCKSTEP_UNROLL
// Loops whose short, constant bounds index arrays that are to stay in registers: g++ leaves some of them
// rolled, and their arrays in memory.
#define LOCKSTEP_UNROLL_FIXED _Pragma("GCC unroll 32")
#endif

namespace lockstep {

template <class L>
struct LaneTraits;  // scalar (float or double), width, mask

template <>
struct LaneTraits<float> {
  using scalar = float;
  using mask = bool;
  static constexpr int width = 1;
};
template <>
struct LaneTraits<double> {
  using scalar = double;
  using mask = bool;
  static constexpr int width = 1;
};

/// Lanes of double beside those of L, for what is in double whatever the precision of a run.
template <class L>
struct WideLane {
  using type = double;
};
template <class L>
using wide_t = typename WideLane<L>::type;

/// One chain alone by the arithmetic of L: a pack of one, whose bits are those of any other.
template <class L>
struct OneLane {
  using type = L;
};
template <class L>
using one_lane_t = typename OneLane<L>::type;

template <class L>
using scalar_t = typename LaneTraits<L>::scalar;
template <class L>
using mask_t = typename LaneTraits<L>::mask;
template <class L>
inline constexpr int lane_width = LaneTraits<L>::width;

template <class L>
concept ScalarLane = std::is_same_v<L, float> || std::is_same_v<L, double>;

#define LOCKSTEP_SCALAR   \
  template <ScalarLane T> \
  LOCKSTEP_FN

LOCKSTEP_SCALAR T fma(T a, T b, T c) { return ::fma(a, b, c); }
LOCKSTEP_SCALAR T nfma(T a, T b, T c) { return ::fma(-a, b, c); }
LOCKSTEP_SCALAR T select(bool m, T a, T b) { return m ? a : b; }
LOCKSTEP_SCALAR T min(T a, T b) {
  return a < b ? a : b;
}  // second operand when either is NaN, as the packs do
LOCKSTEP_SCALAR T max(T a, T b) { return a > b ? a : b; }
LOCKSTEP_SCALAR T abs(T a) { return ::fabs(a); }
LOCKSTEP_SCALAR T sqrt(T a) { return ::sqrt(a); }
LOCKSTEP_SCALAR T round(T a) { return ::rint(a); }
LOCKSTEP_SCALAR T floor(T a) { return ::floor(a); }
LOCKSTEP_SCALAR bool is_finite(T a) { return a - a == T(0); }
LOCKSTEP_SCALAR T reduce_max(T a) { return a; }
LOCKSTEP_FN bool any(bool m) { return m; }
LOCKSTEP_FN bool mask_and(bool a, bool b) { return a && b; }
LOCKSTEP_FN bool mask_not(bool a) { return !a; }

template <class L, class T>
requires(ScalarLane<L>&& std::is_arithmetic_v<T>) LOCKSTEP_FN L cast(T a) { return static_cast<L>(a); }
/// A mask of one lane type as a mask of another of the same width.
template <class L>
requires ScalarLane<L> LOCKSTEP_FN bool cast_mask(bool m) { return m; }

template <class L>
requires ScalarLane<L> LOCKSTEP_FN L load(const L* p) { return *p; }
template <class L>
requires ScalarLane<L> LOCKSTEP_FN void store(L* p, L a) { *p = a; }

// The 32-bit integer lanes that random numbers are made from.
template <class L>
struct IntLane {
  using type = std::uint32_t;
};
template <class L>
using int_lane_t = typename IntLane<L>::type;

template <class L>
requires ScalarLane<L> LOCKSTEP_FN std::uint32_t load_int(const std::uint32_t* p) { return *p; }
/// The integer's upper 31 bits as a signed-convertible number in [0, 2^31).
template <class L>
requires ScalarLane<L> LOCKSTEP_FN L from_int31(std::uint32_t a) {
  return static_cast<L>(static_cast<std::int32_t>(a >> 1));
}
template <class L>
requires ScalarLane<L> LOCKSTEP_FN L from_int23(std::uint32_t a) {
  return static_cast<L>(static_cast<std::int32_t>(a >> 9));
}

/// A whole number, 0 to 2^24.
LOCKSTEP_SCALAR std::uint32_t to_int(T a) { return static_cast<std::uint32_t>(a); }

#undef LOCKSTEP_SCALAR
}  // namespace lockstep
