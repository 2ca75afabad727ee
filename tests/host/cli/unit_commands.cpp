// SPDX-License-Identifier: Apache-2.0
// The program as its users meet it: exit status, standard output, standard error and files of whole commands.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "host/estimators/log_sums.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Args = std::vector<std::string>;
using testing::contents;
using testing::ProgramResult;

class Commands : public testing::ProgramTest {
 protected:
  /// A short run of the pseudo-extended sampler, quiet and as JSON, on one thread, with `more` options.
  Json sampled(const Args& more, int status = -1) {
    Args args = {"sample", "--quiet", "--json"};
    const auto given = [&](const char* flag) {
      return std::find(more.begin(), more.end(), flag) != more.end();
    };
    if (!given("--target") && !given("--config")) args.insert(args.end(), {"--target", "mixture20"});
    if (!given("--sampler") && !given("--config")) args.insert(args.end(), {"--sampler", "pe"});
    if (!given("--warmup") && !given("--config")) args.insert(args.end(), {"--warmup", "100"});
    if (!given("--threads")) args.insert(args.end(), {"--threads", "1"});
    args.insert(args.end(), more.begin(), more.end());
    const ProgramResult result = run(args);
    EXPECT_EQ(result.err, "");
    const Json summary = Json::parse(result.out, nullptr, false);
    EXPECT_TRUE(summary.is_object()) << result.out;
    if (!summary.is_object()) return Json::object();
    const int verdict = summary["verdict"] == "pass" ? 0 : 3;
    EXPECT_EQ(result.status, status == -1 ? verdict : status);
    return summary;
  }
};

/// What must not depend on where and how fast a run computes.
Json reproducible(Json summary) {
  for (const char* key : {"wall_s", "sampling_s", "gradients_per_s"}) summary["cost"].erase(key);
  summary.erase("threads");
  return summary;
}

std::set<std::string> keys(const Json& object) {
  std::set<std::string> names;
  for (const auto& item : object.items()) names.insert(item.key());
  return names;
}

/// Of log Z and of every mean: about the estimate, as wide as Student's distribution with df degrees of
/// freedom asks.
TEST_F(Commands, IntervalsAreStudents) {
  const ProgramResult evidence = run({"evidence", "--target", "mixture20", "--method", "st", "--gradients",
                                      "1e6", "--json", "--quiet", "--threads", "1"});
  for (const Json& s : {sampled({"--chains", "64", "--iterations", "200"}), Json::parse(evidence.out)}) {
    const auto check = [](double estimate, const Json& inner, const Json& outer, double df, double se) {
      const double half = inner[1].get<double>() - estimate, wide = outer[1].get<double>() - estimate;
      EXPECT_NEAR(estimate - inner[0].get<double>(), half, 1e-9 * (1 + std::abs(estimate)));
      EXPECT_NEAR(wide / half, student_quantile(df, 0.997) / student_quantile(df, 0.95), 1e-6);
      EXPECT_GT(half, se);
      EXPECT_LT(half, 3 * se);
    };
    const Json &z = s["log_z"], &e = s["estimates"];
    check(z["estimate"], z["interval95"], z["interval997"], z["df"], z["se"]);
    for (int i : {0, 1})
      check(e["mean"][i], e["mean_interval95"][i], e["mean_interval997"][i], e["mean_df"][i],
            e["mean_se"][i]);
  }
}

