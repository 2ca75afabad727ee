// SPDX-License-Identifier: Apache-2.0
#include "host/formats/idx.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <numeric>

#include "host/util/errors.hpp"
#include "tests/support/array_files.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// `value` in `count` bytes, the highest first.
std::string big_endian(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = count; i-- > 0;) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string header(int type, const std::vector<std::uint64_t>& shape) {
  std::string bytes = {'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  for (const std::uint64_t size : shape) bytes += big_endian(size, 4);
  return bytes;
}

std::string gzip(const std::string& bytes, int level = 6) {
  z_stream state = {};
  EXPECT_EQ(deflateInit2(&state, level, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string in = bytes, packed(deflateBound(&state, bytes.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(in.data());
  state.avail_in = static_cast<uInt>(in.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&state, Z_FINISH), Z_STREAM_END);
  packed.resize(state.total_out);
  deflateEnd(&state);
  return packed;
}

/// 2 images of 3 x 2 bytes, 0 to 11.
const std::string& images() {
  static const std::string bytes = [] {
    std::string numbers(12, '\0');
    std::iota(numbers.begin(), numbers.end(), '\0');
    return header(0x08, {2, 3, 2}) + numbers;
  }();
  return bytes;
}

class IdxFiles : public testing::FolderTest {
 protected:
  fs::path put(const std::string& bytes) {
    const fs::path path = folder_ / "images-idx3-ubyte";
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  template <class T>
  void expect_values(const std::string& bytes, const std::vector<std::size_t>& shape,
                     const std::vector<T>& wanted) {
    for (const bool packed : {false, true}) {
      SCOPED_TRACE(packed ? "packed" : "plain");
      const NumericArray array = load_idx(put(packed ? gzip(bytes) : bytes));
      EXPECT_EQ(array.shape, shape);
      ASSERT_TRUE(std::holds_alternative<std::vector<T>>(array.values));
      EXPECT_EQ(std::get<std::vector<T>>(array.values), wanted);
    }
  }

  /// The one line that refuses the file; empty, with a failure, when it is read.
  static std::string complaint(const fs::path& path) { return testing::file_complaint(path, load_idx); }
  void refuses(const std::string& bytes, const std::string& part) {
    const std::string text = complaint(put(bytes));
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nwanted: " << part;
  }
  /// As it is, and packed.
  void refuses_both(const std::string& bytes, const std::string& part) {
    refuses(bytes, part);
    refuses(gzip(bytes), part);
  }

  /// Whatever is in the file, it is refused or gives values of its shape.
  bool is_refused(const std::string& bytes) {
    return testing::file_is_refused(put(bytes), [](const fs::path& path) {
      return std::map<std::string, NumericArray>{{"x", load_idx(path)}};
    });
  }
};

TEST_F(IdxFiles, GiveEveryTypeAsItIs) {
  const auto pair = [](std::uint64_t a, std::uint64_t b, int bytes) {
    return big_endian(a, bytes) + big_endian(b, bytes);
  };
  expect_values<std::uint8_t>(header(0x08, {2}) + "\x01\xff", {2}, {1, 255});
  expect_values<std::int8_t>(header(0x09, {2}) + "\x7f\x80", {2}, {127, -128});
  expect_values<std::int16_t>(header(0x0B, {2}) + pair(0x1234, 0x8000, 2), {2}, {0x1234, -32768});
  expect_values<std::int32_t>(header(0x0C, {2}) + pair(0x12345678, 0xffffffff, 4), {2}, {0x12345678, -1});
  expect_values<float>(header(0x0D, {2}) + pair(0x3fc00000, 0xff7fffff, 4), {2},
                       {1.5f, std::numeric_limits<float>::lowest()});
  expect_values<double>(header(0x0E, {2}) + pair(0x3ff8000000000000, 1, 8), {2},
                        {1.5, std::numeric_limits<double>::denorm_min()});
}

TEST_F(IdxFiles, KeepTheirShape) {
  std::vector<std::uint8_t> numbers(12);
  std::iota(numbers.begin(), numbers.end(), std::uint8_t{0});
  expect_values(images(), {2, 3, 2}, numbers);
  expect_values<std::uint8_t>(header(0x08, {}) + "\x07", {}, {7});
  expect_values<float>(header(0x0D, {0, 28, 28}), {0, 28, 28}, {});
  const std::size_t many = 300;  // a size that needs two of its bytes
  expect_values(header(0x08, {many}) + std::string(many, '\x05'), {many}, std::vector<std::uint8_t>(many, 5));
}

TEST_F(IdxFiles, MayBePackedInParts) {
  const NumericArray whole = load_idx(put(images()));
  for (const std::size_t cut : {std::size_t{0}, std::size_t{3}, std::size_t{20}, images().size()}) {
    const NumericArray parts = load_idx(put(gzip(images().substr(0, cut)) + gzip(images().substr(cut))));
    EXPECT_EQ(parts.shape, whole.shape) << cut;
    EXPECT_EQ(parts.values, whole.values) << cut;
  }
}

TEST_F(IdxFiles, MayBeLargerThanABuffer) {
  constexpr std::size_t count = 1 << 20;
  std::string numbers(count, '\0');
  std::uint32_t state = 1;
  for (char& number : numbers) number = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  for (const int level : {0, 6}) {
    const NumericArray array = load_idx(put(gzip(header(0x08, {count}) + numbers, level)));
    const auto& values = std::get<std::vector<std::uint8_t>>(array.values);
    EXPECT_EQ(std::string(values.begin(), values.end()), numbers) << level;
  }
  const NumericArray zeros = load_idx(put(gzip(header(0x0D, {count}) + std::string(4 * count, '\0'), 9)));
  EXPECT_EQ(std::get<std::vector<float>>(zeros.values), std::vector<float>(count));
}

TEST_F(IdxFiles, RefuseWhatIsNone) {
  refuses("", "is no IDX file");
  refuses_both("no images", "is no IDX file");
  refuses_both(std::string(2, '\0') + "\x08", "is no IDX file");
  refuses_both("\x01" + images().substr(1), "is no IDX file");
  refuses_both(std::string("\0\x01", 2) + images().substr(2), "is no IDX file");
  for (const int type : {0x00, 0x07, 0x0A, 0x0F, 0xFF})
    refuses_both(header(type, {1}) + "x", "is no IDX file");
  refuses(gzip(""), "is no IDX file");
  EXPECT_NE(complaint(folder_ / "absent.gz").find("cannot read the file"), std::string::npos);
  EXPECT_NE(complaint(folder_).find("cannot read the file"), std::string::npos);
}

TEST_F(IdxFiles, SizesMayNotLie) {
  refuses_both(images() + '\0', "it is longer than it says");
  refuses_both(header(0x08, {2, 3, 1}) + std::string(12, 'x'), "it is longer than it says");
  refuses_both(header(0x08, {0, 28}) + "x", "it is longer than it says");
  refuses(header(0x08, {28, 28}) + "x", "it ends before the last number that its header announces");
  refuses(header(0x0D, {3}) + std::string(11, 'x'), "it ends early");
  refuses_both(header(0x08, {28, 2}).substr(0, 11), "it ends early");
  refuses(gzip(header(0x08, {28, 28}) + "x"), "it ends early");
  for (const std::uint64_t size : {0xffffffffu, 0x80000000u})
    refuses_both(header(0x0E, {size, size, size}) + "x",
                 "it ends before the last number that its header announces");
}

TEST_F(IdxFiles, RefuseEveryBeginning) {
  for (const std::string& whole : {images(), gzip(images()), gzip(images(), 0)}) {
    for (std::size_t length = 0; length < whole.size(); ++length)
      EXPECT_TRUE(is_refused(whole.substr(0, length))) << length;
    EXPECT_FALSE(is_refused(whole));
  }
}

TEST_F(IdxFiles, SurviveEveryWrongByte) {
  for (const std::string& whole : {images(), gzip(images()), gzip(images(), 0)}) {
    int refused = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (const char wrong : {'\0', '\x7f', '\xff', '9', ' '}) {
        std::string bytes = whole;
        bytes[i] = wrong;
        if (is_refused(bytes)) ++refused;
      }
    EXPECT_GT(refused, 40);
  }
}

TEST_F(IdxFiles, CheckSumsAreChecked) {
  std::string number = gzip(images(), 0), sum = gzip(images()), size = sum;
  number[number.size() - 9] ^= 1;  // the last image's last, stored as it is
  refuses(number, "is damaged: incorrect data check");
  sum[sum.size() - 5] ^= 1;
  refuses(sum, "is damaged: incorrect data check");
  size.back() ^= 1;
  refuses(size, "is damaged: incorrect length check");
}

TEST_F(IdxFiles, NothingMayFollowWhatIsPacked) {
  refuses(gzip(images()) + "rest", "is damaged: incorrect header check");
  refuses(gzip(images()) + '\0', "is damaged");
  refuses(gzip(images()) + gzip("x"), "it is longer than it says");
  refuses(gzip(images()) + "\x1f\x8b", "it ends early");
}

TEST_F(IdxFiles, GiveMnist) {
  const char* root = std::getenv("LOCKSTEP_DATA");
  if (root == nullptr) GTEST_SKIP() << "LOCKSTEP_DATA is not set: the images of MNIST are not read";
  const auto path = fs::path(root) / "mnist-test" / "t10k-images-idx3-ubyte.gz";
  if (!fs::exists(path)) GTEST_SKIP() << path << " does not exist";
  const NumericArray array = load_idx(path);
  EXPECT_EQ(array.shape, (std::vector<std::size_t>{10000, 28, 28}));
  const auto& values = std::get<std::vector<std::uint8_t>>(array.values);
  ASSERT_EQ(values.size(), 7840000u);
  double sum = 0;
  for (const std::uint8_t value : values) sum += value;
  EXPECT_NEAR(sum / 7840000 / 255, 0.1325, 0.00005);  // the mean grey of the test images
}

}  // namespace
}  // namespace lockstep
