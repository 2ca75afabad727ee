// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`
/// (optimal string alignment). Upper and lower case, and `-` and `_`, count as the same letter.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Are both words so near in edit distance, within a third of the length of `name`, that one may be a slip of
/// the other? No word of more than 100 bytes is.
bool is_slip(std::string_view name, std::string_view known);

/// Those of `known` a user may have meant by `name`, at most `at_most`: the nearest one and its equals
/// among those that it may be a slip of, or that begin with it, or that hold it. Empty when nothing is near.
std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& known,
                                       std::size_t at_most = 3);

/// "Did you mean a, b?", or "" when nothing is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

/// As did_you_mean; when nothing is near, the nearest five, "Known <plural>: a, b, c, d, e and 7 more.", or
/// "There are no <plural>.". The end of an error message about a name that nobody knows.
std::string near_or_known(std::string_view name, const std::vector<std::string>& known,
                          std::string_view plural);

}  // namespace lockstep
