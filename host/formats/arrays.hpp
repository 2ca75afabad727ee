// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "host/formats/numeric_array.hpp"

namespace lockstep {

/// A `.npy` file, as numpy.save writes it: format versions 1 to 3; elements float16 (which become float32),
/// float32, float64, signed or unsigned integers of 8 to 64 bits, or booleans; either byte order; rows or
/// columns first. Throws UserError for a file that is damaged, or shorter or longer than its header says, for
/// other elements (texts, complex numbers, records, Python objects), and where memory does not suffice.
NumericArray load_npy(const std::filesystem::path& path);

/// The arrays of a `.npz` file, as numpy.savez and numpy.savez_compressed write it, by name: a zip archive of
/// `NAME.npy`, stored or deflated. Throws UserError as load_npy does, and for an archive that is damaged
/// (sizes and check sums must agree with the content), empty, or holds anything but arrays.
std::map<std::string, NumericArray> load_npz(const std::filesystem::path& path);

}  // namespace lockstep
