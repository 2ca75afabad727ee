// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_tables.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

using Cells = std::vector<std::vector<std::string>>;

constexpr std::size_t unlimited = 100000;

StudySetting setting(const std::string& label, const nlohmann::json& published = nlohmann::json::object()) {
  StudySetting result;
  result.label = label;
  result.published = published;
  return result;
}

/// Three replicates with errors 1, -1 and 3 times `scale`, in 100, 200 and 300 gradients.
void add(std::vector<ResultRow>& rows, const std::string& label, const std::string& quantity, double truth,
         double scale) {
  const double errors[] = {1, -1, 3};
  for (int i = 0; i < 3; ++i) {
    rows.push_back({label, i, quantity, truth + scale * errors[i], 0.1, truth, 100.0 * (i + 1)});
  }
}

std::vector<std::string> column(const StudyTable& table, std::size_t index) {
  std::vector<std::string> cells;
  for (const auto& row : table.rows) cells.push_back(row.at(index));
  return cells;
}

TEST(StudyTables, TruthThenEachSettingThenWhatWasPublished) {
  Study study;
  study.settings = {setting("a HMC"), setting("a PE", {{"q", {4.9, 0.042}}, {"not shown", {1, 1}}})};
  std::vector<ResultRow> rows;
  add(rows, "a PE", "q", 5, 0.01);
  add(rows, "a HMC", "q", 5, 1);
  const auto tables = study_tables(study, rows, {{"a HMC", "fail"}}, unlimited);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].title, "a");
  EXPECT_EQ(column(tables[0], 0),
            (std::vector<std::string>{"setting", "  truth", "a HMC", "a PE", "  published"}));
  EXPECT_EQ(column(tables[0], 1), (std::vector<std::string>{"gradients", "", "200", "200", ""}));
  EXPECT_EQ(column(tables[0], 2), (std::vector<std::string>{"verdict", "", "fail", "", ""}));
  EXPECT_EQ(column(tables[0], 3),
            (std::vector<std::string>{"q", "5", "6.0 ± 2.0", "5.010 ± 0.020", "4.900 ± 0.042"}));
  EXPECT_EQ(column(tables[0], 4)[0], "RMSE");
  EXPECT_EQ(column(tables[0], 4)[2].substr(0, 7), "1.91 ±");
  EXPECT_EQ(column(tables[0], 5), (std::vector<std::string>{"z", "", "+0.7", "+0.7", ""}));
}

TEST(StudyTables, AllDataSetsTogetherBesideTheBase) {
  Study study;
  study.pooled = {"mean", "log_z"};
  std::vector<ResultRow> rows;
  // Squared errors over replicates: 11/3 scale^2 on average; over the entries of a vector and both data sets.
  add(rows, "s1 st", "mean[0]", 5, 1);
  add(rows, "s1 st", "mean[1]", 2, 3);
  add(rows, "s2 st", "mean[0]", 7, 1);
  add(rows, "s2 st", "mean[1]", 0, 1);
  add(rows, "s1 st", "base_mean_error", 0, 6);
  add(rows, "s1 pt", "log_z", 1, 2);
  rows.push_back({"s1 st", 0, "base_starts", 2000, NAN, NAN, 100});
  const auto tables = study_tables(study, rows, {}, unlimited);
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_EQ(tables[0].title, "All data sets together");
  EXPECT_EQ(column(tables[0], 0),
            (std::vector<std::string>{"setting", "the base alone, 2000 starts", "st", "pt"}));
  EXPECT_EQ(column(tables[0], 1), (std::vector<std::string>{"gradients", "", "200", "200"}));
  const double mean = std::sqrt(11.0 / 3 * (1 + 9 + 1 + 1) / 4), base = std::sqrt(11.0 / 3 * 36);
  EXPECT_EQ(column(tables[0], 2)[0], "mean RMSE");
  // Squares of the replicates: 1, 1, 9 times 5 and times 1; their means have variances of 64/9 * 25 and 64/9.
  const double se = std::sqrt(64.0 / 9 * 26) / 2 / (2 * mean);
  EXPECT_EQ(column(tables[0], 2)[2], fmt::format("{:.3g} ± {:.1g}", mean, se));
  EXPECT_EQ(column(tables[0], 3),
            (std::vector<std::string>{"over the base's", "1", fmt::format("{:.2g}", mean / base), ""}));
  EXPECT_EQ(column(tables[0], 4)[1], "");
  EXPECT_EQ(column(tables[0], 4)[3].substr(0, 4), "3.83");
}

TEST(StudyTables, OneReplicateHasNoErrorAndNothingNoColumn) {
  Study study;
  study.pooled = {"log_z", "mean"};
  const auto tables = study_tables(study, {{"s1 st", 0, "log_z", 3, 0.1, 1, 100}}, {}, unlimited);
  EXPECT_EQ(tables[0].rows, (Cells{{"setting", "gradients", "log_z RMSE"}, {"st", "100", "2"}}));
}

