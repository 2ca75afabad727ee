// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Core>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/formats/arrays.hpp"

namespace lockstep {

/// Finds a data file or folder. An absolute `path` is taken as it is. A relative one is looked for beside
/// `relative_to` when that is given (the study file or folder that names it), then as given, then under
/// `data_dir`, then under $LOCKSTEP_DATA. Throws UserError listing the places when it is in none of them.
std::filesystem::path resolve_data_path(const std::filesystem::path& path,
                                        const std::filesystem::path& data_dir,
                                        const std::filesystem::path& relative_to = {});

/// The data of a target by name: what came as text, as one JSON object KEY -> number, vector or nested
/// arrays, and arrays that came as such. No name is in both.
struct DataSet {
  nlohmann::json values = nlohmann::json::object();
  std::map<std::string, NumericArray> arrays = {};
};

/// Reads
/// - a `.json` file in the convention of Stan and posteriordb;
/// - a `.csv` file with a header: each column under its name; one of numbers alone: the matrix `table` [row][column];
/// - a `.npz` file: each array under its name;
/// - a `.npy` file: its array under the file's name without the ending, so `means.npy` is `means`;
/// - a folder: each `.csv` and `.npy` file in it under the file's name without the ending; a `.csv` file is a
///   matrix [row][column], or a vector when it has a single row or column, whether or not its first line is a
///   header.
/// Cells of a table become numbers where they can, otherwise texts. Throws UserError, with line and column of
/// a text, for malformed files, and for formats that cannot be read (compressed files).
DataSet load_data(const std::filesystem::path& path);

/// The rows of a `.csv` file as a matrix, its columns in the order of the file. A first line of names alone
/// is a header and passed over; one of names and numbers is refused.
nlohmann::json load_rows(const std::filesystem::path& path);

class DataValue;

/// Typed, shape-checked access to data, whatever their format. Every complaint is a UserError that names the
/// key and the place in it, counted from 1.
class DataReader {
 public:
  static constexpr Eigen::Index any_size = -1;

  /// `what`: whose data these are, such as "target radon (radon.json)".
  DataReader(DataSet data, std::string what);

  bool has(const std::string& key) const { return data_.values.contains(key) || data_.arrays.contains(key); }
  /// How many indices an entry of `key` has: 0 for a number, 1 for a vector, 2 for a matrix, and so on.
  int depth(const std::string& key) const;

  double number(const std::string& key) const;
  /// [size]; a plain number is a vector of one.
  Eigen::VectorXd vector(const std::string& key, Eigen::Index size = any_size) const;
  /// [rows][cols], given row by row.
  Eigen::MatrixXd matrix(const std::string& key, Eigen::Index rows = any_size,
                         Eigen::Index cols = any_size) const;
  /// [count][rows][cols]; without rows and cols, all of the shape of the first.
  std::vector<Eigen::MatrixXd> matrices(const std::string& key, Eigen::Index count = any_size,
                                        Eigen::Index rows = any_size, Eigen::Index cols = any_size) const;

 private:
  DataValue at(const std::string& key) const;

  DataSet data_;
  std::string what_;
};

}  // namespace lockstep
