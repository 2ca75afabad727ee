// SPDX-License-Identifier: Apache-2.0
#include "tests/support/config_files.hpp"

#include <gtest/gtest.h>

#include "host/engines/points_file.hpp"
#include "host/modes/given_points.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::ConfigFiles;

TEST_F(ConfigFiles, ReadsEveryRunOption) {
  put("start.json", "{}");
  put("data.json", "{}");
  const RunOptions run = run_of(R"(
command = "evidence"
target = "funnel"
method = "ais"
data = "data.json"
data-dir = "elsewhere"
chains = 8
warmup = 0
gradients = 5e6
se = 0.1
seed = 42
init = "start.json"
init-scale = 2
device = "cpu"
threads = 3
precision = "double"
out = "o"
draws = true
thin = 2
checkpoint = 30
resume = true
paper_settings = true
json = true
quiet = true
target_settings = { dim = 3, scenario = "b", list = [1, 2.5] }
[sampler_settings]
levels = 7
)");
  EXPECT_EQ(run.command, "evidence");
  EXPECT_EQ(run.target, "funnel");
  EXPECT_EQ(run.sampler, "ais");
  EXPECT_EQ(run.data, folder_ / "data.json");
  EXPECT_EQ(run.data_dir, "elsewhere");
  EXPECT_EQ(run.chains, 8);
  EXPECT_EQ(run.warmup, 0);
  EXPECT_EQ(run.gradients, 5e6);
  EXPECT_EQ(run.se, 0.1);
  EXPECT_EQ(run.seed, 42u);
  EXPECT_EQ(run.init, (folder_ / "start.json").string());
  EXPECT_EQ(run.init_scale, 2);
  EXPECT_EQ(run.device, "cpu");
  EXPECT_EQ(run.threads, 3);
  EXPECT_EQ(run.precision, "double");
  EXPECT_EQ(run.out, "o");
  EXPECT_EQ(run.thin, 2);
  EXPECT_EQ(run.checkpoint, 30);
  EXPECT_EQ(run.draws, 1000);
  EXPECT_TRUE(run.resume && run.paper_settings && run.json && run.quiet);
  EXPECT_EQ(run.target_settings, (Settings{{"dim", 3}, {"scenario", "b"}, {"list", {1, 2.5}}}));
  EXPECT_EQ(run.sampler_settings, (Settings{{"levels", 7}}));
}

TEST_F(ConfigFiles, BudgetsReplaceEachOther) {
  EXPECT_EQ(run_of("iterations = 5e4").iterations, 50000);
  RunOptions run;
  run.gradients = 1e6;
  load_run_config(put("run.toml", "iterations = 7"), run);
  EXPECT_EQ(run.gradients, 0);
  EXPECT_EQ(run.iterations, 7);
}

TEST_F(ConfigFiles, EvidenceWithoutBudgetStopsAtItsError) {
  RunOptions run = run_of("command = 'evidence'");
  EXPECT_EQ(run.se, 0.02);
  EXPECT_EQ(run.gradients, 1e8);
  run = run_of("command = 'evidence'\nse = 0.5");
  EXPECT_EQ(run.se, 0.5);
  EXPECT_EQ(run.gradients, 1e8);
  run = run_of("command = 'evidence'\niterations = 10");
  EXPECT_EQ(run.se, 0);
  EXPECT_EQ(run.gradients, 0);
  run = run_of("command = 'evidence'\ngradients = 10");
  EXPECT_EQ(run.se, 0);
  EXPECT_EQ(run.gradients, 10);
  run = run_of("command = 'sample'");
  EXPECT_EQ(run.se, 0);
  EXPECT_EQ(run.gradients, 0);
}