TEST_F(Commands, ListsTargetsAndEachInFull) {
  const ProgramResult list = run({"targets"});
  EXPECT_EQ(list.status, 0);
  EXPECT_EQ(list.err, "");
  int count = 0;
  std::istringstream lines(list.out);
  for (std::string line; std::getline(lines, line) && !line.empty(); ++count) {
    const std::string name = line.substr(0, line.find(' '));
    const ProgramResult one = run({"targets", name});
    EXPECT_EQ(one.status, 0) << name;
    EXPECT_EQ(one.err, "");
    EXPECT_EQ(one.out.rfind(name + ": ", 0), 0u) << one.out;
    for (const char* part : {"\n  log density ", "\n  truth "})
      EXPECT_NE(one.out.find(part), std::string::npos) << one.out;
  }
  EXPECT_GE(count, 8);
  EXPECT_EQ(run({"targets", "mixture20"}).out.find("by default\n"), std::string::npos)
      << "its dimension is fixed";
  EXPECT_NE(run({"targets", "gaussian"}).out.find("10 by default"), std::string::npos);
  EXPECT_EQ(run({"targets", "decoder"}).out.find("  dimension"), std::string::npos)
      << "its weights have no default";
  for (const char* target : {"mixture", "two_modes"})
    for (const char* quantity : {"probability_mode[", "probability_positive"})
      EXPECT_NE(run({"targets", target}).out.find(quantity), std::string::npos) << target;
}

TEST_F(Commands, ListsSamplersAndDevices) {
  const ProgramResult list = run({"samplers"});
  EXPECT_EQ(list.status, 0);
  for (const char* name : {"hmc", "pe", "rwm"}) {
    EXPECT_NE(("\n" + list.out).find("\n" + std::string(name) + " "), std::string::npos) << list.out;
    const ProgramResult one = run({"samplers", name});
    EXPECT_EQ(one.status, 0);
    EXPECT_NE(one.out.find("--set sampler.step_size"), std::string::npos) << one.out;
  }
  EXPECT_EQ(run({"samplers", "rwm"}).out.find("leapfrog"), std::string::npos);
  const ProgramResult devices = run({"devices"});
  EXPECT_EQ(devices.status, 0);
  EXPECT_EQ(devices.out.rfind("cpu ", 0), 0u) << devices.out;
  EXPECT_NE(devices.out.find("\ncuda "), std::string::npos) << devices.out;
}

TEST_F(Commands, ThreadsAreThoseOfOpenMp) {
  setenv("OMP_NUM_THREADS", "1", 1);
  const ProgramResult devices = run({"devices"});
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(devices.out.rfind("cpu   1 threads,", 0), 0u) << devices.out;
}

