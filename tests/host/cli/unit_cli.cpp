// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "host/cli/cli_options.hpp"
#include "host/options/config.hpp"
#include "host/studies/study_args.hpp"
#include "tests/support/command_line.hpp"

namespace lockstep {
namespace {

using namespace testing;

TEST(CommandLineTest, DefaultsOfSample) {
  const CommandLine line = parse(sample({}));
  RunOptions expected;
  expected.target = "t";
  expected.sampler = "s";
  EXPECT_EQ(line.command, "sample");
  EXPECT_EQ(run_option_values(line.run), run_option_values(expected));
  EXPECT_EQ(expected.chains, 256);
  EXPECT_EQ(expected.warmup, 1000);
  EXPECT_EQ(expected.iterations, 1000);
  EXPECT_EQ(expected.seed, 1u);
}

TEST(CommandLineTest, EveryRunOptionForEveryCommand) {
  const TemporaryFile init("start.json", "{}");
  for (const std::string command : {"sample", "evidence"}) {
    const RunOptions run = parse({command,
                                  "--target",
                                  "t",
                                  command == "evidence" ? "--method" : "--sampler",
                                  "s",
                                  "--data",
                                  "d.json",
                                  "--data-dir=dir",
                                  "--set",
                                  "target.dim=3",
                                  "--set",
                                  "sampler.step_size=0.5",
                                  "--set",
                                  "target.scenario=a",
                                  "--chains",
                                  "8",
                                  "--warmup",
                                  "0",
                                  "--gradients",
                                  "5e6",
                                  "--seed",
                                  "18446744073709551615",
                                  "--init",
                                  init.path.string(),
                                  "--init-scale",
                                  "2",
                                  "--se",
                                  "0.1",
                                  "--device",
                                  "cpu",
                                  "--threads",
                                  "2",
                                  "--precision",
                                  "double",
                                  "--out",
                                  "o",
                                  "--draws",
                                  command == "sample" ? "--warmup-draws" : "--no-pictures",
                                  "--weighted-draws",
                                  "--thin",
                                  "3",
                                  "--checkpoint",
                                  "60",
                                  "--resume",
                                  "--paper-settings",
                                  "--json",
                                  "--quiet"})
                               .run;
    RunOptions expected;
    expected.command = command;
    expected.target = "t";
    expected.sampler = "s";
    expected.data = "d.json";
    expected.data_dir = "dir";
    expected.target_settings = {{"dim", 3}, {"scenario", "a"}};
    expected.sampler_settings = {{"step_size", 0.5}};
    expected.chains = 8;
    expected.warmup = 0;
    expected.gradients = 5e6;
    expected.seed = 18446744073709551615u;
    expected.init = init.path.string();
    expected.init_scale = 2;
    expected.se = 0.1;
    expected.device = "cpu";
    expected.threads = 2;
    expected.precision = "double";
    expected.out = "o";
    expected.warmup_draws = expected.pictures = command == "sample";
    expected.weighted_draws = expected.resume = expected.paper_settings = expected.json = expected.quiet =
        true;
    expected.draws = 1000;
    expected.thin = 3;
    expected.checkpoint = 60;
    EXPECT_EQ(run_option_values(run), run_option_values(expected));
  }
}

TEST(CommandLineTest, EvidenceHasItsOwnDefaults) {
  RunOptions run = parse({"evidence", "--target", "t"}).run;
  EXPECT_EQ(run.command, "evidence");
  EXPECT_EQ(run.sampler, "auto");
  EXPECT_EQ(run.se, 0.02);
  EXPECT_EQ(run.gradients, 1e8);
  run = parse({"evidence", "--target", "t", "--method", "ct-gibbs", "--iterations", "50"}).run;
  EXPECT_EQ(run.sampler, "ct-gibbs");
  EXPECT_EQ(run.se, 0);
  EXPECT_EQ(run.gradients, 0);
  EXPECT_EQ(run.iterations, 50);
}

TEST(CommandLineTest, ListsAndDevices) {
  EXPECT_EQ(parse({"targets"}).name, "");
  EXPECT_EQ(parse({"targets", "mixture20"}).name, "mixture20");
  EXPECT_EQ(parse({"targets", "sample"}).name, "sample");  // a name may look like a command
  EXPECT_EQ(parse({"samplers", "pe"}).command, "samplers");
  EXPECT_FALSE(parse({"devices"}).measure);
  EXPECT_TRUE(parse({"devices", "--measure"}).measure);
}

TEST(CommandLineTest, CheckTakesItsTargetEitherWay) {
  for (const Words& words :
       {Words{"check", "t"}, Words{"check", "--target", "t"}, Words{"check", "t", "--target", "t"}}) {
    const CommandLine line = parse(words);
    EXPECT_EQ(line.run.command, "check");
    EXPECT_EQ(line.run.target, "t");
    EXPECT_EQ(line.name, "t");
  }
  refuses({"check", "a", "--target", "b"}, "lockstep check is given two targets, a and --target b");
}

TEST(CommandLineTest, CheckOffersWhatItUses) {
  const RunOptions run =
      parse({"check", "t", "--data", "d.json", "--data-dir", "dir", "--set", "target.dim=3", "--init-scale",
             "2", "--seed", "4", "--device", "cpu", "--threads", "2", "--precision", "double"})
          .run;
  EXPECT_EQ(run.data, "d.json");
  EXPECT_EQ(run.target_settings, (Settings{{"dim", 3}}));
  EXPECT_EQ(run.precision, "double");
  for (const char* flag : {"--json", "--out", "--draws", "--sampler", "--chains", "--iterations", "--quiet"})
    refuses({"check", "t", flag, "x"}, std::string(flag) + " is no option of lockstep check");
  refuses({"check", "t", "--set", "sampler.step_size=1"}, "--set sampler.step_size is for a sampler");
  refuses(
      {"modes", "--target", "t", "--set", "sampler.base=scout"},
      "--set sampler.base is for a sampler (lockstep modes takes none of its settings; sample and evidence "
      "do). Remove it, or give it to one of these.");
}

TEST(CommandLineTest, Study) {
  const StudyArgs study =
      parse({"study", "a.toml", "--out", "o", "--replicates", "3", "--only", "x, y", "--only", "z",
             "--resume", "--quiet", "--threads", "2", "--device", "cpu", "--data-dir", "d"})
          .study;
  EXPECT_EQ(study.file, "a.toml");
  EXPECT_EQ(study.out, "o");
  EXPECT_EQ(study.data_dir, "d");
  EXPECT_EQ(study.replicates, 3);
  EXPECT_EQ(study.only, (Words{"x, y", "z"}));
  EXPECT_TRUE(study.resume && study.quiet);
  EXPECT_EQ(study.threads, 2);
  EXPECT_EQ(study.device, "cpu");
  const StudyArgs plain = parse({"study", "--out", "o", "a.toml"}).study;
  EXPECT_FALSE(plain.replicates.has_value());
  EXPECT_TRUE(plain.only.empty());
  EXPECT_EQ(plain.device, "auto");
  refuses({"study", "--out", "o"}, "lockstep study has no file (it says what to run).");
  refuses({"study", "a.toml"}, "lockstep study has no --out (its tables and pictures go there).");
  refuses({"study", "a.toml", "--out", "o", "--replicates", "0"},
          "--replicates is 0 (it must be a whole number from 1");
  refuses({"study", "a.toml", "--out", "o", "--device", "tpu"},
          "--device is \"tpu\" (it must be one of auto, cpu, cuda)");
  refuses({"study", "a.toml", "--out", "o", "--threads", "60000"}, "a whole number from 0 to 1024");
  refuses({"study", "a.toml", "--out", "o", "--resume", "--force"}, "--resume and --force are both given");
  refuses({"study", "a.toml", "--out", "o", "--threads", "-1"},
          "--threads is -1 (it must be a whole number from 0");
  refuses({"study", "a.toml", "b.toml", "--out", "o"}, "'b.toml' is one word too many for lockstep study");
  refuses({"study", "a.toml", "--out", "o", "--chains", "3"}, "--chains is no option of lockstep study");
}

TEST(CommandLineTest, LineWinsOverFile) {
  const TemporaryFile config(
      "c.toml",
      "command = 'sample'\ntarget = 'f'\nsampler = 'pe'\nchains = 4\ngradients = 1e6\nquiet = true\n"
      "seed = 5\n[sampler_settings]\nstep_size = 0.1\npseudo_samples = 2\n");
  const std::string file = config.path.string();
  const RunOptions run = parse({"sample", "--config", file, "--chains", "9", "--iterations", "20",
                                "--quiet=false", "--set", "sampler.step_size=0.2"})
                             .run;
  EXPECT_EQ(run.target, "f");
  EXPECT_EQ(run.sampler, "pe");
  EXPECT_EQ(run.chains, 9);
  EXPECT_EQ(run.seed, 5u);
  EXPECT_EQ(run.iterations, 20);
  EXPECT_EQ(run.gradients, 0);  // replaced by the iterations
  EXPECT_FALSE(run.quiet);
  EXPECT_EQ(run.sampler_settings, (Settings{{"step_size", 0.2}, {"pseudo_samples", 2}}));
  EXPECT_EQ(parse({"check", "--config", file}).run.command, "check");  // any run's target can be checked
  refuses({"evidence", "--config", file},
          "is \"sample\" (the file repeats that command, and this is evidence)");
  refuses({"sample", "--config", "/nowhere/c.toml"}, "/nowhere/c.toml");
  refuses({"sample", "--config", file, "--thin", "0"}, "--thin is 0 (");
  const TemporaryFile bad("bad.toml", "target = 't'\nsampler = 's'\nchians = 4\n");
  refuses({"sample", "--config", bad.path.string()},
          "bad.toml, line 3) is unknown (it would have no effect). Did you mean chains?");
}

TEST(CommandLineTest, RunTomlRepeatsTheLine) {
  const RunOptions first = parse(sample({"--set", "target.dim=3", "--seed", "9", "--se", "0.3"})).run;
  const TemporaryFile config("r.toml", write_run_toml(first));
  EXPECT_EQ(run_option_values(parse({"sample", "--config", config.path.string()}).run),
            run_option_values(first));
}

TEST(CommandLineTest, TextsStayTexts) {
  EXPECT_EQ(parse({"sample", "--target", "7", "--sampler", "true"}).run.target, "7");
  EXPECT_EQ(parse(sample({"--out", "5"})).run.out, "5");
  EXPECT_EQ(parse(sample({"--iterations", "1e4"})).run.iterations, 10000);
}

TEST(CommandLineTest, HelpTeaches) {
  const HelpRequest bare = help({});
  EXPECT_EQ(bare.exit_status, 2);
  EXPECT_NE(bare.text.find("Commands:"), std::string::npos);
  EXPECT_EQ(help({"--help"}).exit_status, 0);
  EXPECT_EQ(help({"help"}).text, help({"-h"}).text);
  EXPECT_EQ(help({"help", "sample"}).text, help({"sample", "--help"}).text);
  EXPECT_TRUE(help({"--version"}).text.starts_with("lockstep "));
  EXPECT_EQ(help({"--version"}).exit_status, 0);
  for (const CommandText& command : command_texts()) {
    const std::string text = help({command.name, "--help"}).text;
    EXPECT_EQ(text.find("\n\n\n"), std::string::npos);
    EXPECT_EQ(
        std::count(command.description, command.description + std::string(command.description).size(), '\n'),
        1);
    const std::size_t examples = text.find("\nExamples:\n  lockstep " + std::string(command.name));
    ASSERT_NE(examples, std::string::npos) << text;
    EXPECT_NE(text.find("\n  lockstep " + std::string(command.name), examples + 13), std::string::npos)
        << text;
    for (const OptionSpec& spec : option_specs(command.name))
      EXPECT_NE(text.find(spec.flag), std::string::npos);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
  }
  EXPECT_NE(help({"--help"}).text.find("the run was too short to judge (never of study)"), std::string::npos);
  EXPECT_NE(help({"study", "--help"}).text.find("Exit status: 0 even where settings fail"),
            std::string::npos);
  EXPECT_NE(help({"evidence", "--help"}).text.find("Without it: auto."), std::string::npos);
  const std::string text = help({"sample", "--help"}).text;
  for (const char* part : {"What to sample:", "How long:", "Adaptation and starts:", "Where to compute:",
                           "Output:", "{\"x\": [[0, 0], [5, 5]]}", "(default 256)", "(default 1000)",
                           "(default scout)", "(default 10)", "(default mixed)"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace lockstep
