// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// OMP_NUM_THREADS, or the processors that this process may use.
int default_threads();
/// The instruction set the kernels were built for, and its register width.
const char* cpu_isa();
int cpu_register_floats();

/// Measured peak of fused multiply-adds in GFLOP/s (two operations each): the best of several runs of
/// independent register-only chains, on `threads` threads.
double fma_peak_gflops(bool double_precision, int threads);

/// The same of Eigen's products of square matrices, each thread with its own.
double product_peak_gflops(bool double_precision, int threads);

}  // namespace lockstep
