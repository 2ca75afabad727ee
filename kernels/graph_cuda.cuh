// SPDX-License-Identifier: Apache-2.0
#pragma once
// Streams and graphs of a GPU.
#include <mutex>

#include "kernels/launch_cuda.cuh"

namespace lockstep {

/// Held by whoever captures, and by whoever may wait for the whole device meanwhile, as cuBLAS does where a handle is made or
/// destroyed, and memory is freed: that spoils the captures of other threads (seen on an H200).
inline std::unique_lock<std::recursive_mutex> capturing() {
  static std::recursive_mutex mutex;
  return std::unique_lock(mutex);
}

/// A stream that waits for no other, nor the other way round.
class CudaStream {
 public:
  CudaStream() { LOCKSTEP_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~CudaStream() { cudaStreamDestroy(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaGraph {
 public:
  CudaGraph() = default;
  ~CudaGraph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  /// Takes what `body` enqueues on the stream, which does not run. Once per graph.
  template <class Body>
  void capture(cudaStream_t stream, Body body) {
    cudaGraph_t captured = nullptr;
    // Relaxed: a kernel that was never launched before is loaded now, which may allocate.
    LOCKSTEP_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    body();
    LOCKSTEP_CHECK_CUDA(cudaStreamEndCapture(stream, &captured));
    const cudaError_t status = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    LOCKSTEP_CHECK_CUDA(status);
  }
  void launch(cudaStream_t stream) const { LOCKSTEP_CHECK_CUDA(cudaGraphLaunch(graph_, stream)); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace lockstep