TEST_F(ConfigFiles, RefusesBadRunOptions) {
  refuses_run("chains = ", "run.toml, line 1: this is not TOML (");
  refuses_run("chains = 1\nchains = 2", "run.toml, line 2: this is not TOML (");
  refuses_run("target = 't'\nchain = 3",
              "chain (run.toml, line 2) is unknown (it would have no effect). Did you mean chains?");
  refuses_run("chains = 0", "chains (run.toml, line 1) is 0 (it must be a whole number from 1 to");
  refuses_run("chains = 1.5", "chains (run.toml, line 1) is 1.5 (it must be a whole number");
  refuses_run("chains = 5000000000", "(it must be a whole number from 1 to 2147483647)");
  refuses_run("warmup = -1", "is -1 (it must be a whole number, at least 0)");
  refuses_run("iterations = 0", "is 0 (it must be a whole number, at least 1)");
  refuses_run("iterations = 'many'", "is \"many\" (it must be a whole number, at least 1)");
  refuses_run("gradients = 0", "is 0 (it must be a number from 1 to 1e+18)");
  refuses_run("gradients = 5\niterations = 5",
              "iterations (run.toml, line 2) and gradients (run.toml, line 1) are both given");
  refuses_run("se = 0", "se (run.toml, line 1) is 0 (it must be greater than 0)");
  refuses_run("se = nan", "se (run.toml, line 1) is nan (it must be a finite number)");
  refuses_run("seed = -1", "is -1 (it must be a whole number from 0 to 18446744073709551615)");
  refuses_run("init = 'scuot'", "init (run.toml, line 1) is 'scuot' (it must be scout, uniform:R or a file");
  for (const char* init :
       {"uniform", "uniform:", "uniform:0", "uniform:-1", "uniform:2x", "uniform:inf", "uniform2"})
    refuses_run("init = '" + std::string(init) + "'", "(starts are drawn uniformly from [-R, R]");
  refuses_run("init_scale = 0", "is 0 (it must be greater than 0)");
  refuses_run("device = 'gpu'", "is \"gpu\" (it must be one of auto, cpu, cuda). Did you mean cpu?");
  refuses_run("threads = -2", "is -2 (it must be a whole number from 0 to 1024)");
  refuses_run("precision = 'duoble'", "(it must be one of single, mixed, double). Did you mean double?");
  refuses_run("thin = 0", "is 0 (it must be a whole number from 1 to");
  refuses_run("checkpoint = -1", "is -1 (it must not be negative)");
  refuses_run("draws = 0", "is 0 (it must be a whole number, at least 1)");
  refuses_run("draws = 'some'", "is \"some\" (it must be a whole number from 1, or all)");
  EXPECT_EQ(run_of("draws = 'all'").draws, kAllDraws);
  EXPECT_EQ(run_of("draws = 77").draws, 77);
  EXPECT_EQ(run_of("draws = false").draws, 0);
  refuses_run("target = 3", "is 3 (it must be a text");
  refuses_run("target_settings = 3", "is 3 (it must be a table");
  refuses_run("command = 'smaple'",
              "(it must be one of sample, evidence, check, modes). Did you mean sample?");
  refuses_run("sampler = 'a'\nmethod = 'b'",
              "method (run.toml, line 2) and sampler (run.toml, line 1) say the same");
  EXPECT_NE(complaint([&] {
              RunOptions run;
              load_run_config(folder_ / "none.toml", run);
            }).find("none.toml"),
            std::string::npos);
}

TEST_F(ConfigFiles, RunTomlRepeatsTheRun) {
  RunOptions run;
  run.command = "evidence";
  run.target = "odd \"name\" \\ \n \x01 \x7F \xC3\xA9";
  run.sampler = "ais";
  run.target_settings = {{"dim", 3},
                         {"x.y", 1.0 / 3},
                         {"", -1e-5},
                         {"list", {{1, 2}, {3, 4}}},
                         {"nested", {{"a", true}}},
                         {"t", "2"},
                         {"tiny", 5e-324},
                         {"huge", 1.7976931348623157e308}};
  run.sampler_settings = {{"temperatures", std::vector<double>(60, 0.1)}, {"big", 18446744073709551615u}};
  run.data = "not/there.json";
  run.data_dir = "dir";
  run.chains = 3;
  run.warmup = 5;
  run.iterations = 77;
  run.se = 0.1;
  run.seed = 18446744073709551615u;
  run.init = "uniform:2.5";
  run.init_scale = 0.1;
  run.device = "cpu";
  run.threads = 2;
  run.precision = "single";
  run.out = "o";
  run.draws = 5000;
  run.weighted_draws = run.paper_settings = run.json = run.quiet = true;
  run.thin = 4;
  run.checkpoint = 1.5;
  RunOptions again = run_of(write_run_toml(run));
  EXPECT_EQ(again.sampler_settings["big"], "18446744073709551615");  // the one value that TOML cannot say
  again.sampler_settings["big"] = run.sampler_settings["big"];
  EXPECT_EQ(run_option_values(again), run_option_values(run)) << write_run_toml(run);

  run.gradients = 12345678.0;
  run.iterations = RunOptions().iterations;
  run.sampler_settings.erase("big");
  EXPECT_EQ(run_option_values(run_of(write_run_toml(run))), run_option_values(run));
  EXPECT_EQ(run_option_values(run_of(write_run_toml(RunOptions()))), run_option_values(RunOptions()));
}

