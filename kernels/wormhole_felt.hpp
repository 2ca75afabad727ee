// SPDX-License-Identifier: Apache-2.0
#pragma once
// The metric of a network of wormholes (Lan, Streets & Shahbaba 2014, equations 3 to 5, with the identity for the base
// metric), its Hamiltonian and the implicit steps of the generalised leapfrog (Girolami & Calderhead 2011, section 5). In
// double, as kernels/wormhole_field.hpp, whose list "network" and whose coordinates they share.
//
// Wormhole k leads from a_k along the unit vector n_k to c_k = a_k + l_k n_k:
//
//   V_k(x) = |x - a| + |x - c| - l,   m_k = exp(-V_k / F),   w_k = m_k / D_k,   D_k = 1 + sum_{j != k} m_j
//   G(x) = I - (1 - eps) sum_k w_k n_k n_k'
//
// One wormhole's G is the paper's. Of several the paper's sum of m_k n_k n_k' is no metric where they meet: at one end of two
// of them I - (1 - eps) (n n' + m m') has the eigenvalue 1 - (1 - eps) (1 + |n'm|), below 0 for |n'm| > 0.031. With weights
// w_k, which sum to at most 1, G is a mean of the metrics that equation 4 averages, its eigenvalues from eps to 1.
//
// All algebra is of the K wormholes felt at x. With r_k = sqrt((1 - eps) w_k), N the matrix of r_k n_k, M = I - N'N = C C':
//
//   G^-1 = I + N M^-1 N',   det G = det M,   y = M^-1 N'p,   p' G^-1 p = |p|^2 + (N'p)'y
//   d/dx (log det G + p' G^-1 p) / 2 = -sum_l h_l grad V_l,   h_l = (z_l - m_l sum_{k != l} z_k / D_k) / (2 F),
//   z_k = y_k^2 - (M^-1)_kk + 1
#include "kernels/wormhole_field.hpp"

namespace lockstep {

/// What a chain's fields have of a trajectory: numbers as of the vector field; of the wormholes felt at a place these, C,
/// and Q_kl = <n_k, grad V_l>; then rows of d + 1 coordinates of each sample.
template <class W>
struct GeometryRows : WormholeField {
  enum Felt {
    index,
    strength,
    others,   // D
    root,     // r
    near,     // 1 / |x - a|
    far,      // 1 / |x - c|
    length,   // l
    along,    // <x, n>
    spread,   // (M^-1)_kk - 1
    momenta,  // <p, n>
    turn,     // y
    pull,     // h
    fixed_part,
    kept,
    kFelt
  };
  static constexpr int kFixed = kNumbers + kFelt * kMost + 2 * kMost * kMost, kPerRow = 6 * 2;
  using V = wide_t<typename std::remove_cvref_t<decltype(W::parameters[0])>>;
  using Row = decltype(W::fields);
  Row fields, felt, factor, slopes, position, momentum, next, fixed, back, sum;
  int d;
  LOCKSTEP_FN GeometryRows(int dim, int rows, Row all)
      : fields(all),
        felt(fields.from(kNumbers)),
        factor(felt.from(kFelt * kMost)),
        slopes(factor.from(kMost * kMost)),
        position(fields.from(kFixed)),
        momentum(position.from(2 * rows)),
        next(momentum.from(2 * rows)),
        fixed(next.from(2 * rows)),
        back(fixed.from(2 * rows)),
        sum(back.from(2 * rows)),
        d(dim) {}
  LOCKSTEP_FN int at(int sample, int coordinate) const { return sample * (d + 1) + coordinate; }
  LOCKSTEP_FN V get(int number) const { return fields[number]; }
  LOCKSTEP_FN void set(int number, V value) const { fields.set(number, value); }
};

/// The K numbers and K x K matrices of the wormholes felt at a place.
template <class W>
class FeltWormholes {
 public:
  using Rows = GeometryRows<W>;
  using V = typename Rows::V;
  using Row = typename Rows::Row;
  V log_det = V(0.0);