TEST(StudyTables, GroupsShareTheFirstWordAndTheRestComesTogether) {
  Study study;
  study.settings = {setting("b x"),    setting("lonely one"), setting("a x"),      setting("b y"),
                    setting("single"), setting("a y"),        setting("never ran")};
  std::vector<ResultRow> rows;
  for (const auto& some : study.settings) {
    if (some.label != "never ran") add(rows, some.label, "q", 5, 1);
  }
  add(rows, "unknown to the study", "q", 5, 1);
  const auto tables = study_tables(study, rows, {}, unlimited);
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_EQ(tables[0].title, "b");
  EXPECT_EQ(column(tables[0], 0), (std::vector<std::string>{"setting", "  truth", "b x", "b y"}));
  EXPECT_EQ(tables[1].title, "Other settings");
  EXPECT_EQ(column(tables[1], 0),
            (std::vector<std::string>{"setting", "  truth", "lonely one", "single", "unknown to the study"}));
  EXPECT_EQ(tables[2].title, "a");
}

TEST(StudyTables, ATruthThatDiffersStandsBelowEachLabel) {
  std::vector<ResultRow> rows;
  add(rows, "a x", "q", 5, 1);
  add(rows, "a y", "q", 6, 1);
  const auto tables = study_tables({}, rows, {}, unlimited);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(column(tables[0], 0), (std::vector<std::string>{"setting", "a x", "  truth", "a y", "  truth"}));
  EXPECT_EQ(column(tables[0], 2), (std::vector<std::string>{"q", "6.0 ± 2.0", "5", "7.0 ± 2.0", "6"}));
}

TEST(StudyTables, UnknownTruthLeavesItsColumnsOut) {
  std::vector<ResultRow> rows = {{"x", 0, "log_z", -10, 0.1, NAN, 7}, {"x", 1, "log_z", NAN, 0.1, NAN, 7}};
  const auto tables = study_tables({}, rows, {}, unlimited);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].rows, (Cells{{"setting", "gradients", "log_z"}, {"x", "7", "-10 (1 of 2 finite)"}}));
}

TEST(StudyTables, OnlyTheQuantitiesAskedForInTheirOrder) {
  Study study;
  study.quantities = {"third", "absent", "first"};
  std::vector<ResultRow> rows;
  for (const char* quantity : {"first", "second", "third"}) add(rows, "x", quantity, 5, 1);
  const auto tables = study_tables(study, rows, {}, unlimited);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].rows[0],
            (std::vector<std::string>{"setting", "gradients", "third", "RMSE", "z", "first", "RMSE", "z"}));
}

TEST(StudyTables, WideTablesAreSplitAndNothingIsLost) {
  Study study;
  study.settings = {setting("a x", {{"q0", {5, 1}}}), setting("a y")};
  std::vector<ResultRow> rows;
  for (int i = 0; i < 9; ++i) {
    add(rows, "a x", "q" + std::to_string(i), 5, 0.01);
    add(rows, "a y", "q" + std::to_string(i), 5, 0.1);
  }
  const auto tables = study_tables(study, rows, {}, 120);
  ASSERT_GT(tables.size(), 2u);
  std::vector<std::string> quantities;
  for (const StudyTable& table : tables) {
    std::size_t width = 1;
    for (std::size_t j = 0; j < table.rows[0].size(); ++j) {
      std::size_t most = 0;
      for (const std::string& cell : column(table, j)) most = std::max(most, display_width(cell));
      width += most + 3;
      if (table.rows[0][j][0] == 'q') quantities.push_back(table.rows[0][j]);
    }
    EXPECT_LE(width, 120u);
    if (&table != &tables.back()) {
      EXPECT_GT(width, 80u) << "needless splitting";
    }
    const auto labels = column(table, 0);
    EXPECT_EQ(std::count(labels.begin(), labels.end(), "  published"), &table == &tables[0] ? 1 : 0);
  }
  EXPECT_EQ(quantities, (std::vector<std::string>{"q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8"}));
  EXPECT_EQ(tables[1].title, "a (continued)");
}

TEST(StudyTables, PublishedValuesInAllTheirForms) {
  Study study;
  study.settings = {setting("x", {{"a", 4.5},
                                  {"b", nlohmann::json::array({3})},
                                  {"c", {4, 0.05}},
                                  {"d", "text"},
                                  {"e", {1e-20, 1e-22}}})};
  std::vector<ResultRow> rows;
  for (const char* quantity : {"a", "b", "c", "d", "e"}) add(rows, "x", quantity, 5, 1);
  const auto tables = study_tables(study, rows, {}, unlimited);
  ASSERT_EQ(tables.size(), 1u);
  const auto& published = tables[0].rows.back();
  EXPECT_EQ(published[0], "  published");
  EXPECT_EQ(published[2], "4.5");
  EXPECT_EQ(published[5], "3");
  EXPECT_EQ(published[8], "4.00 ± 0.05");
  EXPECT_EQ(published[11], "");
  EXPECT_EQ(published[14], "1e-20 ± 1e-22");
}

TEST(StudyTables, DisplayWidthCountsCharacters) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("1 ± 2"), 5u);
  EXPECT_EQ(display_width(""), 0u);
}

}  // namespace
}  // namespace lockstep