TEST_F(Commands, HelpIsAskedForOrGivenWithStatusTwo) {
  const ProgramResult help = run({"--help"}), none = run({});
  EXPECT_EQ(help.status, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(none.status, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err, help.out);
  for (const char* command : {"targets", "samplers", "devices", "sample", "evidence", "study", "check"}) {
    EXPECT_NE(help.out.find("\n  " + std::string(command)), std::string::npos) << command;
    EXPECT_EQ(run({command, "--help"}).status, 0) << command;
  }
}

TEST_F(Commands, JsonSummaryHasItsSchema) {
  const Json s = sampled({"--chains", "64", "--iterations", "500", "--set", "target.scenario=b"});
  EXPECT_EQ(s["schema"], 1);
  EXPECT_EQ(s["command"], "sample");
  const std::set<std::string> required = {"schema",    "version",   "command", "verdict", "failed_gates",
                                          "warnings",  "target",    "sampler", "seed",    "device",
                                          "precision", "threads",   "chains",  "warmup",  "iterations",
                                          "cost",      "estimates", "log_z",   "truth",   "diagnostics"};
  EXPECT_EQ(keys(s), required);
  EXPECT_EQ(s["warnings"], Json::array());
  EXPECT_EQ(s["target"], (Json{{"name", "mixture20"},
                               {"dim", 2},
                               {"settings", {{"scenario", "b"}}},
                               {"parameters", {"x[0]", "x[1]"}}}));
  EXPECT_EQ(s["sampler"]["name"], "pe");
  EXPECT_EQ(s["sampler"]["settings"]["pseudo_samples"], 5);
  EXPECT_EQ(s["iterations"], 500);
  for (const char* key : {"gradients", "warmup_gradients", "wall_s", "sampling_s", "gradients_per_s"})
    EXPECT_GT(s["cost"].value(key, 0.0), 0) << key;
  for (const char* key : {"acceptance", "step_size", "num_leapfrog", "divergences", "weight_ess"})
    EXPECT_TRUE(s["diagnostics"].contains(key) && s["diagnostics"][key].is_number()) << key;
  EXPECT_TRUE(s["diagnostics"].contains("rhat_max") || s["diagnostics"].contains("nested_rhat_max"));
  ASSERT_EQ(s["estimates"]["covariance"].size(), 2u);
  ASSERT_EQ(s["estimates"]["covariance"][1].size(), 2u);
  for (const char* key : {"mean", "second_moment"})
    for (int i = 0; i < 2; ++i) {
      const double se = s["estimates"][std::string(key) + "_se"][i];
      EXPECT_GT(se, 0);
      EXPECT_LT(std::abs(s["estimates"][key][i].get<double>() - s["truth"][key][i].get<double>()), 5 * se)
          << key << i;
    }
  EXPECT_LT(std::abs(s["log_z"]["estimate"].get<double>()), 5 * s["log_z"]["se"].get<double>());
}

TEST_F(Commands, WithoutJsonATableAndAVerdict) {
  const ProgramResult result = run({"sample", "--target", "gaussian", "--sampler", "hmc", "--threads", "1",
                                    "--chains", "64", "--iterations", "100", "--set", "target.dim=12"});
  EXPECT_EQ(result.status, 0) << result.out;
  for (const char* part :
       {"mcse_mean  ess_bulk  ess_tail  r_hat  truth\n", "\nx[9] ", "2 more parameters", "verdict: pass\n"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part << result.out;
  EXPECT_EQ(result.out.find("x[10]"), std::string::npos);
  EXPECT_NE(result.err.find("memory plan: "), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find('\r'), std::string::npos) << "progress is for terminals";
}

TEST_F(Commands, FilesOfARunAndItsRepetition) {
  const Json printed = sampled({"--chains", "8", "--iterations", "200", "--seed", "7", "--out", "first"});
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "first"))
    if (const std::string name = entry.path().filename(); !name.starts_with(".")) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"run.toml", "summary.json"}));
  const Json kept = Json::parse(contents(folder_ / "first/summary.json"));
  EXPECT_EQ(kept, printed);
  EXPECT_NE(testing::run_python("read_summary.py", folder_ / "first/summary.json"), "");
  EXPECT_EQ(reproducible(sampled({"--config", "first/run.toml", "--out", "again"})), reproducible(kept));
  const Json other = sampled({"--config", "first/run.toml", "--out", "other", "--seed", "8"});
  EXPECT_NE(other["estimates"], kept["estimates"]) << "the command line wins";
}

TEST_F(Commands, RunTomlFindsDataAndStartsFromAnywhere) {
  fs::create_directories(folder_ / "data");
  put("data/two.json", R"({"means": [[0, 0], [1, 1]], "weights": [1, 1], "sds": [1, 1]})");
  put("starts.json", R"({"x": [[0.5, 0.5], [1, 0]]})");
  const Json first = sampled({"--target", "mixture", "--data", "data/two.json", "--sampler", "hmc", "--init",
                              "starts.json", "--chains", "4", "--iterations", "100", "--out", "run"});
  fs::rename(folder_ / "run/run.toml", folder_ / "data/run.toml");
  const Json again = sampled({"--config", "data/run.toml", "--out", "again"});
  EXPECT_EQ(again["estimates"], first["estimates"]);
}

