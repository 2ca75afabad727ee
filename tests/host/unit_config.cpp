// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "host/config.hpp"
#include "host/errors.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Each test has a folder of its own, removed at its end.
class ConfigFiles : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::temp_directory_path() / ("lockstep_config_" + name + "_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  RunOptions run_of(const std::string& text) {
    RunOptions run;
    load_run_config(put("run.toml", text), run);
    return run;
  }

  Study study_of(const std::string& text) { return load_study(put("study.toml", text)); }

  template <class Action>
  std::string complaint(Action action) {
    try {
      action();
    } catch (const UserError& error) {
      std::string text = error.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      for (auto at = text.find(folder_.string()); at != std::string::npos; at = text.find(folder_.string()))
        text.erase(at, folder_.string().size() + 1);
      return text;
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  void refuses_run(const std::string& text, const std::string& part) {
    const std::string said = complaint([&] { run_of(text); });
    EXPECT_NE(said.find(part), std::string::npos) << said << "\nwanted: " << part;
  }
  void refuses_study(const std::string& text, const std::string& part) {
    const std::string said = complaint([&] { study_of(text); });
    EXPECT_NE(said.find(part), std::string::npos) << said << "\nwanted: " << part;
  }

  fs::path folder_;
};

const char* const one_setting = "[[setting]]\nlabel = 'a'\ntarget = 't'\nsampler = 's'\n";

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
  EXPECT_TRUE(run.draws && run.resume && run.paper_settings && run.json && run.quiet);
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
  refuses_run("threads = -2", "is -2 (it must be a whole number from 0 to 65536)");
  refuses_run("precision = 'duoble'", "(it must be one of single, mixed, double). Did you mean double?");
  refuses_run("thin = 0", "is 0 (it must be a whole number from 1 to");
  refuses_run("checkpoint = -1", "is -1 (it must not be negative)");
  refuses_run("draws = 1", "is 1 (it must be true or false)");
  refuses_run("target = 3", "is 3 (it must be a text");
  refuses_run("target_settings = 3", "is 3 (it must be a table");
  refuses_run("command = 'smaple'", "(it must be one of sample, evidence, check). Did you mean sample?");
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
  run.draws = run.paper_settings = run.json = run.quiet = true;
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

TEST_F(ConfigFiles, ReadsTheStudyOfTheContract) {
  const Study study = study_of(R"(
name = "table1"
title = "Means of a mixture"
description = "As printed."
replicates = 30
seed = 9
quantities = ["mean[0]", "mean[1]"]
chains = 2
gradients = 1e7
precision = "double"
[[setting]]
label = "a PE N=2"
command = "sample"
target = "mixture20"
target_settings = { scenario = "a" }
data = "file.json"
sampler = "pe"
sampler_settings = { pseudo_samples = 2 }
chains = 1
warmup = 2000
iterations = 50000
published = { "mean[0]" = [4.383, 0.042] }
adaptation = "pooled"
init = "uniform:3"
init_scale = 4
paper_settings = true
[[setting]]
label = "b"
command = "evidence"
target = "funnel"
method = "ct-gibbs"
[[setting]]
label = "c"
target = "funnel"
sampler = "hmc"
precision = "mixed"
[plot]
kind = "scatter"
groups = { a = "A" }
)");
  EXPECT_EQ(study.name, "table1");
  EXPECT_EQ(study.title, "Means of a mixture");
  EXPECT_EQ(study.description, "As printed.");
  EXPECT_EQ(study.replicates, 30);
  EXPECT_EQ(study.seed, 9u);
  EXPECT_EQ(study.quantities, (std::vector<std::string>{"mean[0]", "mean[1]"}));
  EXPECT_EQ(study.source, folder_ / "study.toml");
  EXPECT_EQ(study.plot, (Settings{{"kind", "scatter"}, {"groups", {{"a", "A"}}}}));
  ASSERT_EQ(study.settings.size(), 3u);
  const StudySetting& a = study.settings[0];
  EXPECT_EQ(a.label, "a PE N=2");
  EXPECT_EQ(a.adaptation, "pooled");
  EXPECT_EQ(a.published, (Settings{{"mean[0]", {4.383, 0.042}}}));
  EXPECT_EQ(a.run.command, "sample");
  EXPECT_EQ(a.run.target, "mixture20");
  EXPECT_EQ(a.run.sampler, "pe");
  EXPECT_EQ(a.run.data, "file.json");
  EXPECT_EQ(a.run.target_settings, (Settings{{"scenario", "a"}}));
  EXPECT_EQ(a.run.sampler_settings, (Settings{{"pseudo_samples", 2}}));
  EXPECT_EQ(a.run.chains, 1);
  EXPECT_EQ(a.run.warmup, 2000);
  EXPECT_EQ(a.run.iterations, 50000);
  EXPECT_EQ(a.run.gradients, 0);  // its iterations replace the budget of the study
  EXPECT_EQ(a.run.precision, "double");
  EXPECT_EQ(a.run.init, "uniform:3");
  EXPECT_EQ(a.run.init_scale, 4);
  EXPECT_TRUE(a.run.paper_settings);
  EXPECT_EQ(a.run.seed, 9u);
  const StudySetting& b = study.settings[1];
  EXPECT_EQ(b.run.command, "evidence");
  EXPECT_EQ(b.run.sampler, "ct-gibbs");
  EXPECT_EQ(b.run.chains, 2);
  EXPECT_EQ(b.run.gradients, 1e7);
  EXPECT_EQ(b.run.se, 0);
  EXPECT_EQ(b.adaptation, "replicate");
  EXPECT_EQ(study.settings[2].run.precision, "mixed");
}

TEST_F(ConfigFiles, StudyDefaults) {
  const Study study =
      study_of(std::string(one_setting) + "[[setting]]\nlabel = 'e'\ncommand = 'evidence'\ntarget = 't'\n");
  EXPECT_EQ(study.name, "study");
  EXPECT_EQ(study.replicates, Study().replicates);
  EXPECT_EQ(study.settings[0].run.warmup, RunOptions().warmup);
  EXPECT_EQ(study.settings[1].run.sampler, "auto");
  EXPECT_EQ(study.settings[1].run.se, 0.02);
}

TEST_F(ConfigFiles, RefusesBadStudies) {
  const std::string good = one_setting;
  refuses_study("name = ", "study.toml, line 1: this is not TOML");
  refuses_study("name = 'x'", "study.toml has no [[setting]]");
  refuses_study("setting = 3", "study.toml has no [[setting]]");
  refuses_study("setting = [3]", "study.toml has no [[setting]]");
  refuses_study("[[settings]]\nlabel = 'a'", "settings (study.toml, line 1) is unknown");
  refuses_study("[[settings]]\nlabel = 'a'", "Did you mean setting?");
  refuses_study("replicate = 3\n" + good,
                "replicate (study.toml, line 1) is unknown (it would have no effect). "
                "Did you mean replicates?");
  refuses_study("replicates = 0\n" + good,
                "replicates (study.toml, line 1) is 0 (it must be a whole number from 1");
  refuses_study("seed = 'x'\n" + good, "seed (study.toml, line 1) is \"x\"");
  refuses_study("name = ''\n" + good,
                "name (study.toml, line 1) is \"\" (the files of a study are known by it)");
  refuses_study("quantities = [1]\n" + good,
                "quantities (study.toml, line 1) is [1] (it must be an array of texts");
  refuses_study("plot = 1\n" + good, "plot (study.toml, line 1) is 1 (it must be a table");
  refuses_study("\niterations = 0\n" + good,
                "iterations (study.toml, line 2) is 0 (it must be a whole number, at least 1)");
  refuses_study("chains = 0\n" + good + "chains = 3", "chains (study.toml, line 1) is 0");
  refuses_study(good + "iterations = -5", "iterations (study.toml, line 5) is -5");
  refuses_study(good + "smapler_settings = {}",
                "smapler_settings (study.toml, line 5) is unknown in a setting (it would "
                "have no effect). Did you mean sampler_settings?");
  refuses_study(good + "threads = 2", "threads (study.toml, line 5) is unknown in a setting");
  refuses_study(good + "adaptation = 'pool'", "(it must be one of replicate, pooled). Did you mean pooled?");
  refuses_study(good + "published = { 'mean[0]' = 3 }",
                "published (study.toml, line 5): mean[0] is 3 (a published value");
  refuses_study(good + "published = { m = [1, -1] }",
                "m is [1,-1] (a published value is [mean, sd] with sd >= 0)");
  refuses_study(good + "published = { m = [1, nan] }", "(a published value is [mean, sd]");
  refuses_study(good + "command = 'check'",
                "command (study.toml, line 5) is \"check\" (a study collects estimates");
  refuses_study(good + "method = 'x'", "method (study.toml, line 5)");
  refuses_study(good + good, "label (study.toml, line 6) is 'a' like label (study.toml, line 2)");
  refuses_study("[[setting]]\ntarget = 't'\nsampler = 's'", "a setting (study.toml, line 1) has no label");
  refuses_study("[[setting]]\nlabel = \"a\\nb\"", "label (study.toml, line 2) holds a line end");
  refuses_study("[[setting]]\nlabel = 'a'\nsampler = 's'", "setting 'a' (study.toml, line 1) has no target");
  refuses_study("[[setting]]\nlabel = 'a'\ntarget = 't'", "setting 'a' (study.toml, line 1) has no sampler");
}

}  // namespace
}  // namespace lockstep
