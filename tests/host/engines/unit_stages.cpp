// SPDX-License-Identifier: Apache-2.0
// What a run has behind it is not done again, and what it was in the midst of goes on.
#include "host/engines/stages.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "host/util/interrupt.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep {
namespace {

struct Number {
  double value = 0;
  template <class Archive>
  void fields(Archive& archive) {
    archive("value", value);
  }
};

class StagesOfARun : public testing::FolderTest {
 protected:
  CheckpointPlan plan(bool resume) const { return {folder_ / "checkpoint", "this run", 1e-9, resume}; }
};

/// Two stages, the second of them made of one more and a loop, and a loop: what was made, and how far they
/// came.
struct Work {
  std::vector<std::string> made = {};
  int inner = 0, outer = 0, stop_inner = 99, stop_outer = 99;

  void run(Stages& stages) {
    const Number& a = make(stages, "a", 1);
    Stage<Number> b(stages, "b");
    if (!b.done()) {
      const Number& in_b = make(stages, "a of b", 10);
      loop(stages, inner, stop_inner);
      made.push_back("b");
      b.keep({a.value + in_b.value + inner});
    }
    EXPECT_EQ(b.result().value, 1 + 10 + 5);
    loop(stages, outer, stop_outer);
  }

 private:
  /// The stage that the first letter names.
  const Number& make(Stages& stages, const std::string& name, double value) {
    Stage<Number> stage(stages, name.substr(0, 1));
    if (stage.done()) return stage.result();
    made.push_back(name);
    return stage.keep({value});
  }
  static void loop(Stages& stages, int& t, int stop) {
    const auto fields = [&](Checkpoint& c) { c("t", t); };
    stages.take_up("loop", fields);
    while (t < 5) {
      ++t;
      if (stages.due(false)) stages.save("loop", false, fields);
      if (t == stop) throw Interrupted();
    }
  }
};

TEST_F(StagesOfARun, GoOnInTheLoopTheyWereIn) {
  Work first{.stop_inner = 3};
  Stages stages(plan(false));
  EXPECT_THROW(first.run(stages), Interrupted);
  EXPECT_EQ(first.made, (std::vector<std::string>{"a", "a of b"}));
  Work second{.stop_outer = 2};
  Stages gone_on(plan(true));
  EXPECT_THROW(second.run(gone_on), Interrupted);
  EXPECT_EQ(second.made, (std::vector<std::string>{"b"})) << "from iteration 3 of its loop on";
  Work third;
  Stages to_the_end(plan(true));
  third.run(to_the_end);
  EXPECT_TRUE(third.made.empty());
  EXPECT_EQ(third.inner, 0) << "a finished stage is not run through";
  EXPECT_EQ(third.outer, 5);
}

TEST_F(StagesOfARun, WithoutAFileNothingIsKept) {
  Work work;
  Stages stages;
  work.run(stages);
  EXPECT_EQ(work.made, (std::vector<std::string>{"a", "a of b", "b"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(StagesOfARun, WhatAnInterruptedRunGoesOnToMakeIsNotSaved) {
  int t = 1;
  const auto fields = [&](Checkpoint& c) { c("t", t); };
  Stages stages(plan(false));
  if (stages.due(true)) stages.save("loop", true, fields);
  t = 2;  // of half a run
  if (stages.due(true)) stages.save("loop", true, fields);
  t = 0;
  EXPECT_TRUE(Stages(plan(true)).take_up("loop", fields));
  EXPECT_EQ(t, 1);
  EXPECT_FALSE(Stages(plan(true)).take_up("another", fields));
}

TEST_F(StagesOfARun, TextsAndMatricesComeBack) {
  struct Kinds {
    std::string text = "a base";
    Eigen::MatrixXd matrix = Eigen::MatrixXd::Random(3, 2), none;
    Eigen::VectorXd vector = Eigen::VectorXd::Random(4);
    std::vector<Eigen::VectorXd> list = {vector, 2 * vector};
    void fields(Checkpoint& c) {
      c("text", text);
      c("matrix", matrix);
      c("none", none);
      c("vector", vector);
      c("list", list);
    }
  } out, in{"", {}, Eigen::MatrixXd::Ones(1, 1), {}, {}};
  Checkpoint file;
  out.fields(file);
  file.write(folder_ / "checkpoint", "this run");
  Checkpoint read(folder_ / "checkpoint", "this run");
  in.fields(read);
  EXPECT_EQ(in.text, out.text);
  EXPECT_EQ(in.matrix, out.matrix);
  EXPECT_EQ(in.none.size(), 0);
  EXPECT_EQ(in.vector, out.vector);
  EXPECT_EQ(in.list, out.list);
}

}  // namespace
}  // namespace lockstep
