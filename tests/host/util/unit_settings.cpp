// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "host/util/suggest.hpp"

namespace lockstep::settings_test {
namespace {

using Names = std::vector<std::string>;

/// The text of the UserError that `action` throws; a failure when it throws none.
template <class Action>
std::string complaint(Action action) {
  try {
    action();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Suggest, DistanceCountsSlips) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("bdmc", "bmdc"), 1u);  // neighbours swapped
  EXPECT_EQ(edit_distance("Step-Size", "step_size"), 0u);
}

TEST(Suggest, NearestNamesAreTheBestOnes) {
  const Names known = {"step_size", "num_leapfrog", "beta", "beta_min", "beta_max", "metric"};
  EXPECT_EQ(nearest_names("stepsize", known), Names{"step_size"});
  EXPECT_EQ(nearest_names("leapfrog", known), Names{"num_leapfrog"});
  EXPECT_EQ(nearest_names("beta_mix", known), (Names{"beta_max", "beta_min"}));
  EXPECT_EQ(nearest_names("bet", known), (Names{"beta", "beta_max", "beta_min"}));
  EXPECT_EQ(nearest_names("beta", known), Names{"beta"});
  EXPECT_EQ(nearest_names("beta_mix", known, 1).size(), 1u);
  EXPECT_TRUE(nearest_names("zzzzzz", known).empty());
  EXPECT_TRUE(nearest_names("x", {"y", "z"}).empty());  // one letter for one letter is no likeness
  EXPECT_EQ(nearest_names("mixture2", {"mixture20", "mixture20"}), Names{"mixture20"});
}

TEST(Suggest, SlipsAreNearInLettersAlone) {
  EXPECT_TRUE(is_slip("wieghts", "weights"));
  EXPECT_TRUE(is_slip("covariance", "covariances"));
  EXPECT_TRUE(is_slip("sd", "sds"));
  EXPECT_FALSE(is_slip("county", "county_index"));
  EXPECT_FALSE(is_slip("N", "J"));
}

TEST(Suggest, Phrases) {
  EXPECT_EQ(did_you_mean("metrik", {"metric", "beta"}), "Did you mean metric?");
  EXPECT_EQ(did_you_mean("qqqq", {"metric", "beta"}), "");
  EXPECT_EQ(near_or_known("qqqq", {"metric", "beta"}, "settings"), "Known settings: metric, beta.");
  std::vector<std::string> many = {"b1", "a", "b2", "c", "d", "e", "f", "g", "h", "i", "longest_one"};
  EXPECT_EQ(near_or_known("qqqq", many, "settings"),
            "Known settings: b1, a, b2, c, d, e, f, g, h, i, longest_one.");
  many.insert(many.end(), {"longest_two", "longest_three", "longest_four", "longest_five"});
  EXPECT_THAT(near_or_known("qqqq", many, "settings"), ::testing::EndsWith("longest_five."));
  many.push_back("longest_six");
  EXPECT_EQ(near_or_known("qqqq", many, "settings"), "Known settings: b1, a, b2, c, d and 11 more.");
  EXPECT_EQ(near_or_known("qqqq", {std::string(500, 'x')}, "settings").size(), 57u);
  EXPECT_EQ(near_or_known("qqqq", {}, "settings"), "There are no settings.");
}

TEST(SettingsReader, ReadsEveryType) {
  SettingsReader reader({{"a", 1.5},
                         {"b", 3},
                         {"c", true},
                         {"d", "text"},
                         {"e", {1, 2.5}},
                         {"f", 2e3},
                         {"g", {"x", "y"}},
                         {"h", {{"k", 1}}}},
                        "sampler pe");
  EXPECT_DOUBLE_EQ(reader.get("a", 0.0), 1.5);
  EXPECT_EQ(reader.get("b", 0), 3);
  EXPECT_DOUBLE_EQ(reader.get("b", 0.0), 3.0);
  EXPECT_TRUE(reader.get("c", false));
  EXPECT_EQ(reader.get("d", "none"), "text");
  EXPECT_EQ(reader.get("e", std::vector<double>{}), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(reader.get<std::int64_t>("f", 0), 2000);
  EXPECT_EQ(reader.get("g", Names{}), (Names{"x", "y"}));
  EXPECT_EQ(reader.object("h"), (Settings{{"k", 1}}));
  EXPECT_NO_THROW(reader.finish());
}

TEST(SettingsReader, OneNumberIsForAll) {
  SettingsReader reader({{"a", 1.5}, {"b", {1, 2}}, {"c", Settings::array({3})}}, "sampler pe");
  EXPECT_EQ(reader.numbers("a", 0, 2, 0, 9), (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(reader.numbers("b", 0, 2, 0, 9), (std::vector<double>{1, 2}));
  EXPECT_EQ(reader.numbers("c", 0, 2, 0, 9), (std::vector<double>{3, 3}));
  EXPECT_EQ(reader.numbers("d", 7, 2, 0, 9), (std::vector<double>{7, 7}));
}

TEST(SettingsReader, DefaultsAreReportedAsEffective) {
  SettingsReader reader(Settings{{"step_size", 0.2}}, "sampler pe");
  EXPECT_DOUBLE_EQ(reader.positive("step_size", 0.1), 0.2);
  EXPECT_EQ(reader.integer("num_leapfrog", 10, 1, 100), 10);
  EXPECT_EQ(reader.one_of("metric", "unit", {"unit", "dense"}), "unit");
  EXPECT_EQ(reader.seed("seed", 7), 7u);
  EXPECT_EQ(reader.effective(),
            (Settings{{"step_size", 0.2}, {"num_leapfrog", 10}, {"metric", "unit"}, {"seed", 7}}));
  EXPECT_EQ(reader.known(), (Names{"metric", "num_leapfrog", "seed", "step_size"}));
}

TEST(SettingsReader, CopiesKeepTheirOwnName) {
  SettingsReader copy = [] {
    return SettingsReader(Settings{{"x", -1}}, "sampler " + std::string(40, 'q'));
  }();
  EXPECT_NE(complaint([&] { copy.positive("x", 1); }).find("of sampler qqqq"), std::string::npos);
}

struct Refusal {
  Settings value;
  std::function<void(SettingsReader&)> ask;
  std::string need;
};

TEST(SettingsReader, RefusesWrongValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Refusal refusals[] = {
      {"abc", [](auto& r) { r.get("k", 1.0); }, "is \"abc\" (it must be a number)."},
      {true, [](auto& r) { r.get("k", 1.0); }, "is true (it must be a number)."},
      {nullptr, [](auto& r) { r.get("k", 1.0); }, "is null (it must be a number)."},
      {nan, [](auto& r) { r.get("k", 1.0); }, "is nan (it must be a finite number)."},
      {nan, [](auto& r) { r.positive("k", 1.0); }, "(it must be a finite number)."},
      {0, [](auto& r) { r.positive("k", 1.0); }, "is 0 (it must be greater than 0)."},
      {1e300, [](auto& r) { r.positive("k", 1.0); }, "is 1e+300 (it must be a number from 1e-15 to 1e+15"},
      {1e-20, [](auto& r) { r.positive("k", 1.0); }, "is 1e-20 (it must be a number from 1e-15 to 1e+15"},
      {{1, 2, 3}, [](auto& r) { r.numbers("k", 1.0, 2, 0, 9); }, "it must be one number, or 2 of them"},
      {{1, -2}, [](auto& r) { r.numbers("k", 1.0, 2, 0, 9); }, "each must be from 0 to 9"},
      {10, [](auto& r) { r.numbers("k", 1.0, 2, 0, 9); }, "it must be a number from 0 to 9"},
      {-1, [](auto& r) { r.non_negative("k", 1.0); }, "is -1 (it must not be negative)."},
      {1.5, [](auto& r) { r.in_range("k", 0.5, 0, 1); }, "is 1.5 (it must be a number from 0 to 1)."},
      {1.5, [](auto& r) { r.get("k", 1); }, "is 1.5 (it must be a whole number from -2147483648 to"},
      {1e300, [](auto& r) { r.template get<std::int64_t>("k", 1); }, "(it must be a whole number)."},
      {0, [](auto& r) { r.integer("k", 1, 1); }, "is 0 (it must be a whole number, at least 1)."},
      {9, [](auto& r) { r.integer("k", 1, 1, 8); }, "is 9 (it must be a whole number from 1 to 8)."},
      {-1, [](auto& r) { r.seed("k", 1); },
       "is -1 (it must be a whole number from 0 to 18446744073709551615)."},
      {"x1", [](auto& r) { r.seed("k", 1); }, "is \"x1\" (it must be a whole number from 0"},
      {1, [](auto& r) { r.get("k", false); }, "is 1 (it must be true or false)."},
      {1, [](auto& r) { r.get("k", "a"); }, "is 1 (it must be a text; put it in quotes"},
      {0.5, [](auto& r) { r.get("k", std::vector<double>{}); }, "(it must be an array of numbers such as"},
      {{1, "x"},
       [](auto& r) { r.get("k", std::vector<double>{}); },
       "(its entry 2 is \"x\", and all must be finite"},
      {{1, 2}, [](auto& r) { r.get("k", Names{}); }, "(it must be an array of texts such as"},
      {7, [](auto& r) { r.object("k"); }, "is 7 (it must be a table such as"},
      {"dens",
       [](auto& r) {
         r.one_of("k", "unit", {"unit", "dense"});
       },
       "is \"dens\" (it must be one of unit, dense). Did you mean dense?"},
      {3,
       [](auto& r) {
         r.one_of("k", "unit", {"unit", "dense"});
       },
       "is 3 (it must be one of unit, dense). Choose one of them."},
  };
  for (const Refusal& refusal : refusals) {
    SettingsReader reader(Settings{{"k", refusal.value}}, "sampler pe");
    const std::string text = complaint([&] { refusal.ask(reader); });
    EXPECT_TRUE(text.starts_with("setting k of sampler pe is ")) << text;
    EXPECT_NE(text.find(refusal.need), std::string::npos) << text << "\nwanted: " << refusal.need;
  }
}

TEST(SettingsReader, SeedsUseAll64Bits) {
  const std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  SettingsReader reader({{"a", largest}, {"b", "18446744073709551615"}, {"c", 12.0}}, "the run");
  EXPECT_EQ(reader.seed("a", 1), largest);
  EXPECT_EQ(reader.seed("b", 1), largest);
  EXPECT_EQ(reader.seed("c", 1), 12u);
  EXPECT_NE(complaint([&] { reader.integer("a", 1, 0); }).find("whole number"), std::string::npos);
}

TEST(SettingsReader, FinishNamesUnknownKeysAndNearOnes) {
  SettingsReader reader(Settings{{"stepsize", 0.1}}, "sampler pe");
  reader.positive("step_size", 0.1);
  EXPECT_EQ(complaint([&] { reader.finish(); }),
            "setting stepsize of sampler pe is unknown (it would have no effect). Did you mean step_size?");
  SettingsReader bare(Settings{{"x", 1}}, "target funnel");
  EXPECT_EQ(complaint([&] { bare.finish(); }),
            "setting x of target funnel is unknown (it would have no effect). There are no settings.");
}

TEST(SettingsReader, NeedsATable) {
  EXPECT_NE(
      complaint([] { SettingsReader reader(Settings::array({1}), "sampler pe"); }).find("must be a table"),
      std::string::npos);
  EXPECT_NO_THROW(SettingsReader(Settings(), "sampler pe").finish());
}

TEST(SettingsReader, LongValuesAreShortened) {
  EXPECT_EQ(shown(std::string(400, 'x')).size(), 48u);
  EXPECT_EQ(shown("\xff").find("null"), std::string::npos);  // broken UTF-8 must not throw
}

TEST(ParseSet, ReadsJsonOrText) {
  const auto value = [](const std::string& text) { return parse_set("target.k=" + text).value; };
  EXPECT_EQ(value(".5"), 0.5);  // which JSON does not know
  EXPECT_EQ(value("-2."), -2.0);
  EXPECT_EQ(value("1.5.npz"), "1.5.npz");
  EXPECT_EQ(value("2"), 2);
  EXPECT_TRUE(value("2").is_number_integer());
  EXPECT_EQ(value("2.5e-1"), 0.25);
  EXPECT_EQ(value("true"), true);
  EXPECT_EQ(value("[1, 2]"), Settings::array({1, 2}));
  EXPECT_EQ(value("\"7\""), "7");
  EXPECT_EQ(value("simulate:100"), "simulate:100");
  EXPECT_EQ(value("a=b.c"), "a=b.c");
  EXPECT_EQ(value("null"), "null");
  EXPECT_EQ(value("1e999"), "1e999");  // out of a double's range: left to the reader to refuse
  const SetOption option = parse_set("sampler.step_size=0.1");
  EXPECT_EQ(option.scope, "sampler");
  EXPECT_EQ(option.key, "step_size");
  EXPECT_EQ(parse_set("target.a.b=1").key, "a.b");
}

TEST(ParseSet, RefusesOtherForms) {
  for (const char* text : {"", "=", "target", "target.k", "target.=1", "k=1", "target=1", "k=a.b"})
    EXPECT_NE(complaint([&] { parse_set(text); }).find("is incomplete"), std::string::npos) << text;
  EXPECT_NE(complaint([] { parse_set("targets.k=1"); }).find("unknown scope 'targets'"), std::string::npos);
  EXPECT_NE(complaint([] { parse_set("target.k="); }).find("has no value"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::settings_test
