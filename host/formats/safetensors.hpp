// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "host/formats/arrays.hpp"

namespace lockstep {

/// The arrays of a `.safetensors` file by name: the length of a header, the header as JSON, and the numbers.
/// Elements F32, F64, I8 to I64, U8 to U64 and BOOL come as they are, F16 and BF16 as float32. Throws
/// UserError as load_npy does, and for a file whose arrays overlap or leave bytes unused, or that has none.
std::map<std::string, NumericArray> load_safetensors(const std::filesystem::path& path);

}  // namespace lockstep
