// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers without state: Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011), written on integer lanes.
// A draw is a function of what it is for (docs/decisions/0002-random-number-key.md):
//   key     = 64 bits made from the run's seed and the setting's label
//   counter = (purpose << 24 | block, iteration, chain within its unit, unit)
// so results do not depend on threads, tiles, launches, devices or a resume.
#include <string_view>

#include "kernels/elementary.hpp"

#ifdef __CUDACC__
#include <curand_philox4x32_x.h>
#endif

namespace lockstep {

/// What a draw is for. Append only: a number, once used, keeps its meaning for ever.
enum class Purpose : std::uint32_t {
  start = 0,       // initial positions
  momentum = 1,    // HMC momentum refresh
  accept = 2,      // Metropolis uniform
  trajectory = 3,  // leapfrog jitter, one per setting and iteration
  select = 4,      // index of the pseudo-sample kept as an unweighted draw
  proposal = 5,    // random-walk proposal
  resample = 6,    // sequential Monte Carlo
  scout = 7,       // initial particles of the scout
  scout_momentum = 8,
  scout_accept = 9,
  exact = 10,         // exact draws of a target
  bootstrap = 11,     // estimators on the host
  pseudo_start = 12,  // starts of pseudo-samples and inverse temperatures
  temper = 13,        // inverse temperature given x
  swap = 14,          // parallel tempering
  base = 15,          // draws from the base
  seed_level = 16,    // level at which a chain starts
  mode_start = 17,    // starts of the search for modes
  mode_mass = 18,     // draws around a mode, by which its mass is estimated
  mode_jump = 19,     // which sample jumps, and to which mode
  base_draw = 20,     // draws of the base in the place of a jump
  tree = 21,          // directions and states of a trajectory that doubles
  worlds = 22,        // the coordinate between two worlds, and its momentum
  mixture_draw = 23,  // draws of a mixture of known normals
  regeneration = 24,  // whether a chain begins anew
};

struct StreamKey {
  std::uint32_t k0 = 0, k1 = 0;
};

/// The key of a run: the seed mixed with a hash of the label (FNV-1a, then the SplitMix64 finaliser).
constexpr StreamKey make_stream_key(std::uint64_t seed, std::string_view label) {
  std::uint64_t h = 1469598103934665603ull;
  for (char c : label) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  std::uint64_t z = seed + 0x9e3779b97f4a7c15ull * (h | 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return {static_cast<std::uint32_t>(z), static_cast<std::uint32_t>(z >> 32)};
}

LOCKSTEP_FN void multiply_wide(std::uint32_t a, std::uint32_t b, std::uint32_t& hi, std::uint32_t& lo) {
  const std::uint64_t p = static_cast<std::uint64_t>(a) * b;
  hi = static_cast<std::uint32_t>(p >> 32);
  lo = static_cast<std::uint32_t>(p);
}

/// The block function in lane operations; I is std::uint32_t or a pack of them.
template <class I>
LOCKSTEP_FN void philox_rounds(I (&c)[4], StreamKey key) {
  LOCKSTEP_UNROLL
  for (int round = 0; round < 10; ++round) {
    I h0, l0, h1, l1;
    multiply_wide(c[0], 0xD2511F53u, h0, l0);
    multiply_wide(c[2], 0xCD9E8D57u, h1, l1);
    c[0] = h1 ^ c[1] ^ I(key.k0);
    c[1] = l1;
    c[2] = h0 ^ c[3] ^ I(key.k1);
    c[3] = l0;
    key.k0 += 0x9E3779B9u;
    key.k1 += 0xBB67AE85u;
  }
}

/// Four random words from a counter of four words: by cuRAND's function on a GPU, by ours elsewhere.
template <class I>
LOCKSTEP_FN void philox(I (&c)[4], StreamKey key) {
#ifdef __CUDA_ARCH__
  const uint4 words = curand_Philox4x32_10(make_uint4(c[0], c[1], c[2], c[3]), make_uint2(key.k0, key.k1));
  c[0] = words.x;
  c[1] = words.y;
  c[2] = words.z;
  c[3] = words.w;
#else
  philox_rounds(c, key);
#endif
}

/// The draws of one iteration for each lane's (chain, unit). Number is an integer, or one for each lane where lanes are at
/// different iterations.
template <class L, class Number = std::uint32_t>
struct Draw {
  using I = int_lane_t<L>;
  StreamKey key;
  Number iteration;
  I chain, unit;
  std::uint32_t part = 0;  // of several transitions in an iteration, 0 to 15

  template <class Block>
  LOCKSTEP_FN void words(Purpose purpose, Block block, I (&w)[4]) const {
    w[0] = I((static_cast<std::uint32_t>(purpose) << 24) | (part << 20)) ^ I(block);
    w[1] = I(iteration);
    w[2] = chain;
    w[3] = unit;
    philox(w, key);
  }
  /// A uniform on the open unit interval with 23 bits: a 24-bit one plus half a step rounds to 1 in float.
  LOCKSTEP_FN static L uniform(I w) {
    using T = scalar_t<L>;
    return fma(from_int23<L>(w), L(T(1.0 / 8388608)), L(T(0.5 / 8388608)));
  }
  /// Two standard normals by Box and Muller; 31 bits for the radius (largest normal 6.6) and for the angle.
  LOCKSTEP_FN static void normals(I a, I b, L& x, L& y) {
    using T = scalar_t<L>;
    const L u = fma(from_int31<L>(a), L(T(1.0 / 2147483648.0)), L(T(0.5 / 2147483648.0)));
    const L r = sqrt(max(log(u) * L(T(-2)), L(T(0))));
    L s, c;
    sincospi(fma(from_int31<L>(b), L(T(1.0 / 1073741824.0)), L(T(-1))), s, c);
    x = r * c;
    y = r * s;
  }
  LOCKSTEP_FN L uniform(Purpose purpose, std::uint32_t block = 0) const {
    I w[4];
    words(purpose, block, w);
    return uniform(w[0]);
  }
  /// The one of each lane's block, a whole number below 2^20.
  LOCKSTEP_FN L uniform_at(Purpose purpose, L block) const {
    I w[4];
    words(purpose, to_int(block), w);
    return uniform(w[0]);
  }
  /// Calls put(index, normal) for `count` standard normals.
  template <class Put>
  LOCKSTEP_FN void normals(Purpose purpose, int count, Put&& put) const {
    LOCKSTEP_UNROLL
    for (int first = 0; first < count; first += 4) {
      I w[4];
      words(purpose, static_cast<std::uint32_t>(first / 4), w);
      L z[4];
      normals(w[0], w[1], z[0], z[1]);
      if (first + 2 < count) normals(w[2], w[3], z[2], z[3]);
      LOCKSTEP_UNROLL
      for (int k = 0; k < 4; ++k)
        if (first + k < count) put(first + k, z[k]);
    }
  }
};

}  // namespace lockstep
