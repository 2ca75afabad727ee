// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace lockstep {

/// A dense array of numbers in the element type of its file, row by row (the last index runs fastest).
struct NumericArray {
  /// Booleans are bytes of 0 and 1.
  using Values = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int8_t>,
                              std::vector<std::int16_t>, std::vector<std::int32_t>, std::vector<std::int64_t>,
                              std::vector<std::uint8_t>, std::vector<std::uint16_t>,
                              std::vector<std::uint32_t>, std::vector<std::uint64_t>>;

  std::vector<std::size_t> shape;  // empty: a plain number, one value
  Values values;

  /// Entry number `index` of the values.
  double number(std::size_t index) const {
    return std::visit([index](const auto& v) { return static_cast<double>(v[index]); }, values);
  }
};

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
