// SPDX-License-Identifier: Apache-2.0
// Random numbers made on the device against those made on the host.
#include <vector>

#include "kernels/launch_cuda.cuh"
#include "tests/support/gpu.hpp"

namespace {
using namespace lockstep;

struct Words {
  std::uint32_t ours[4], curand[4];
  float uniform, normal;
  double uniform_double, normal_double;
};

/// A counter and key for each index, with every word in use.
LOCKSTEP_FN Words make_words(std::uint32_t i) {
  const StreamKey key{42u + i * 2654435761u, i * 40503u};
  Words w;
  for (int k = 0; k < 4; ++k) w.ours[k] = w.curand[k] = (i + 1) * (7919u + 104729u * k);
  philox_rounds(w.ours, key);
  philox(w.curand, key);
  w.uniform = Draw<float>{key, i, i % 7, i / 7}.uniform(Purpose::accept);
  w.uniform_double = Draw<double>{key, i, i % 7, i / 7}.uniform(Purpose::accept);
  Draw<float>{key, i, i % 7, i / 7}.normals(Purpose::momentum, 3, [&](int k, float z) {
    if (k == 2) w.normal = z;
  });
  Draw<double>{key, i, i % 7, i / 7}.normals(Purpose::momentum, 3, [&](int k, double z) {
    if (k == 2) w.normal_double = z;
  });
  return w;
}

__global__ void words_kernel(Words* out, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = make_words(i);
}

class GpuPhilox : public lockstep::testing::GpuTest {};

TEST_F(GpuPhilox, SanitizeDeviceDrawsEqualHostDraws) {
  constexpr std::uint32_t count = 1000;
  Words* device = nullptr;
  std::vector<Words> words(count);
  LOCKSTEP_CHECK_CUDA(cudaMalloc(&device, count * sizeof(Words)));
  words_kernel<<<(count + 127) / 128, 128>>>(device, count);
  LOCKSTEP_CHECK_CUDA(cudaGetLastError());
  LOCKSTEP_CHECK_CUDA(cudaMemcpy(words.data(), device, count * sizeof(Words), cudaMemcpyDeviceToHost));
  LOCKSTEP_CHECK_CUDA(cudaFree(device));
  for (std::uint32_t i = 0; i < count; ++i) {
    const Words host = make_words(i), &w = words[i];
    for (int k = 0; k < 4; ++k) {
      ASSERT_EQ(w.ours[k], host.ours[k]) << i;
      ASSERT_EQ(w.curand[k], host.ours[k]) << i;  // on the device this is cuRAND's function
    }
    ASSERT_EQ(w.uniform, host.uniform) << i;
    ASSERT_EQ(w.uniform_double, host.uniform_double) << i;
    // sqrt, log, sin and cos differ by a few units in the last place.
    ASSERT_NEAR(w.normal, host.normal, 4e-6) << i;
    ASSERT_NEAR(w.normal_double, host.normal_double, 1e-14) << i;
  }
}

}  // namespace
