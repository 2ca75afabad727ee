// SPDX-License-Identifier: Apache-2.0
#include "host/util/files.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "host/util/errors.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep::files_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

std::size_t count_files(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

class Files : public testing::FolderTest {};

TEST_F(Files, EnsureWritableFolderCreatesParentsAndLeavesNothing) {
  const fs::path deep = folder_ / "a" / "b";
  ensure_writable_folder(deep);
  EXPECT_TRUE(fs::is_directory(deep));
  EXPECT_EQ(count_files(deep), 0u);
  std::ofstream(deep / "kept") << "1";
  ensure_writable_folder(deep);
  EXPECT_EQ(count_files(deep), 1u);
}

TEST_F(Files, EnsureWritableFolderRefusesWhatCannotHoldFiles) {
  std::ofstream(folder_ / "file") << "1";
  EXPECT_THROW(ensure_writable_folder(folder_ / "file"), UserError);
  EXPECT_THROW(ensure_writable_folder(folder_ / "file" / "below"), UserError);
  EXPECT_THROW(ensure_writable_folder(""), UserError);
  EXPECT_THROW(ensure_writable_folder("/proc/self/task"), UserError);  // exists, but not even root may write
}

TEST_F(Files, EnsureWritableFolderNamesFolderAndReasonInOneLine) {
  try {
    ensure_writable_folder("/proc/self/task");
    FAIL();
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("/proc/self/task"), std::string::npos) << text;
    EXPECT_EQ(text.find("Success"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST_F(Files, EnsureWritableFolderRefusesMissingPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THROW(ensure_writable_folder(folder_), UserError);
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(Files, WriteReplacesTheWholeFileAndLeavesNoTemporary) {
  const fs::path file = folder_ / "out.txt";
  const std::string longer = std::string("zero\0byte", 9) + " and more";
  write_atomically(file, longer);
  EXPECT_EQ(read_text(file), longer);
  write_atomically(file, "short");
  EXPECT_EQ(read_text(file), "short");
  EXPECT_EQ(count_files(folder_), 1u);
}

TEST_F(Files, OldFileSurvivesAWriterThatFails) {
  const fs::path file = folder_ / "out.txt";
  write_atomically(file, "old");
  {
    const AtomicFile failing(file);
    EXPECT_EQ(failing.temporary().parent_path(), folder_);  // a rename is atomic only within one file system
    std::ofstream(failing.temporary()) << "half";
    EXPECT_EQ(read_text(file), "old");
    EXPECT_EQ(count_files(folder_), 2u);
  }
  EXPECT_EQ(read_text(file), "old");
  EXPECT_EQ(count_files(folder_), 1u);
}

TEST_F(Files, FailuresOfTheFileSystemAreNotUserErrors) {
  fs::create_directory(folder_ / "taken");
  std::ofstream(folder_ / "taken" / "x") << "1";
  for (const fs::path& target : {folder_ / "taken", folder_ / "missing" / "out.txt"}) {
    try {
      write_atomically(target, "text");
      FAIL() << target;
    } catch (const UserError& error) {
      FAIL() << error.what();
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(target.string()), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(count_files(folder_), 1u);
}

TEST_F(Files, ReadTextRefusesMissingFilesAndFolders) {
  EXPECT_THROW(read_text(folder_ / "missing"), UserError);
  EXPECT_THROW(read_text(folder_), UserError);
}

TEST(StripNonFinite, RemovesMembersAndLeavesPlaces) {
  const Json value = {{"b", 1.5},
                      {"a", nan},
                      {"none", nullptr},
                      {"flag", false},
                      {"inner", {{"good", {1.0, 2.0}}, {"bad", {1.0, -inf}}}},
                      {"matrix", {{1.0, 2.0}, {3.0, nan}}},
                      {"nowhere", {{nan, nan}, {inf, nan}}},
                      {"all_gone", {{"x", inf}, {"y", nan}}},
                      {"settings", Json::object()},
                      {"items", Json::array({{{"log_z", nan}}, {{"log_z", 2.0}}})}};
  std::vector<std::string> removed;
  const Json stripped = strip_non_finite(value, &removed);
  EXPECT_EQ(
      stripped.dump(),
      R"({"b":1.5,"flag":false,"inner":{"good":[1.0,2.0],"bad":[1.0,null]},"matrix":[[1.0,2.0],[3.0,null]],)"
      R"("settings":{},"items":[{},{"log_z":2.0}]})");
  EXPECT_EQ(removed, (std::vector<std::string>{"a", "inner.bad", "matrix", "nowhere", "all_gone.x",
                                               "all_gone.y", "items.log_z"}));
}

TEST(SummaryText, KeepsOrderAndPrintsVectorsOnOneLine) {
  const Json value = {{"schema", 1},
                      {"command", "sample \"x\""},
                      {"estimates", {{"mean", {0.1, 2.0}}, {"covariance", {{1.0, 0.5}, {0.5, 1.0}}}}},
                      {"warnings", Json::array()},
                      {"items", Json::array({{{"log_z", 2.0}}})}};
  EXPECT_EQ(summary_text(value), R"({
  "schema": 1,
  "command": "sample \"x\"",
  "estimates": {
    "mean": [0.1,2.0],
    "covariance": [
      [1.0,0.5],
      [0.5,1.0]
    ]
  },
  "warnings": [],
  "items": [
    {
      "log_z": 2.0
    }
  ]
}
)");
  EXPECT_NO_THROW(summary_text({{"file", "not UTF-8: \xff"}}));
  EXPECT_EQ(summary_text({{"only", nan}}), "{}\n");
}

TEST_F(Files, AnIndependentReaderFindsTheSummaryBitForBit) {
  const std::vector<double> numbers = {0.1,    1.0 / 3, 1e-310, 5e-324, 1.7976931348623157e308,
                                       -2.5e8, 1e16,    4.0,    -0.0,   123456789.123456789};
  Json value = {{"zeta", 1}, {"alpha", nan}, {"mean", numbers}, {"beta", {{"x", numbers[1]}}}};
  write_summary(folder_ / "summary.json", value);
  const auto found = nlohmann::json::parse(testing::run_python("read_summary.py", folder_ / "summary.json"));
  EXPECT_EQ(found["keys"], nlohmann::json({"zeta", "mean", "beta"}));
  ASSERT_EQ(found["values"].size(), numbers.size() + 2);
  EXPECT_EQ(found["values"][0], nlohmann::json::array({"zeta", 1}));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(found["values"][i + 1][0], "mean[" + std::to_string(i) + "]");
    const double read = std::strtod(found["values"][i + 1][1].get<std::string>().c_str(), nullptr);
    EXPECT_EQ(read, numbers[i]);
    EXPECT_EQ(std::signbit(read), std::signbit(numbers[i]));
  }
  EXPECT_EQ(found["values"].back()[0], "beta.x");
}

}  // namespace
}  // namespace lockstep::files_test
