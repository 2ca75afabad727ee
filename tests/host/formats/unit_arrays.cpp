// SPDX-License-Identifier: Apache-2.0
#include "host/formats/arrays.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "host/util/errors.hpp"
#include "tests/support/array_files.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Arrays = std::map<std::string, NumericArray>;
using testing::ProgramResult;

/// Files that NumPy wrote, with what is in them; make_numpy_fixtures.py explains the fields.
const Json& fixtures() {
  static const Json all = [] {
    std::ifstream file(LOCKSTEP_SOURCE_DIR "/tests/support/numpy_fixtures.json");
    return Json::parse(file).at("cases");
  }();
  return all;
}

const Json& fixture(const std::string& name) {
  for (const Json& c : fixtures())
    if (c.at("name") == name) return c;
  throw std::out_of_range(name);
}

std::string bytes_of(const Json& c) {
  const auto hex = c.at("bytes").get<std::string>();
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

class ArrayFiles : public testing::ProgramTest {
 protected:
  fs::path put(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_ / name).parent_path());
    fs::remove(folder_ / name);  // some file systems wait for the disk when a file is overwritten
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  fs::path put(const Json& c) { return put(c.at("file"), bytes_of(c)); }

  static Arrays load(const fs::path& path) {
    if (path.extension() == ".npz") return load_npz(path);
    return {{"x", load_npy(path)}};
  }

  /// The one line that refuses the file.
  static std::string complaint(const fs::path& path) { return testing::file_complaint(path, load); }
  static void expect_refused(const fs::path& path, const std::string& part) {
    const std::string text = complaint(path);
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nwanted: " << part;
  }

  /// Whatever is in the file, it is refused in one line or gives values of its shapes.
  static bool is_refused(const fs::path& path) { return testing::file_is_refused(path, load); }
};

template <class T>
std::string type_of(const std::vector<T>&) {
  const char* kind = std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "i" : "u";
  return kind + std::to_string(sizeof(T));
}

template <class T>
std::vector<T> expected_values(const Json& wanted, std::size_t count) {
  std::vector<T> values;
  for (const Json& value : wanted.at("values")) values.push_back(value.get<T>());
  if (values.size() == 1) values.resize(count, values[0]);
  return values;
}

TEST_F(ArrayFiles, GiveWhatNumpyWrote) {
  ASSERT_GT(fixtures().size(), 40U);
  for (const Json& c : fixtures()) {
    if (!c.contains("arrays")) continue;
    SCOPED_TRACE(c.at("name"));
    const Arrays arrays = load(put(c));
    EXPECT_EQ(arrays.size(), c.at("arrays").size());
    for (const auto& [name, array] : arrays) {
      const Json& wanted = c.at("arrays").at(name);
      EXPECT_EQ(array.shape, wanted.at("shape").get<std::vector<std::size_t>>());
      const auto same = [&]<class T>(const std::vector<T>& values) {
        EXPECT_EQ(type_of(values), wanted.at("type"));
        EXPECT_EQ(values, expected_values<T>(wanted, values.size()));
      };
      std::visit(same, array.values);
    }
  }
}

TEST_F(ArrayFiles, RefuseWhatIsNoNumbers) {
  for (const Json& c : fixtures()) {
    if (!c.contains("refused")) continue;
    SCOPED_TRACE(c.at("name"));
    expect_refused(put(c), c.at("refused"));
  }
  expect_refused(folder_ / "absent.npy", "cannot read the file");
  expect_refused(folder_ / "absent.npz", "cannot read the file");
}

TEST_F(ArrayFiles, RefuseEveryBeginning) {
  for (const char* name : {"f8", "version 2", "columns first, >i2", "stored", "deflated"}) {
    const Json& c = fixture(name);
    const std::string whole = bytes_of(c);
    for (std::size_t length = 0; length < whole.size(); ++length)
      EXPECT_TRUE(is_refused(put(c.at("file"), whole.substr(0, length)))) << name << ", " << length;
    EXPECT_FALSE(is_refused(put(c)));
  }
}

TEST_F(ArrayFiles, SurviveEveryWrongByte) {
  for (const char* name : {"f8", "columns first, >i2", "stored", "deflated"}) {
    const Json& c = fixture(name);
    const std::string whole = bytes_of(c);
    int refused = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (const char wrong : {'\0', '\x7f', '\xff', '9', ' '}) {
        std::string bytes = whole;
        bytes[i] = wrong;
        if (bytes != whole && is_refused(put(c.at("file"), bytes))) ++refused;
      }
    EXPECT_GT(refused, 100) << name;
  }
}

