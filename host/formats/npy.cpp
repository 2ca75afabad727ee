// SPDX-License-Identifier: Apache-2.0
#include "host/formats/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "host/util/user_file.hpp"

namespace lockstep {
namespace {

void read_all(const NpyStream& stream, char* to, std::size_t count) {
  if (stream.read(to, count) != count) refuse_damaged(stream.name, "it ends early");
}

struct Header {
  std::string type;  // such as "<f8": byte order, kind, bytes
  bool columns_first = false;
  std::vector<std::size_t> shape;
};

/// Reads the header's text, a Python dictionary such as
/// {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  Header parse() {
    Header header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_type) {
        has_type = true;
        if (next() == '[') {  // a list of types: records, for which numpy's letter is V
          header.type = "|V";
          return header;
        }
        header.type = quoted();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.columns_first = take_word("True");
        if (!header.columns_first && !take_word("False")) fail();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = sizes();
      } else {
        fail();
      }
      if (!take(',') && next() != '}') fail();
    }
    if (!has_type || !has_order || !has_shape || next() != '\0') fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const { refuse_damaged(name_, "its header is not as numpy writes it"); }

  char next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool take(char c) {
    if (next() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  bool take_word(std::string_view word) {
    next();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::string quoted() {
    const char quote = next();
    if (quote != '\'' && quote != '"') fail();
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail();
    std::string text(rest_.substr(1, end - 1));
    if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < ' '; })) fail();
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::vector<std::size_t> sizes() {
    constexpr std::size_t most_dimensions = 64;  // numpy's own limit
    std::vector<std::size_t> result;
    expect('(');
    while (!take(')')) {
      next();
      std::size_t size = 0;
      const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || result.size() == most_dimensions) fail();
      rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
      take('L');  // Python 2 wrote long integers so
      result.push_back(size);
      if (!take(',') && next() != ')') fail();
    }
    return result;
  }

  std::string_view rest_;
  const std::string& name_;
};

/// No values yet, of the type that `code` (kind and bytes, such as "f8") stands for, halves as their bits;
/// none for types that are no plain numbers of up to 64 bits.
std::optional<NumericArray::Values> values_of(std::string_view code) {
  if (code == "f4") return std::vector<float>();
  if (code == "f8") return std::vector<double>();
  if (code == "i1") return std::vector<std::int8_t>();
  if (code == "i2") return std::vector<std::int16_t>();
  if (code == "i4") return std::vector<std::int32_t>();
  if (code == "i8") return std::vector<std::int64_t>();
  if (code == "u1" || code == "b1") return std::vector<std::uint8_t>();
  if (code == "u2" || code == "f2") return std::vector<std::uint16_t>();
  if (code == "u4") return std::vector<std::uint32_t>();
  if (code == "u8") return std::vector<std::uint64_t>();
  return std::nullopt;
}

std::string elements_of(const std::string& type) {
  if (type.ends_with("f12") || type.ends_with("f16")) return "numbers of more than 64 bits";
  switch (type.size() > 1 ? type[1] : '?') {
    case 'O':
      return "Python objects";
    case 'S':
    case 'U':
    case 'a':
      return "texts";
    case 'c':
      return "complex numbers";
    case 'V':
      return "records";
    case 'M':
    case 'm':
      return "dates or times";
    default:
      return fmt::format("elements of type '{}'", type);
  }
}

