// SPDX-License-Identifier: Apache-2.0
#pragma once
// Jumps between known modes, and draws of the base, as a transition that follows others.
#include "kernels/base.hpp"
#include "kernels/leapfrog.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

/// A jump between modes that are known (host/modes/mode_library.hpp), of one sample drawn uniformly: with j the mode nearest
/// to x by Mahalanobis distance and k uniform among the others,
///
///   x' = m_k + L_k L_j^-1 (x - m_j),   rejected unless k is the mode nearest to x'
///
/// accepted with min(1, density(x') / density(x) |L_k| / |L_j|), the density being the chain's own, everything else of its
/// state fixed. Deterministic given k, and its own inverse with j and k exchanged: the factor is the Jacobian's, and the
/// check makes the choice of j and k as likely backwards. Leaves the density invariant whatever the list holds, as long as
/// that does not change. Costs the gradient of the new point. Sources: Andricioaei, Straub & Voter (2001), Sminchisescu &
/// Welling (2011), with a map between modes in place of a shift.
///
/// Where the list has the components of the chain's base, every second time (on a path at beta = 0, and where there is no
/// other mode, always) the sample is replaced by a draw x' of the base instead, accepted with min(1, density(x') base(x) / (density(x) base(x'))): at beta = 0
/// always. What a chain has seen of the base's components is else as old as its last walk from one to the other, which no
/// trajectory takes from a mode that is narrow beside them; then log Z lacks their weight.
///
/// List "modes" of each unit: the number of modes K and of components of the base B; then of each mode its place (d), L^-1
/// and L (lower triangles, by rows), log |L|; of each component the same, but for the weight of all before it at the end.
struct ModeJump : WithoutGradients {
  enum Counter { proposed, accepted, kCounters };
  static TransitionInfo info() {
    return {.name = "mode_jump",
            .summary = "jumps between known modes",
            .formula = "x' = m_k + L_k L_j^-1 (x - m_j)",
            .source = "Sminchisescu & Welling (2011)",
            .gradients = kGradients,
            .harmonic_mean = false,
            .counters = {"jumps_proposed", "jumps_accepted"},
            .shared = {"modes"}};
  }
  static constexpr int kHeader = 2;
  LOCKSTEP_FN static constexpr int mode_length(int dim) { return dim + dim * (dim + 1) + 1; }