TEST_F(ArrayFiles, CheckSumsAreChecked) {
  std::string bytes = bytes_of(fixture("without zip64"));
  const std::size_t number = bytes.find("\n", bytes.find("NUMPY")) + 9;  // in the values of the first member
  bytes[number] = static_cast<char>(bytes[number] ^ 1);
  expect_refused(put("x.npz", bytes), "CRC error");
}

/// A file with this header, and 16 bytes of values.
std::string with_header(std::string header) {
  header += "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         std::string(16, '\0');
}

TEST_F(ArrayFiles, HeadersMayNotLie) {
  const auto shaped = [](const std::string& shape) {
    return with_header("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }");
  };
  EXPECT_FALSE(is_refused(put("x.npy", shaped("(2,)"))));
  for (const char* shape :
       {"(3,)", "(1000000000000,)", "(2, 2305843009213693953)", "(4294967296, 4294967296)",
        "(18446744073709551615, 2)", "(2305843009213693952,)", "(2305843009213693951,)"})
    expect_refused(put("x.npy", shaped(shape)), "it ends before the last number that its header announces");
  for (const char* shape : {"(1,)", "()", "(0,)", "(0, 18446744073709551615, 18446744073709551615)"})
    expect_refused(put("x.npy", shaped(shape)), "bytes follow the last number");
  for (const char* shape :
       {"(18446744073709551616,)", "(-2,)", "(2.0,)", "(2", "2", "[2]", "(2,,)", "(True,)"})
    expect_refused(put("x.npy", shaped(shape)), "its header is not as numpy writes it");
  for (const char* header : {"", "{}", "{", "{'descr': '<f8', 'fortran_order': False}", "{'descr: '<f8'}",
                             "{'descr': '<f8', 'fortran_order': 0, 'shape': (2,)}",
                             "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'more': 1}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)} x",
                             "{'descr': '<f\n8', 'fortran_order': False, 'shape': (2,)}"})
    expect_refused(put("x.npy", with_header(header)), "its header is not as numpy writes it");
  for (const char* type : {"", "f8", "xf8", "<", "<f", "<f88"})
    expect_refused(put("x.npy", with_header(std::string("{'descr': '") + type +
                                            "', 'fortran_order': False, 'shape': (2,)}")),
                   "holds elements of type '" + std::string(type) + "'");
  expect_refused(put("x.npy", std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)), "4294967295 bytes");
  expect_refused(put("x.npy", std::string("\x93NUMPY\x04\x00\x10\x00", 10)), "version 4.0");
}

TEST_F(ArrayFiles, UnpackedSizesMayNotLie) {
  const std::string whole = bytes_of(fixture("strongly deflated"));
  const std::size_t entry = whole.find("PK\x01\x02"), size = entry + 24;  // uncompressed size, 4 bytes
  for (const std::string& lie : {std::string("\xff\xff\xff\x7f", 4), std::string("\x00\x00\x02\x00", 4),
                                 std::string("\x00\x10\x02\x00", 4), std::string(4, '\0')}) {
    std::string bytes = whole;
    bytes.replace(size, 4, lie);
    complaint(put("x.npz", bytes));
  }
}

TEST_F(ArrayFiles, ARunIsTheSameFromEveryFormat) {
  const Json& c = fixture("mixture");
  put("data.json", c.at("json"));
  put("data.npz", bytes_of(c));
  const auto summary = [&](const std::string& data) {
    const ProgramResult result =
        run({"sample", "--quiet", "--json", "--target", "mixture", "--data", data, "--sampler", "pe",
             "--chains", "8", "--iterations", "200", "--warmup", "100", "--threads", "1"});
    Json read = Json::parse(result.out, nullptr, false);
    if (!read.is_object()) ADD_FAILURE() << data << ": " << result.out << result.err;
    if (!read.is_object()) return std::string();
    for (const char* key : {"wall_s", "sampling_s", "gradients_per_s"}) read["cost"].erase(key);
    read["target"].erase("data");
    return read.dump();
  };
  const std::string from_json = summary("data.json");
  EXPECT_GT(from_json.size(), 500u);
  EXPECT_EQ(summary("data.npz"), from_json);
}

TEST_F(ArrayFiles, BadDataStopARun) {
  put("x.npy", bytes_of(fixture("f8")));
  put("x.npz", bytes_of(fixture("texts inside")));
  const std::vector<std::string> args = {"sample", "--target", "mixture", "--sampler", "hmc", "--data"};
  const auto stops = [&](const std::string& file, const std::string& part) {
    std::vector<std::string> all = args;
    all.push_back(file);
    refuses(all, part);
  };
  stops("x.npy", "lack 'means' (the density is not defined without it). Add it; they give x.");
  stops("x.npz", "holds texts");
}

}  // namespace
}  // namespace lockstep
