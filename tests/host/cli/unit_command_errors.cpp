// SPDX-License-Identifier: Apache-2.0
// Every mistake of a user: one line on standard error, exit status 2, nothing written.
#include <gtest/gtest.h>

#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

using Args = std::vector<std::string>;

class CommandErrors : public testing::ProgramTest {
 protected:
  void sample_refuses(const Args& more, const std::string& part) {
    Args args = {"sample", "--target", "mixture20", "--sampler", "pe"};
    args.insert(args.end(), more.begin(), more.end());
    refuses(args, part);
  }
  void data_refused(const std::string& json, const std::string& part) {
    put("data.json", json);
    refuses({"sample", "--target", "mixture", "--sampler", "hmc", "--data", "data.json"}, part);
  }
  void says_in_one_line(const Args& args, const std::string& part) {
    const testing::ProgramResult result = run(args);
    EXPECT_EQ(result.status, 2) << part;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err << "wanted: " << part;
  }
};

TEST_F(CommandErrors, UnknownNamesComeWithTheNearOnes) {
  says_in_one_line({"smaple"}, "Did you mean sample?");
  says_in_one_line({"targets", "mixtrue20"}, "Did you mean mixture20?");
  says_in_one_line({"samplers", "hcm"}, "Did you mean hmc?");
  refuses({"sample", "--target", "mixtrue20", "--sampler", "pe"}, "Did you mean mixture20?");
  refuses({"sample", "--target", "mixture20", "--sampler", "pee"}, "Did you mean ee, pe?");
  sample_refuses({"--set", "target.scenaro=a"}, "Did you mean scenario?");
  sample_refuses({"--set", "sampler.pseudo_sample=2"}, "Did you mean pseudo_samples?");
  sample_refuses({"--set", "samplr.beta=0.2"}, "unknown scope 'samplr'");
  says_in_one_line({"evidence", "--target", "mixture20", "--method", "hmc"},
                   "hmc is a sampler, which gives no log Z (evidence needs a method). Known methods: auto, ");
  sample_refuses({"--chain", "3"}, "Did you mean --chains?");
  sample_refuses({"--precision", "duoble"}, "Did you mean double?");
}

TEST_F(CommandErrors, MissingParts) {
  refuses({"sample", "--sampler", "pe"}, "Add --target NAME");
  refuses({"sample", "--target", "mixture", "--sampler", "pe"}, "Give --data FILE.json");
  refuses({"study"}, "has no file");
  says_in_one_line({"sample", "--target", "mixture20", "--sampler", "pe", "--draws"}, "Add --out DIR");
  says_in_one_line({"study", "some.toml"}, "Add --out DIR");
}

TEST_F(CommandErrors, SettingsOfASearch) {
  const auto search = [&](const Args& more, const std::string& part) {
    Args args = {"modes", "--target", "mixture20"};
    args.insert(args.end(), more.begin(), more.end());
    says_in_one_line(args, part);
  };
  search({"--set", "search.residual=logs"}, "none, log, difference");
  search({"--set", "search.start=4"}, "Did you mean starts?");
  search({"--set", "search.starts=0"}, "from 1 to 1024");
  search({"--set", "search.residual=log", "--set", "search.temperature=0.9"}, "from 1 to 1000");
  search({"--set", "search.temperature=1.1"}, "without search.residual");
  put("places.csv", "1,2\n3,4\n");
  search({"--modes", "places.csv", "--set", "search.starts=4"}, "Keep one");
  search({"--modes", "places.csv", "--init", "places.csv"},
         "Keep one, or put the points of both into one file");
  sample_refuses({"--set", "search.residual=log"}, "is for a search by itself");
}

TEST_F(CommandErrors, ValuesOutOfRange) {
  sample_refuses({"--chains", "0"}, "--chains is 0");
  sample_refuses({"--warmup", "-1"}, "--warmup is -1");
  sample_refuses({"--gradients", "1e3", "--iterations", "5"}, "Keep one");
  sample_refuses({"--iterations", "100000000000"}, "Give fewer");
  sample_refuses({"--set", "target.scenario=c"}, "a, b");
  sample_refuses({"--set", "sampler.pseudo_samples=65"}, "from 1 to 64");
  sample_refuses({"--set", "sampler.beta=1.5"}, "from 0 to 1");
  sample_refuses({"--set", "sampler.metric=dense", "--set", "sampler.box=9"}, "metric");
  sample_refuses({"--set", "sampler.instrument=tempered", "--set", "sampler.beta_min=0"},
                 "improper in 2 dimensions");
  refuses({"sample", "--target", "mixture20", "--sampler", "hmc", "--set", "sampler.adapt=none"},
          "step_size");
  refuses({"sample", "--target", "mixture20", "--sampler", "rwm", "--gradients", "1000"}, "no gradients");
  sample_refuses({"--set", "sampler.transition=rwm", "--gradients", "1000"}, "transition rwm of sampler pe");
  refuses({"sample", "--target", "gaussian", "--sampler", "mala", "--chains", "1", "--gradients", "5e9"},
          "2^30");
}

TEST_F(CommandErrors, ABoxMakesPureTemperingProper) {
  EXPECT_EQ(run({"sample", "--target", "mixture20", "--sampler", "pe", "--chains", "2", "--iterations", "5",
                 "--warmup", "5", "--threads", "1", "--set", "sampler.instrument=tempered", "--set",
                 "sampler.beta_min=0", "--set", "sampler.box=20"})
                .status,
            3);
}

