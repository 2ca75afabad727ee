// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_report.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "host/studies/study_tables.hpp"
#include "host/util/files.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep {
namespace {

Study study() {
  Study result;
  result.name = "table1";
  result.title = "Two <modes> & more";
  result.description = "What it is.";
  result.settings.resize(3);
  result.settings[0].label = "a HMC";
  result.settings[1].label = "a PE | N=2";
  result.settings[1].published = {{"mean[0]", {4.383, 0.042}}};
  result.settings[2].label = "later";
  return result;
}

std::vector<ResultRow> rows() {
  std::vector<ResultRow> result;
  for (const char* label : {"a HMC", "a PE | N=2"}) {
    for (int i = 0; i < 4; ++i) result.push_back({label, i, "mean[0]", 4 + 0.1 * i, 0.1, 4.25, 1e6});
  }
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class StudyReport : public testing::FolderTest {};

TEST_F(StudyReport, MarkdownTableIsAligned) {
  const std::string text = study_table(study(), rows(), {{"a HMC", "fail"}});
  EXPECT_TRUE(
      contains(text, "# Two <modes> & more\n\nWhat it is.\n\n2 settings, 4 replicates each. Not run: later."))
      << text;
  std::vector<std::string> table;
  for (const std::string& line : lines_of(text)) {
    EXPECT_LE(display_width(line), 160u);
    if (line.starts_with("|")) table.push_back(line);
  }
  ASSERT_EQ(table.size(), 6u) << text;  // header, rule, truth, two settings, published
  for (const std::string& line : table) {
    EXPECT_EQ(display_width(line), display_width(table[0])) << line;
    EXPECT_TRUE(line.ends_with("|"));
  }
  EXPECT_TRUE(contains(table[1], "---:|"));
  EXPECT_TRUE(contains(table[4], "a PE \\| N=2")) << "a bar must not open another cell";
  EXPECT_TRUE(contains(table[5], "4.383 ± 0.042"));
  EXPECT_EQ(text.back(), '\n');
}

TEST_F(StudyReport, CoverageCountsReplicates) {
  std::vector<ResultRow> some = rows();
  some.pop_back();
  EXPECT_TRUE(contains(study_table(study(), some), "3 to 4 replicates each."));
  EXPECT_TRUE(contains(study_table(study(), {}), "No results yet. Not run: a HMC; a PE | N=2; later."));
}

TEST_F(StudyReport, HtmlStandsAlone) {
  const std::string png("\x89PNG\r\n\x1a\n\0\xff", 10);
  write_atomically(folder_ / "picture.png", png);
  write_atomically(folder_ / "short.svg", "<svg/>");
  const std::string text = study_report(
      study(), rows(), {{"a HMC", 1.25, 2e8}}, {{"a HMC", "fail"}},
      {folder_ / "picture.png", folder_ / "short.svg", folder_ / "missing.png"}, {{"device", "cpu & more"}});
  EXPECT_TRUE(text.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(contains(text, "<h1>Two &lt;modes&gt; &amp; more</h1>"));
  EXPECT_TRUE(contains(text, "src=\"data:image/png;base64,iVBORw0KGgoA/w==\""));
  EXPECT_TRUE(contains(text, "src=\"data:image/svg+xml;base64,PHN2Zy8+\""));
  EXPECT_FALSE(contains(text, "missing"));
  EXPECT_FALSE(contains(text, "://")) << "nothing may be loaded from elsewhere";
  EXPECT_TRUE(contains(text, "<td>4.383 ± 0.042</td>"));
  EXPECT_TRUE(contains(text, "<td>fail</td>"));
  EXPECT_TRUE(contains(text, "<tr><td>a HMC</td><td>1.25</td><td>2e+08</td></tr>"));
  EXPECT_TRUE(contains(text, "<td>cpu &amp; more</td>"));
  EXPECT_FALSE(contains(text, folder_.string()));
  for (const char* tag : {"table", "tr", "div", "body", "html", "style"}) {
    const auto count = [&](const std::string& part) {
      int found = 0;
      for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
      return found;
    };
    const std::string name = tag;
    EXPECT_EQ(count("<" + name + ">") + count("<" + name + " "), count("</" + name + ">")) << tag;
  }
}

}  // namespace
}  // namespace lockstep
