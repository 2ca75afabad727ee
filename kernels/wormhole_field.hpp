// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vector field of a network of wormholes (Lan, Streets & Shahbaba 2014, equations 5 to 7), the implicit step along it
// and the step's volume. Everything is in double, whatever the precision of a run.
//
// Wormhole k leads from a_k along the unit vector n_k to c_k = a_k + l_k n_k. With s = <x - a, n>,
//
//   V_k(x) = |x - a|^2 - l s + |s| |s - l|     (squared distance from the segment, where x is beside it)
//   m_k(x) = exp(-V_k / (D F)),   f(x, v) = sum_k m_k(x) <v, n_k> n_k
//
// Coordinates are the target's and one more, between two worlds: D is their number, or the target's alone where there is
// but one world and the last is 0.
//
// List "network" of each unit: the number K of wormholes, D F; of each a, n, l, <a, n>; then K x K numbers <a_i + c_i, n_j>
// and K x K numbers <n_i, n_j>.
#include "kernels/hmc.hpp"

namespace lockstep {

/// f(row, force along it) for every row, at the position and gradient of w.
template <class L, class Model, class W, class F>
LOCKSTEP_FN void each_force(const Model& model, const W& w, F f) {
  if constexpr (Model::kTempered) {
    model.template force<L>(w.x, w.parameters, w.g, f);
  } else {
    for (int j = 0; j < model.rows(); ++j) f(j, L(w.g[j]));
  }
}

struct WormholeField {
  static constexpr int kHeader = 2;
  static constexpr int kMostIterations = 60;
  static constexpr int kMost = 24;  // wormholes that are felt at one place
  LOCKSTEP_FN static constexpr int length(int dim) { return 2 * (dim + 1) + 2; }

  // What a chain's fields have of a trajectory: numbers (kinetic and potential energy between the worlds at its start, what the
  // field has done to H since); of
  // the wormholes felt at a place their numbers, m, <x, n>, <v, n> and d (|s| |s - l|) / ds, and a matrix of them; then
  // rows: the momentum, and six of d + 1 coordinates of each sample (less than two of a position's).
  enum Number { energy, log_volume, cause, work, kNumbers };
  enum Felt { index, strength, along, speed, bend, kFelt };
  static constexpr int kFixed = kNumbers + kFelt * kMost + kMost * kMost, kPerRow = 1 + 6 * 2;
};

/// These, of one group of lanes.
template <class W>
struct WormholeRows : WormholeField {
  using V = wide_t<typename std::remove_cvref_t<decltype(W::parameters[0])>>;
  decltype(W::fields) fields, felt, matrix, momentum, position, velocity, next, fixed, back, sum;
  int d;
  LOCKSTEP_FN WormholeRows(int dim, int rows, decltype(W::fields) all)
      : fields(all),
        felt(fields.from(kNumbers)),
        matrix(felt.from(kFelt * kMost)),
        momentum(fields.from(kFixed)),
        position(momentum.from(rows)),
        velocity(position.from(2 * rows)),
        next(velocity.from(2 * rows)),
        fixed(next.from(2 * rows)),
        back(fixed.from(2 * rows)),
        sum(back.from(2 * rows)),
        d(dim) {}
  LOCKSTEP_FN int at(int sample, int coordinate) const { return sample * (d + 1) + coordinate; }
  LOCKSTEP_FN V get(int number) const { return fields[number]; }
  LOCKSTEP_FN void set(int number, V value) const { fields.set(number, value); }
};

/// y = u(x) + half (f(x) + f(y)) in coordinates `first` to first + d, by iteration where that contracts; 1 in lanes where it
/// has not come to an end. Of `drift`: field(x) leaves f(x) in rows.sum; unforced(j, x, half) is u.
template <class Rows, class Drift, class Row, class V>
LOCKSTEP_FN V solve_drift(const Rows& rows, int first, Drift& drift, Row x, Row y, V half) {
  drift.field(x);
  V size = V(0.0);
  for (int j = first; j <= first + rows.d; ++j) {
    const V f = rows.sum[j], on = fma(half, f, drift.unforced(j, x, half));
    rows.fixed.set(j, on);
    y.set(j, fma(half, f, on));
    size = max(abs(on), size);
  }
  const V tolerance = fma(V(1e-13), size, V(1e-10));
  V going = V(1.0);
  for (int i = 0; i < WormholeField::kMostIterations && any(going > V(0.5)); ++i) {
    drift.field(y);
    V change = V(0.0);
    for (int j = first; j <= first + rows.d; ++j) {
      const V to = fma(half, V(rows.sum[j]), V(rows.fixed[j]));
      change = max(abs(to - y[j]), change);
      y.set(j, select(going > V(0.5), to, V(y[j])));
    }
    going = select(change < tolerance, V(0.0), going);
  }
  return going;
}
/// Whether the step back from y leads to x: 0, or 1 where not.
template <class Rows, class Drift, class Row, class V>
LOCKSTEP_FN V drift_strays(const Rows& rows, int first, Drift& drift, Row x, Row y, V half) {
  V lost = solve_drift(rows, first, drift, y, rows.back, -half), off = V(0.0), size = V(0.0);
  for (int j = first; j <= first + rows.d; ++j) {
    off = max(abs(rows.back[j] - x[j]), off);
    size = max(abs(V(x[j])), size);
  }
  return select(off < fma(V(1e-10), size, V(1e-7)), lost, V(1.0));
}

/// One sample's step along the field: y = x + 2 half v + half (f(x, v) + f(y, v)).
template <class W>
struct WormholeStep {
  using Rows = WormholeRows<W>;
  using V = typename Rows::V;
  using Row = decltype(W::fields);
  const W& w;
  const Rows& rows;
  int first, d;  // of the sample's coordinates, of which there are d + 1
  V count, width;
  int most;

