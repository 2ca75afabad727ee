// SPDX-License-Identifier: Apache-2.0
#include "host/formats/safetensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "host/util/errors.hpp"
#include "tests/support/array_files.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Arrays = std::map<std::string, NumericArray>;

/// `value` in `count` bytes, the lowest first.
std::string little_endian(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string file_of(const std::string& header, const std::string& numbers) {
  return little_endian(header.size(), 8) + header + numbers;
}

std::string entry(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

/// A file with one array, `x`.
std::string single(const std::string& type, const std::string& shape, const std::string& numbers) {
  return file_of("{" + entry("x", type, shape, "[0," + std::to_string(numbers.size()) + "]") + "}", numbers);
}

const std::string& several() {
  static const std::string bytes =
      file_of(R"({"__metadata__":{"format":"pt"},)" + entry("b", "U8", "[2]", "[16,18]") + "," +
                  entry("W", "F32", "[2,2]", "[0,16]") + "," + entry("none", "F64", "[0,3]", "[16,16]") +
                  "," + entry("group.µ", "I16", "[]", "[18,20]") + "}   ",
              little_endian(0x3f800000, 4) + little_endian(0xc0000000, 4) + little_endian(0x3f000000, 4) +
                  little_endian(0x7f800000, 4) + "\x05\xff" + little_endian(0xfffe, 2));
  return bytes;
}

class Safetensors : public testing::FolderTest {
 protected:
  fs::path put(const std::string& bytes) {
    const fs::path path = folder_ / "x.safetensors";
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  template <class T>
  void expect_values(const std::string& type, const std::string& numbers, const std::vector<T>& wanted) {
    SCOPED_TRACE(type);
    const Arrays arrays =
        load_safetensors(put(single(type, "[" + std::to_string(wanted.size()) + "]", numbers)));
    ASSERT_EQ(arrays.size(), 1u);
    const NumericArray& x = arrays.at("x");
    EXPECT_EQ(x.shape, std::vector<std::size_t>{wanted.size()});
    ASSERT_TRUE(std::holds_alternative<std::vector<T>>(x.values));
    EXPECT_EQ(std::get<std::vector<T>>(x.values), wanted);
  }

  /// The one line that refuses the file; empty, with a failure, when it is read.
  static std::string complaint(const fs::path& path) {
    return testing::file_complaint(path, load_safetensors);
  }
  void refuses(const std::string& bytes, const std::string& part) {
    const std::string text = complaint(put(bytes));
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nwanted: " << part;
  }
  /// A file whose 8 bytes of numbers belong to the arrays of this header.
  void refuses_header(const std::string& header, const std::string& part) {
    SCOPED_TRACE(header);
    refuses(file_of(header, "12345678"), part);
  }

  /// Whatever is in the file, it is refused or gives values of its shapes.
  bool is_refused(const std::string& bytes) { return testing::file_is_refused(put(bytes), load_safetensors); }
};

TEST_F(Safetensors, GiveEveryTypeAsItIs) {
  const auto pair = [](std::uint64_t a, std::uint64_t b, int bytes) {
    return little_endian(a, bytes) + little_endian(b, bytes);
  };
  expect_values<float>("F32", pair(0x3fc00000, 0xff7fffff, 4), {1.5f, std::numeric_limits<float>::lowest()});
  expect_values<double>("F64", pair(0x3ff8000000000000, 1, 8),
                        {1.5, std::numeric_limits<double>::denorm_min()});
  expect_values<std::int8_t>("I8", "\x7f\x80", {127, -128});
  expect_values<std::int16_t>("I16", pair(0x1234, 0x8000, 2), {0x1234, -32768});
  expect_values<std::int32_t>("I32", pair(0x12345678, 0xffffffff, 4), {0x12345678, -1});
  expect_values<std::int64_t>("I64", pair(0x123456789abcdef0, 1ull << 63, 8),
                              {0x123456789abcdef0, std::numeric_limits<std::int64_t>::min()});
  expect_values<std::uint8_t>("U8", "\x01\xff", {1, 255});
  expect_values<std::uint8_t>("BOOL", std::string("\x01\x00", 2), {1, 0});
  expect_values<std::uint16_t>("U16", pair(0x1234, 0xffff, 2), {0x1234, 0xffff});
  expect_values<std::uint32_t>("U32", pair(0x12345678, 0xffffffff, 4), {0x12345678, 0xffffffff});
  expect_values<std::uint64_t>("U64", pair(5, ~0ull, 8), {5, ~0ull});
}

TEST_F(Safetensors, WidenHalves) {
  std::string halves, bfloats;
  for (const std::uint64_t bits :
       {0x0000, 0x3c00, 0xc000, 0x3555, 0x7bff, 0x0400, 0x03ff, 0x8001, 0x7c00, 0xfc00})
    halves += little_endian(bits, 2);
  const float infinite = std::numeric_limits<float>::infinity();
  expect_values<float>("F16", halves,
                       {0, 1, -2, 0x1.554p-2f, 65504, 0x1p-14f, 0x3ffp-24f, -0x1p-24f, infinite, -infinite});
  for (const std::uint64_t bits : {0x0000, 0x3f80, 0xc000, 0x4049, 0x7f7f, 0x0001, 0x7f80})
    bfloats += little_endian(bits, 2);
  expect_values<float>("BF16", bfloats, {0, 1, -2, 3.140625f, 0x1.fep127f, 0x1p-133f, infinite});

  for (const std::string type : {"F16", "BF16"}) {  // what has no == to be compared by
    const Arrays arrays =
        load_safetensors(put(single(type, "[2]", little_endian(0x8000, 2) + little_endian(0xffff, 2))));
    const auto& values = std::get<std::vector<float>>(arrays.at("x").values);
    EXPECT_TRUE(values[0] == 0 && std::signbit(values[0])) << type;
    EXPECT_TRUE(std::isnan(values[1])) << type;
  }
}

TEST_F(Safetensors, GiveEveryArrayOfTheFile) {
  const Arrays arrays = load_safetensors(put(several()));
  ASSERT_EQ(arrays.size(), 4u);
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(arrays.at("W").shape, (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(std::get<std::vector<float>>(arrays.at("W").values), (std::vector<float>{1, -2, 0.5f, infinite}));
  EXPECT_EQ(std::get<std::vector<std::uint8_t>>(arrays.at("b").values), (std::vector<std::uint8_t>{5, 255}));
  EXPECT_EQ(arrays.at("none").shape, (std::vector<std::size_t>{0, 3}));
  EXPECT_TRUE(std::get<std::vector<double>>(arrays.at("none").values).empty());
  EXPECT_TRUE(arrays.at("group.µ").shape.empty());
  EXPECT_EQ(std::get<std::vector<std::int16_t>>(arrays.at("group.µ").values), std::vector<std::int16_t>{-2});
}

TEST_F(Safetensors, RefuseAHeaderThatIsNone) {
  refuses("", "it ends early");
  refuses("1234567", "it ends early");
  refuses(little_endian(1, 8), "its header would have 1 bytes");
  refuses(std::string(8, '\xff') + "{}", "its header would have 18446744073709551615 bytes");
  refuses(std::string(8, '\0'), "its header is not JSON");
  for (const char* header : {"", "{", "{} x", R"({"x":1e999})", "{\"\xff\":1}", "{'x':1}"})
    refuses_header(header, "its header is not JSON");
  for (const char* header : {"[]", "1", "null", "\"x\""})
    refuses_header(header, "its header is no JSON object");
  refuses(file_of("{}", ""), "holds no arrays");
  refuses(file_of(R"({"__metadata__":{"a":"b"}})", ""), "holds no arrays");
  EXPECT_NE(complaint(folder_ / "absent.safetensors").find("cannot read the file"), std::string::npos);
  EXPECT_NE(complaint(folder_).find("cannot read the file"), std::string::npos);
}

TEST_F(Safetensors, RefuseIncompleteEntries) {
  const std::string part = "\"x\" in " + (folder_ / "x.safetensors").string() +
                           " is damaged: its header lacks a valid dtype, shape or data_offsets";
  for (const char* entry :
       {"1", "[]", "{}", R"({"dtype":"F64","shape":[1]})", R"({"dtype":"F64","data_offsets":[0,8]})",
        R"({"shape":[1],"data_offsets":[0,8]})", R"({"dtype":8,"shape":[1],"data_offsets":[0,8]})",
        R"({"dtype":"F64","shape":1,"data_offsets":[0,8]})",
        R"({"dtype":"F64","shape":[1.0],"data_offsets":[0,8]})",
        R"({"dtype":"F64","shape":[-1],"data_offsets":[0,8]})",
        R"({"dtype":"F64","shape":[true],"data_offsets":[0,8]})",
        R"({"dtype":"F64","shape":[18446744073709551616],"data_offsets":[0,8]})",
        R"({"dtype":"F64","shape":{"a":1},"data_offsets":[0,8]})",
        R"({"dtype":"F64","shape":[1],"data_offsets":[8]})",
        R"({"dtype":"F64","shape":[1],"data_offsets":[0,4,8]})",
        R"({"dtype":"F64","shape":[1],"data_offsets":[-8,8]})",
        R"({"dtype":"F64","shape":[1],"data_offsets":["0","8"]})"})
    refuses_header(std::string("{\"x\":") + entry + "}", part);
  const std::string x = entry("x", "F32", "[1]", "[0,4]");
  refuses_header("{" + x + "," + entry("x", "F32", "[1]", "[4,8]") + "}", "its header gives one name twice");
  refuses_header(R"({"x":{"dtype":"F64","dtype":"I64","shape":[1],"data_offsets":[0,8]}})",
                 "its header gives one name twice");
}

TEST_F(Safetensors, RefuseOtherElements) {
  for (const char* type : {"F8_E4M3", "F8_E5M2", "C64", "f32", "F4", "I128", "", "F\\n32"})
    refuses_header("{" + entry("x", type, "[1]", "[0,8]") + "}",
                   "holds elements of type \"" + std::string(type) + "\"");
}

TEST_F(Safetensors, OffsetsMayNotLie) {
  const auto pair = [](const std::string& x, const std::string& y) {
    return "{" + entry("x", "F32", "[1]", x) + "," + entry("y", "F32", "[1]", y) + "}";
  };
  EXPECT_FALSE(is_refused(file_of(pair("[0,4]", "[4,8]"), "12345678")));
  EXPECT_FALSE(is_refused(file_of(pair("[4,8]", "[0,4]"), "12345678")));
  refuses_header(pair("[0,4]", "[0,4]"), "\"y\" in");
  refuses_header(pair("[0,4]", "[0,4]"), "it begins at byte 0, and the array before it ends at 4");
  refuses_header(pair("[0,4]", "[2,6]"), "it begins at byte 2, and the array before it ends at 4");
  refuses_header(pair("[0,3]", "[4,8]"), "it begins at byte 4, and the array before it ends at 3");
  refuses_header(pair("[1,5]", "[5,8]"), "it begins at byte 1, and the array before it ends at 0");
  refuses_header(pair("[4,0]", "[4,8]"), "it ends before it begins");
  refuses_header(pair("[0,4]", "[4,9]"), "the file ends before its last number");
  refuses_header(pair("[0,4]", "[4,18446744073709551615]"), "the file ends before its last number");
  refuses_header(pair("[0,4]", "[18446744073709551612,18446744073709551615]"),
                 "the file ends before its last number");
  refuses_header(pair("[0,3]", "[3,8]"), "it has 3 bytes, and its shape asks for another number");
  refuses_header("{" + entry("x", "F32", "[1]", "[0,4]") + "}", "4 bytes follow the last number");
}

TEST_F(Safetensors, ShapesMayNotLie) {
  const auto shaped = [](const std::string& shape) { return "{" + entry("x", "F64", shape, "[0,8]") + "}"; };
  for (const char* shape : {"[]", "[1]", "[1,1,1]"})
    EXPECT_FALSE(is_refused(file_of(shaped(shape), "12345678"))) << shape;
  for (const char* shape : {"[0]", "[2]", "[1000000000000]", "[2305843009213693953]", "[2305843009213693952]",
                            "[4294967296,4294967296]", "[18446744073709551615,2]",
                            "[0,18446744073709551615,18446744073709551615]"})
    refuses_header(shaped(shape), "it has 8 bytes, and its shape asks for another number");
}

TEST_F(Safetensors, RefuseEveryBeginningAndEveryEnd) {
  const std::string whole = several();
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_TRUE(is_refused(whole.substr(0, length))) << length;
  EXPECT_FALSE(is_refused(whole));
  EXPECT_TRUE(is_refused(whole + '\0'));
}

TEST_F(Safetensors, SurviveEveryWrongByte) {
  const std::string whole = several();
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const char wrong : {'\0', '\x7f', '\xff', '9', ' '}) {
      std::string bytes = whole;
      bytes[i] = wrong;
      if (is_refused(bytes)) ++refused;
    }
  EXPECT_GT(refused, 100);
}

TEST_F(Safetensors, DepthIsNoDanger) {
  const std::string deep(1 << 18, '[');
  refuses(file_of(deep, ""), "its header is not JSON");
  refuses(file_of("{\"x\":" + deep + std::string(deep.size(), ']') + "}", ""), "its header is not JSON");
}

}  // namespace
}  // namespace lockstep
