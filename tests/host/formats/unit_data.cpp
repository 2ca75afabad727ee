// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <limits>

#include "host/formats/data.hpp"
#include "host/util/errors.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Each test has a folder of its own, removed at its end.
class DataFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::temp_directory_path() / ("lockstep_data_" + name + "_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ::unsetenv("LOCKSTEP_DATA");
  }
  void TearDown() override {
    ::unsetenv("LOCKSTEP_DATA");
    fs::remove_all(folder_);
  }

  fs::path put(const fs::path& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  template <class Action>
  static std::string complaint(Action action) {
    try {
      action();
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  std::string load_complaint(const fs::path& name, const std::string& text) {
    const fs::path path = put(name, text);
    return complaint([&] { load_data(path); });
  }

  fs::path folder_;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(DataFiles, LoadsJson) {
  const json data = load_data(put("a.json", R"({"y": [1, 2.5], "K": 3})")).values;
  EXPECT_EQ(data, (json{{"y", {1, 2.5}}, {"K", 3}}));
}

TEST_F(DataFiles, RefusesBadJsonWithItsPlace) {
  EXPECT_HAS(load_complaint("a.json", "{\n  \"y\": [1, NaN]\n}"),
             "a.json, line 2, column 12: this is not JSON");
  EXPECT_HAS(load_complaint("b.json", "{\"y\": 1"), "line 1, column 8: this is not JSON");
  EXPECT_HAS(load_complaint("c.json", ""), "line 1, column 1: this is not JSON");
  EXPECT_HAS(load_complaint("d.json", "[1, 2]"), "d.json holds [1,2] (data are read by name)");
  EXPECT_HAS(load_complaint("e.json", "{\"y\": 1, \"z\": {\"y\": 2}, \"y\": 3}"), "gives 'y' twice");
  EXPECT_HAS(load_complaint("f.json", "{\"y\": 1e999}"), "beyond the range of a double");
}

TEST_F(DataFiles, RepeatedNamesInDifferentObjectsAreFine) {
  EXPECT_NO_THROW(load_data(put("a.json", R"({"y": 1, "z": {"y": 2}, "l": [{"y": 1}, {"y": 2}]})")));
}

TEST_F(DataFiles, LoadsTables) {
  const json data =
      load_data(
          put("a.csv", "\xEF\xBB\xBF\"county\",y, name\r\n1,+2.5,\"St. \"\"L\"\", MN\"\r\n\r\n2,-1e-3,x"))
          .values;
  EXPECT_EQ(data, (json{{"county", {1, 2}}, {"y", {2.5, -0.001}}, {"name", {"St. \"L\", MN", "x"}}}));
  EXPECT_TRUE(data["county"][0].is_number_integer());
}

TEST_F(DataFiles, TablesWithoutAHeaderAreAMatrix) {
  EXPECT_EQ(load_data(put("a.csv", "1,2\n3,-4.5\n")).values, (json{{"table", {{1, 2}, {3, -4.5}}}}));
  EXPECT_EQ(load_data(put("b.csv", "1,2\n")).values, (json{{"table", {{1, 2}}}}));
  EXPECT_EQ(load_data(put("c.csv", "NA,2\n3,x\n")).values, (json{{"table", {{"NA", 2}, {3, "x"}}}}));
}

TEST_F(DataFiles, MissingCellsStayTexts) {
  const json data = load_data(put("a.csv", "y\nNA\nnan\ninf\n1\n")).values;
  EXPECT_EQ(data["y"], (json{"NA", "nan", "inf", 1}));
  const DataReader reader({.values = data}, "target radon");
  EXPECT_EQ(complaint([&] { reader.vector("y"); }),
            "entry 1 of y of target radon is \"NA\" (a density needs finite numbers). Correct or remove it.");
}

TEST_F(DataFiles, RefusesBadTables) {
  EXPECT_HAS(load_complaint("a.csv", "x,y\n1,2\n3\n"), "a.csv, line 3: 1 cells where the first line has 2");
  EXPECT_HAS(load_complaint("b.csv", "x,x\n1,2\n"), "line 1: column 2 of the header is 'x'");
  EXPECT_HAS(load_complaint("c.csv", "x,2\n3,4\n"), "line 1: column 2 of the header is '2'");
  EXPECT_HAS(load_complaint("d.csv", "x,\n3,4\n"), "line 1: column 2 of the header is ''");
  EXPECT_HAS(load_complaint("e.csv", "\n\n"), "e.csv is empty");
  EXPECT_HAS(load_complaint("f.csv", "x\n1\n\"2\n3\n"), "f.csv, line 3: a quoted cell never ends");
}

TEST_F(DataFiles, LoadsFolders) {
  put("rbm/weights.csv", "0,1\n1,0\n");
  put("rbm/biases.csv", "0.5\n-0.5\n");
  put("rbm/row.csv", "1,2,3\n");
  put("rbm/named.csv", "a,b\n1,2\n3,4\n");
  put("rbm/column.csv", "x\n1\n2\n");
  put("rbm/notes.txt", "not data");
  EXPECT_EQ(load_data(folder_ / "rbm").values, (json{{"weights", {{0, 1}, {1, 0}}},
                                                     {"biases", {0.5, -0.5}},
                                                     {"row", {1, 2, 3}},
                                                     {"named", {{1, 2}, {3, 4}}},
                                                     {"column", {1, 2}}}));
  fs::create_directories(folder_ / "empty");
  EXPECT_HAS(complaint([&] { load_data(folder_ / "empty"); }), "is a folder without .csv or .npy files");
}

// A line that is no header must not be taken for one: a row would be lost without a word.
TEST_F(DataFiles, MatricesMayHaveAHeader) {
  const auto refused = [&](const std::string& text) {
    const fs::path path = put("folder/means.csv", text);
    const std::string said = complaint([&] { load_data(folder_ / "folder"); });
    EXPECT_EQ(complaint([&] { load_rows(path); }), said);
    return said;
  };
  for (const char* text : {"x,1\n3,4\n", ",x,y\n0,1,2\n", "1,b\n3,4\n", "NA,b\n3,4\n", "inf,b\n1,2\n"})
    EXPECT_HAS(refused(text), "means.csv, line 1: some cells hold names and others do not");
  EXPECT_HAS(refused("x,y\n"), "means.csv ends after its header");
  EXPECT_HAS(refused("x,y\n1\n"), "means.csv, line 2: 1 cells where the first line has 2");
  for (const char* first : {"nan,NA", "inf,-inf", "1e999,-1e999"}) {
    put("folder/means.csv", std::string(first) + "\n3,4\n");
    EXPECT_EQ(load_data(folder_ / "folder").values.at("means").size(), 2u) << first;
  }
}

TEST_F(DataFiles, NestedTextsEndInOneLine) {
  const std::string deep(100000, '[');
  EXPECT_HAS(load_complaint("a.json", "{\"y\": " + deep), "a.json nests more than 64 arrays or objects");
  EXPECT_HAS(load_complaint("b.json", "{\"y\": " + deep + std::string(deep.size(), ']') + "}"), "nests more");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_HAS(load_complaint("c.json", objects), "c.json nests more than 64");
  const auto nested = [](int n) { return "{\"y\":" + std::string(n, '[') + std::string(n, ']') + "}"; };
  EXPECT_NO_THROW(load_data(put("d.json", nested(63))));
  EXPECT_HAS(load_complaint("e.json", nested(64)), "nests more");
}

TEST_F(DataFiles, MessagesAreShortWhateverTheNames) {
  json many = json::object();
  for (int i = 0; i < 100000; ++i) many["entry number " + std::to_string(i)] = i;
  const DataReader reader({.values = many}, "target t");
  const std::string said = complaint([&] { reader.number("w"); });
  EXPECT_HAS(said, "and 99995 more.");
  EXPECT_LE(said.size(), 280u);
  const std::string name(1000000, 'n');
  const DataReader one({.values = {{name, "x"}}}, "target t");
  EXPECT_LE(complaint([&] { one.number(name); }).size(), 280u);
  EXPECT_LE(complaint([&] { one.number(name + "n"); }).size(), 280u);
}

/// [2.0, 3.0] as numpy.save writes it.
std::string npy_file() {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         std::string("\x00\x00\x00\x40\x00\x00\x40\x40", 8);
}

TEST_F(DataFiles, NamesArraysAfterTheirFiles) {
  const fs::path alone = put("weights.npy", npy_file());
  const DataSet data = load_data(alone);
  EXPECT_TRUE(data.values.empty());
  EXPECT_EQ(DataReader(data, "target t").vector("weights"), Eigen::Vector2d(2, 3));
  put("rbm/weights.npy", npy_file());
  put("rbm/biases.csv", "0.5\n-0.5\n");
  const DataReader folder(load_data(folder_ / "rbm"), "target t");
  EXPECT_EQ(folder.vector("weights"), Eigen::Vector2d(2, 3));
  EXPECT_EQ(folder.vector("biases"), Eigen::Vector2d(0.5, -0.5));
  put("rbm/weights.csv", "1\n");
  EXPECT_HAS(complaint([&] { load_data(folder_ / "rbm"); }), "holds weights.csv and weights.npy");
  put("broken/weights.npy", "x");
  EXPECT_HAS(complaint([&] { load_data(folder_ / "broken"); }), "broken/weights.npy is no NumPy array");
}

TEST_F(DataFiles, RefusesOtherFiles) {
  EXPECT_HAS(load_complaint("a.npy", "x"), "is no NumPy array");
  EXPECT_HAS(load_complaint("a.npz", "x"), "Not a zip archive");
  EXPECT_HAS(load_complaint("a.json.zip", "x"), "is compressed");
  EXPECT_HAS(load_complaint("a.xls", "x"), "has the unknown ending '.xls'");
  EXPECT_HAS(complaint([&] { load_data(folder_ / "absent.json"); }), "absent.json does not exist");
}

TEST_F(DataFiles, LooksInEveryPlaceInOrder) {
  const fs::path study = put("studies/a.toml", ""), beside = put("studies/d.json", "{}");
  const fs::path under_dir = put("dir/d.json", "{}"), under_environment = put("env/d.json", "{}");
  ::setenv("LOCKSTEP_DATA", (folder_ / "env").c_str(), 1);
  EXPECT_EQ(resolve_data_path("d.json", folder_ / "dir", study), beside);
  EXPECT_EQ(resolve_data_path("d.json", folder_ / "dir", study.parent_path()), beside);
  EXPECT_EQ(resolve_data_path("d.json", folder_ / "dir"), under_dir);
  EXPECT_EQ(resolve_data_path("d.json", {}), under_environment);
  EXPECT_EQ(resolve_data_path(beside, folder_ / "dir"), beside);
  fs::remove(beside);
  EXPECT_EQ(resolve_data_path("d.json", folder_ / "dir", study), under_dir);
  fs::remove(under_dir);
  EXPECT_EQ(resolve_data_path("d.json", folder_ / "dir", study), under_environment);
  const fs::path from_here = fs::relative(put("near.json", "{}"));
  EXPECT_EQ(resolve_data_path(from_here, folder_ / "dir"), from_here);
}

TEST_F(DataFiles, SaysWhereItLooked) {
  ::setenv("LOCKSTEP_DATA", "/nowhere/env", 1);
  EXPECT_EQ(complaint([] { resolve_data_path("d.json", "/nowhere/dir", "/nowhere/study.toml"); }),
            "the data d.json were not found (looked for /nowhere/d.json, d.json, /nowhere/dir/d.json, "
            "/nowhere/env/d.json). Check the name, or give their folder with --data-dir or $LOCKSTEP_DATA; "
            "what makes them, study.toml may say in its first lines.");
  const fs::path packed = put("d.json.gz", "");
  EXPECT_HAS(complaint([&] { resolve_data_path("d.json", packed.parent_path()); }),
             "Unpack them: gunzip -k " + packed.string());
  EXPECT_HAS(complaint([] { resolve_data_path("/nowhere/d.json", "/tmp"); }), "(looked for /nowhere/d.json)");
  EXPECT_HAS(complaint([] { resolve_data_path("", "/tmp"); }), "empty name");
}

TEST_F(DataFiles, ReaderGivesShapedValues) {
  const DataReader reader({.values = {{"s", 2.5},
                                      {"n", 3.0},
                                      {"v", {1, 2, 3}},
                                      {"m", {{1, 2, 3}, {4, 5, 6}}},
                                      {"l", {{{1, 0}, {0, 1}}, {{2, 0}, {0, 2}}}}}},
                          "target t");
  EXPECT_TRUE(reader.has("s"));
  EXPECT_FALSE(reader.has("S"));
  EXPECT_DOUBLE_EQ(reader.number("s"), 2.5);
  EXPECT_EQ(reader.vector("v", 3), Eigen::Vector3d(1, 2, 3));
  EXPECT_EQ(reader.vector("s"), Eigen::VectorXd::Constant(1, 2.5));
  const Eigen::MatrixXd m = reader.matrix("m", 2, 3);
  EXPECT_EQ(m.rows(), 2);
  EXPECT_DOUBLE_EQ(m(1, 0), 4);
  EXPECT_DOUBLE_EQ(m(0, 2), 3);
  const auto list = reader.matrices("l", 2, 2, 2);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1], (2 * Eigen::Matrix2d::Identity()));
}

TEST_F(DataFiles, ReaderRefusesWrongShapesAndEntries) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const DataReader reader({.values = {{"text", "x"},
                                      {"half", 1.5},
                                      {"v", {1, 2}},
                                      {"empty", json::array()},
                                      {"bad", {1, nullptr}},
                                      {"nan", {1, nan}},
                                      {"ragged", {{1, 2}, {3}}},
                                      {"hole", {{1, 2}, {3, "x"}}},
                                      {"m", {{1, 2}, {3, 4}}},
                                      {"row", {{1, 2}, 3}},
                                      {"l", {{{1, 2}}, {{3}}}},
                                      {"mean", 1}}},
                          "target t");
  const auto says = [&](auto ask, const std::string& part) {
    const std::string text = complaint([&] { ask(reader); });
    EXPECT_HAS(text, part);
  };
  says([](auto& r) { r.number("text"); }, "text of target t is \"x\" (a density needs finite numbers)");
  says([](auto& r) { r.vector("v", 3); }, "v of target t has 2 entries (it must have 3 to fit the rest)");
  says([](auto& r) { r.vector("text"); }, "text of target t is \"x\" (it must be an array of numbers)");
  says([](auto& r) { r.vector("empty"); }, "empty of target t is [] (it must be an array of numbers)");
  says([](auto& r) { r.vector("bad"); }, "entry 2 of bad of target t is null (a density needs finite");
  says([](auto& r) { r.vector("nan"); }, "entry 2 of nan of target t is nan (a density needs finite");
  says([](auto& r) { r.matrix("v"); }, "row 1 of v of target t is 1 (it must be an array of numbers)");
  says([](auto& r) { r.matrix("half"); }, "half of target t is 1.5 (it must be a matrix");
  says([](auto& r) { r.matrix("row"); }, "row 2 of row of target t is 3 (it must be an array of numbers)");
  says([](auto& r) { r.matrix("ragged"); }, "row 2 of ragged of target t has 1 entries where row 1 has 2");
  says([](auto& r) { r.matrix("hole"); }, "row 2, column 2 of hole of target t is \"x\"");
  says([](auto& r) { r.matrix("m", 3); }, "m of target t has 2 rows (it must have 3");
  says([](auto& r) { r.matrix("m", 2, 5); }, "m of target t has 2 columns (it must have 5");
  says([](auto& r) { r.matrices("l"); }, "matrix 2 of l of target t has 1 columns (it must have 2");
  says([](auto& r) { r.matrices("l", 3); }, "l of target t has 2 matrices (it must have 3");
  says([](auto& r) { r.matrices("half"); }, "(it must be an array of matrices)");
  says([](auto& r) { r.vector("means"); },
       "the data of target t lack 'means' (the density is not defined without it); entry 'mean' is unknown: "
       "did you mean 'means'? Rename it.");
  EXPECT_HAS(complaint([] { DataReader({.values = json::array()}, "target t"); }),
             "the data of target t are []");
}

