// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a class lists in fields() as numbers, to be sent to another process.
#include <type_traits>
#include <vector>

namespace lockstep {

/// Numbers as they are; of an array its length first.
template <class T>
std::vector<double> numbers_of(T value) {
  std::vector<double> all;
  const auto add = [&](const char*, const auto& member) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(member)>>) {
      all.push_back(double(member));
    } else {
      all.push_back(double(member.size()));
      all.insert(all.end(), member.begin(), member.end());
    }
  };
  value.fields(add);
  return all;
}

/// Adds what another process has: its numbers are added, its arrays stand behind those that are there.
template <class T>
void add_numbers(T& to, const std::vector<double>& numbers) {
  auto at = numbers.begin();
  const auto add = [&](const char*, auto& member) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(member)>>) {
      member += *at++;
    } else {
      const auto size = std::ptrdiff_t(*at++);
      member.insert(member.end(), at, at + size);
      at += size;
    }
  };
  to.fields(add);
}

}  // namespace lockstep
