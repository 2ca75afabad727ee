// SPDX-License-Identifier: Apache-2.0
#pragma once
// A result as JSON and back: a class lists its members once,
//
//     template <class Archive> void fields(Archive& archive) { archive("mean", mean); }
//
// for both directions. What is unknown is absent in JSON, and NaN or empty in the class.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "host/util/files.hpp"

namespace lockstep {

/// An object by name, in an order of its own.
using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// A number with its standard error.
struct Estimate {
  double estimate = NAN, se = NAN;
  template <class Archive>
  void fields(Archive& archive) {
    archive("estimate", estimate);
    archive("se", se);
  }
};

/// A figure that has a name in JSON alone: a number, a count, an estimate, a list.
using Figure = std::variant<double, std::int64_t, Estimate, std::vector<double>>;
using NamedFigures = std::vector<std::pair<std::string, Figure>>;

/// Writes members in the order they come. Left out: numbers that are not finite, empty texts, vectors (but
/// those of texts), intervals and classes, `false`, and optional values that are not there.
class JsonWriter {
 public:
  using Json = nlohmann::ordered_json;
  static constexpr bool reading = false;

  template <class T>
  void operator()(const char* name, T& value) {
    if (is_there(value)) put(name, value);
  }
  template <class T>
  void always(const char* name, T& value) {
    json_[name] = Json::object();
    put(name, value);
  }
  /// A list of texts, which goes where it is empty.
  void some(const char* name, std::vector<std::string>& value) {
    if (!value.empty()) json_[name] = value;
  }
  /// A count that is kept as a double, for it may be unknown.
  void whole(const char* name, double& value) {
    if (std::isfinite(value)) json_[name] = std::int64_t(value);
  }
  /// [d][d] numbers, by rows.
  void matrix(const char* name, std::vector<double>& values) {
    const auto d = std::ptrdiff_t(std::lround(std::sqrt(double(values.size()))));
    for (std::ptrdiff_t i = 0; i < d; ++i)
      json_[name].push_back(std::vector<double>(values.begin() + i * d, values.begin() + (i + 1) * d));
  }
  /// Members of this class that it does not know by name.
  void rest(NamedFigures& figures) {
    for (auto& [name, figure] : figures)
      std::visit([&, key = name.c_str()](auto& value) { (*this)(key, value); }, figure);
  }
  Json json() && { return std::move(json_); }

 private:
  template <class T>
  static bool is_there(const T& value) {
    if constexpr (std::is_floating_point_v<T>)
      return std::isfinite(value);
    else if constexpr (std::is_same_v<T, bool>)
      return value;
    else if constexpr (std::is_same_v<T, std::array<double, 2>>)
      return std::isfinite(value[0]) || std::isfinite(value[1]);
    else if constexpr (requires { value.has_value(); })
      return value.has_value();
    else if constexpr (requires { value.empty(); })
      return !value.empty() || std::is_same_v<T, std::vector<std::string>> || std::is_same_v<T, Json>;
    else
      return true;
  }
  template <class T>
  void put(const char* name, T& value) {
    if constexpr (requires { value.fields(*this); }) {
      JsonWriter inner;
      value.fields(inner);
      if (!inner.json_.empty()) json_[name] = std::move(inner.json_);
    } else if constexpr (std::is_same_v<T, NamedNumbers>) {
      for (const auto& [key, number] : value) json_[name][key] = number;
    } else if constexpr (requires { value[0].fields(*this); }) {
      for (auto& element : value) {
        JsonWriter inner;
        element.fields(inner);
        json_[name].push_back(std::move(inner.json_));
      }
    } else if constexpr (requires { value.has_value(); }) {
      put(name, *value);
    } else {
      json_[name] = value;
    }
  }
  Json json_ = Json::object();
};

/// Fills a fresh class from what JsonWriter has made of another.
class JsonReader {
 public:
  using Json = nlohmann::ordered_json;
  static constexpr bool reading = true;
  explicit JsonReader(const Json& from) : from_(from) {}

  template <class T>
  void operator()(const char* name, T& value) {
    taken_.push_back(name);
    if (const auto found = from_.find(name); found != from_.end()) read(*found, value);
  }
  template <class T>
  void always(const char* name, T& value) {
    (*this)(name, value);
  }
  void some(const char* name, std::vector<std::string>& value) { (*this)(name, value); }
  void whole(const char* name, double& value) { (*this)(name, value); }
  void matrix(const char* name, std::vector<double>& values) {
    std::vector<std::vector<double>> rows;
    (*this)(name, rows);
    for (auto& row : rows) {
      row.resize(rows.size(), NAN);  // one without a finite number is null
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  void rest(NamedFigures& figures) {
    for (const auto& [key, value] : from_.items()) {
      if (std::find(taken_.begin(), taken_.end(), key) != taken_.end()) continue;
      Figure figure;
      if (value.is_object()) figure = Estimate();
      if (value.is_array()) figure = std::vector<double>();
      if (value.is_number_integer()) figure = std::int64_t();
      std::visit([&, &from = value](auto& to) { read(from, to); }, figure);
      figures.emplace_back(key, std::move(figure));
    }
  }

 private:
  template <class T>
  static void read(const Json& from, T& value) {
    if constexpr (std::is_same_v<T, double>) {
      value = from.is_number() ? from.get<double>() : NAN;
    } else if constexpr (requires(JsonReader & r) { value.fields(r); }) {
      JsonReader inner(from);
      value.fields(inner);
    } else if constexpr (std::is_same_v<T, NamedNumbers>) {
      for (auto at = from.begin(); at != from.end(); ++at) value.emplace_back(at.key(), double(*at));
    } else if constexpr (requires { value.has_value(); }) {
      value = typename T::value_type();
      read(from, *value);
    } else if constexpr (std::is_same_v<T, std::array<double, 2>>) {
      for (std::size_t i = 0; i < value.size(); ++i) value[i] = NAN;
      for (std::size_t i = 0; i < std::min(from.size(), value.size()); ++i) read(from[i], value[i]);
    } else if constexpr (requires { value.resize(0); } && !std::is_same_v<T, std::string>) {
      value.resize(from.size());
      for (std::size_t i = 0; i < value.size(); ++i) read(from[i], value[i]);
    } else {
      value = from.get<T>();
    }
  }
  const Json& from_;
  std::vector<std::string> taken_;
};

/// A result as it is stored and shown: without what is not finite.
template <class Result>
nlohmann::ordered_json to_json(Result result) {
  JsonWriter writer;
  result.fields(writer);
  return strip_non_finite(std::move(writer).json());
}

template <class Result>
Result from_json(const nlohmann::ordered_json& json) {
  Result result;
  JsonReader reader(json);
  result.fields(reader);
  return result;
}

}  // namespace lockstep