/// The same values row by row, given with the first index running fastest.
template <class T>
std::vector<T> row_by_row(const std::vector<T>& from, const std::vector<std::size_t>& shape) {
  std::vector<T> to(from.size());
  std::vector<std::size_t> index(shape.size(), 0), stride(shape.size(), 1);
  for (std::size_t axis = 1; axis < shape.size(); ++axis) stride[axis] = stride[axis - 1] * shape[axis - 1];
  std::size_t source = 0;
  for (T& value : to) {
    value = from[source];
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      source += stride[axis];
      if (++index[axis] < shape[axis]) break;
      source -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return to;
}

Header read_header(const NpyStream& stream, std::uint64_t& bytes_read) {
  constexpr std::size_t longest = 65536;  // of a header; those of numbers have about a hundred bytes
  unsigned char start[12] = {};
  const auto begin = reinterpret_cast<char*>(start);
  if (stream.read(begin, 8) != 8 || !std::string_view(begin, 8).starts_with("\x93NUMPY"))
    refuse("{} is no NumPy array (it does not begin as one; pickles are not read). Write it with numpy.save.",
           stream.name);
  if (start[6] < 1 || start[6] > 3)
    refuse("{} has version {}.{} of the NumPy format (1 to 3 are known). Write it with numpy.save.",
           stream.name, start[6], start[7]);
  const std::size_t field = start[6] == 1 ? 2 : 4;
  read_all(stream, begin + 8, field);
  std::size_t length = 0;
  for (std::size_t i = field; i-- > 0;) length = 256 * length + start[8 + i];
  if (length > longest) refuse_damaged(stream.name, fmt::format("its header would have {} bytes", length));
  std::string text(length, ' ');
  read_all(stream, text.data(), length);
  bytes_read = 8 + field + length;
  return HeaderParser(text, stream.name).parse();
}

}  // namespace

float from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
  if (exponent == 0) {  // zero, or subnormal: a multiple of 2^-24
    const float size = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -size : size;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);  // 31: infinite or not a number
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

void require_memory_of(const std::string& name, std::uint64_t numbers) {
  require_memory(name, 4.0 * sizeof(double) * static_cast<double>(numbers));
}

void refuse_damaged(const std::string& name, const std::string& how) {
  refuse("{} is damaged: {} (its numbers cannot be trusted). Write or copy it again.", name, how);
}

NumericArray read_npy(const NpyStream& stream) {
  std::uint64_t header_bytes = 0;
  Header header = read_header(stream, header_bytes);
  const std::string code = header.type.empty() ? "" : header.type.substr(1);
  std::optional<NumericArray::Values> values = values_of(code);
  if (!values || std::string_view("<>|=").find(header.type[0]) == std::string_view::npos)
    refuse(
        "{} holds {} (only real numbers can be read). Save it as numpy.asarray(x, dtype=float), or leave it "
        "out.",
        stream.name, elements_of(header.type));
  const std::uint64_t element = static_cast<std::uint64_t>(code[1] - '0');
  std::uint64_t count = 1, bytes = 0;
  bool fits = true;
  for (const std::size_t size : header.shape) fits = fits && !__builtin_mul_overflow(count, size, &count);
  if (std::find(header.shape.begin(), header.shape.end(), 0u) != header.shape.end()) {
    count = 0;
    fits = true;
  }
  fits = fits && !__builtin_mul_overflow(count, element, &bytes) &&
         !__builtin_add_overflow(bytes, header_bytes, &bytes);
  // Compared before anything is allocated: a wrong header must not ask for more than the file can give.
  if (!fits || bytes > stream.bytes)
    refuse_damaged(stream.name, "it ends before the last number that its header announces");
  if (bytes < stream.bytes)
    refuse_damaged(stream.name, fmt::format("{} bytes follow the last number", stream.bytes - bytes));
  require_memory_of(stream.name, count);
  const auto fill = [&]<class T>(std::vector<T>& v) {
    v.resize(count);
    read_all(stream, reinterpret_cast<char*>(v.data()), count * sizeof(T));
    const bool big = std::endian::native == std::endian::big;
    if (sizeof(T) > 1 && header.type[0] == (big ? '<' : '>'))
      for (T& value : v) {
        auto* byte = reinterpret_cast<unsigned char*>(&value);
        std::reverse(byte, byte + sizeof(T));
      }
    if (header.columns_first && header.shape.size() > 1) v = row_by_row(v, header.shape);
  };
  std::visit(fill, *values);
  if (code == "f2") {
    const auto& halves = std::get<std::vector<std::uint16_t>>(*values);
    std::vector<float> wide(halves.size());
    std::transform(halves.begin(), halves.end(), wide.begin(), from_half);
    values = std::move(wide);
  }
  char beyond = 0;  // a stream tells at its end whether its check sum holds
  if (stream.read(&beyond, 1) != 0) refuse_damaged(stream.name, "it is longer than it says");
  return {std::move(header.shape), std::move(*values)};
}

}  // namespace lockstep
