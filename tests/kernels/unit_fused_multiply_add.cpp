// SPDX-License-Identifier: Apache-2.0
// The hot kernels must be made of wide fused multiply-adds. A pack library that quietly falls back to a
// multiply and an add gives right numbers at 70 % of the speed: only the machine code shows it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>

namespace {

struct Count {
  int fused = 0, multiply = 0;  // packed floats or doubles in ymm or zmm registers
};

/// In functions of mixed precision: those that take packs of floats and of doubles.
Count count_in(const std::filesystem::path& object) {
  const std::string command = "objdump -d -C --no-show-raw-insn '" + object.string() + "'";
  Count c;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return c;
  static char line[1 << 16];  // names are long
  bool mixed = false;
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    const std::string s(line);
    if (s.find(">:") != std::string::npos)
      mixed = s.find("Pack<float") != std::string::npos && s.find("Pack<double") != std::string::npos;
    if (!mixed) continue;
    if (s.find("%ymm") == std::string::npos && s.find("%zmm") == std::string::npos) continue;
    for (const char* name : {"vfmadd", "vfnmadd", "vfmsub", "vfnmsub"})
      if (const auto at = s.find(name); at != std::string::npos)
        if (s.compare(s.find_first_of(" \t", at) - 2, 1, "p") == 0) ++c.fused;  // ..ps, ..pd
    if (s.find("vmulps") != std::string::npos || s.find("vmulpd") != std::string::npos) ++c.multiply;
  }
  pclose(pipe);
  return c;
}

/// The compiled engines of a density, or an empty path.
std::filesystem::path find_object(const std::string& part) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LOCKSTEP_BINARY_DIR)) {
    const std::string name = entry.path().filename().string();
    if (name.find(part) == 0 && (name.ends_with(".o") || name.ends_with(".obj"))) return entry.path();
  }
  return {};
}

TEST(FusedMultiplyAdd, HotKernelsAreMadeOfThem) {
#ifndef __FMA__
  GTEST_SKIP() << "built for an instruction set without fused multiply-add";
#endif
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a sanitized build is not the one to measure";
#endif
#ifndef __OPTIMIZE__
  GTEST_SKIP() << "not an optimised build";
#endif
  if (std::system("objdump --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no objdump (package binutils)";
  const auto object = find_object("mixture_cpu.cpp");
  ASSERT_FALSE(object.empty()) << "no object file of the mixture's engines under " << LOCKSTEP_BINARY_DIR;
  const Count c = count_in(object);
  // By hand, for one pseudo-extended HMC kernel of the mixture: 2 distances of 2, exponent (1 + 2), exp2 (6
  // in its polynomial), 2 accumulations: 13 in the loop over components; log (1 + 6 + 1), exp and log g: 20;
  // leapfrog 4; twice, for the gradient in float and the energy in double (11 + 10 terms); normals 20. Above
  // 80 a kernel; the object holds four (fused HMC and the block calls, each in two dimensions and in any).
  EXPECT_GT(c.fused, 4 * 80) << object;
  // Multiplications that no addition follows are a minority.
  EXPECT_GT(c.fused, c.multiply) << object;
  RecordProperty("fused", c.fused);
  RecordProperty("multiply", c.multiply);
}

}  // namespace
