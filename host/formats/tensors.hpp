// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "host/formats/arrays.hpp"

namespace lockstep {

/// Named arrays, such as the weights of a network: a folder, each `.npy` file in it under the file's name
/// without the ending (other files are passed over); a `.npz` file; or a `.safetensors` file. Throws
/// UserError for other endings, a folder without `.npy` files, and as the readers of these formats do.
std::map<std::string, NumericArray> load_tensors(const std::filesystem::path& path);

/// One array, such as images: from `.npy`; from `.npz` the one named `images`, else `x`, else the only one;
/// or from an IDX file, plain or packed by gzip, known by the ending `.gz`, by `idx` in its name, or by its
/// first bytes. Throws UserError for anything else, and as the readers of these formats do.
NumericArray load_images(const std::filesystem::path& path);

}  // namespace lockstep