  LOCKSTEP_FN FeltWormholes(const W& lanes, const Rows& all, V wormholes, int dimensions, double epsilon)
      : w(lanes),
        rows(all),
        count(wormholes),
        width(select(wormholes > V(0.5), lanes.shared.get(0, V(1.0)) / V(double(dimensions)), V(1.0))),
        share(1 - epsilon) {}
  /// C C' = M, by rows.
  LOCKSTEP_FN void decompose() {
    log_det = V(0.0);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j <= i; ++j) {
        V left = nfma(get(Rows::root, i) * get(Rows::root, j), product(i, j, true), V(i == j ? 1.0 : 0.0));
        for (int q = 0; q < j; ++q) left = nfma(c(i, q), c(j, q), left);
        if (i == j) log_det = log_det + log(left);
        rows.factor.set(i * WormholeField::kMost + j, i == j ? sqrt(left) : left / c(j, j));
      }
  }
  /// (M^-1)_kk - 1 and Q here, for pulls.
  LOCKSTEP_FN void bend() const {
    for (int k = 0; k < n; ++k) {
      V square = V(0.0);
      for (int i = k; i < n; ++i) {
        V left = V(i == k ? 1.0 : 0.0);
        for (int q = k; q < i; ++q) left = nfma(c(i, q), get(Rows::pull, q), left);
        set(Rows::pull, i, left / c(i, i));
        square = fma(get(Rows::pull, i), get(Rows::pull, i), square);
      }
      set(Rows::spread, k, square - V(1.0));
    }
    for (int k = 0; k < n; ++k)
      for (int l = 0; l < n; ++l) {
        const V turned = product(l, k, true), length = get(Rows::length, l),
                from = get(Rows::along, k) - V(0.5) * nfma(length, turned, product(l, k, false));
        rows.slopes.set(k * WormholeField::kMost + l, nfma(length * get(Rows::far, l), turned,
                                                           from * (get(Rows::near, l) + get(Rows::far, l))));
      }
  }

 protected:
  LOCKSTEP_FN V get(int what, int slot) const { return rows.felt[what * WormholeField::kMost + slot]; }
  LOCKSTEP_FN void set(int what, int slot, V value) const {
    rows.felt.set(what * WormholeField::kMost + slot, value);
  }
  LOCKSTEP_FN V c(int i, int j) const { return rows.factor[i * WormholeField::kMost + j]; }
  /// <n_i, n_j>, or <a_i + c_i, n_j>, of what is felt.
  LOCKSTEP_FN V product(int i, int j, bool directions) const {
    const V all = fma(count, V(double(WormholeField::length(rows.d))), V(double(WormholeField::kHeader))),
            pair = fma(get(Rows::index, i), count, get(Rows::index, j));
    return w.shared.get(0, (directions ? fma(count, count, all) : all) + pair);
  }
  /// Where a_k begins in the list; n_k is d + 1 numbers behind it.
  LOCKSTEP_FN V place(int slot) const {
    return fma(get(Rows::index, slot), V(double(WormholeField::length(rows.d))),
               V(double(WormholeField::kHeader)));
  }
  LOCKSTEP_FN V back_substituted(int i, V value) const {
    for (int q = i + 1; q < n; ++q) value = nfma(c(q, i), get(Rows::turn, q), value);
    return value / c(i, i);
  }
  /// y, of the momenta.
  LOCKSTEP_FN void solve() const {
    for (int i = 0; i < n; ++i) {
      V left = get(Rows::root, i) * get(Rows::momenta, i);
      for (int q = 0; q < i; ++q) left = nfma(c(i, q), get(Rows::turn, q), left);
      set(Rows::turn, i, left / c(i, i));
    }
    for (int i = n - 1; i >= 0; --i) set(Rows::turn, i, back_substituted(i, get(Rows::turn, i)));
  }
  /// h of y, in lanes that go on.
  LOCKSTEP_FN void set_pulls(V going) const {
    const auto z = [&](int k) { return fma(get(Rows::turn, k), get(Rows::turn, k), -get(Rows::spread, k)); };
    V sum = V(0.0);
    for (int k = 0; k < n; ++k) sum = sum + z(k) / get(Rows::others, k);
    for (int l = 0; l < n; ++l) {
      const V rest = sum - z(l) / get(Rows::others, l), m = get(Rows::strength, l);
      set(Rows::pull, l, select(going > V(0.5), nfma(m, rest, z(l)) / (V(2.0) * width), get(Rows::pull, l)));
    }
  }
  /// (Q h)_k
  LOCKSTEP_FN V slope(int k) const {
    V sum = V(0.0);
    for (int l = 0; l < n; ++l)
      sum = fma(V(rows.slopes[k * WormholeField::kMost + l]), get(Rows::pull, l), sum);
    return sum;
  }
  LOCKSTEP_FN void copy(int from, int to) const {
    for (int i = 0; i < n; ++i) set(to, i, get(from, i));
  }
  /// s = s_0 + half Q h(s), s_0 the momenta; h is then that of s.
  LOCKSTEP_FN V iterate(V half) const {
    copy(Rows::momenta, Rows::fixed_part);
    V going = V(1.0);
    for (int i = 0; i < WormholeField::kMostIterations && any(going > V(0.5)); ++i) {
      solve();
      set_pulls(going);
      V change = V(0.0), size = V(0.0);
      for (int k = 0; k < n; ++k) {
        const V now = get(Rows::momenta, k), next = fma(half, slope(k), get(Rows::fixed_part, k));
        change = max(abs(next - now), change);
        size = max(abs(next), size);
        set(Rows::momenta, k, select(going > V(0.5), next, now));
      }
      going = select(change < fma(V(1e-13), size, V(1e-10)), V(0.0), going);
    }
    return going;
  }

  const W& w;
  const Rows& rows;
  V count, width;
  double share;
  int n = 0;  // felt at most, of all lanes
};

}  // namespace lockstep
