// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_files.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* header = "label,replicate,quantity,estimate,se,truth,error,gradients\n";

std::vector<ResultRow> rows_of(const std::string& label) {
  return {{label, 0, "mean[0]", 1.0 / 3, 0.1, 0.25, 5e6},
          {label, 1, "log_z", -1e-300, NAN, NAN, 12345678901}};
}

class StudyFiles : public testing::FolderTest {
 protected:
  /// What is read of a part with these lines, whose checksum is right.
  std::vector<ResultRow> read_lines(const std::string& lines) {
    const std::string text =
        "# {\"fingerprint\":\"f\",\"label\":\"\",\"seconds\":1,\"gradients_per_s\":1,\"verdict\":\"\"}\n" +
        lines;
    fs::create_directories(folder_ / "parts");
    write_atomically(folder_ / "parts" / "0.csv", text + "# checksum " + checksum(text) + "\n");
    return read_part(folder_, 0, "f")->rows;
  }
  void expect_malformed(const std::string& text, const std::string& expected) {
    try {
      read_lines(text);
      FAIL() << text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
};

TEST_F(StudyFiles, ResultsTextToTheLetter) {
  const std::vector<ResultRow> rows = {{"a PE N=2", 0, "mean[0]", 4.5, 0.1, 4.25, 5e6},
                                       {"b, \"x\"", 12, "log_z", 0.1, NAN, NAN, 1e20}};
  EXPECT_EQ(results_text(rows), std::string(header) +
                                    "a PE N=2,0,mean[0],4.5,0.1,4.25,0.25,5000000\n"
                                    "\"b, \"\"x\"\"\",12,log_z,0.1,,,,1e+20\n");
  EXPECT_EQ(results_text({}), header);
  EXPECT_EQ(timings_text({{"a", 1.5, 2e8}}), "label,seconds,gradients_per_s\na,1.5,200000000\n");
}

TEST_F(StudyFiles, ResultsReadBackBitForBit) {
  std::vector<ResultRow> rows = rows_of("plain");
  for (const char* label : {"comma, here", "quote \" here", "two\nlines", "\"", "", " spaces "}) {
    for (const ResultRow& row : rows_of(label)) rows.push_back(row);
  }
  rows[0].estimate = -std::numeric_limits<double>::infinity();
  write_part(folder_, 0, {"f", rows, {"a", 1, 1}, ""});
  const auto read = read_part(folder_, 0, "f")->rows;
  ASSERT_EQ(read.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(read[i].label, rows[i].label);
    EXPECT_EQ(read[i].replicate, rows[i].replicate);
    EXPECT_EQ(read[i].quantity, rows[i].quantity);
    EXPECT_EQ(read[i].estimate, rows[i].estimate);
    EXPECT_EQ(read[i].gradients, rows[i].gradients);
    EXPECT_EQ(std::isnan(read[i].truth), std::isnan(rows[i].truth));
    EXPECT_EQ(std::isnan(read[i].se), std::isnan(rows[i].se));
  }
  EXPECT_EQ(results_text(read), results_text(rows));
}

TEST_F(StudyFiles, MalformedFilesAreRefusedWithTheirLine) {
  const std::string good = std::string(header) + "a,0,q,1,2,3,4,5\n";
  EXPECT_EQ(read_lines(good).size(), 1u);
  expect_malformed("", "line 2: the header");
  expect_malformed("label,replicate\n", "line 2: the header");
  expect_malformed(good + "a,0,q,1,2,3,4\n", "line 4: 7 fields instead of 8");
  expect_malformed(good + "a,0,q,1,2,3,4,5,6\n", "line 4: 9 fields");
  expect_malformed(good + "\n", "line 4: 1 fields");
  expect_malformed(good + "a,0,q,1x,2,3,4,5\n", "line 4: '1x' is not a number");
  expect_malformed(good + "a,,q,1,2,3,4,5\n", "line 4: '' is not a number");
  expect_malformed(good + "a,0.5,q,1,2,3,4,5\n", "'0.5' is not a number");
  expect_malformed(good + "a,0,q,1,2,3,x,5\n", "'x' is not a number");
  expect_malformed(good + "a,0,q,1,2,3,4,5", "line 4: the file ends");
  expect_malformed(good + "\"a,0,q,1,2,3,4,5\n", "line 4: a quote is never closed");
  expect_malformed(good + "a\"b,0,q,1,2,3,4,5\n", "line 4: a quote stands inside");
  expect_malformed(good + "\"a\"b,0,q,1,2,3,4,5\n", "line 4: text follows");
  expect_malformed(std::string(header) + "\"a\nb\",0,q,1,2,3,4,5\na,0,q,?,2,3,4,5\n", "line 5: '?'");
}

TEST_F(StudyFiles, TimingsAreWritten) {
  write_timings(folder_ / "timings.csv", {{"a, b", 0.25, NAN}});
  EXPECT_NE(read_text(folder_ / "timings.csv").find("\n\"a, b\",0.25,\n"), std::string::npos);
}

TEST_F(StudyFiles, PartsBelongToTheirSetting) {
  const std::string fingerprint = "seed = 1\nlabel = \"a, b\" | ü";
  write_part(folder_, 3, {fingerprint, rows_of("a, b"), {"a, b", 2.5, NAN}, "fail: rhat"});
  EXPECT_TRUE(fs::exists(folder_ / "parts" / "3.csv"));
  const auto part = read_part(folder_, 3, fingerprint);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(results_text(part->rows), results_text(rows_of("a, b")));
  EXPECT_EQ(part->timing.label, "a, b");
  EXPECT_EQ(part->timing.seconds, 2.5);
  EXPECT_TRUE(std::isnan(part->timing.gradients_per_s));
  EXPECT_EQ(part->verdict, "fail: rhat");
  EXPECT_FALSE(read_part(folder_, 3, fingerprint + " ").has_value());
  EXPECT_FALSE(read_part(folder_, 2, fingerprint).has_value());
}

TEST_F(StudyFiles, DamagedPartsAreRefused) {
  write_part(folder_, 0, {"f", rows_of("a"), {"a", 1, 1}, ""});
  const std::string whole = read_text(folder_ / "parts" / "0.csv");
  for (const std::string& text :
       {std::string(), std::string("# {}\n"), std::string("# "), whole.substr(0, 20),
        whole.substr(0, whole.size() - 1), whole.substr(whole.find('\n') + 1),
        whole.substr(0, whole.find('\n')), whole.substr(0, whole.find('\n') + 1)}) {
    write_atomically(folder_ / "parts" / "0.csv", text);
    EXPECT_THROW(read_part(folder_, 0, "f"), UserError) << text;
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string text = whole;
    text[bit / 8] = char(text[bit / 8] ^ (1 << bit % 8));
    write_atomically(folder_ / "parts" / "0.csv", text);
    EXPECT_THROW(read_part(folder_, 0, "f"), UserError) << bit;
  }
}

TEST_F(StudyFiles, AssemblyFollowsTheOrderOfTheSettingsAndSkipsStrangers) {
  // Settings 1 and 10 finish first; 2 is of an older study file; 0 has not run yet.
  write_part(folder_, 10, {"f10", rows_of("ten"), {"ten", 10, 1}, ""});
  write_part(folder_, 2, {"older", rows_of("two"), {"two", 2, 1}, "pass"});
  write_part(folder_, 1, {"f1", rows_of("one"), {"one", 1, 1}, "pass"});
  std::vector<std::string> fingerprints;
  for (int i = 0; i <= 10; ++i) fingerprints.push_back("f" + std::to_string(i));
  const StudyResults results = assemble_results(folder_, fingerprints);
  std::vector<ResultRow> expected = rows_of("one");
  for (const ResultRow& row : rows_of("ten")) expected.push_back(row);
  EXPECT_EQ(results_text(results.rows), results_text(expected));
  EXPECT_EQ(read_text(folder_ / "results.csv"), results_text(expected));
  EXPECT_EQ(read_text(folder_ / "timings.csv"), timings_text({{"one", 1, 1}, {"ten", 10, 1}}));
  EXPECT_EQ(results.verdicts, (std::map<std::string, std::string>{{"one", "pass"}}));
}

TEST_F(StudyFiles, ClearRemovesPartsAndNothingElse) {
  clear_parts(folder_);  // no parts yet: nothing happens
  write_part(folder_, 0, {"f", {}, {"a", 1, 1}, ""});
  write_atomically(folder_ / "parts" / "notes.csv", "mine");
  write_atomically(folder_ / "results.csv", "kept");
  clear_parts(folder_);
  EXPECT_FALSE(read_part(folder_, 0, "f").has_value());
  EXPECT_EQ(read_text(folder_ / "parts" / "notes.csv"), "mine");
  EXPECT_EQ(read_text(folder_ / "results.csv"), "kept");
}

}  // namespace
}  // namespace lockstep
