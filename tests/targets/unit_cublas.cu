// SPDX-License-Identifier: Apache-2.0
// That cuBLAS's library has every function that is called, which is asked of it when the program runs; no GPU is needed.
#include <gmock/gmock.h>

#include "targets/cublas.cuh"

namespace lockstep {
namespace {

TEST(CublasLibrary, HasWhatIsCalled) {
  EXPECT_STREQ(LOCKSTEP_CUBLAS(cublasGetStatusString)(CUBLAS_STATUS_SUCCESS), "success");
  for (const bool found :
       {LOCKSTEP_CUBLAS(cublasCreate) != nullptr, LOCKSTEP_CUBLAS(cublasDestroy) != nullptr,
        LOCKSTEP_CUBLAS(cublasSetStream) != nullptr, LOCKSTEP_CUBLAS(cublasSetWorkspace) != nullptr,
        LOCKSTEP_CUBLAS(cublasSetMathMode) != nullptr, LOCKSTEP_CUBLAS(cublasSgemm) != nullptr,
        LOCKSTEP_CUBLAS(cublasDgemm) != nullptr, LOCKSTEP_CUBLAS(cublasSgemmStridedBatched) != nullptr,
        LOCKSTEP_CUBLAS(cublasDgemmStridedBatched) != nullptr})
    EXPECT_TRUE(found);
}

TEST(CublasLibrary, SaysWhatItLacks) {
  EXPECT_THAT([] { cublas_symbol("cublasNotAFunction"); },
              ::testing::ThrowsMessage<std::runtime_error>(::testing::AllOf(
                  ::testing::HasSubstr("cublasNotAFunction"), ::testing::HasSubstr("LD_LIBRARY_PATH"))));
}

}  // namespace
}  // namespace lockstep
