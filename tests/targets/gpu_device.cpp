// SPDX-License-Identifier: Apache-2.0
// The device query, and its two measurements against bounds that any usable device keeps.
#include "tests/support/gpu.hpp"

namespace {
using namespace lockstep;

class GpuDevice : public lockstep::testing::GpuTest {};

TEST_F(GpuDevice, DescribesItself) {
  const auto device = find_cuda_device();
  ASSERT_TRUE(device.has_value());
  EXPECT_FALSE(device->name.empty());
  EXPECT_GE(device->major, 8);
  EXPECT_GT(device->multiprocessors, 0);
  EXPECT_GT(device->memory, std::size_t(1) << 30);
  EXPECT_EQ(cuda_device_name(),
            device->name + " (sm_" + std::to_string(device->major) + std::to_string(device->minor) + ")");
}

TEST_F(GpuDevice, MeasuresPeaks) {
  const auto device = find_cuda_device();
  ASSERT_TRUE(device.has_value());
  const double fma = measure_fma_peak(false), in_double = measure_fma_peak(true),
               copy = measure_copy_bandwidth();
  RecordProperty("fma_peak_tflops", std::to_string(fma * 1e-12));
  RecordProperty("copy_bandwidth_gb_s", std::to_string(copy * 1e-9));
  // No multiprocessor so far has more than 128 float units or less than 64, none has run above 3 GHz.
  EXPECT_LT(fma, 2.0 * 128 * 3e9 * device->multiprocessors);
  EXPECT_GT(fma, 2.0 * 64 * 0.3e9 * device->multiprocessors);
  EXPECT_LT(in_double, fma);  // half as many units for doubles at most
  EXPECT_GT(in_double, fma / 100);
  EXPECT_GT(copy, 5e10);
  EXPECT_LT(copy, 2e13);
}

}  // namespace

// Without a device the query says so instead of throwing: runs on machines without one.
TEST(CudaDeviceQuery, NeverThrows) {
  std::string why_not;
  const auto device = lockstep::find_cuda_device(&why_not);
  EXPECT_EQ(device.has_value(), why_not.empty());
  if (!device) {
    EXPECT_FALSE(lockstep::cuda_available());
    EXPECT_THROW(lockstep::cuda_device_name(), std::runtime_error);
  }
}
