// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/formats/data.hpp"
#include "host/formats/data_value.hpp"
#include "host/formats/npy.hpp"
#include "host/util/errors.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

using Eigen::Index;

/// `name()` says where the entry stands, such as "row 2, column 3 of means of target mixture"; it is put
/// together only for a bad entry, because arrays may be large.
template <class Name>
double finite_number(const DataValue& entry, const Name& name) {
  if (!entry.is_number() || !std::isfinite(entry.number()))
    refuse("{} is {} (a density needs finite numbers). Correct or remove it.", name(), entry.text());
  return entry.number();
}

/// `what` the value must be, not empty.
void check_array(const DataValue& value, const std::string& name, const char* what) {
  if (!value.is_array() || value.size() == 0)
    refuse("{} is {} (it must be {}). Write it so.", name, value.text(), what);
}

void check_size(const std::string& name, const char* things, Index found, Index wanted) {
  if (wanted != DataReader::any_size && found != wanted)
    refuse("{} has {} {} (it must have {} to fit the rest). Correct the data.", name, found, things, wanted);
}

Eigen::MatrixXd matrix_of(const DataValue& value, const std::string& name, Index rows, Index cols) {
  check_array(value, name, "a matrix, [[row 1], [row 2], ...]");
  const auto given_rows = static_cast<Index>(value.size());
  check_size(name, "rows", given_rows, rows);
  Eigen::MatrixXd result;
  for (Index i = 0; i < given_rows; ++i) {
    const std::string row_name = fmt::format("row {} of {}", i + 1, name);
    const DataValue row = value[static_cast<std::size_t>(i)];
    check_array(row, row_name, "an array of numbers");
    const auto given_cols = static_cast<Index>(row.size());
    if (i == 0) {
      check_size(name, "columns", given_cols, cols);
      result.resize(given_rows, given_cols);
    }
    if (given_cols != result.cols())
      refuse("{} has {} entries where row 1 has {} (a matrix needs equal rows). Correct the data.", row_name,
             given_cols, result.cols());
    for (Index j = 0; j < given_cols; ++j)
      result(i, j) = finite_number(row[static_cast<std::size_t>(j)], [&] {
        return fmt::format("row {}, column {} of {}", i + 1, j + 1, name);
      });
  }
  return result;
}

}  // namespace

DataReader::DataReader(DataSet data, std::string what) : data_(std::move(data)), what_(std::move(what)) {
  if (data_.values.is_null()) data_.values = nlohmann::json::object();
  if (!data_.values.is_object())
    refuse("the data of {} are {} (they must be an object of named values). Write them as one.", what_,
           shown(data_.values));
}

DataValue DataReader::at(const std::string& key) const {
  if (const auto array = data_.arrays.find(key); array != data_.arrays.end()) return DataValue(array->second);
  if (const auto found = data_.values.find(key); found != data_.values.end()) return DataValue(*found);
  std::vector<std::string> given;
  for (const auto& item : data_.values.items()) given.push_back(item.key());
  for (const auto& [name, array] : data_.arrays) given.push_back(name);
  const auto slip =
      std::find_if(given.begin(), given.end(), [&](const std::string& name) { return is_slip(name, key); });
  if (slip != given.end())
    refuse(
        "the data of {} lack '{}' (the density is not defined without it); entry '{}' is unknown: did you "
        "mean '{}'? Rename it.",
        what_, key, *slip, key);
  const std::size_t hidden = given.size() > 10 ? given.size() - 5 : 0;
  given.resize(given.size() - hidden);
  for (std::string& name : given) name = one_line(name, 40);
  refuse("the data of {} lack '{}' (the density is not defined without it). Add it; they give {}{}.", what_,
         key, given.empty() ? "nothing" : fmt::format("{}", fmt::join(given, ", ")),
         hidden > 0 ? fmt::format(" and {} more", hidden) : "");
}

int DataReader::depth(const std::string& key) const {
  int depth = 0;
  for (DataValue value = at(key); value.is_array(); value = value[0]) {
    ++depth;
    if (value.size() == 0) break;
  }
  return depth;
}

double DataReader::number(const std::string& key) const {
  return finite_number(at(key), [&] { return fmt::format("{} of {}", key, what_); });
}

Eigen::VectorXd DataReader::vector(const std::string& key, Index size) const {
  const DataValue value = at(key);
  const std::string name = fmt::format("{} of {}", key, what_);
  const bool alone = value.is_number();
  if (!alone) check_array(value, name, "an array of numbers");
  Eigen::VectorXd result(alone ? 1 : static_cast<Index>(value.size()));
  check_size(name, "entries", result.size(), size);
  for (Index i = 0; i < result.size(); ++i)
    result(i) = finite_number(alone ? value : value[static_cast<std::size_t>(i)],
                              [&] { return fmt::format("entry {} of {}", i + 1, name); });
  return result;
}

Eigen::MatrixXd DataReader::matrix(const std::string& key, Index rows, Index cols) const {
  return matrix_of(at(key), fmt::format("{} of {}", key, what_), rows, cols);
}

std::vector<Eigen::MatrixXd> DataReader::matrices(const std::string& key, Index count, Index rows,
                                                  Index cols) const {
  const std::string name = fmt::format("{} of {}", key, what_);
  const DataValue value = at(key);
  check_array(value, name, "an array of matrices");
  check_size(name, "matrices", static_cast<Index>(value.size()), count);
  std::vector<Eigen::MatrixXd> result;
  for (std::size_t k = 0; k < value.size(); ++k) {
    result.push_back(matrix_of(value[k], fmt::format("matrix {} of {}", k + 1, name), rows, cols));
    rows = result.front().rows();  // the first one sets the shape where the caller did not
    cols = result.front().cols();
  }
  return result;
}

}  // namespace lockstep
