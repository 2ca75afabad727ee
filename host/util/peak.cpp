// SPDX-License-Identifier: Apache-2.0
#include "host/util/peak.hpp"
#include "host/util/clock.hpp"

#include <omp.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "kernels/pack.hpp"

namespace lockstep {
namespace {

constexpr int kChains = 12;  // independent chains hide the latency of 4 cycles on two units
constexpr long kSteps = 4000000;

template <class T>
double run(int threads) {
  using L = Pack<T, HWY_MAX_BYTES / int(sizeof(T))>;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    double sink = 0;
    const auto start = Clock::now();
#pragma omp parallel num_threads(threads) reduction(+ : sink)
    {
      L x[kChains];
      for (int k = 0; k < kChains; ++k) x[k] = L(T(1) + T(k) * T(1e-3));
      const L a = L(T(0.999999)), b = L(T(1e-6));
      for (long step = 0; step < kSteps; ++step)
        for (int k = 0; k < kChains; ++k) x[k] = fma(x[k], a, b);
      L sum = x[0];
      for (int k = 1; k < kChains; ++k) sum = sum + x[k];
      sink += double(reduce_max(sum));
    }
    const double seconds = seconds_since(start);
    const double operations = 2.0 * kSteps * kChains * lane_width<L> * threads;
    if (sink > 0)
      best = std::max(best, operations / seconds * 1e-9);  // the sum is positive: it cannot be optimised away
  }
  return best;
}

template <class T>
double products(int threads) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  double best = 0, sink = 0;
  for (int n : {192, 384, 576})  // how large the best is depends on the caches
    for (int repeat = 0; repeat < 5; ++repeat) {
      const int times = 40000000 / (n * n) + 1;
      double seconds = 0;
#pragma omp parallel num_threads(threads) reduction(max : seconds) reduction(+ : sink)
      {
        const Matrix a = Matrix::Random(n, n), b = Matrix::Random(n, n);
        Matrix c(n, n);
        c.noalias() = a * b;
#pragma omp barrier
        const auto start = Clock::now();
        for (int k = 0; k < times; ++k) c.noalias() = a * b;
        seconds = seconds_since(start);
        sink += double(c(0, 0));
      }
      if (std::isfinite(sink)) best = std::max(best, 2e-9 * n * n * n * double(times) * threads / seconds);
    }
  return best;
}

}  // namespace

int default_threads() { return omp_get_max_threads(); }

const char* cpu_isa() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#else
  return "baseline x86-64";
#endif
}

int cpu_register_floats() { return HWY_MAX_BYTES / 4; }

double fma_peak_gflops(bool double_precision, int threads) {
  return double_precision ? run<double>(threads) : run<float>(threads);
}
double product_peak_gflops(bool double_precision, int threads) {
  return double_precision ? products<double>(threads) : products<float>(threads);
}

}  // namespace lockstep
