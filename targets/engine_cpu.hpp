// SPDX-License-Identifier: Apache-2.0
#pragma once
// The CPU back end of an engine, included by the generated instantiation of each density.
#include "kernels/batch_cpu.hpp"
#ifdef LOCKSTEP_ALL_WIDTHS
#include "kernels/staged_cpu.hpp"
#endif
#include "targets/engine_of.hpp"

namespace lockstep {

/// Widths other than the machine's, and the staged driver of densities that are no matrix products, are
/// compiled where the tests ask for them (LOCKSTEP_ALL_WIDTHS): elsewhere Driver::staged is the general
/// model, fused.
struct CpuBackend {
  template <class T>
  using vector = AlignedVector<T>;
  explicit CpuBackend(const EngineSpec& spec)
      : threads_(spec.threads), width_(spec.pack_width), driver_(spec.driver), transition_(spec.transition) {}

  template <int D>
  static constexpr bool specialises() {
    return true;
  }
  template <class R, int D, int N>
  static constexpr bool in_registers() {
    return false;
  }  // the rows live in the first-level cache anyway
  template <class Model>
  bool needs_work_rows(const Model&) const {
    return driver_ == Driver::staged;
  }
  template <class Density>
  void bind(Density&) {}
  template <class T>
  static T* data(AlignedVector<T>& v) {
    return v.data();
  }
  template <class T>
  static std::vector<T> to_host(const AlignedVector<T>& v) {
    return {v.begin(), v.end()};
  }
  /// Calls f with the first of the rows, and how far it is from there to the next tile's.
  template <class T, class F>
  static void read_rows(const AlignedVector<T>& v, int, int rows, int first, int, F f) {
    f(v.data() + first * kTile, std::size_t(rows) * kTile);
  }
  template <class T, class F>
  static void write_rows(AlignedVector<T>& v, int, int rows, int first, int, F f) {
    f(v.data() + first * kTile, std::size_t(rows) * kTile);
  }
  template <class T>
  static void from_host(AlignedVector<T>& v, const std::vector<T>& host) {
    v.assign(host.begin(), host.end());
  }
  template <class T>
  static void fill(AlignedVector<T>& v, T value) {
    std::fill(v.begin(), v.end(), value);
  }

  template <class R, class E, class Model>
  void initialize(const Model& model, const BatchView<R, E>& b) const {
    with_width<R, E>([&]<class L, class LE>() {
      if constexpr (takes_batches<Model>)
        if (driver_ == Driver::staged) return initialize_batch<L, LE>(model, b, threads_);
      initialize_cpu<L, LE>(model, b, false, threads_);
    });
  }
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) const {
    with_width<R, E>([&]<class L, class LE>() {
      if constexpr (Model::kDim == 0) {  // make_engine_for gives all but fused HMC the general model
        if (transition_ == TransitionKind::random_walk) {
          if constexpr (Model::kWalks) return advance_cpu<RandomWalk, L, LE>(model, b, spec, threads_);
          throw std::logic_error("random walks run on the target itself");
        }
        if constexpr (takes_batches<Model>)
          if (driver_ == Driver::staged) return advance_batch<L, LE>(model, b, spec, threads_);
#ifdef LOCKSTEP_ALL_WIDTHS
        if (driver_ == Driver::staged) return advance_staged<Hmc, L, LE>(model, b, spec, threads_);
#endif
      }
      advance_cpu<Hmc, L, LE>(model, b, spec, threads_);
    });
  }
  /// One round of even-odd swaps in every unit.
  template <class R, class E>
  void swap(const BatchView<R, E>& b, const ParameterLayout& layout, int cache_rows, const StreamKey& key,
            std::uint32_t iteration, int units) const {
    for (int unit = 0; unit < units; ++unit)
      for (int pair = 0; 2 * pair + 1 < b.levels; ++pair)
        swap_levels(b, layout, cache_rows, key, iteration, unit, pair);
  }

 private:
  /// Models on the target itself or the path to it, of a density that evaluates many chains at once.
  template <class Model>
  static constexpr bool takes_batches = decltype(Model::density)::kBatch&& requires(Model m) {
    m.joint();
  };

  /// Calls f with the lane types of the width in use: 16 floats or 8 doubles to a register with AVX-512.
  template <class R, class E, class F>
  void with_width(F f) const {
    constexpr int machine = HWY_MAX_BYTES / int(sizeof(R));
#ifdef LOCKSTEP_ALL_WIDTHS
    if (width_ == 1) return f.template operator()<R, E>();
    if (width_ == 4) return f.template operator()<Pack<R, 4>, Pack<E, 4>>();
    if (width_ == 8) return f.template operator()<Pack<R, 8>, Pack<E, 8>>();
    if (width_ == 32) return f.template operator()<Pack<R, 32>, Pack<E, 32>>();
#endif
    f.template operator()<Pack<R, machine>, Pack<E, machine>>();
  }
  int threads_, width_;
  Driver driver_;
  TransitionKind transition_;
};

extern template class EngineMemory<CpuBackend, float, float>;
extern template class EngineMemory<CpuBackend, float, double>;
extern template class EngineMemory<CpuBackend, double, double>;

template <class Density, class R, class E>
std::unique_ptr<Engine> make_cpu_engine(const Density& density, const EngineSpec& spec) {
  return make_engine_for<CpuBackend, R, E>(density, spec);
}

}  // namespace lockstep
