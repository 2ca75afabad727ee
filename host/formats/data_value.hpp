// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>

#include "host/formats/arrays.hpp"
#include "host/util/settings.hpp"

namespace lockstep {

/// What stands under a name, or a part of it, read in one way whichever format it came in: a JSON value, or
/// an array of numbers from some index on. A view: the data must outlive it.
class DataValue {
 public:
  explicit DataValue(const nlohmann::json& json) : json_(&json) {}
  explicit DataValue(const NumericArray& array) : array_(&array) {}

  bool is_number() const { return array_ ? axis_ == array_->shape.size() : json_->is_number(); }
  bool is_array() const { return array_ ? !is_number() : json_->is_array(); }

  /// Of a number; may be NaN or infinite.
  double number() const { return array_ ? array_->number(offset_) : json_->get<double>(); }

  /// Of an array: how many parts it has, and one of them.
  std::size_t size() const { return array_ ? array_->shape[axis_] : json_->size(); }
  DataValue operator[](std::size_t i) const {
    if (!array_) return DataValue((*json_)[i]);
    DataValue part = *this;
    ++part.axis_;
    for (std::size_t axis = part.axis_; axis < array_->shape.size(); ++axis) i *= array_->shape[axis];
    part.offset_ += i;
    return part;
  }

  /// For messages.
  std::string text() const {
    if (!array_) return shown(*json_);
    if (is_number()) return shown(number());
    return fmt::format(
        "an array of shape [{}]",
        fmt::join(array_->shape.begin() + static_cast<std::ptrdiff_t>(axis_), array_->shape.end(), "]["));
  }

 private:
  const nlohmann::json* json_ = nullptr;
  const NumericArray* array_ = nullptr;
  std::size_t axis_ = 0, offset_ = 0;  // of an array: indices given so far, and where its values begin
};

}  // namespace lockstep
