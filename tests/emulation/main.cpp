// SPDX-License-Identifier: Apache-2.0
// The tests of engines on a GPU, on an emulated one: a test fails where the device has a complaint.
#include <gtest/gtest.h>

#include "targets/cuda_device.hpp"
#include "tests/emulation/device.hpp"

namespace lockstep {
std::optional<CudaDevice> find_cuda_device(std::string*) { return CudaDevice{"emulated", 8, 0, 2, 0}; }
bool cuda_available() { return true; }
}  // namespace lockstep

namespace lockstep::testing {
void add_own_data_transitions();  // own_data.cpp
}

/// Of an allocation, who called its caller is enough to know: long stacks take longer than the allocation.
extern "C" const char* __asan_default_options() { return "malloc_context_size=3"; }

namespace {

class Complaints : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo&) override {
    emulated::stream_of_this_thread.synchronize();
    for (const std::string& what : emulated::Device::the().take_complaints()) ADD_FAILURE() << what;
    if (const auto left = emulated::Device::the().allocations(); left > 0)
      ADD_FAILURE() << left << " allocations on the device were not freed";
  }
};

}  // namespace

int main(int argc, char** argv) {
  emulated::Device::the();
  lockstep::testing::add_own_data_transitions();
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::UnitTest::GetInstance()->listeners().Append(new Complaints);
  return RUN_ALL_TESTS();
}
