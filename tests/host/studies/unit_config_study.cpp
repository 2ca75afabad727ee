// SPDX-License-Identifier: Apache-2.0
#include "tests/support/config_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "host/options/evidence_config.hpp"
#include "host/util/errors.hpp"

namespace lockstep {
namespace {

using testing::ConfigFiles;

const char* const one_setting = "[[setting]]\nlabel = 'a'\ntarget = 't'\nsampler = 's'\n";

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

TEST_F(ConfigFiles, WhatAStudySetsForAllIsForThoseThatTakeIt) {
  const Study study = study_of(R"(
chains = 64
iterations = 500
warmup = 77
[[setting]]
label = "{method}"
command = "evidence"
target = "mixture20"
method = ["st", "pt", "ti", "ais", "smc"]
[[setting]]
label = "plain"
target = "mixture20"
sampler = "hmc"
[[setting]]
label = "auto"
command = "evidence"
target = "mixture20"
)");
  ASSERT_EQ(study.settings.size(), 7u);
  // Every setting is one that evidence takes; the levels of pt and ti are their chains, ais and smc are one
  // pass.
  for (const StudySetting& s : study.settings) {
    RunOptions run = s.run;
    if (run.command == "evidence") {
      EXPECT_NO_THROW(evidence_config(run, 2, Tails::gaussian)) << s.label;
    }
    const bool chains = s.label == "st" || s.label == "plain" || s.label == "auto";
    EXPECT_EQ(s.run.chains, chains ? 64 : 0) << s.label;
    const bool once = s.label == "ais" || s.label == "smc";
    EXPECT_EQ(s.run.gradients, once ? 1e8 : 0) << s.label;
    EXPECT_EQ(s.run.iterations, once ? RunOptions().iterations : 500) << s.label;
    EXPECT_EQ(s.run.warmup, s.label == "plain" ? 77 : RunOptions().warmup) << s.label;
  }
  // What a setting says itself is not passed over.
  const Study own =
      study_of("[[setting]]\nlabel = 'a'\ncommand = 'evidence'\ntarget = 't'\nmethod = 'pt'\nchains = 64\n");
  RunOptions run = own.settings[0].run;
  EXPECT_THROW(evidence_config(run, 2, Tails::gaussian), UserError);
}

TEST_F(ConfigFiles, ListsInASettingStandForEveryCombination) {
  const Study study = study_of(R"(
[[setting]]
label = "{data} {method} G={gradients} C={chains}"
command = "evidence"
target = "boltzmann"
data = ["some.folder/sys0", "some.folder/sys1.json"]
method = ["st", "ct-gibbs"]
gradients = [100000, 2.5e6]
chains = [8, 16]
[[setting]]
label = "{sampler} once at {gradients} on {data}"
target = "t"
sampler = "s"
gradients = 1e7
data = "a/b/"
)");
  ASSERT_EQ(study.settings.size(), 17u);
  EXPECT_EQ(study.settings[0].label, "sys0 st G=1e5 C=8");
  EXPECT_EQ(study.settings[1].label, "sys0 st G=1e5 C=16");
  EXPECT_EQ(study.settings[2].label, "sys0 st G=2.5e6 C=8");
  EXPECT_EQ(study.settings[4].label, "sys0 ct-gibbs G=1e5 C=8");
  const StudySetting& last = study.settings[15];
  EXPECT_EQ(last.label, "sys1 ct-gibbs G=2.5e6 C=16");
  EXPECT_EQ(last.run.data, "some.folder/sys1.json");
  EXPECT_EQ(last.run.sampler, "ct-gibbs");
  EXPECT_EQ(last.run.gradients, 2.5e6);
  EXPECT_EQ(last.run.chains, 16);
  EXPECT_EQ(study.settings[16].label, "s once at 1e7 on b");
}

TEST_F(ConfigFiles, ListsInTargetSettingsStandForEveryCombination) {
  const Study study = study_of(R"(
[[setting]]
label = "{sampler} split={split} {scenario}"
target = "t"
target_settings = { split = [1, 2], scenario = ["a", "b"], dim = 3 }
sampler = ["hmc", "pe"]
)");
  ASSERT_EQ(study.settings.size(), 8u);
  std::vector<std::string> labels;
  for (const StudySetting& s : study.settings) labels.push_back(s.label);
  EXPECT_EQ(labels[0], "hmc split=1 a");
  EXPECT_EQ(std::set(labels.begin(), labels.end()).size(), 8u);
  const auto last = std::find(labels.begin(), labels.end(), "pe split=2 b");
  ASSERT_NE(last, labels.end());
  EXPECT_EQ(study.settings[last - labels.begin()].run.target_settings,
            (Settings{{"split", 2}, {"scenario", "b"}, {"dim", 3}}));
  refuses_study(
      "[[setting]]\ntarget = 't'\nsampler = 'hmc'\nlabel = 'a'\ntarget_settings = { split = [1, 2] }",
      "without {split}");
}

TEST_F(ConfigFiles, RefusesListsThatALabelCannotTellApart) {
  const std::string head = "[[setting]]\ncommand = 'evidence'\ntarget = 't'\nlabel = 'a {data}'\n";
  refuses_study(
      head + "data = ['x']\nmethod = ['st', 'pt']",
      "label (study.toml, line 4) is 'a {data}', without {method} (each entry of method (study.toml, "
      "line 6) is a setting");
  refuses_study(head + "data = ['x']\nmethod = ['st', 'pt']", "Write {method} into it.");
  refuses_study(head + "data = ['x']\ngradients = [1e5]", "without {gradients}");
  refuses_study(head + "data = []", "data (study.toml, line 5) is [] (there is one setting for each entry)");
  refuses_study(head + "data = ['x/a', 'y/a']", "label (study.toml, line 4) is 'a a' like label");
  refuses_study(head + "data = ['x', 3]", "data (study.toml, line 5) is 3");
  refuses_study(head + "data = 'x'\nse = [1, 2]", "se (study.toml, line 6) is [1,2]");
}

TEST_F(ConfigFiles, StudyPlotsAreCheckedBeforeAnythingRuns) {
  const auto with = [](const std::string& plot) { return one_setting + ("[plot]\n" + plot); };
  const auto refuses_plot = [&](const std::string& plot, const std::string& part) {
    refuses_study(with(plot), part);
  };
  refuses_plot("kind = 'pie'", "kind (study.toml, line 6) is \"pie\" (it must be one of rmse, cost, scatter");
  refuses_plot("kind = 3", "kind (study.toml, line 6) is 3");
  refuses_plot("panels = ['rmse', 'scater']", "panels (study.toml, line 6) holds 'scater' (there is no such");
  refuses_plot("panels = ['scater']", "Did you mean scatter?");
  refuses_plot("panels = []", "panels (study.toml, line 6) is []");
  refuses_plot("panels = ['rmse']\nkind = 'cost'", "are both given (one picture or several)");
  refuses_plot("labels = ['b']", "labels (study.toml, line 6) holds 'b'");
  refuses_plot("labels = ['b']", "Known labels: a.");
  refuses_plot("groups = { b = 'B' }", "groups (study.toml, line 6) holds 'b'");
  refuses_plot("groups = { a = 1 }", "groups (study.toml, line 6) is {\"a\":1} (it gives each group");
  refuses_plot("quantities = 'mean[0]'",
               "quantities (study.toml, line 6) is \"mean[0]\" (it must be an array");
  refuses_plot("cost = 'hours'", "(it must be one of seconds, gradients)");
  refuses_plot("against = 'time'", "(it must be one of gradients, chains, gradients_per_chain)");
  refuses_plot("split = 1", "split (study.toml, line 6) is 1 (it must be true or false)");
  refuses_plot("columns = 0", "columns (study.toml, line 6) is 0");
  refuses_plot("dims = [0]", "dims (study.toml, line 6) is [0] (it must be two axes");
  refuses_plot("dims = [0, -1]", "(it must be two axes");
  refuses_plot("trace_draws = 1", "trace_draws (study.toml, line 6) is 1");
  refuses_plot("colums = 3",
               "colums (study.toml, line 6) is unknown (it would have no effect). Did you mean columns?");
  refuses_plot("seed = 3", "seed (study.toml, line 6) stands below [plot]");
  EXPECT_NO_THROW(
      study_of(with("panels = ['rmse', 'cost', 'scatter', 'trace', 'density', 'beta', 'sweep',"
                    "'convergence', 'estimates']\ntitle = 'x'\n"
                    "quantities = ['mean[0]']\nlabels = ['a']\ngroups = { a = 'A' }\nsplit = true\n"
                    "cost = 'gradients'\nagainst = 'chains'\ncount_modes = true\ncolumns = 5\ndims = [0, 1]\n"
                    "equal_aspect = false\ntrace_draws = 1000\n")));
}

TEST_F(ConfigFiles, ShippedStudiesLoad) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/bench/studies")) {
    EXPECT_NO_THROW(load_study(file.path())) << file.path();
    ++count;
  }
  EXPECT_GE(count, 14);
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
                "name (study.toml, line 1) is \"\" (the study's files bear it: 1 to 200 bytes");
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

