// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "host/data.hpp"
#include "host/errors.hpp"
#include "host/settings.hpp"
#include "host/suggest.hpp"

namespace lockstep {
namespace {

using Eigen::Index;
using nlohmann::json;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw UserError(fmt::format(text, std::forward<Args>(args)...));
}

/// `name` says where the entry stands, such as "row 2, column 3 of means of target mixture".
double finite_number(const json& entry, const std::string& name) {
  if (!entry.is_number() || !std::isfinite(entry.get<double>()))
    refuse("{} is {} (a density needs finite numbers). Correct or remove it.", name, shown(entry));
  return entry.get<double>();
}

std::int64_t whole_number(const json& entry, const std::string& name, std::int64_t low, std::int64_t high) {
  const double number = finite_number(entry, name);
  constexpr double exact_limit = 9007199254740992.0;  // 2^53: beyond it a double skips whole numbers
  const bool whole = std::abs(number) <= exact_limit && number == std::trunc(number);
  const std::int64_t value = whole ? static_cast<std::int64_t>(number) : 0;
  if (whole && value >= low && value <= high) return value;
  if (low < -9007199254740991 && high > 9007199254740991)
    refuse("{} is {} (it must be a whole number). Correct it.", name, shown(entry));
  refuse("{} is {} (it must be a whole number from {} to {}). Correct it.", name, shown(entry), low, high);
}

const json& array_of(const json& value, const std::string& name, const char* what) {
  if (!value.is_array() || value.empty())
    refuse("{} is {} (it must be {}). Write it so.", name, shown(value), what);
  return value;
}

void check_size(const std::string& name, const char* things, Index found, Index wanted) {
  if (wanted != DataReader::any_size && found != wanted)
    refuse("{} has {} {} (it must have {} to fit the rest). Correct the data.", name, found, things, wanted);
}

Eigen::MatrixXd matrix_of(const json& value, const std::string& name, Index rows, Index cols) {
  array_of(value, name, "a matrix, [[row 1], [row 2], ...]");
  const auto given_rows = static_cast<Index>(value.size());
  check_size(name, "rows", given_rows, rows);
  Eigen::MatrixXd result;
  for (Index i = 0; i < given_rows; ++i) {
    const std::string row_name = fmt::format("row {} of {}", i + 1, name);
    const json& row = array_of(value[static_cast<std::size_t>(i)], row_name, "an array of numbers");
    const auto given_cols = static_cast<Index>(row.size());
    if (i == 0) {
      check_size(name, "columns", given_cols, cols);
      result.resize(given_rows, given_cols);
    }
    if (given_cols != result.cols())
      refuse("{} has {} entries where row 1 has {} (a matrix needs equal rows). Correct the data.", row_name,
             given_cols, result.cols());
    for (Index j = 0; j < given_cols; ++j) {
      const json& entry = row[static_cast<std::size_t>(j)];
      // The name is put together only for a bad entry: matrices may be large.
      result(i, j) = entry.is_number() && std::isfinite(entry.get<double>())
                         ? entry.get<double>()
                         : finite_number(entry, fmt::format("row {}, column {} of {}", i + 1, j + 1, name));
    }
  }
  return result;
}

}  // namespace

DataReader::DataReader(json data, std::string what) : data_(std::move(data)), what_(std::move(what)) {
  if (data_.is_null()) data_ = json::object();
  if (!data_.is_object())
    refuse("the data of {} are {} (they must be an object of named values). Write them as one.", what_,
           shown(data_));
}

const json& DataReader::at(const std::string& key) const {
  const auto found = data_.find(key);
  if (found != data_.end()) return *found;
  std::vector<std::string> given;
  for (const auto& item : data_.items()) given.push_back(item.key());
  refuse("the data of {} lack '{}' (the density is not defined without it). {}", what_, key,
         near_or_known(key, given, "entries"));
}

double DataReader::number(const std::string& key) const {
  return finite_number(at(key), fmt::format("{} of {}", key, what_));
}

std::int64_t DataReader::integer(const std::string& key) const {
  return whole_number(at(key), fmt::format("{} of {}", key, what_), std::numeric_limits<std::int64_t>::min(),
                      std::numeric_limits<std::int64_t>::max());
}

Eigen::VectorXd DataReader::vector(const std::string& key, Index size) const {
  const json& value = at(key);
  const std::string name = fmt::format("{} of {}", key, what_);
  const json wrapped = value.is_number() ? json::array({value}) : json();
  const json& entries = value.is_number() ? wrapped : array_of(value, name, "an array of numbers");
  check_size(name, "entries", static_cast<Index>(entries.size()), size);
  Eigen::VectorXd result(static_cast<Index>(entries.size()));
  for (Index i = 0; i < result.size(); ++i)
    result(i) =
        finite_number(entries[static_cast<std::size_t>(i)], fmt::format("entry {} of {}", i + 1, name));
  return result;
}

std::vector<std::int64_t> DataReader::integers(const std::string& key, std::int64_t low, std::int64_t high,
                                               Index size) const {
  const std::string name = fmt::format("{} of {}", key, what_);
  const json& entries = array_of(at(key), name, "an array of whole numbers");
  check_size(name, "entries", static_cast<Index>(entries.size()), size);
  std::vector<std::int64_t> result;
  for (const json& entry : entries)
    result.push_back(whole_number(entry, fmt::format("entry {} of {}", result.size() + 1, name), low, high));
  return result;
}

Eigen::MatrixXd DataReader::matrix(const std::string& key, Index rows, Index cols) const {
  return matrix_of(at(key), fmt::format("{} of {}", key, what_), rows, cols);
}

std::vector<Eigen::MatrixXd> DataReader::matrices(const std::string& key, Index count, Index rows,
                                                  Index cols) const {
  const std::string name = fmt::format("{} of {}", key, what_);
  const json& entries = array_of(at(key), name, "an array of matrices");
  check_size(name, "matrices", static_cast<Index>(entries.size()), count);
  std::vector<Eigen::MatrixXd> result;
  for (const json& entry : entries) {
    result.push_back(matrix_of(entry, fmt::format("matrix {} of {}", result.size() + 1, name), rows, cols));
    rows = result.front().rows();  // the first one sets the shape where the caller did not
    cols = result.front().cols();
  }
  return result;
}

}  // namespace lockstep
