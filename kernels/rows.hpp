// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of lanes. Chain state is tiled structure-of-arrays: [tile of 32 chains][row][chain in tile], so that a
// warp, or two AVX-512 packs of floats, read one contiguous line per row (docs/decisions/0001-layout.md).
#include <utility>

#include "kernels/lanes.hpp"

#ifndef __CUDACC__
#include "kernels/pack.hpp"
#endif

namespace lockstep {

inline constexpr int kTile = 32;

/// A lane value from memory and back. The memory may hold another precision than L computes in; it is then converted
/// on the way.
template <class L, class Stored>
LOCKSTEP_FN L read_row(const Stored* p) {
  if constexpr (std::is_same_v<Stored, scalar_t<L>>) {
    return load<L>(p);
  } else if constexpr (ScalarLane<L>) {
    return static_cast<L>(*p);
  } else {
    alignas(64) scalar_t<L> y[lane_width<L>];
    for (int i = 0; i < lane_width<L>; ++i) y[i] = static_cast<scalar_t<L>>(p[i]);
    return load<L>(y);
  }
}
template <class L, class Stored>
LOCKSTEP_FN void write_row(Stored* p, L value) {
  if constexpr (std::is_same_v<Stored, scalar_t<L>>) {
    store(p, value);
  } else {
    for (int i = 0; i < lane_width<L>; ++i) p[i] = reinterpret_cast<const scalar_t<L>*>(&value)[i];
  }
}

/// Rows in memory: row r of this lane group starts at p + r * stride.
template <class L, class Stored = scalar_t<L>>
struct Rows {
  Stored* p;
  int stride;
  LOCKSTEP_FN L operator[](int row) const { return read_row<L>(p + row * stride); }
  LOCKSTEP_FN void set(int row, L value) const { write_row<L>(p + row * stride, value); }
  LOCKSTEP_FN Rows from(int row) const { return {p + row * stride, stride}; }
};

/// The same with a stride that the compiler knows: a fifth of the time of a loop over rows.
template <class L, int kStride, class Stored = scalar_t<L>>
struct FixedRows {
  Stored* p;
  LOCKSTEP_FN L operator[](int row) const { return read_row<L>(p + row * kStride); }
  LOCKSTEP_FN void set(int row, L value) const { write_row<L>(p + row * kStride, value); }
  LOCKSTEP_FN FixedRows from(int row) const { return {p + row * kStride}; }
  /// The same numbers as lanes of another precision.
  template <class E>
  LOCKSTEP_FN FixedRows<E, kStride, Stored> as() const {
    return {p};
  }
};
/// One number for all lanes in each row.
template <class L, class Stored = scalar_t<L>>
struct CommonRows {
  const Stored* p;
  LOCKSTEP_FN L operator[](int row) const { return L(static_cast<scalar_t<L>>(p[row])); }
  LOCKSTEP_FN CommonRows from(int row) const { return {p + row}; }
};
/// Of a tile of chains.
template <class L, class Stored = scalar_t<L>>
using TileRows = FixedRows<L, kTile, Stored>;
/// Of one group of lanes alone.
template <class L>
using GroupRows = FixedRows<L, lane_width<L>>;

/// Adds a lane value to a row of doubles in memory.
template <class A>
LOCKSTEP_FN void add_to(double* row, A value) {
  if constexpr (std::is_same_v<scalar_t<A>, double>) {
    store(row, load<A>(row) + value);
  } else if constexpr (ScalarLane<A>) {
    *row += static_cast<double>(value);
  } else {
    alignas(64) scalar_t<A> v[lane_width<A>];
    store(v, value);
    for (int i = 0; i < lane_width<A>; ++i) row[i] += static_cast<double>(v[i]);
  }
}

/// The same to `count` rows of kTile, at most N: all are read before any is written, so that nobody waits for each in turn.
template <int N, class A>
LOCKSTEP_FN void add_to_rows(double* row, int count, const A (&values)[N]) {
  if constexpr (std::is_same_v<scalar_t<A>, double>) {
    A sums[N];
    LOCKSTEP_UNROLL_FIXED
    for (int j = 0; j < N; ++j)
      if (j < count) sums[j] = load<A>(row + j * kTile) + values[j];
    LOCKSTEP_UNROLL_FIXED
    for (int j = 0; j < N; ++j)
      if (j < count) store(row + j * kTile, sums[j]);
  } else {
    LOCKSTEP_UNROLL_FIXED
    for (int j = 0; j < N; ++j)
      if (j < count) add_to(row + j * kTile, values[j]);
  }
}

/// Rows in registers, indexed by compile-time constants once loops are unrolled.
template <class L>
struct LocalRows {
  L* v;
  LOCKSTEP_FN L operator[](int row) const { return v[row]; }
  LOCKSTEP_FN void set(int row, L value) const { v[row] = value; }
  LOCKSTEP_FN LocalRows from(int row) const { return {v + row}; }
};
template <class L, int E>
struct Locals {
  L v[E];
  LOCKSTEP_FN LocalRows<L> view() { return {v}; }
};

// Handles on rows are handed on by value: addresses, strides and sizes then stay in registers, where no store of
// a pack can be taken to change them.

/// to[j] = from[j] for j < count, as lanes of type V.
template <class V, class From, class To>
LOCKSTEP_FN void copy_rows(int count, From from, To to) {
  LOCKSTEP_UNROLL
  for (int j = 0; j < count; ++j) to.set(j, cast<V>(from[j]));
}
/// The same in the lanes of the mask alone.
template <class Mask, class From, class To>
LOCKSTEP_FN void select_rows(int count, Mask mask, From from, To to) {
  LOCKSTEP_UNROLL
  for (int j = 0; j < count; ++j) to.set(j, select(mask, from[j], to[j]));
}

/// The lists that all chains of a unit share, of a length of its own for each unit (TransitionInfo::shared): every lane
/// sees its unit's.
template <class L>
struct SharedLists {
  using V = wide_t<L>;
  static constexpr int W = lane_width<L>;
  const double* values = nullptr;
  const std::int32_t* places = nullptr;  // [list][first, size][stride], of this group's chains
  std::ptrdiff_t stride = 0;