// Files bear them: what no file can be named is found out when hours of runs are over.
TEST_F(ConfigFiles, NamesOfStudiesAndLabelsAreNamesOfFiles) {
  const std::string setting = one_setting;
  for (const std::string& name :
       std::vector<std::string>{"", ".", "..", "a/b", "/", "a\\nb", "a\\u0000b", std::string(201, 'x')})
    refuses_study("name = \"" + name + "\"\n" + setting, "name (study.toml, line 1) is ");
  EXPECT_EQ(study_of("name = \"a b, c=1 %.\"\n" + setting).name, "a b, c=1 %.");
  const auto labelled = [](const std::string& label) {
    return "[[setting]]\nlabel = '" + label + "'\ntarget = 't'\nsampler = 's'\n";
  };
  refuses_study(labelled(std::string(201, 'x')), "Shorten it.");
  refuses_study(labelled(std::string(67, '/')), "Shorten it.");
  EXPECT_EQ(study_of(labelled(std::string(200, 'x'))).settings.size(), 1u);
}

TEST_F(ConfigFiles, ReplicatesAreAMillionAtMost) {
  refuses_study("replicates = 1000000000\n" + std::string(one_setting),
                "it must be a whole number from 1 to 1000000");
}

}  // namespace
}  // namespace lockstep
