// SPDX-License-Identifier: Apache-2.0
// The emulated device finds what it is there to find.
#include <cuda_runtime.h>
#include <gmock/gmock.h>

namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::set<std::string> complaints() { return emulated::Device::the().take_complaints(); }

__global__ void add_kernel(int* to, int what) { to[threadIdx.x] += what; }
__global__ void copy_kernel(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x]; }

template <class... Parameters, class... Arguments>
cudaError_t launch(cudaStream_t stream, int threads, void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = dim3(threads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Three zeros on the device, and two streams beside this thread's.
class EmulatedDevice : public ::testing::Test {
 protected:
  EmulatedDevice() {
    cudaMalloc(&numbers_, 3 * sizeof(int));
    cudaMemset(numbers_, 0, 3 * sizeof(int));
    cudaStreamSynchronize(cudaStreamPerThread);
    cudaStreamCreateWithFlags(&one_, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking);
  }
  ~EmulatedDevice() override {
    cudaFree(numbers_);
    cudaStreamDestroy(one_);
    cudaStreamDestroy(other_);
  }
  int first() {
    int number = 0;
    cudaMemcpy(&number, numbers_, sizeof number, cudaMemcpyDeviceToHost);
    return number;
  }
  int* numbers_ = nullptr;
  cudaStream_t one_ = nullptr, other_ = nullptr;
};

TEST_F(EmulatedDevice, WorksWhenItIsWaitedFor) {
  launch(one_, 3, add_kernel, numbers_, 5);
  EXPECT_EQ(first(), 0);
  cudaStreamSynchronize(one_);
  EXPECT_EQ(first(), 5);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("no fence")));  // the first look at it
}

TEST_F(EmulatedDevice, FindsAMissingFence) {
  launch(one_, 3, add_kernel, numbers_, 5);
  launch(other_, 3, add_kernel, numbers_, 6);
  cudaStreamSynchronize(one_);
  cudaStreamSynchronize(other_);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("no fence")));
  launch(one_, 3, add_kernel, numbers_, 7);
  cudaStreamSynchronize(one_);
  launch(other_, 3, add_kernel, numbers_, 8);
  cudaStreamSynchronize(other_);
  EXPECT_EQ(first(), 26);
  EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(EmulatedDevice, LetsStreamsReadSideBySide) {
  int *to = nullptr, *also_to = nullptr;
  cudaMalloc(&to, 3 * sizeof(int));
  cudaMalloc(&also_to, 3 * sizeof(int));
  launch(one_, 3, copy_kernel, to, numbers_);
  launch(other_, 3, copy_kernel, also_to, numbers_);
  cudaStreamSynchronize(other_);
  EXPECT_THAT(complaints(), IsEmpty());
  launch(other_, 3, add_kernel, numbers_, 1);  // which the first stream is still to read
  cudaStreamSynchronize(one_);
  cudaStreamSynchronize(other_);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("no fence")));
  cudaFree(to);
  cudaFree(also_to);
}

TEST_F(EmulatedDevice, FindsTheHostInItsMemory) {
  EXPECT_EQ(*static_cast<volatile int*>(numbers_), 0);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("the host touches")));
}

TEST_F(EmulatedDevice, FindsTheHostsMemoryInAKernel) {
  const std::vector<int> host(3);
  launch(one_, 3, copy_kernel, numbers_, host.data());
  cudaStreamSynchronize(one_);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("an address of the host's")));
}

TEST_F(EmulatedDevice, FindsAThreadTooMany) {
  const auto run = [&] {
    launch(one_, 4, add_kernel, numbers_, 1);
    cudaStreamSynchronize(one_);
  };
  EXPECT_DEATH(run(), "use-after-poison");
}

TEST_F(EmulatedDevice, HoldsNoZerosAtFirst) {
  float *fresh = nullptr, number = 0;
  cudaMalloc(&fresh, sizeof(float));
  cudaMemcpy(&number, fresh, sizeof number, cudaMemcpyDeviceToHost);
  EXPECT_GT(number, 1e38f);
  cudaFree(fresh);
}

// Whose pages it does not touch.
TEST_F(EmulatedDevice, FindsAMemsetThatNobodyWaitedFor) {
  int* fresh = nullptr;
  cudaMalloc(&fresh, 3 * sizeof(int));
  cudaMemsetAsync(fresh, 0, 3 * sizeof(int), one_);
  launch(other_, 3, add_kernel, fresh, 5);
  cudaStreamSynchronize(one_);
  cudaStreamSynchronize(other_);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("no fence")));
  int numbers[3] = {};
  cudaMemcpy(numbers, fresh, sizeof numbers, cudaMemcpyDeviceToHost);
  EXPECT_THAT(numbers, ElementsAre(5, 5, 5));
  cudaFree(fresh);
}

TEST_F(EmulatedDevice, RefusesWhatCannotBeLaunched) {
  EXPECT_EQ(launch(one_, 0, add_kernel, numbers_, 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(one_, 1025, add_kernel, numbers_, 1), cudaErrorInvalidConfiguration);
  cudaStreamBeginCapture(one_, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaStreamSynchronize(one_), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(one_, &graph);
  cudaGraphDestroy(graph);
}

}  // namespace