  LOCKSTEP_FN WormholeStep(const W& lanes, const Rows& all, int sample, V wormholes)
      : w(lanes),
        rows(all),
        first(all.at(sample, 0)),
        d(all.d),
        count(wormholes),
        width(lanes.shared.get(0, V(1.0))),
        most(static_cast<int>(reduce_max(wormholes))) {}

  /// What a wormhole is at x.
  struct Point {
    V strength, speed, along, bend;
  };
  template <class Read>
  LOCKSTEP_FN Point look(Read read, int k, Row x) const {
    const int a = WormholeField::kHeader + k * WormholeField::length(d), n = a + d + 1, after = n + d + 1;
    V square = V(0.0), s = V(0.0), speed = V(0.0);
    for (int j = 0; j <= d; ++j) {
      const V along = read(n + j), from = x[first + j] - read(a + j);
      square = fma(from, from, square);
      s = fma(from, along, s);
      speed = fma(V(rows.velocity[first + j]), along, speed);
    }
    const V length = read(after), t = s - length, vicinity = nfma(length, s, square) + abs(s * t);
    const V m = select(V(double(k)) < count, exp(-(vicinity / width)), V(0.0));
    const V sign_s = select(s < V(0.0), V(-1.0), V(1.0)), sign_t = select(t < V(0.0), V(-1.0), V(1.0));
    return {m, speed, s + read(after + 1), fma(sign_s, abs(t), sign_t * abs(s))};
  }
  /// sum = f(x, v)
  LOCKSTEP_FN void field(Row x) const {
    const Row sum = rows.sum;
    for (int j = 0; j <= d; ++j) sum.set(first + j, V(0.0));
    w.shared.each_unit(0, [&](auto read) {
      for (int k = 0; k < most; ++k) {
        const Point p = look(read, k, x);
        const V push = p.strength * p.speed;
        const int n = WormholeField::kHeader + k * WormholeField::length(d) + d + 1;
        for (int j = 0; j <= d; ++j) sum.set(first + j, fma(push, read(n + j), V(sum[first + j])));
      }
    });
  }
  /// x + 2 half v of coordinate j.
  LOCKSTEP_FN V unforced(int j, Row x, V half) const {
    return fma(V(2.0) * half, V(rows.velocity[j]), V(x[j]));
  }
  LOCKSTEP_FN V solve(Row x, Row y, V half) const { return solve_drift(rows, first, *this, x, y, half); }
  LOCKSTEP_FN V strays(Row x, Row y, V half) const { return drift_strays(rows, first, *this, x, y, half); }
  /// log |det(I + h B(x))|, B = sum_k <v, n_k> n_k grad m_k', as a determinant of those that are felt at x; adds to
  /// `crowd` in lanes where these are too many.
  LOCKSTEP_FN V log_volume(Row x, V h, V& crowd) const {
    constexpr int kMost = WormholeField::kMost;
    V used = V(0.0);
    const auto felt = [&](int what, int slot) { return what * kMost + slot; };
    w.shared.each_unit(0, [&](auto read) {
      for (int k = 0; k < most; ++k) {
        const Point p = look(read, k, x);
        const auto here = p.strength > V(1e-18);
        if (!any(here)) continue;
        for (int slot = 0; slot < kMost && slot <= k; ++slot) {
          const auto in = mask_and(here, mask_and(used > V(slot - 0.5), used < V(slot + 0.5)));
          const auto keep = [&](int what, V value) {
            rows.felt.set(felt(what, slot), select(in, value, V(rows.felt[felt(what, slot)])));
          };
          keep(Rows::index, V(double(k)));
          keep(Rows::strength, p.strength);
          keep(Rows::along, p.along);
          keep(Rows::speed, p.speed);
          keep(Rows::bend, p.bend);
        }
        used = used + select(here, V(1.0), V(0.0));
      }
    });
    crowd = crowd + select(used > V(kMost + 0.5), V(1.0), V(0.0));
    const int found = static_cast<int>(reduce_max(used)), n = found < kMost ? found : kMost;
    const V products = fma(count, V(double(WormholeField::length(d))), V(double(WormholeField::kHeader)));
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        const auto there = mask_and(V(double(i)) < used, V(double(j)) < used);
        const V pair = fma(V(rows.felt[felt(Rows::index, i)]), count, V(rows.felt[felt(Rows::index, j)]));
        const V ends = w.shared.get(0, products + pair),
                turn = w.shared.get(0, fma(count, count, products) + pair);
        const V slope =
            fma(V(2.0), V(rows.felt[felt(Rows::along, j)]), rows.felt[felt(Rows::bend, i)] * turn - ends);
        const V entry =
            -(h / width) * rows.felt[felt(Rows::strength, i)] * slope * rows.felt[felt(Rows::speed, j)];
        rows.matrix.set(i * kMost + j, select(there, entry, V(0.0)) + V(i == j ? 1.0 : 0.0));
      }
    V sum = V(0.0);
    for (int p = 0; p < n; ++p) {
      const V pivot = rows.matrix[p * kMost + p];
      sum = sum + log(abs(pivot));
      for (int i = p + 1; i < n; ++i) {
        const V factor = rows.matrix[i * kMost + p] / pivot;
        for (int j = p + 1; j < n; ++j)
          rows.matrix.set(i * kMost + j,
                          nfma(factor, V(rows.matrix[p * kMost + j]), V(rows.matrix[i * kMost + j])));
      }
    }
    return sum;
  }
};

}  // namespace lockstep
