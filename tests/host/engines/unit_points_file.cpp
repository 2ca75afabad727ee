// SPDX-License-Identifier: Apache-2.0
// Points that a user gives: rows, or the modes that a search or a run has listed.
#include "host/engines/points_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "host/util/errors.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep {
namespace {

struct PointsFile : testing::FolderTest {
  std::filesystem::path put(const std::string& text) {
    std::ofstream(folder_ / "points.json") << text;
    return folder_ / "points.json";
  }
  std::string refusal(const std::string& text, const std::string& option = "--modes") {
    try {
      read_points(put(text), 2, option);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(PointsFile, HoldsRowsOrTheModesOfASearchOrARun) {
  const Eigen::Vector2d first(1, 2), second(-3, 4.5);
  for (const char* text :
       {R"({"x": [[1, 2], [-3, 4.5]]})", R"({"modes": [{"place": [1, 2], "hits": 3}, {"place": [-3, 4.5]}]})",
        R"({"diagnostics": {"modes": {"found": 2, "shares": [{"place": [1, 2]}, {"place": [-3, 4.5]}]}}})",
        R"({"x": [[1, 2], [-3, 4.5]], "modes": []})"})
    for (const char* option : {"--modes", "--init"}) {
      const auto points = read_points(put(text), 2, option);
      ASSERT_EQ(points.size(), 2u) << text;
      EXPECT_EQ(points[0], first) << text;
      EXPECT_EQ(points[1], second) << text;
    }
}

TEST_F(PointsFile, SaysWhatItLacks) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal(R"({"y": [[1, 2]]})"), HasSubstr("neither x, rows of 2 numbers, nor a list of modes"));
  EXPECT_THAT(refusal(R"({"y": 1})", "--init"), HasSubstr("--init"));
  EXPECT_THAT(refusal(R"({"diagnostics": {"modes": {"found": 0}}})"),
              HasSubstr("lists no modes (a run does where it has several"));
  EXPECT_THAT(refusal(R"({"modes": []})"), HasSubstr("holds no mode"));
  EXPECT_THAT(refusal(R"({"modes": [{"place": [1, 2]}, {"place": [1]}]})"), HasSubstr("mode 2 of"));
  EXPECT_THAT(refusal(R"({"modes": [{"place": [1, "a"]}]})"), HasSubstr("no number"));
  EXPECT_THAT(refusal(R"({"x": [[1, 2, 3]]})"), HasSubstr("x"));
}

}  // namespace
}  // namespace lockstep
