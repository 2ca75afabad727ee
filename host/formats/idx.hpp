// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "host/formats/arrays.hpp"

namespace lockstep {

/// An IDX file, the format of MNIST's images and labels, plain or packed by gzip (the content tells): bytes,
/// integers of 16 or 32 bits, float32 or float64. Throws UserError as load_npy does; gzip's check sums must
/// agree.
NumericArray load_idx(const std::filesystem::path& path);

}  // namespace lockstep
