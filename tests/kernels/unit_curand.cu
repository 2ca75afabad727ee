// SPDX-License-Identifier: Apache-2.0
// The block function against cuRAND's host generator, which needs no GPU. The library is loaded when the test
// runs: linked, it would be by far the largest part of every test program.
#include <curand.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "kernels/philox.hpp"

namespace {
using namespace lockstep;

class CurandHost : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"libcurand.so.10", "/usr/local/cuda/lib64/libcurand.so.10"})
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) GTEST_SKIP() << "no cuRAND library here: " << dlerror();
  }
  void TearDown() override {
    if (library_ != nullptr) dlclose(library_);
  }
  template <class F>
  F* function(const char* name) {
    F* f = reinterpret_cast<F*>(dlsym(library_, name));
    if (f == nullptr) throw std::runtime_error(name);
    return f;
  }
  std::vector<unsigned> generate(std::uint64_t seed, std::size_t count) {
    curandGenerator_t generator;
    std::vector<unsigned> words(count);
    auto check = [](curandStatus_t status) { EXPECT_EQ(status, CURAND_STATUS_SUCCESS); };
    check(function<decltype(curandCreateGeneratorHost)>("curandCreateGeneratorHost")(
        &generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    check(function<decltype(curandSetPseudoRandomGeneratorSeed)>("curandSetPseudoRandomGeneratorSeed")(
        generator, seed));
    check(function<decltype(curandGenerate)>("curandGenerate")(generator, words.data(), count));
    check(function<decltype(curandDestroyGenerator)>("curandDestroyGenerator")(generator));
    return words;
  }

 private:
  void* library_ = nullptr;
};

// cuRAND splits the seed over the key's words, low word first, and deals blocks to its subsequences in turn:
// block k has the counter (0, 0, k, 0).
TEST_F(CurandHost, GivesTheBlocksOfOurPhilox) {
  for (std::uint64_t seed : {std::uint64_t(42), std::uint64_t(0x123456789abcdef0)}) {
    const auto words = generate(seed, 32);
    const StreamKey key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
    for (std::uint32_t block = 0; block < 8; ++block) {
      std::uint32_t ours[4] = {0, 0, block, 0}, same[4] = {0, 0, block, 0};
      philox_rounds(ours, key);
      philox(same, key);
      for (int k = 0; k < 4; ++k) {
        EXPECT_EQ(ours[k], words[4 * block + k]) << "seed " << seed << " block " << block << " word " << k;
        EXPECT_EQ(same[k], ours[k]);
      }
    }
  }
}

TEST_F(CurandHost, FirstBlockOfSeed42IsTheKnownOne) {
  // Random123's philox4x32 with ten rounds, key {42, 0}, counter 0.
  const std::vector<unsigned> known = {0x9ceaf053u, 0x77f5493bu, 0x12bf50adu, 0x5742b3d7u};
  EXPECT_EQ(generate(42, 4), known);
}

}  // namespace