TEST_F(Commands, DrawsOpenElsewhere) {
  sampled(
      {"--chains", "3", "--iterations", "40", "--thin", "2", "--draws", "--weighted-draws", "--out", "run"});
  const std::string text = testing::run_python("read_draws.py", folder_ / "run/draws.nc");
  ASSERT_NE(text, "");
  const Json file = Json::parse(text);
  EXPECT_EQ(file["posterior"]["variables"]["x"]["dims"], (Json{"chain", "draw", "x_dim_0"}));
  EXPECT_EQ(file["posterior"]["dims"], (Json{{"chain", 3}, {"draw", 20}, {"x_dim_0", 2}}));
  for (const char* name : {"acceptance_rate", "lp", "n_steps", "diverging", "energy"})
    EXPECT_EQ(file["sample_stats"]["variables"][name]["values"].size(), 60u) << name;
  const Json &x = file["posterior"]["variables"]["x"]["values"], &all = file["weighted"]["variables"];
  ASSERT_EQ(x.size(), 120u);
  ASSERT_EQ(all["x"]["values"].size(), 600u);
  int heaviest = 0;
  for (int draw = 0; draw < 60; ++draw) {
    double sum = 0, most = 0, drawn = -1;
    for (int s = 5 * draw; s < 5 * draw + 5; ++s) {
      const double weight = std::exp(all["log_weight"]["values"][s].get<double>());
      const double beta = all["beta"]["values"][s];
      EXPECT_TRUE(beta >= 0 && beta <= 1) << beta;
      sum += weight;
      most = std::max(most, weight);
      if (all["x"]["values"][2 * s] == x[2 * draw] && all["x"]["values"][2 * s + 1] == x[2 * draw + 1])
        drawn = weight;
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_GT(drawn, 0) << "posterior holds one of the iteration's pseudo-samples";
    heaviest += drawn == most;
  }
  EXPECT_GT(heaviest, 30) << "drawn by weight";
  EXPECT_FALSE(file.contains("warmup_posterior"));

  sampled(
      {"--chains", "3", "--iterations", "40", "--warmup", "50", "--thin", "2", "--draws", "--out", "short"});
  sampled({"--chains", "3", "--iterations", "40", "--warmup", "50", "--thin", "2", "--draws",
           "--warmup-draws", "--out", "both"});
  const Json both = Json::parse(testing::run_python("read_draws.py", folder_ / "both/draws.nc"));
  EXPECT_EQ(both["warmup_posterior"]["dims"], (Json{{"chain", 3}, {"draw", 25}, {"x_dim_0", 2}}));
  const Json& steps = both["warmup_sample_stats"]["variables"]["step_size"]["values"];
  EXPECT_NE(steps[0], steps[24]) << "it adapts";
  EXPECT_EQ(steps[0], steps[25]) << "for all chains alike";
  const Json apart = Json::parse(testing::run_python("read_draws.py", folder_ / "short/draws.nc"));
  EXPECT_EQ(both["posterior"], apart["posterior"]) << "looking on changes nothing";
  EXPECT_FALSE(apart.contains("weighted"));
}

/// Four chains' last 250 draws are what a run stores unasked, and a small file; tables are of all chains.
TEST_F(Commands, DrawsAreLimitedAndTheSummaryIsNot) {
  const Args common = {"--chains", "64", "--iterations", "700", "--out"};
  const auto with = [&](const std::string& out, Args more) {
    more.insert(more.begin(), common.begin(), common.end());
    more.insert(more.begin() + 5, out);
    return sampled(more);
  };
  const Json none = with("none", {}), usual = with("usual", {"--draws"}),
             some = with("some", {"--draws", "64"}), all = with("all", {"--draws", "all"});
  const auto dims = [&](const std::string& out) {
    return Json::parse(testing::run_python("read_draws.py", folder_ / out))["posterior"]["dims"];
  };
  EXPECT_EQ(dims("usual/draws.nc"), (Json{{"chain", 4}, {"draw", 250}, {"x_dim_0", 2}}));
  EXPECT_EQ(dims("some/draws.nc"), (Json{{"chain", 4}, {"draw", 16}, {"x_dim_0", 2}}));
  EXPECT_EQ(dims("all/draws.nc"), (Json{{"chain", 64}, {"draw", 700}, {"x_dim_0", 2}}));
  EXPECT_LT(fs::file_size(folder_ / "usual/draws.nc"), 100000u);
  EXPECT_FALSE(fs::exists(folder_ / "none/draws.nc"));
  for (const Json& s : {usual, some, all}) {
    EXPECT_EQ(s["estimates"], none["estimates"]);
    EXPECT_EQ(s["diagnostics"], none["diagnostics"]);
  }
  for (const char* key : {"rhat", "ess_bulk", "ess_tail"})
    EXPECT_EQ(none["diagnostics"][key].size(), 2u) << key;
  EXPECT_GT(none["diagnostics"]["ess_bulk"][0].get<double>(), 1000) << "more than there are stored draws";
  for (int i = 0; i < 2; ++i) {
    const double mean = none["estimates"]["mean"][i], sd = none["estimates"]["sd"][i];
    EXPECT_NEAR(sd * sd + mean * mean, none["estimates"]["second_moment"][i].get<double>(), 1e-9);
    EXPECT_LT(none["estimates"]["quantiles"]["5%"][i].get<double>(), mean);
    EXPECT_GT(none["estimates"]["quantiles"]["95%"][i].get<double>(), mean);
  }
}

TEST_F(Commands, PrecisionsAgree) {
  const Args common = {"--chains", "128", "--iterations", "500", "--precision"};
  std::vector<Json> found;
  for (const char* precision : {"single", "mixed", "double"}) {
    Args args = common;
    args.push_back(precision);
    found.push_back(sampled(args));
    EXPECT_EQ(found.back()["precision"], precision);
  }
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < a; ++b)
      for (int i = 0; i < 2; ++i) {
        const auto at = [&](std::size_t k, const char* key) {
          return found[k]["estimates"][key][i].get<double>();
        };
        EXPECT_NE(at(a, "mean"), at(b, "mean"));
        EXPECT_LT(std::abs(at(a, "mean") - at(b, "mean")),
                  5 * std::hypot(at(a, "mean_se"), at(b, "mean_se")));
      }
}

