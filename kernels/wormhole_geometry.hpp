// SPDX-License-Identifier: Apache-2.0
#pragma once
// The metric of kernels/wormhole_felt.hpp in all its dimensions.
#include "kernels/wormhole_felt.hpp"

namespace lockstep {

/// The metric at a place of one sample.
template <class W>
class WormholeGeometry : public FeltWormholes<W> {
  using Felt = FeltWormholes<W>;

 public:
  using typename Felt::Row;
  using typename Felt::Rows;
  using typename Felt::V;
  V crowd = V(0.0);  // 1 where more wormholes are felt than there is room for

  LOCKSTEP_FN WormholeGeometry(const W& lanes, const Rows& all, int sample, V wormholes, int dimensions,
                               double epsilon)
      : Felt(lanes, all, wormholes, dimensions, epsilon),
        first(all.at(sample, 0)),
        d(all.d),
        most(static_cast<int>(reduce_max(wormholes))) {}

  /// Goes to x: which wormholes are felt there, C and log_det.
  LOCKSTEP_FN void look(Row x) {
    constexpr int kMost = WormholeField::kMost;
    V used = V(0.0), total = V(0.0);
    for (int i = 0; i < kMost; ++i) set(Rows::strength, i, V(0.0));
    w.shared.each_unit(0, [&](auto read) {
      for (int k = 0; k < most; ++k) {
        const Point p = point(read, k, x);
        const auto here = p.strength > V(1e-18);
        if (!any(here)) continue;
        for (int slot = 0; slot < kMost && slot <= k; ++slot) {
          const auto in = mask_and(here, mask_and(used > V(slot - 0.5), used < V(slot + 0.5)));
          const auto keep = [&](int what, V value) { set(what, slot, select(in, value, get(what, slot))); };
          keep(Rows::index, V(double(k)));
          keep(Rows::strength, p.strength);
          keep(Rows::near, V(1.0) / p.near);
          keep(Rows::far, V(1.0) / p.far);
          keep(Rows::length, p.length);
          keep(Rows::along, p.along);
        }
        used = used + select(here, V(1.0), V(0.0));
        total = total + select(here, p.strength, V(0.0));
      }
    });
    crowd = max(crowd, select(used > V(kMost + 0.5), V(1.0), V(0.0)));
    const int found = static_cast<int>(reduce_max(used));
    n = found < kMost ? found : kMost;
    for (int i = 0; i < n; ++i) {
      const V m = get(Rows::strength, i), others = V(1.0) + (total - m);
      set(Rows::others, i, others);
      set(Rows::root, i, sqrt(V(share) * m / others));
    }
    this->decompose();
  }
  /// p of N(0, G), of standard normals: p in place; another(k) the one of wormhole k. p = G v, v = p + N C'^-1 (another).
  template <class Another>
  LOCKSTEP_FN void draw(Row p, Another another) const {
    for (int i = n - 1; i >= 0; --i) set(Rows::turn, i, back_substituted(i, another(i)));
    add_turns(p, p);
    take_momenta(p);
    for (int i = 0; i < n; ++i) set(Rows::turn, i, -(get(Rows::root, i) * get(Rows::momenta, i)));
    add_turns(p, p);
  }
  /// v = G^-1 p
  LOCKSTEP_FN void velocity(Row p, Row v) const {
    take_momenta(p);
    solve();
    add_turns(p, v);
  }
  /// (log det G + p' G^-1 p) / 2
  LOCKSTEP_FN V energy(Row p) const {
    take_momenta(p);
    solve();
    V sum = this->log_det;
    for (int j = first; j <= first + d; ++j) sum = fma(V(p[j]), V(p[j]), sum);
    for (int i = 0; i < n; ++i)
      sum = fma(get(Rows::root, i) * get(Rows::momenta, i), get(Rows::turn, i), sum);
    return V(0.5) * sum;
  }
  /// p += half sum_l h_l grad V_l with h at p: the explicit half kick; 1 in lanes where the implicit one does not lead back.
  LOCKSTEP_FN V kick(Row x, Row p, V half) const {
    take_momenta(p);
    copy(Rows::momenta, Rows::kept);
    solve();
    set_pulls(V(1.0));
    shift(x, p, half);
    for (int i = 0; i < n; ++i) set(Rows::momenta, i, fma(half, slope(i), get(Rows::momenta, i)));
    V lost = iterate(-half), off = V(0.0), size = V(0.0);
    for (int i = 0; i < n; ++i) {
      off = max(abs(get(Rows::momenta, i) - get(Rows::kept, i)), off);
      size = max(abs(get(Rows::kept, i)), size);
    }
    return select(off < fma(V(1e-10), size, V(1e-7)), lost, V(1.0));
  }
  /// p += half sum_l h_l grad V_l with h at the new p, by iteration of its K numbers <p, n_k>; 1 in lanes where that has not
  /// come to an end.
  LOCKSTEP_FN V implicit_kick(Row x, Row p, V half) const {
    take_momenta(p);
    const V lost = iterate(half);
    shift(x, p, half);
    return lost;
  }