TEST_F(CommandErrors, Data) {
  data_refused(R"({"means": [[0, 0], [1, 1])", "this is not JSON");
  data_refused("", "this is not JSON");
  data_refused("[1, 2]", "read by name");
  data_refused(R"({"means": [[0, 0], [1]], "weights": [1, 1], "sds": [1, 1]})", "row 2 of means");
  data_refused(R"({"means": [0, 1], "weights": [1, 1], "sds": [1, 1]})", "means is not a table");
  data_refused(R"({"means": [[0, 0]], "weights": [1, 1], "sds": [1]})", "weights has shape [2]");
  data_refused(R"({"means": [[0, 0]], "weights": [1], "covariances": [[1, 0], [0, 1]]})", "shape [1][2][2]");
  data_refused(R"({"means": [[0, 0]], "weights": [1], "covariances": [[[1, 2], [2, 1]]]})",
               "positive definite");
  data_refused(R"({"means": [[0, 0]], "weights": [1], "sds": [-1]})", "entry 1 of sds is not positive");
  data_refused(R"({"means": [[0, 0]], "weights": [1]})", "sds and covariances");
  data_refused(R"({"means": [[0, NaN]], "weights": [1], "sds": [1]})", "no NaN");
  data_refused(R"({"means": [[0, null]], "weights": [1], "sds": [1]})",
               "null (a density needs finite numbers)");
  data_refused(R"({"means": [[0, 1e999]], "weights": [1], "sds": [1]})", "beyond the range");
  data_refused(R"({"means": [[0, "x"]], "weights": [1], "sds": [1]})", "finite numbers");
  refuses({"sample", "--target", "mixture", "--sampler", "hmc", "--data", "absent.json"}, "were not found");
  sample_refuses({"--data", "data.json"}, "takes no data");
}

TEST_F(CommandErrors, Starts) {
  put("junk.json", "junk");
  put("flat.json", R"({"x": [1, 2]})");
  put("wide.json", R"({"x": [[1, 2, 3]]})");
  put("null.json", R"({"x": [[1, null]]})");
  put("other.json", R"({"y": [[1, 2]]})");
  put("wide.csv", "x0,x1,x2\n1,2,3\n");
  put("text.csv", "x0,x1\n1,two\n");
  put("none.csv", "x0,x1\n");
  sample_refuses({"--init", "absent.json"}, "there is no such file");
  sample_refuses({"--init", "uniform:x"}, "uniform:2");
  sample_refuses({"--init", "junk.json"}, "this is not JSON");
  sample_refuses({"--init", "flat.json"}, "flat.json");
  sample_refuses({"--init", "wide.json"}, "it must have 2");
  sample_refuses({"--init", "null.json"}, "finite numbers");
  sample_refuses({"--init", "other.json"}, "other.json");
  sample_refuses({"--init", "wide.csv"}, "it must have 2");
  sample_refuses({"--init", "text.csv"}, "column 2 of x of starts (text.csv) is \"two\"");
  sample_refuses({"--init", "none.csv"}, "none.csv ends after its header");
  put("far.json", R"({"x": [[1, 2], [1e300, 0]]})");
  for (const char* command : {"sample", "evidence", "modes"})
    for (const std::string option : {"--init", "--modes"})
      says_in_one_line(
          {command, "--target", "mixture20", option, "far.json"},
          (option == "--init" ? "row 2 of " : "place 2 of ") + option + " far.json is no place to begin");
}

TEST_F(CommandErrors, TooLittleMemory) {
  sample_refuses({"--chains", "100000000", "--draws"}, "Lower --chains");
  sample_refuses({"--chains", "2147483647"}, "Lower --chains");
}

TEST_F(CommandErrors, NoPlaceForResults) {
  put("file", "");
  says_in_one_line({"sample", "--target", "mixture20", "--sampler", "pe", "--out", "file/x"}, "file/x");
  says_in_one_line({"sample", "--target", "mixture20", "--sampler", "pe", "--out", "file"},
                   "Name another folder");
}

TEST_F(CommandErrors, OnePassHasNoIterations) {
  for (const char* method : {"ais", "bdmc", "smc"}) {
    const std::vector<std::string> evidence = {"evidence", "--target", "gaussian", "--method", method};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), evidence.begin(), evidence.end());
      return more;
    };
    says_in_one_line(with({"--iterations", "10"}), "Give --gradients or --se");
  }
}

TEST_F(CommandErrors, NoGpu) {
  const std::string devices = run({"devices"}).out;
  if (devices.find("\ncuda  not built in") == std::string::npos &&
      devices.find("not usable") == std::string::npos)
    GTEST_SKIP() << "there is a GPU";
  sample_refuses({"--device", "cuda"}, "Use --device cpu");
}

TEST_F(CommandErrors, RunFiles) {
  put("run.toml", "target = 'mixture20'\nsampler = 'pe'\nchians = 3\n");
  refuses({"sample", "--config", "run.toml"}, "chians (run.toml, line 3) is unknown");
  put("run.toml", "target = ");
  refuses({"sample", "--config", "run.toml"}, "this is not TOML");
  refuses({"sample", "--config", "absent.toml"}, "absent.toml");
}

}  // namespace
}  // namespace lockstep
