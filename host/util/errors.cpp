// SPDX-License-Identifier: Apache-2.0
#include "host/util/errors.hpp"

#include <algorithm>
#include <string_view>

namespace lockstep {
namespace {

bool within_letter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }  // of UTF-8

/// `text` without its middle: at most `most` bytes, of which the first `head` stay, and no part of a letter.
std::string without_middle(std::string_view text, std::size_t most, std::size_t head) {
  if (text.size() <= most) return std::string(text);
  std::size_t tail = text.size() - (most - 3 - head);
  while (head > 0 && within_letter(text[head])) --head;
  while (tail < text.size() && within_letter(text[tail])) ++tail;
  return std::string(text.substr(0, head)) + "..." + std::string(text.substr(tail));
}

/// Each word as without_middle leaves it.
std::string with_short_words(std::string_view text, std::size_t most) {
  std::string result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (begin > 0) result += ' ';
    result += without_middle(text.substr(begin, end - begin), most, most / 2);
    begin = end + 1;
  }
  return result;
}

/// Control characters of ASCII, and those of Unicode that end a line or drive a terminal (U+0080 to U+009F,
/// U+2028, U+2029).
void blank_controls(std::string& text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t length = byte(i) < 0x20 || byte(i) == 0x7F ? 1 : 0;
    if (byte(i) == 0xC2 && byte(i + 1) >= 0x80 && byte(i + 1) <= 0x9F) length = 2;
    if (byte(i) == 0xE2 && byte(i + 1) == 0x80 && (byte(i + 2) == 0xA8 || byte(i + 2) == 0xA9)) length = 3;
    std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(i), length, ' ');
  }
}

}  // namespace

std::string one_line(std::string text, std::size_t most) {
  blank_controls(text);
  std::string line = text;
  for (const std::size_t word : {120, 80, 60, 40, 24})
    if (line.size() > most) line = with_short_words(text, word);
  return without_middle(line, most, most * 3 / 5);  // the end says what to do
}

}  // namespace lockstep