  // The drift x' = x + half (v(x, p) + v(x', p)) for solve_drift.
  Row drifting_momentum = {};
  LOCKSTEP_FN V unforced(int j, Row x, V) const { return x[j]; }
  LOCKSTEP_FN void field(Row x) {
    look(x);
    velocity(drifting_momentum, rows.sum);
  }

 private:
  struct Point {
    V strength, near, far, length, along;
  };
  template <class Read>
  LOCKSTEP_FN Point point(Read read, int k, Row x) const {
    const int a = WormholeField::kHeader + k * WormholeField::length(d), ahead = a + d + 1;
    // Ends are no singularities: |x - a|^2 + (F / 10^6)^2.
    const V length = read(ahead + d + 1), soft = V(1e-12) * width * width;
    V near = soft, far = soft, along = V(0.0);
    for (int j = 0; j <= d; ++j) {
      const V n_j = read(ahead + j), from = x[first + j] - read(a + j), to = nfma(length, n_j, from);
      near = fma(from, from, near);
      far = fma(to, to, far);
      along = fma(V(x[first + j]), n_j, along);
    }
    near = sqrt(near);
    far = sqrt(far);
    const V m = exp(min((length - near - far) / width, V(0.0)));
    return {select(V(double(k)) < count, m, V(0.0)), near, far, length, along};
  }
  LOCKSTEP_FN void take_momenta(Row p) const {
    for (int i = 0; i < n; ++i) {
      const V ahead = place(i) + V(double(d + 1));
      V sum = V(0.0);
      for (int j = 0; j <= d; ++j) sum = fma(V(p[first + j]), w.shared.get(0, ahead + V(double(j))), sum);
      set(Rows::momenta, i, select(get(Rows::strength, i) > V(0.0), sum, V(0.0)));
    }
  }
  /// to = from + N y
  LOCKSTEP_FN void add_turns(Row from, Row to) const {
    for (int j = first; j <= first + d; ++j) to.set(j, from[j]);
    for (int i = 0; i < n; ++i) {
      const V by = get(Rows::root, i) * get(Rows::turn, i), ahead = place(i) + V(double(d + 1));
      for (int j = 0; j <= d; ++j)
        to.set(first + j, fma(by, w.shared.get(0, ahead + V(double(j))), V(to[first + j])));
    }
  }
  /// p += half sum_l h_l grad V_l
  LOCKSTEP_FN void shift(Row x, Row p, V half) const {
    for (int l = 0; l < n; ++l) {
      const V near = get(Rows::near, l) + get(Rows::far, l), by = half * get(Rows::pull, l),
              back = get(Rows::length, l) * get(Rows::far, l), a = place(l);
      for (int j = 0; j <= d; ++j) {
        const V from = x[first + j] - w.shared.get(0, a + V(double(j))),
                n_j = w.shared.get(0, a + V(double(d + 1 + j)));
        p.set(first + j, fma(by, nfma(back, n_j, from * near), V(p[first + j])));
      }
    }
  }

  using Felt::back_substituted;
  using Felt::copy;
  using Felt::count;
  using Felt::get;
  using Felt::iterate;
  using Felt::n;
  using Felt::place;
  using Felt::rows;
  using Felt::set;
  using Felt::set_pulls;
  using Felt::share;
  using Felt::slope;
  using Felt::solve;
  using Felt::w;
  using Felt::width;
  int first, d, most;
};

}  // namespace lockstep