TEST_F(Commands, BudgetOfGradientsStopsAtTheFirstIterationThatReachesIt) {
  for (const char* sampler : {"pe", "hmc"}) {
    // The search is as long as the plan, so that either plan finds its own modes: here chains make nothing of them.
    const Args common = {"--sampler", sampler, "--chains", "3",
                         "--warmup",  "60",    "--set",    "sampler.mode_jumps=false"};
    const auto with = [&](Args more) {
      more.insert(more.begin(), common.begin(), common.end());
      if (sampler == std::string("pe")) more.insert(more.end(), {"--set", "sampler.base=scout"});
      return sampled(more);
    };
    for (const char* budget : {"1", "20000", "33333.5"}) {
      const Json s = with({"--gradients", budget});
      const int n = s["iterations"];
      EXPECT_GE(s["cost"]["gradients"].get<double>(), std::stod(budget));
      const Json same = with({"--iterations", std::to_string(n)});
      EXPECT_EQ(same["cost"]["gradients"], s["cost"]["gradients"]);
      EXPECT_EQ(same["estimates"], s["estimates"]);
      if (n > 1) {
        EXPECT_LT(with({"--iterations", std::to_string(n - 1)})["cost"]["gradients"].get<double>(),
                  std::stod(budget));
      }
      const Json stored =
          with({"--gradients", budget, "--draws", "--out", "run", "--force"});  // one iteration a launch
      EXPECT_EQ(stored["iterations"], n);
    }
  }
}

TEST_F(Commands, SameSeedSameBytesForAnyNumberOfThreads) {
  Json one;
  std::string draws;
  for (const char* threads : {"1", "2", "7"}) {
    const Json s = reproducible(
        sampled({"--chains", "80", "--iterations", "20", "--threads", threads, "--draws", "--out", threads}));
    const std::string bytes = contents(folder_ / threads / "draws.nc");
    ASSERT_GT(bytes.size(), 1000u);
    if (draws.empty()) {
      one = s;
      draws = bytes;
    }
    EXPECT_EQ(s, one) << threads;
    EXPECT_EQ(bytes == draws, true) << threads;
  }
}

