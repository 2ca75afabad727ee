// SPDX-License-Identifier: Apache-2.0
// Classes as JSON and back, whatever is unknown in them.
#include "host/util/json_archive.hpp"

#include <gtest/gtest.h>

namespace lockstep::json_archive_test {
namespace {

using Json = nlohmann::ordered_json;

struct Part {
  double a = NAN;
  int count = 0;
  template <class Archive>
  void fields(Archive& archive) {
    archive("a", a);
    archive("count", count);
  }
};

struct Whole {
  double number = NAN, whole = NAN;
  std::string text;
  bool flag = false;
  std::vector<std::string> list, some;
  std::vector<double> values, matrix;
  std::vector<std::array<double, 2>> intervals;
  std::array<double, 2> interval = {NAN, NAN};
  std::optional<int> maybe;
  NamedNumbers named;
  std::vector<Part> parts;
  Estimate unknown, kept;
  NamedFigures figures;
  template <class Archive>
  void fields(Archive& archive) {
    archive("number", number);
    archive.whole("whole", whole);
    archive("text", text);
    archive("flag", flag);
    archive("list", list);
    archive.some("some", some);
    archive("values", values);
    archive.matrix("matrix", matrix);
    archive("intervals", intervals);
    archive("interval", interval);
    archive("maybe", maybe);
    archive("named", named);
    archive("parts", parts);
    archive("unknown", unknown);
    archive.always("kept", kept);
    archive.rest(figures);
  }
};

Whole full() {
  Whole w;
  w.number = 0.1;
  w.whole = 7;
  w.text = "t";
  w.flag = true;
  w.list = w.some = {"a", "b"};
  w.values = {1, NAN, 3};
  w.matrix = {1, 2, NAN, NAN};
  w.intervals = {{1, 2}, {NAN, NAN}, {NAN, 3}};
  w.interval = {-1, 1};
  w.maybe = 3;
  w.named = {{"z", 1}, {"a", 2}};
  w.parts = {{1, 2}, {NAN, 3}};
  w.kept = {1, 0.5};
  w.figures = {
      {"two", Estimate{1, 2}}, {"one", 1.0}, {"n", std::int64_t(4)}, {"v", std::vector<double>{1, 2}}};
  return w;
}

TEST(JsonArchive, WritesMembersInOrder) {
  EXPECT_EQ(to_json(full()).dump(),
            R"({"number":0.1,"whole":7,"text":"t","flag":true,"list":["a","b"],"some":["a","b"],)"
            R"("values":[1.0,null,3.0],"matrix":[[1.0,2.0],null],"intervals":[[1.0,2.0],null,[null,3.0]],)"
            R"("interval":[-1.0,1.0],"maybe":3,"named":{"z":1.0,"a":2.0},)"
            R"("parts":[{"a":1.0,"count":2},{"count":3}],"kept":{"estimate":1.0,"se":0.5},)"
            R"("two":{"estimate":1.0,"se":2.0},"one":1.0,"n":4,"v":[1.0,2.0]})");
}

TEST(JsonArchive, LeavesOutWhatIsUnknown) {
  EXPECT_EQ(to_json(Whole()).dump(), R"({"list":[],"kept":{}})");
  Whole w;
  w.number = INFINITY;
  w.values = {NAN, INFINITY};
  w.named = {{"a", NAN}};
  w.figures = {{"one", NAN}, {"two", Estimate()}, {"v", std::vector<double>{NAN}}};
  EXPECT_EQ(to_json(w).dump(), R"({"list":[],"kept":{}})");
}

TEST(JsonArchive, ReadsBackWhatItWrote) {
  for (const Whole& w : {full(), Whole()}) {
    const Json once = to_json(w);
    EXPECT_EQ(to_json(from_json<Whole>(once)).dump(), once.dump());
  }
  const auto w = from_json<Whole>(to_json(full()));
  EXPECT_TRUE(std::isnan(w.values[1]) && std::isnan(w.matrix[2]) && std::isnan(w.parts[1].a));
  EXPECT_EQ(w.figures.size(), 4u);
  EXPECT_EQ(std::get<std::int64_t>(w.figures[2].second), 4);
}

}  // namespace
}  // namespace lockstep::json_archive_test
