// SPDX-License-Identifier: Apache-2.0
#include "host/formats/idx.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <new>
#include <optional>

#include "host/formats/npy.hpp"
#include "host/util/user_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// What gzip packed, piece by piece. A file may have several packed parts; anything else in it is an error.
class Unpacker {
 public:
  Unpacker(std::istream& file, const std::string& name) : file_(file), name_(name) {
    constexpr int gzip_only = 16;
    if (inflateInit2(&state_, MAX_WBITS + gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~Unpacker() { inflateEnd(&state_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  /// The next `count` bytes; fewer (their number is returned) only at the end.
  std::size_t read(char* to, std::size_t count) {
    constexpr std::size_t most = std::size_t{1} << 30;  // zlib counts in 32 bits
    std::size_t done = 0;
    while (done < count) {
      if (state_.avail_in == 0 && !refill()) {
        if (within_) refuse_damaged(name_, "it ends early");
        break;
      }
      if (!within_) inflateReset(&state_);
      const std::size_t space = std::min(count - done, most);
      state_.next_out = reinterpret_cast<Bytef*>(to + done);
      state_.avail_out = static_cast<uInt>(space);
      const int code = inflate(&state_, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END)
        refuse_damaged(name_, state_.msg != nullptr ? state_.msg : zError(code));
      within_ = code != Z_STREAM_END;
      done += space - state_.avail_out;
    }
    return done;
  }

 private:
  bool refill() {
    file_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    state_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    state_.avail_in = static_cast<uInt>(file_.gcount());
    return state_.avail_in > 0;
  }

  std::istream& file_;
  const std::string& name_;
  z_stream state_ = {};
  bool within_ = false;  // a part whose end has not come
  std::array<char, 65536> buffer_;
};

/// The bytes of an array, unpacked.
struct Source {
  std::string name;
  std::uint64_t most;  // no more bytes than this
  std::function<std::size_t(char* to, std::size_t count)> read;
};

void read_all(const Source& source, void* to, std::size_t count) {
  if (source.read(static_cast<char*>(to), count) != count) refuse_damaged(source.name, "it ends early");
}

/// No values yet, of the type that the third byte tells; none for an unknown one.
std::optional<NumericArray::Values> values_of(unsigned char type) {
  switch (type) {
    case 0x08:
      return std::vector<std::uint8_t>();
    case 0x09:
      return std::vector<std::int8_t>();
    case 0x0B:
      return std::vector<std::int16_t>();
    case 0x0C:
      return std::vector<std::int32_t>();
    case 0x0D:
      return std::vector<float>();
    case 0x0E:
      return std::vector<double>();
    default:
      return std::nullopt;
  }
}

NumericArray read_idx(const Source& source) {
  unsigned char start[4] = {};  // 0, 0, the type of the elements, the number of indices
  const bool begins = source.read(reinterpret_cast<char*>(start), sizeof start) == sizeof start;
  std::optional<NumericArray::Values> values = values_of(start[2]);
  if (!begins || start[0] != 0 || start[1] != 0 || !values)
    refuse("{} is no IDX file (it does not begin as one, even when unpacked). Give one like MNIST's images.",
           source.name);
  std::vector<std::size_t> shape;
  for (int i = 0; i < start[3]; ++i) {
    unsigned char size[4] = {};
    read_all(source, size, sizeof size);
    shape.push_back(std::size_t{size[0]} << 24 | size[1] << 16 | size[2] << 8 | size[3]);
  }
  std::uint64_t bytes = std::visit([](const auto& v) { return sizeof v[0]; }, *values);
  bool fits = true;
  for (const std::size_t size : shape) fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) {
    bytes = 0;
    fits = true;
  }
  // Compared before anything is allocated: a wrong header must not ask for more than the file can give.
  if (!fits || bytes > source.most)
    refuse_damaged(source.name, "it ends before the last number that its header announces");
  require_memory_of(source.name, bytes / std::visit([](const auto& v) { return sizeof v[0]; }, *values));
  const auto fill = [&]<class T>(std::vector<T>& v) {
    v.resize(bytes / sizeof(T));
    read_all(source, v.data(), bytes);
    if (sizeof(T) > 1 && std::endian::native == std::endian::little)
      for (T& value : v) {
        auto* byte = reinterpret_cast<unsigned char*>(&value);
        std::reverse(byte, byte + sizeof(T));
      }
  };
  std::visit(fill, *values);
  char beyond = 0;  // at its end a packed file tells whether its check sum holds
  if (source.read(&beyond, 1) != 0) refuse_damaged(source.name, "it is longer than it says");
  return {std::move(shape), std::move(*values)};
}

}  // namespace

NumericArray load_idx(const fs::path& path) {
  const std::string name = path.string();
  UserFile opened = open_user_file(path);
  std::ifstream& file = opened.stream;
  char mark[2] = {};
  file.read(mark, sizeof mark);
  file.clear();  // of the end of a file shorter than that
  file.seekg(0);
  if (mark[0] == '\x1f' && mark[1] == '\x8b') {
    constexpr std::uint64_t strongest = 1032;  // deflate makes nothing smaller than by that, to 1
    const auto unpacker = std::make_unique<Unpacker>(file, name);
    return read_idx({name, strongest * opened.bytes,
                     [&](char* to, std::size_t count) { return unpacker->read(to, count); }});
  }
  return read_idx({name, opened.bytes, [&](char* to, std::size_t count) {
                     file.read(to, static_cast<std::streamsize>(count));
                     return static_cast<std::size_t>(file.gcount());
                   }});
}

}  // namespace lockstep