  /// take(i, begin(i) + sum_j L_ij u(j)) for the rows i of a lower triangle L, whose numbers are read(0).. by rows. Four rows
  /// at a time, for each u(j), until one of the last row returns false.
  template <class V, class Begin, class Read, class U, class Take>
  LOCKSTEP_FN static void lower_times(int d, Begin begin, Read read, U u, Take take) {
    constexpr int kRows = 4;
    for (int i = 0, at = 0; i < d; i += kRows) {
      V z[kRows];
      int row[kRows];
      LOCKSTEP_UNROLL_FIXED
      for (int r = 0; r < kRows; ++r) {
        const int n = i + r < d ? r : 0;  // beyond the last row the block's first is taken again, for nobody
        row[r] = at + n * i + n * (n + 1) / 2;
        z[r] = begin(i + n);
      }
      for (int j = 0; j <= i; ++j) {
        const V u_j = u(j);
        LOCKSTEP_UNROLL_FIXED
        for (int r = 0; r < kRows; ++r) z[r] = fma(read(row[r] + j), u_j, z[r]);
      }
      LOCKSTEP_UNROLL_FIXED
      for (int j = 1; j < kRows; ++j) {
        if (i + j >= d) break;
        const V u_j = u(i + j);
        LOCKSTEP_UNROLL_FIXED
        for (int r = j; r < kRows; ++r)
          if (i + r < d) z[r] = fma(read(row[r] + i + j), u_j, z[r]);
      }
      bool on = true;
      LOCKSTEP_UNROLL_FIXED
      for (int r = 0; r < kRows; ++r)
        if (i + r < d) on = take(i + r, z[r]);
      if (!on) return;
      at += kRows * i + kRows * (kRows + 1) / 2;
    }
  }
  /// The modes that lanes know, in `dim` dimensions: `count` of each lane, `most` of any. read(index): a number of the list,
  /// for all lanes.
  template <class V, class Read>
  struct Known {
    int dim, most;
    V count;
    Read read;
    /// The squared Mahalanobis distance of x from mode k, where x(i) is row i; where it is beyond `least` in every lane, a
    /// part of it that is.
    template <class X>
    LOCKSTEP_FN V distance(int k, V least, X x) const {
      const int place = kHeader + k * mode_length(dim);
      V sum = V(0.0);
      lower_times<V>(
          dim, [&](int) { return V(0.0); }, [&](int e) { return read(place + dim + e); },
          [&](int j) { return x(j) - read(place + j); },
          [&](int, V z) {
            sum = fma(z, z, sum);
            return any(sum <= least);
          });
      return sum;
    }
  };
  /// Which mode is nearest to x, its squared distance, and 1 where another is as near.
  template <class V>
  struct Nearest {
    V mode, distance, tied;
  };
  template <class V, class Read, class X>
  LOCKSTEP_FN static Nearest<V> nearest(const Known<V, Read>& known, X x) {
    Nearest<V> n{V(0.0), V(1e300), V(0.0)};
    for (int k = 0; k < known.most; ++k) {
      const V here = known.distance(k, n.distance, x);
      const auto there_is = V(double(k)) < known.count;
      const auto nearer = mask_and(there_is, here < n.distance);
      const auto as_near = mask_and(there_is, mask_and(here <= n.distance, here >= n.distance));
      n.tied = select(nearer, V(0.0), select(as_near, V(1.0), n.tied));
      n.distance = select(nearer, here, n.distance);
      n.mode = select(nearer, V(double(k)), n.mode);
    }
    return n;
  }
  /// 1 where `good` is and mode `to`, at the squared distance `at` of x, is nearer to it than all others.
  template <class V, class Read, class X>
  LOCKSTEP_FN static V nearest_is(const Known<V, Read>& known, V to, V at, V good, X x) {
    for (int k = 0; k < known.most && any(good > V(0.5)); ++k) {
      // Lanes of mode k itself and those that are lost already ask for nothing.
      const auto another = mask_and(V(double(k)) < known.count, abs(to - V(double(k))) > V(0.5));
      const V least = select(mask_and(another, good > V(0.5)), at, V(-1.0));
      good = select(known.distance(k, least, x) <= least, V(0.0), good);
    }
    return good;
  }

  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    return jump<L, E, true>(model, draw, w);
  }
  /// Without the check that k is nearest to x' only for a broken twin of the tests.
  template <class L, class E, bool kChecks, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> jump(const Model& model, const Draw<L>& draw, const W& w) {
    using V = wide_t<L>;
    using R = scalar_t<L>;
    const int d = model.dim(), samples = model.samples();
    const auto x = w.x;
    // The momentum's rows: where x stands from the mode, whitened; and the sample that jumps, where there are several.
    const auto whitened = w.p, chosen = w.p.from(d);
    const V count = modes_of<V>(w);
    const int modes = static_cast<int>(reduce_max(count));
    const L sample = samples > 1 ? floor(draw.uniform(Purpose::mode_jump) * L(R(samples))) : L(0);
    const V other = floor(cast<V>(draw.uniform(Purpose::mode_jump, 1)) * max(count - V(1.0), V(0.0)));
    for (int i = 0; i < d && samples > 1; ++i) {
      L value = x[i];
      for (int s = 1; s < samples; ++s) value = select(sample >= L(R(s)), x[s * d + i], value);
      chosen.set(i, value);
    }
    const auto row = [&](int i) { return cast<V>(samples > 1 ? L(chosen[i]) : L(x[i])); };
    const V length = V(double(mode_length(d)));
    V change = V(0.0);
    const V fresh = redraws_of<V>(model, draw, w);
    const bool redraws = any(fresh > V(0.5));
    const auto log_base = [&] {
      if constexpr (has_base<L, Model, W>)
        return samples > 1 ? base_log_density<0, E>(model.layout, Wide<E, decltype(chosen)>{chosen},
                                                    w.energy_parameters, NoBaseGradient{})
                           : base_log_density<0, E>(model.layout, Wide<E, decltype(x)>{x},
                                                    w.energy_parameters, NoBaseGradient{});
      else
        return E(0);
    };
    const E base_before = redraws ? log_base() : E(0);
    auto good = max(fresh, count - V(1.0)) > V(0.5);
    const auto go = [&](auto read) {
      const Known<V, decltype(read)> known{d, modes, count, read};
      const auto from = nearest(known, row);
      V to = select(other >= from.mode, other + V(1.0), other);
      if (redraws) to = select(fresh > V(0.5), count + component<V>(w, draw, count, length), to);
      const V header = V(double(kHeader));
      const auto here = w.shared.stretch(0, fma(from.mode, length, header), mode_length(d)),
                 there = w.shared.stretch(0, fma(to, length, header), mode_length(d));
      const int triangle = d * (d + 1) / 2, log_volume = d + 2 * triangle;
      change = there[log_volume] - here[log_volume];
      lower_times<V>(
          d, [](int) { return V(0.0); }, [&](int e) { return here[d + e]; },
          [&](int j) { return row(j) - here[j]; },
          [&](int i, V z) {
            whitened.set(i, cast<L>(z));
            return true;
          });
      if (redraws)
        draw.normals(Purpose::base_draw, d, [&](int i, L z) {
          whitened.set(i, select(cast_mask<L>(fresh > V(0.5)), z, L(whitened[i])));
        });
      lower_times<V>(
          d, [&](int i) { return there[i]; }, [&](int e) { return there[d + triangle + e]; },
          [&](int j) { return cast<V>(whitened[j]); },
          [&](int i, V value) {
            for (int s = 0; s < samples; ++s) {
              const auto jumps = mask_and(sample >= L(R(s)), sample < L(R(s + 1)));
              x.set(s * d + i, select(mask_and(jumps, cast_mask<L>(good)), cast<L>(value), x[s * d + i]));
            }
            if (samples > 1) chosen.set(i, cast<L>(value));
            return true;
          });
      V sure = V(1.0) - from.tied;
      // x' is as far from k as x is from j. Draws of the base need no way back.
      if constexpr (kChecks)
        sure = nearest_is(known, to, from.distance, select(fresh > V(0.5), V(0.0), sure), row);
      good = mask_and(good, max(fresh, sure) > V(0.5));
    };
    if (any(good)) w.shared.each_unit(0, go);  // where no lane jumps there may be no list
    Proposal<L, E> r;
    const E never = E(-std::numeric_limits<scalar_t<E>>::infinity());
    r.log_ratio = select(cast_mask<E>(good), cast<E>(change), never);
    if (redraws) r.log_ratio = select(cast_mask<E>(fresh > V(0.5)), base_before - log_base(), r.log_ratio);
    w.count(proposed, select(max(fresh, V(1.5) - count) > V(0.0), V(0.0), V(1.0)));
    return r;
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec&, const D& draw, const P& r,
                                  const W& w) {
    using V = wide_t<std::remove_cvref_t<decltype(w.x[0])>>;
    w.count(accepted, select(redraws_of<V>(model, draw, w) > V(0.5), V(0.0), cast<V>(r.accepted)));
  }

 private:
  template <class V, class W>
  LOCKSTEP_FN static V modes_of(const W& w) {
    return select(w.shared.size(0) > V(0.5), w.shared.get(0, V(0.0)), V(0.0));
  }
  template <class L, class Model, class W>
  static constexpr bool has_base = requires(const Model& m, const W& w) {
    m.template beta<L>(w.x, w.parameters, 0);
  };
  /// Rows in the precision of energies.
  template <class E, class X>
  struct Wide {
    X x;
    LOCKSTEP_FN E operator[](int i) const { return cast<E>(x[i]); }
  };
  /// 1 where chains go to a draw of the base.
  template <class V, class Model, class L, class W>
  LOCKSTEP_FN static V redraws_of(const Model& model, const Draw<L>& draw, const W& w) {
    if constexpr (has_base<L, Model, W>) {
      const V components = select(w.shared.size(0) > V(0.5), w.shared.get(0, V(1.0)), V(0.0));
      if (!any(components > V(0.5))) return V(0.0);
      const V coin = cast<V>(draw.uniform(Purpose::base_draw, kCoinBlock));
      const V beta = model.samples() > 1 ? V(1.0) : cast<V>(model.template beta<L>(w.x, w.parameters, 0));
      const V redraws =
          select(coin < V(0.5), V(1.0), select(min(beta, modes_of<V>(w) - V(1.0)) <= V(0.0), V(1.0), V(0.0)));
      return select(components > V(0.5), redraws, V(0.0));
    } else {
      return V(0.0);
    }
  }
  /// The number of the component that a draw of the base is of.
  template <class V, class W, class L>
  LOCKSTEP_FN static V component(const W& w, const Draw<L>& draw, V modes, V length) {
    const V components = w.shared.get(0, V(1.0)), u = cast<V>(draw.uniform(Purpose::base_draw, kPickBlock));
    const int most = static_cast<int>(reduce_max(components));
    V picked = V(0.0);
    for (int b = 1; b < most; ++b) {
      const V end = fma(modes + V(double(b + 1)), length, V(double(kHeader - 1)));
      picked = select(mask_and(V(double(b)) < components, u >= w.shared.get(0, end)), V(double(b)), picked);
    }
    return picked;
  }
  static constexpr std::uint32_t kPickBlock = (1u << 20) - 1, kCoinBlock = kPickBlock - 1;  // beyond the axes
};

}  // namespace lockstep
