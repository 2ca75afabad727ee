// SPDX-License-Identifier: Apache-2.0
#include "host/util/suggest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "host/util/errors.hpp"

namespace lockstep {
namespace {

std::string folded(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// The distance takes memory and time of the product of both lengths; longer words are no slips of a name.
constexpr std::size_t kLongestName = 100;

/// Those of `known` nearest in edit distance, the nearest first.
std::vector<std::string> nearest(std::string_view name, std::vector<std::string> known, std::size_t at_most) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (std::string& candidate : known) {
    const std::size_t distance =
        edit_distance(name.substr(0, kLongestName), std::string_view(candidate).substr(0, kLongestName));
    ranked.emplace_back(distance, std::move(candidate));
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [distance, candidate] : ranked)
    if (names.size() < at_most) names.push_back(std::move(candidate));
  return names;
}

}  // namespace

std::size_t edit_distance(std::string_view first, std::string_view second) {
  const std::string a = folded(first), b = folded(second);
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);  // cost[i, j]: a[0, i) into b[0, j)
  auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return cost[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t differ = a[i - 1] == b[j - 1] ? 0 : 1;
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + differ});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

bool is_slip(std::string_view name, std::string_view known) {
  if (std::max(name.size(), known.size()) > kLongestName) return false;
  const std::size_t distance = edit_distance(name, known);
  return distance <= std::max<std::size_t>(1, (name.size() + 1) / 3) &&
         distance < std::max(name.size(), known.size());
}

std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& known,
                                       std::size_t at_most) {
  if (name.size() > kLongestName) return {};
  const std::string wanted = folded(name);
  // From three letters on, a beginning counts like one slip and an inner part like two: `leapfrog` finds
  // `num_leapfrog`, which is far away in edit distance.
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongestName) continue;
    const std::string text = folded(candidate);
    std::size_t score = edit_distance(wanted, text);
    bool close = is_slip(wanted, text);
    if (wanted.size() >= 3 && text.find(wanted) != std::string::npos) {
      score = std::min<std::size_t>(score, text.starts_with(wanted) ? 1 : 2);
      close = true;
    }
    if (close) near.emplace_back(score, candidate);
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  std::vector<std::string> names;
  for (const auto& [score, candidate] : near)
    if (names.size() < at_most && score == near.front().first) names.push_back(candidate);
  return names;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string> near = nearest_names(name, known);
  return near.empty() ? std::string() : fmt::format("Did you mean {}?", fmt::join(near, ", "));
}

std::string near_or_known(std::string_view name, const std::vector<std::string>& known,
                          std::string_view plural) {
  std::string near = did_you_mean(name, known);
  if (!near.empty()) return near;
  if (known.empty()) return fmt::format("There are no {}.", plural);
  constexpr std::size_t all = 15, most = 5;
  const bool too_many = known.size() > all;
  std::vector<std::string> some = too_many ? nearest(name, known, most) : known;
  for (std::string& one : some) one = one_line(one, 40);
  const std::string more = too_many ? fmt::format(" and {} more", known.size() - most) : "";
  return fmt::format("Known {}: {}{}.", plural, fmt::join(some, ", "), more);
}

}  // namespace lockstep