TEST_F(Commands, AFailingGateExitsWithThree) {
  const Json s = sampled({"--sampler", "hmc", "--init", "uniform:10", "--chains", "16", "--iterations", "200",
                          "--set", "sampler.mode_jumps=false"},
                         3);
  EXPECT_EQ(s["verdict"], "fail");
  ASSERT_FALSE(s["failed_gates"].empty());
  EXPECT_NE(s["failed_gates"][0].get<std::string>().find("rhat"), std::string::npos);
  const ProgramResult table =
      run({"sample", "--target", "mixture20", "--sampler", "hmc", "--init", "uniform:10", "--chains", "16",
           "--iterations", "200", "--out", "kept", "--set", "sampler.mode_jumps=false", "--threads", "1"});
  EXPECT_EQ(table.status, 3);
  EXPECT_NE(table.out.find("verdict: fail (nested_rhat)"), std::string::npos) << table.out;
  EXPECT_TRUE(fs::exists(folder_ / "kept/summary.json"));
}

TEST_F(Commands, ModesAreShownWrittenAndGivenBack) {
  const Args search = {"modes",       "--target", "two_modes", "--set", "target.dim=3",
                       "--gradients", "1e5",      "--threads", "1"};
  Args written = search;
  written.insert(written.end(), {"--out", "found", "--no-pictures"});
  const ProgramResult shown = run(written);
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_NE(shown.out.find("2 modes from "), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("every mode was found"), std::string::npos);
  const Json library = Json::parse(contents(folder_ / "found/modes.json"));
  ASSERT_EQ(library["modes"].size(), 2u);
  EXPECT_NEAR(library["modes"][0]["share"].get<double>(), 0.7, 0.1);
  EXPECT_EQ(library["search"]["stopped"], "hits");
  EXPECT_EQ(run(written).status, 2);  // it would be overwritten
  const Json again = sampled({"--set", "target.dim=3", "--chains", "16", "--iterations", "200", "--modes",
                              "found/modes.json", "--target", "two_modes"});
  EXPECT_EQ(again["diagnostics"]["modes"]["found"], 2);
  const auto from_run = [&](const std::string& modes, const std::string& out) {
    return run({"sample", "--target", "two_modes", "--set", "target.dim=3", "--chains", "16", "--iterations",
                "200", "--modes", modes, "--out", out, "--force", "--no-pictures"});
  };
  EXPECT_EQ(from_run("found/modes.json", "first").status, 0);
  EXPECT_EQ(from_run("first/summary.json", "second").status, 0);
  const ProgramResult own = from_run("first/summary.json", "first");
  EXPECT_EQ(own.status, 2);
  EXPECT_NE(own.err.find("--modes reads first/summary.json (--force deletes it)"), std::string::npos)
      << own.err;
  EXPECT_TRUE(fs::exists(folder_ / "first/summary.json"));
  const auto kept = contents(folder_ / "first/summary.json");
  std::ofstream(folder_ / "ring.json") << "{\"x\": [[0, 0], [3, 3]]}";  // the first is no mode
  const ProgramResult ring =
      run({"sample", "--target", "flower", "--modes", "ring.json", "--out", "first", "--force"});
  EXPECT_EQ(ring.status, 2);
  EXPECT_NE(ring.err.find("place 1 of --modes leads to no mode"), std::string::npos) << ring.err;
  EXPECT_EQ(contents(folder_ / "first/summary.json"), kept);
  std::ofstream(folder_ / "bad.json") << "{\"modes\": [{\"place\": [1, 2]}]}";
  for (const char* command : {"modes", "sample", "evidence"}) {
    const ProgramResult bad =
        run({command, "--target", "two_modes", "--set", "target.dim=3", "--modes", "bad.json"});
    EXPECT_EQ(bad.status, 2) << command;
    EXPECT_NE(bad.err.find("mode 1 of bad.json has no place of 3 coordinates"), std::string::npos) << bad.err;
  }
}

}  // namespace
}  // namespace lockstep