  LOCKSTEP_FN V size(int list) const {
    alignas(64) double n[W];
    for (int i = 0; i < W; ++i) n[i] = places[(2 * list + 1) * stride + i];
    return load<V>(n);
  }
  /// f(read), where read(index) is number `index` of the list, one for all lanes, which must be there in each: read once
  /// where all lanes are of one unit.
  template <class F>
  LOCKSTEP_FN void each_unit(int list, F f) const {
    bool one = true;
    for (int i = 1; i < W; ++i)
      one &= places[2 * list * stride + i] == places[2 * list * stride] &&
             places[(2 * list + 1) * stride + i] == places[(2 * list + 1) * stride];
    const double* first = values + places[2 * list * stride];
    if (one)
      f([=](int index) { return V(first[index]); });
    else
      f([=, *this](int index) { return get(list, V(double(index))); });
  }
  /// Numbers `index` of a list, which are clamped to it; 0 of an empty one.
  LOCKSTEP_FN V get(int list, V index) const {
    alignas(64) double k[W], v[W];
    store(k, index);
    for (int i = 0; i < W; ++i) {
      const std::int32_t *first = places + 2 * list * stride + i, last = first[stride] - 1;
      const double within = k[i] > 0 ? (k[i] < last ? k[i] : last) : 0;
      v[i] = last < 0 ? 0 : values[first[0] + static_cast<std::int32_t>(within)];
    }
    return load<V>(v);
  }
  /// Numbers of a list that follow each other, from a place of each lane's own.
  struct Stretch {
    const double* first[W];
    std::int32_t
        within[W];  // all bits, or none where the list has no such numbers: then it is one, again and again
    LOCKSTEP_FN V operator[](int n) const {
      alignas(64) double v[W];
      for (int i = 0; i < W; ++i) v[i] = first[i][n & within[i]];
      return load<V>(v);
    }
  };
  /// `length` numbers from `begin` on, which must be a whole number and no less than 0. Of no list at all: of whatever stands
  /// first.
  LOCKSTEP_FN Stretch stretch(int list, V begin, int length) const {
    alignas(64) double k[W];
    store(k, begin);
    Stretch s;
    for (int i = 0; i < W; ++i) {
      const std::int32_t* place = places + 2 * list * stride + i;
      const bool within = k[i] + length <= place[stride];
      s.first[i] = values + (within ? place[0] + static_cast<std::int32_t>(k[i]) : 0);
      s.within[i] = within ? -1 : 0;
    }
    return s;
  }
};

/// Stands where a gradient is not wanted: writing to it is nothing, and `wanted` lets a density skip the
/// work.
struct NoGradient {
  static constexpr bool wanted = false;
  template <class L>
  LOCKSTEP_FN void set(int, L) const {}
};
template <class G>
LOCKSTEP_FN constexpr bool gradient_wanted() {
  return !std::is_same_v<std::remove_cvref_t<G>, NoGradient>;
}

/// A constant array of a density's parameters in both precisions; `get` gives the lane's.
struct ParameterArray {
  const float* f = nullptr;
  const double* d = nullptr;
  template <class L>
  LOCKSTEP_FN const scalar_t<L>* get() const {
    if constexpr (std::is_same_v<scalar_t<L>, float>) {
      return f;
    } else {
      return d;
    }
  }
};

/// Loop bound: the compile-time dimension D, or the run-time one where D is 0.
template <int D>
LOCKSTEP_FN constexpr int extent(int run_time) {
  return D > 0 ? D : run_time;
}

/// f.operator()<D>() with a density's dimension, where it is among those it lists as specialised, else with 0.
template <class Density, class F>
void in_dimension(const Density& density, F f) {
  bool listed = false;
  [&]<int... D>(std::integer_sequence<int, D...>) {
    ((density.dim == D ? void((f.template operator()<D>(), listed = true)) : void()), ...);
  }
  (typename Density::SpecialisedDims());
  if (!listed) f.template operator()<0>();
}

}  // namespace lockstep