TEST_F(ConfigFiles, RunTomlStartsAfreshAndNamesFilesInFull) {
  RunOptions run;
  run.resume = true;
  run.data = fs::relative(put("d.json", "{}"));
  run.init = fs::relative(put("i.json", "{}")).string();
  const RunOptions again = run_of(write_run_toml(run));
  EXPECT_FALSE(again.resume);
  EXPECT_EQ(again.data, fs::weakly_canonical(folder_ / "d.json"));
  EXPECT_EQ(again.init, fs::weakly_canonical(folder_ / "i.json").string());
  EXPECT_NE(write_run_toml(run).find("lockstep sample --config run.toml"), std::string::npos);
}

TEST_F(ConfigFiles, StrongerOptionsWinAndSettingsMerge) {
  GivenOptions file, line;
  file.set("chains", 4, "chains (f, line 1)");
  file.set("gradients", 1e6, "gradients (f, line 2)");
  file.set("target_settings", Settings{{"dim", 2}, {"seed", 1}}, "target_settings (f, line 3)");
  line.set("iterations", 10, "--iterations");
  line.set("target_settings", Settings{{"dim", 5}}, "--set");
  file.override_with(line);
  EXPECT_EQ(file.values,
            (Settings{{"chains", 4}, {"iterations", 10}, {"target_settings", {{"dim", 5}, {"seed", 1}}}}));
  EXPECT_EQ(file.name("iterations"), "--iterations");
  EXPECT_EQ(file.name("chains"), "chains (f, line 1)");
}

// The parser calls itself for each of them, and so does what walks through its tables.
TEST_F(ConfigFiles, TablesAndArraysNestAFewTimes) {
  const int many = 300000;
  std::string dotted = "a", inner;
  for (int i = 0; i < many; ++i) dotted += ".a";
  for (int i = 0; i < 30; ++i) inner += "{a.b.c.d = ";
  const std::string nested = "more than 64 tables or arrays in each other";
  refuses_run("\n" + dotted + " = 1\n", "run.toml, line 2: " + nested);
  refuses_run("[" + dotted + "]\nb = 1\n", nested);
  refuses_run("x = {y = '" + std::string(100, '.') + "', " + dotted + " = 1}\n", nested);
  // Quoted texts end where TOML says, so that they hide no key.
  refuses_run("x = {y = '''a'''', " + dotted + " = 1}\n", nested);
  refuses_run("x = {y = \"\\\"\", \"a,b\"" + dotted.substr(1) + " = 1}\n", nested);
  refuses_run("x = " + inner + "1" + std::string(30, '}') + "\n", nested);
  refuses_run("x = " + std::string(many, '[') + std::string(many, ']') + "\n", "this is not TOML");
  // A header without a key ends no program.
  for (const char* header : {"[=]", "[[ =a]]", "[\u2028x]"}) refuses_run(header, "line 1: this is not TOML");
  // Dots elsewhere are no keys.
  const std::string dots(1000, '.');
  refuses_run("# " + dots + "\ntarget = \"" + dots + "\"\nsampler = '''\n" + dots + "'''\nnone = 1\n",
              "none");
}

// std::stod refuses numbers so near to zero.
TEST_F(ConfigFiles, StartsMayBeTiny) {
  EXPECT_TRUE(read_starts(run_of("init = \"uniform:1e-320\"").init, 2).empty());
}

}  // namespace
}  // namespace lockstep
