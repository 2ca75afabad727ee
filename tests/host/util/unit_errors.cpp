// SPDX-License-Identifier: Apache-2.0
#include "host/util/errors.hpp"

#include <gtest/gtest.h>

namespace lockstep::errors_test {
namespace {

TEST(OneLine, ShortTextsStay) {
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line("x is 1  (it must be 2). Correct it."), "x is 1  (it must be 2). Correct it.");
  EXPECT_EQ(one_line("gr\u00FC\u00DFe \u65E5\u672C"), "gr\u00FC\u00DFe \u65E5\u672C");
}

TEST(OneLine, ControlCharactersAreBlanks) {
  EXPECT_EQ(one_line("a\nb\r\nc\x1b[31m\x7f"), "a b  c [31m ");
  EXPECT_EQ(one_line("a\u0085b\u2028c\u2029d"), "a  b   c   d");
}

TEST(OneLine, LongWordsLoseTheirMiddle) {
  const std::string text = "/data/" + std::string(5000, 'x') + "/a.json is wrong (why). Correct it.";
  const std::string line = one_line(text);
  EXPECT_LE(line.size(), 280u);
  EXPECT_TRUE(line.starts_with("/data/xxx")) << line;
  EXPECT_TRUE(line.ends_with("xxx/a.json is wrong (why). Correct it.")) << line;
  EXPECT_NE(line.find("..."), std::string::npos) << line;
  EXPECT_EQ(one_line(text, 40).size(), 40u);
}

TEST(OneLine, ManyWordsLoseTheirMiddle) {
  std::string text = "unknown name.";
  for (int i = 0; i < 100000; ++i) text += " w" + std::to_string(i);
  text += " Correct it.";
  const std::string line = one_line(text);
  EXPECT_EQ(line.size(), 280u);
  EXPECT_TRUE(line.starts_with("unknown name. w0 w1")) << line;
  EXPECT_TRUE(line.ends_with("w99999 Correct it.")) << line;
}

TEST(OneLine, NoLetterIsCut) {
  for (std::size_t most = 40; most < 70; ++most) {
    std::string text;
    for (int i = 0; i < 50; ++i) text += "\u65E5";
    const std::string line = one_line(text, most);
    EXPECT_LE(line.size(), most);
    const std::size_t dots = line.find("...");
    ASSERT_NE(dots, std::string::npos);
    EXPECT_EQ(dots % 3, 0u) << line;
    EXPECT_EQ((line.size() - dots) % 3, 0u) << line;
  }
}

TEST(OneLine, IsWhatUserErrorsSay) {
  const UserError error("a\n" + std::string(1000, 'b'));
  EXPECT_LE(std::string(error.what()).size(), 280u);
  EXPECT_TRUE(std::string(error.what()).starts_with("a b"));
}

}  // namespace
}  // namespace lockstep::errors_test