TEST_F(DataFiles, ReaderTreatsArraysAlike) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using Bytes = std::vector<std::uint8_t>;
  const DataReader reader({.values = {{"j", {1, 2}}},
                           .arrays = {{"s", {{}, std::vector<std::int32_t>{3}}},
                                      {"v", {{3}, Bytes{1, 2, 3}}},
                                      {"m", {{2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6.5}}},
                                      {"l", {{2, 1, 2}, std::vector<double>{1, 2, 3, 4}}},
                                      {"nan", {{2, 2}, std::vector<float>{1, 2, 3, float(nan)}}},
                                      {"none", {{2, 0}, std::vector<float>{}}},
                                      {"deep", {{1, 1, 2, 2}, Bytes{1, 2, 3, 4}}}}},
                          "target t");
  EXPECT_TRUE(reader.has("j") && reader.has("v"));
  EXPECT_FALSE(reader.has("w"));
  EXPECT_EQ(reader.depth("j"), 1);
  EXPECT_EQ(reader.depth("s"), 0);
  EXPECT_EQ(reader.depth("l"), 3);
  EXPECT_EQ(reader.depth("none"), 2);
  EXPECT_DOUBLE_EQ(reader.number("s"), 3);
  EXPECT_EQ(reader.vector("s"), Eigen::VectorXd::Constant(1, 3));
  EXPECT_EQ(reader.vector("v", 3), Eigen::Vector3d(1, 2, 3));
  EXPECT_EQ(reader.matrix("m", 2, 3), (Eigen::MatrixXd(2, 3) << 1, 2, 3, 4, 5, 6.5).finished());
  const auto list = reader.matrices("l", 2, 1, 2);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1], (Eigen::MatrixXd(1, 2) << 3, 4).finished());
  const auto says = [&](auto ask, const std::string& text) {
    EXPECT_EQ(complaint([&] { ask(reader); }), text);
  };
  says([](auto& r) { r.matrix("nan"); },
       "row 2, column 2 of nan of target t is nan (a density needs finite numbers). Correct or remove it.");
  says([](auto& r) { r.matrix("none"); },
       "row 1 of none of target t is an array of shape [0] (it must be an array of numbers). Write it so.");
  says([](auto& r) { r.number("v"); },
       "v of target t is an array of shape [3] (a density needs finite numbers). Correct or remove it.");
  says([](auto& r) { r.matrix("m", 3, 3); },
       "m of target t has 2 rows (it must have 3 to fit the rest). Correct the data.");
  says([](auto& r) { r.number("w"); },
       "the data of target t lack 'w' (the density is not defined without it). Add it; they give j, "
       "deep, l, m, nan, none, s, v.");
  says([](auto& r) { r.matrices("deep"); },
       "row 1, column 1 of matrix 1 of deep of target t is an array of shape [2] (a density needs finite "
       "numbers). "
       "Correct or remove it.");
}

}  // namespace
}  // namespace lockstep
