// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files as accidents and strangers make them: valid ones with some bytes changed.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace lockstep::testing {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return count == 0 ? 0 : random_() % count; }

  /// One of `seeds`: in half of the mutants one bit or number is another, so that much remains valid; the
  /// others have one to three changes of all kinds.
  std::string mutant(const std::vector<std::string>& seeds) {
    std::string bytes = seeds[below(seeds.size())];
    if (below(2) == 0) {
      if (below(2) == 0)
        flip(bytes);
      else
        replace_number(bytes);
      return bytes;
    }
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) change(bytes, seeds);
    return bytes;
  }

 private:
  void change(std::string& b, const std::vector<std::string>& seeds) {
    const std::size_t at = below(b.size() + 1), length = 1 + below(std::min<std::size_t>(b.size() + 1, 64));
    switch (below(8)) {
      case 0:
        for (std::size_t flips = 1 + below(8); flips > 0; --flips) flip(b);
        break;
      case 1:
        b.resize(at);
        break;
      case 2:
        b.insert(at, b.substr(below(b.size() + 1), length));
        break;
      case 3: {
        const std::string& other = seeds[below(seeds.size())];
        b = b.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
      case 4:
        replace_number(b);
        break;
      case 5:
        nest(b);
        break;
      case 6:
        b.erase(at, length);
        break;
      default:
        b.insert(at, pick({"\n", "\"", "'", ",", "\\", "nan", "-inf", "\xff", std::string(1, '\0'), "\"\"\"",
                           "'''", "null", "{}", "[]", "\xE2\x80\xA8", std::string(5000, 'x')}));
    }
  }

  void flip(std::string& b) {
    if (!b.empty()) b[below(b.size())] ^= static_cast<char>(1 << below(8));
  }

  std::string pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

  /// A number of the text, or up to eight bytes.
  void replace_number(std::string& b) {
    const char* const digits = "0123456789";
    const std::size_t begin = b.find_first_of(digits, below(b.size() + 1));
    if (begin != std::string::npos && below(2) == 0) {
      const std::size_t end = std::min(b.find_first_not_of(digits, begin), b.size());
      b.replace(
          begin, end - begin,
          pick({"0", "-1", "1e308", "-1e308", "1e999", "1e-320", "0.1", "4294967296", "2147483647",
                "9223372036854775807", "18446744073709551616", std::string(400, '9'), "true", "\"7\""}));
    } else if (!b.empty()) {
      const std::size_t width = std::size_t{1} << below(4), at = below(b.size());
      const char byte = pick({std::string(1, '\0'), "\xff", "\x7f", "\x80"})[0];
      for (std::size_t i = at; i < std::min(at + width, b.size()); ++i) b[i] = byte;
    }
  }

  /// Many levels of one thing in another, closed again or not.
  void nest(std::string& b) {
    constexpr int levels = 100000;
    const std::vector<std::pair<std::string, std::string>> kinds = {
        {"[", "]"}, {"{\"a\":", "}"}, {"{a=", "}"},         {"a.", "a"},
        {"(", ")"}, {"\x81", ""},     {"\xa1\x61\x61", ""}, {"\"a.\".", "a"}};
    const auto& [open, close] = kinds[below(kinds.size())];
    const int count = below(2) == 0 ? levels : 70;
    std::string text;
    for (int i = 0; i < count; ++i) text += open;
    if (below(2) == 0) {
      text += "1";
      for (int i = 0; i < count; ++i) text += close;
    }
    const std::size_t number = b.find_first_of("0123456789", below(b.size() + 1));
    b.insert(number == std::string::npos || below(3) == 0 ? below(b.size() + 1) : number, text);
  }

  std::mt19937_64 random_;
};

}  // namespace lockstep::testing
