// SPDX-License-Identifier: Apache-2.0
// What the command line refuses, and how it says so.
#include <gtest/gtest.h>

#include "tests/support/command_line.hpp"

namespace lockstep {
namespace {

using namespace testing;

TEST(CommandLineTest, RefusesUnknownNames) {
  refuses({"sampel"}, "'sampel' is no command of lockstep (so there is nothing to do). Did you mean sample?");
  refuses({"sampel", "--target", "t"}, "Did you mean sample?");
  refuses({"qqqqq"}, "Known commands: targets, samplers, devices, sample, evidence, study, modes, check.");
  refuses({"--target", "t"}, "--target stands before the command (options belong to one).");
  refuses(sample({"--chians", "3"}),
          "--chians is no option of lockstep sample (it would have no effect). Did you mean --chains?");
  refuses(sample({"--chians=3"}), "--chians is no option");
  refuses(sample({"--qqqqqq"}), "See lockstep sample --help.");
  refuses(sample({"-c", "3"}), "-c is no option of lockstep sample");
  refuses(sample({"extra"}), "'extra' is one word too many for lockstep sample");
  refuses(sample({"evidence"}), "'evidence' is one word too many for lockstep sample");
  refuses({"targets", "a", "b"}, "'b' is one word too many for lockstep targets");
  refuses({"devices", "--mesure"}, "Did you mean --measure?");
  refuses({"evidence", "--target", "t", "--sampler", "s"},
          "--sampler is no option of lockstep evidence (it would have "
          "no effect). Did you mean --method?");
  refuses({"sample", "--target", "t", "--method", "s"}, "Did you mean --sampler?");
}

TEST(CommandLineTest, RefusesMissingAndRepeatedValues) {
  refuses(sample({"--chains"}), "--chains has no value (it needs one). Write --chains N.");
  refuses(sample({"--out", "--draws"}), "--out is followed by --draws (it needs a value). Write --out DIR.");
  refuses(sample({"--out="}), "--out has no value (it needs one). Write --out DIR.");
  refuses(sample({"--out", ""}), "--out is followed by nothing (it needs a value). Write --out DIR.");
  refuses(sample({"--set", "--draws"}),
          "--set is followed by --draws (it needs a value). Write --set SCOPE.KEY=VALUE.");
  refuses(sample({"--chains", "3", "--chains", "4"}),
          "--chains is given 2 times (only one value can count). Keep one.");
  refuses(sample({"--set", "sampler.x=1", "--set", "sampler.x=2"}),
          "--set sampler.x is given twice (only one value can count). Keep one.");
  EXPECT_NO_THROW(parse(sample({"--set", "sampler.x=1", "--set", "target.x=2"})));
  refuses({"sample", "--sampler", "s"}, "lockstep sample has no target (there is nothing to work on).");
  refuses({"evidence"}, "lockstep evidence has no target");
  refuses({"check"}, "lockstep check has no target");
  EXPECT_EQ(parse({"sample", "--target", "t"}).run.sampler, "pe");
}

TEST(CommandLineTest, RefusesBadValues) {
  refuses(sample({"--chains", "0"}),
          "--chains is 0 (it must be a whole number from 1 to 2147483647). Correct it, or "
          "leave it out for its default.");
  refuses(sample({"--chains", "1.5"}), "--chains is 1.5 (it must be a whole number");
  refuses(sample({"--chains", "many"}), "--chains is \"many\" (it must be a whole number");
  refuses(sample({"--chains", "[1]"}), "--chains is [1] (it must be a whole number");
  refuses(sample({"--warmup", "-1"}), "--warmup is -1 (it must be a whole number, at least 0)");
  refuses(sample({"--iterations", "0"}), "--iterations is 0 (it must be a whole number, at least 1)");
  refuses(sample({"--gradients", "0"}), "--gradients is 0 (it must be a number from 1 to 1e+18)");
  refuses(sample({"--gradients", "9", "--iterations", "9"}),
          "--iterations and --gradients are both given (they are two "
          "ways to say how long a run is). Keep one.");
  refuses(sample({"--se", "0"}), "--se is 0 (it must be greater than 0)");
  refuses(sample({"--se", "nan"}), "--se is \"nan\" (it must be a number)");
  refuses(sample({"--seed", "-1"}),
          "--seed is -1 (it must be a whole number from 0 to 18446744073709551615)");
  refuses(sample({"--seed", "one"}), "--seed is \"one\" (it must be a whole number from 0");
  refuses(sample({"--seed", "18446744073709551616"}),
          "--seed is 1.8446744073709552e+19 (it must be a whole number");
  refuses(sample({"--init", "scuot"}),
          "--init is 'scuot' (it must be scout, uniform:R or a file of starting positions");
  refuses(sample({"--init", "uniform:-2"}),
          "--init is 'uniform:-2' (starts are drawn uniformly from [-R, R]");
  refuses(sample({"--init-scale", "0"}), "--init-scale is 0 (it must be greater than 0)");
  refuses(sample({"--device", "gpu"}),
          "--device is \"gpu\" (it must be one of auto, cpu, cuda). Did you mean cpu?");
  refuses(sample({"--threads", "-1"}), "--threads is -1 (it must be a whole number from 0 to 1024)");
  refuses(sample({"--threads", "60000"}), "--threads is 60000 (it must be a whole number from 0 to 1024)");
  refuses(sample({"--precision", "float"}),
          "--precision is \"float\" (it must be one of single, mixed, double). Choose");
  refuses(sample({"--thin", "0"}), "--thin is 0 (it must be a whole number from 1");
  refuses(sample({"--checkpoint", "-1", "--out", "o"}), "--checkpoint is -1 (it must not be negative)");
  refuses(sample({"--quiet=perhaps"}), "--quiet is \"perhaps\" (it must be true or false)");
  refuses(sample({"--set", "dim=3"}),
          "--set dim=3 is incomplete (a setting needs a scope, a key and a value)");
  refuses(sample({"--set", "targt.dim=3"}), "--set targt.dim=3 has the unknown scope 'targt'");
  refuses(sample({"--set", "target.dim="}), "--set target.dim= has no value");
}

TEST(CommandLineTest, RefusesFilesWithoutAPlace) {
  refuses(sample({"--json", "--draws"}),
          "--draws with --json has no --out (standard output is for the summary alone, so the "
          "draws would be lost). Add --out DIR.");
  refuses(sample({"--draws"}), "--draws has no --out (the draws would be lost). Add --out DIR.");
  refuses(sample({"--resume"}),
          "--resume has no --out (a run resumes from the checkpoint there). Add --out DIR.");
  refuses({"sample", "--resume", "--out", "no-such-folder"},
          "no-such-folder holds no run to resume (there is no no-such-folder/run.toml).");
  refuses(sample({"--checkpoint", "5"}),
          "--checkpoint has no --out (checkpoints are kept there). Add --out DIR.");
  refuses(sample({"--thin", "2"}),
          "--thin has no --draws (it thins stored draws; moments take every iteration).");
  refuses(sample({"--warmup-draws", "--out", "o"}), "--warmup-draws has no --draws");
  EXPECT_NO_THROW(parse(sample({"--json", "--draws", "--thin", "2", "--resume", "--out", "o"})));
}

}  // namespace
}  // namespace lockstep
