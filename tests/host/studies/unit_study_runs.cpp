// SPDX-License-Identifier: Apache-2.0
// Whole studies: the same bytes however they are run, cut short, or put together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "host/util/files.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Args = std::vector<std::string>;
using testing::contents;
using testing::ProgramResult;

/// Three settings: ours on both scenarios (a learned Gaussian, log Z), and plain HMC pooled over replicates.
std::string study_text(const std::string& iterations, const std::string& more = "") {
  return "name = \"small\"\nreplicates = 3\nseed = 5\nwarmup = 60\nchains = 2\niterations = " + iterations +
         "\n" + more + R"(
[[setting]]
label = "a PE N=2"
target = "mixture20"
target_settings = { scenario = "a" }
sampler = "pe"
sampler_settings = { pseudo_samples = 2 }
published = { "mean[0]" = [4.383, 0.042] }
published_rmse = { "mean[1]" = 0.75 }
[[setting]]
label = "b PE N=3"
target = "mixture20"
target_settings = { scenario = "b" }
sampler = "pe"
sampler_settings = { pseudo_samples = 3 }
[[setting]]
label = "b, \"HMC\""
target = "mixture20"
target_settings = { scenario = "b" }
sampler = "hmc"
adaptation = "pooled"
init = "uniform:5"
)";
}

std::vector<std::vector<std::string>> cells(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back(1);
    bool inside = false;
    for (char c : line) {
      if (c == '"') inside = !inside;
      if (c == ',' && !inside)
        rows.back().emplace_back();
      else
        rows.back().back() += c;
    }
  }
  return rows;
}

/// Without pictures, which take longer than the runs, unless a test wants them.
class StudyRuns : public testing::ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    setenv("LOCKSTEP_PLOT_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("LOCKSTEP_PLOT_DIR");
    unsetenv("LOCKSTEP_PYTHON");
    ProgramTest::TearDown();
  }
  ProgramResult study(const std::string& out, const Args& more = {}) {
    Args args = {"study", "study.toml", "--out", out, "--quiet"};
    if (std::find(more.begin(), more.end(), "--threads") == more.end())
      args.insert(args.end(), {"--threads", "1"});
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  }
  /// results.csv of a study that must succeed.
  std::string results(const std::string& out, const Args& more = {}) {
    const ProgramResult result = study(out, more);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, "");
    return contents(folder_ / out / "results.csv");
  }
};

TEST_F(StudyRuns, ResultsToTheLetter) {
  put("study.toml", study_text("150"));
  const auto rows = cells(results("out"));
  EXPECT_EQ(rows[0],
            (Args{"label", "replicate", "quantity", "estimate", "se", "truth", "error", "gradients"}));
  std::set<std::vector<std::string>> seen;
  std::set<std::string> of_pe, of_hmc;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 8u) << i;
    EXPECT_TRUE(seen.insert({rows[i][0], rows[i][1], rows[i][2]}).second) << "twice";
    (rows[i][0] == "a PE N=2" ? of_pe : of_hmc).insert(rows[i][2]);
    if (rows[i][5].empty()) {
      EXPECT_EQ(rows[i][6], "");
      continue;
    }
    EXPECT_NEAR(std::stod(rows[i][3]) - std::stod(rows[i][5]), std::stod(rows[i][6]), 1e-12);
    EXPECT_GT(std::stod(rows[i][7]), 0);
  }
  for (const char* quantity : {"mean[0]", "mean[1]", "second_moment[0]", "second_moment[1]"})
    EXPECT_EQ(of_pe.count(quantity) + of_hmc.count(quantity), 2u) << quantity;
  EXPECT_EQ(of_pe.count("log_z"), 1u);
  EXPECT_EQ(rows.back()[0], "\"b, \"\"HMC\"\"\"");
  EXPECT_EQ(rows.back()[1], "2");
  const std::string timings = contents(folder_ / "out/timings.csv");
  EXPECT_EQ(timings.rfind("label,seconds,gradients_per_s\na PE N=2,", 0), 0u) << timings;

  const std::string table = contents(folder_ / "out/table.md");
  std::istringstream lines(table);
  std::string published;
  for (std::string line; std::getline(lines, line);)
    if (published.empty() && line.find("  published") != std::string::npos) published = line;
  EXPECT_NE(published.find("4.383 ± 0.042"), std::string::npos) << table;
  EXPECT_NE(published.find(" 0.75 |"), std::string::npos) << table;
  EXPECT_NE(contents(folder_ / "out/report.html").find("</html>"), std::string::npos);
}

TEST_F(StudyRuns, SameBytesForAnyNumberOfThreads) {
  put("study.toml", study_text("150"));
  const std::string one = results("one");
  EXPECT_GT(one.size(), 1000u);
  EXPECT_EQ(results("two", {"--threads", "2"}), one);
  EXPECT_EQ(results("seven", {"--threads", "7"}), one);
  const ProgramResult again = study("one");
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.err.find("one holds the results of an earlier run"), std::string::npos) << again.err;
  EXPECT_EQ(results("one", {"--force"}), one);
  const ProgramResult finished = run({"study", "study.toml", "--out", "one", "--threads", "1", "--resume"});
  EXPECT_EQ(finished.status, 0);
  EXPECT_NE(finished.err.find("holds every setting, finished"), std::string::npos) << finished.err;
  EXPECT_EQ(contents(folder_ / "one/results.csv"), one);
}

TEST_F(StudyRuns, PutTogetherFromSingleSettings) {
  put("study.toml", study_text("150"));
  const std::string whole = results("whole");
  for (const char* label : {"b, \"HMC\"", "a PE N=2", "b PE N=3"}) {
    EXPECT_NE(contents(folder_ / "parts/results.csv"), whole);
    results("parts", {"--only", label, "--resume"});
  }
  EXPECT_EQ(contents(folder_ / "parts/results.csv"), whole);
  results("pair", {"--only", "b PE N=3", "--only", "b, \"HMC\""});
  EXPECT_EQ(results("pair", {"--resume"}), whole);
}

// Each of these searches for modes: paths from a base of them and along jumps between them, and chains that begin anew by
// them.
TEST_F(StudyRuns, PutTogetherFromSettingsThatSearchForModes) {
  put("study.toml", R"(
replicates = 2
seed = 5
[[setting]]
label = "{method}"
command = "evidence"
target = "mixture20"
method = ["st", "smc"]
gradients = 5e4
[[setting]]
label = "scouted"
command = "evidence"
target = "two_modes"
target_settings = { dim = 3 }
method = "bdmc"
gradients = 1e5
sampler_settings = { base = "scout" }
[[setting]]
label = "anew"
target = "two_modes"
target_settings = { dim = 3 }
sampler = "hmc"
warmup = 60
chains = 8
iterations = 100
sampler_settings = { regeneration = true }
)");
  const std::string whole = results("whole");
  EXPECT_GT(cells(whole).size(), 80u);
  for (const char* label : {"anew", "scouted", "smc", "st"}) {  // the last first
    EXPECT_NE(contents(folder_ / "parts/results.csv"), whole);
    results("parts", {"--only", label, "--resume", "--threads", "2"});
  }
  EXPECT_EQ(contents(folder_ / "parts/results.csv"), whole);
  results("pair", {"--only", "scouted", "--only", "smc"});
  EXPECT_EQ(results("pair", {"--resume"}), whole);
}

// So few iterations that chains of a replicate do not visit all modes of its library, and enough of them.
TEST_F(StudyRuns, AReplicateThatDoesNotVisitItsModesIsNoPass) {
  const auto verdict = [&](const std::string& out, const std::string& dim, const std::string& gradients) {
    put("modes.toml", "name = \"modes\"\nreplicates = 2\nseed = 1\nchains = 16\nwarmup = 100\ngradients = " +
                          gradients + "\n[[setting]]\nlabel = \"jumps\"\ntarget = \"scattered\"\n" +
                          "target_settings = { modes = 10, dim = " + dim + " }\nsampler = \"hmc\"\n" +
                          "sampler_settings = { mode_jumps = true }\n");
    run({"study", "modes.toml", "--out", out, "--device", "cpu", "--quiet"});
    return contents(folder_ / out / "table.md");
  };
  EXPECT_NE(verdict("short", "40", "3e4").find(": modes"), std::string::npos);
  EXPECT_NE(verdict("long", "10", "3e5").find("pass"), std::string::npos);
}

TEST_F(StudyRuns, ASettingAskedForNeedsNoDataOfOthers) {
  const std::string absent =
      "[[setting]]\nlabel = \"other\"\ntarget = \"mixture\"\nsampler = \"hmc\"\ndata = \"absent.json\"\n";
  put("study.toml", study_text("150"));
  const std::string alone = results("alone", {"--only", "a PE N=2"});
  put("study.toml", study_text("150") + absent);
  EXPECT_EQ(results("beside", {"--only", "a PE N=2"}), alone);
  const ProgramResult told =
      run({"study", "study.toml", "--out", "beside", "--only", "a PE N=2", "--resume", "--threads", "1"});
  EXPECT_EQ(told.status, 0) << told.err;
  EXPECT_NE(told.err.find("warning: 1 settings"), std::string::npos) << told.err;
  EXPECT_NE(told.err.find("absent.json"), std::string::npos) << told.err;
  refuses({"study", "study.toml", "--only", "other"}, "absent.json");
}

TEST_F(StudyRuns, ReplicatesAreTheFirstOfMore) {
  put("study.toml", study_text("150"));
  const auto three = cells(results("three")), two = cells(results("two", {"--replicates", "2"}));
  std::vector<std::vector<std::string>> first_two;
  for (const auto& row : three)
    if (row[1] != "2" && row[0].find("HMC") == std::string::npos) first_two.push_back(row);
  std::vector<std::vector<std::string>>
      own;  // pooled HMC adapts over all replicates: another number, another run
  for (const auto& row : two)
    if (row[0].find("HMC") == std::string::npos) own.push_back(row);
  EXPECT_EQ(own, first_two);
  // A crowd in which some units take longer to find their first step size than others.
  put("crowd.toml", study_text("20"));
  const auto few = [&](const char* out, const char* replicates) {
    EXPECT_EQ(run({"study", "crowd.toml", "--out", out, "--quiet", "--threads", "1", "--only", "b PE N=3",
                   "--replicates", replicates})
                  .status,
              0);
    return cells(contents(folder_ / out / "results.csv"));
  };
  const auto crowd = few("crowd", "40"), start = few("start", "10");
  ASSERT_GT(crowd.size(), start.size());
  EXPECT_TRUE(std::equal(start.begin(), start.end(), crowd.begin()));
  // What was run for three replicates is not taken for a run of two, nor replaced by it.
  const std::string kept = contents(folder_ / "three/results.csv");
  const ProgramResult fewer = run({"study", "study.toml", "--out", "three", "--resume", "--replicates", "2"});
  EXPECT_EQ(fewer.status, 2);
  EXPECT_NE(fewer.err.find("with other options, seed, data or version"), std::string::npos) << fewer.err;
  EXPECT_EQ(contents(folder_ / "three/results.csv"), kept);
  EXPECT_EQ(cells(results("three", {"--force", "--replicates", "2"})), two);
}

TEST_F(StudyRuns, ResumesAfterAKill) {
  put("study.toml", study_text("15000"));
  const std::string whole = results("whole");
  for (int signal_number : {SIGKILL, SIGINT}) {
    const std::string out = std::to_string(signal_number);
    testing::Program program(folder_, {"study", "study.toml", "--out", out, "--threads", "1"});
    ASSERT_TRUE(program.wait_for([&] { return fs::exists(folder_ / out / "parts/0.csv"); }));
    program.send(signal_number);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.status, signal_number == SIGINT ? 130 : 137);
    EXPECT_EQ(result.err.find("--resume") != std::string::npos, signal_number == SIGINT) << result.err;
    EXPECT_FALSE(fs::exists(folder_ / out / "parts/2.csv"));
    const auto before = fs::last_write_time(folder_ / out / "parts/0.csv");
    EXPECT_EQ(results(out, {"--resume"}), whole);
    EXPECT_EQ(fs::last_write_time(folder_ / out / "parts/0.csv"), before) << "what was there is kept";
  }
}

TEST_F(StudyRuns, ResumeLeavesAnotherStudyAlone) {
  put("study.toml", study_text("150"));
  const std::string before = results("mine");
  put("other.toml",
      "replicates = 1\n[[setting]]\nlabel = \"other\"\ntarget = \"gaussian\"\nsampler = \"hmc\"\n");
  const ProgramResult result = run({"study", "other.toml", "--out", "mine", "--resume"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("mine holds another study, with setting \""), std::string::npos) << result.err;
  EXPECT_EQ(contents(folder_ / "mine/results.csv"), before);
}

TEST_F(StudyRuns, AChangedDefaultIsRunAgainWhereToldTo) {
  put("study.toml", study_text("150"));
  const std::string whole = results("out");
  const fs::path part = folder_ / "out/parts/0.csv";
  const auto before = fs::last_write_time(part);
  EXPECT_EQ(results("out", {"--resume"}), whole);
  EXPECT_EQ(fs::last_write_time(part), before);
  // As a program would have written it whose default was another one.
  std::string text = contents(part);
  const std::string now = R"(\"target_acceptance\":0.75)";
  ASSERT_NE(text.find(now), std::string::npos) << text;
  text.replace(text.find(now), now.size(), R"(\"target_acceptance\":0.7)");
  text.resize(text.rfind("# checksum "));
  put("out/parts/0.csv", text + "# checksum " + checksum(text) + "\n");
  const ProgramResult refused = run({"study", "study.toml", "--out", "out", "--resume"});
  EXPECT_EQ(refused.status, 2);
  const auto from = refused.err.find("--only \"") + 8;
  ASSERT_LT(from, refused.err.size()) << refused.err;
  const std::string label = refused.err.substr(from, refused.err.find('"', from) - from);
  EXPECT_EQ(results("out", {"--resume", "--only", label}), whole);
  EXPECT_NE(contents(part).find(now), std::string::npos);
}

TEST_F(StudyRuns, MistakesAreFoundBeforeAnythingRuns) {
  const auto refused = [&](const std::string& text, const std::string& part, const Args& more = {}) {
    put("study.toml", text);
    Args args = {"study", "study.toml"};
    args.insert(args.end(), more.begin(), more.end());
    refuses(args, part);
  };
  const std::string good = study_text("150");
  refused(good, "Did you mean a PE N=2, b PE N=3?", {"--only", "a PE N=3"});
  refused(good, "Known settings", {"--only", "something else"});
  refused(good, "--replicates is 0", {"--replicates", "0"});
  const std::string last = good + "[[setting]]\nlabel = \"last\"\n";
  refused(last + "target = \"mixture20\"\nsampler = \"pe\"\nsampler_settings = { betta = 0.5 }\n",
          "setting \"last\": setting betta of sampler pe is unknown");
  refused(last + "target = \"mixtur20\"\nsampler = \"pe\"\n", "Did you mean mixture20?");
  refused(last + "target = \"mixture\"\nsampler = \"pe\"\ndata = \"absent.json\"\n", "absent.json");
  refused(last + "target = \"mixture20\"\nsampler = \"pe\"\ninit = \"absent.json\"\n", "absent.json");
  put("starts.json", R"({"x": [[1, 2, 3]]})");
  refused(last + "target = \"mixture20\"\nsampler = \"hmc\"\ninit = \"starts.json\"\n", "it must have 2");
  refused(last + "target = \"mixture20\"\nsampler = \"rwm\"\ngradients = 1e3\n", "no gradients");
  refused(last + "target = \"mixture20\"\nsampler = \"hmc\"\npublished_rmse = { \"mean[0]\" = [1, 2] }\n",
          "an RMSE is one number");
  // What a method of evidence cannot do is known before the settings above it run.
  const std::string evidence = last + "command = \"evidence\"\ntarget = \"mixture20\"\nmethod = \"st\"\n";
  refused(evidence + "init = \"uniform:3\"\n", "setting \"last\": --init uniform:3 has no effect");
  refused(evidence + "sampler_settings = { base = \"mean-field\" }\n",
          "setting \"last\": sampler.base is mean-field");
  refused(study_text("150", "[plot]\nreplicates = 3\n"), "stands below [plot]");
  refused(study_text("150", "[plot]\npanel = [\"rmse\"]\n"), "Did you mean panels?");
  refused(study_text("150", "[plot]\npanels = [3]\n"), "panels");
  refused(study_text("150", "[plot]\nkind = \"pie\"\n"), "kind (study.toml, line 8) is \"pie\"");
  refused(
      study_text("150", "quantities = [\"mean[0]\",\n\"mean[2]\"]\n"),
      "quantities (study.toml, line 8) names 'mean[2]' (no setting's target has it). Did you mean mean[0], "
      "mean[1]");
  refused(study_text("150", "quantities = [\"median\"]\n"), "There are mean[i], second_moment[i], log_z");
  refused(study_text("150", "[plot]\nquantities = [\"probability_positive\"]\n"),
          "quantities (study.toml, line 8) names 'probability_positive'");
  refuses({"study", "absent.toml"}, "absent.toml");
  // Before anything of that size is made.
  refused(last + "target = \"mixture20\"\nsampler = \"hmc\"\nchains = 1000000\n",
          "Lower its chains, or the replicates", {"--replicates", "1000000"});
  EXPECT_LT(run({"study", "study.toml", "--out", "never", "--replicates", "1000000"}).peak_mib, 300);
  refused(good, "--replicates is 1000000000 (it must be a whole number from 1 to 1000000)",
          {"--replicates", "1000000000"});
}

TEST_F(StudyRuns, DrawsAndPictureWhereAskedFor) {
  put("study.toml", study_text("150"));
  results("plain");
  EXPECT_FALSE(fs::exists(folder_ / "plain/draws"));
  if (!can_draw()) GTEST_SKIP() << "pictures need matplotlib and netCDF4";
  unsetenv("LOCKSTEP_PLOT_DIR");
  results("plain", {"--resume"});
  EXPECT_TRUE(fs::exists(folder_ / "plain/small.png")) << "without [plot], errors";
  put("study.toml", study_text("150", "[plot]\npanels = [\"rmse\", \"scatter\"]\nlabels = [\"b PE N=3\"]\n"));
  results("out");
  for (const char* name :
       {"small.png", "small.svg", "report.html", "draws/b_PE_N=3.nc", "contours/b_PE_N=3.json"})
    EXPECT_GT(contents(folder_ / "out" / name).size(), 1000u) << name;
  EXPECT_FALSE(fs::exists(folder_ / "out/draws/a_PE_N=2.nc")) << "only the labels asked for";
  EXPECT_NE(contents(folder_ / "out/report.html").find("data:image/"), std::string::npos);

  // The picture shows the very chains behind results.csv: two chains of replicate 0, all draws by index.
  const std::string text = testing::run_python("read_draws.py", folder_ / "out/draws/b_PE_N=3.nc");
  ASSERT_NE(text, "");
  const auto file = nlohmann::json::parse(text);
  EXPECT_EQ(file["posterior"]["dims"], (nlohmann::json{{"chain", 2}, {"draw", 150}, {"x_dim_0", 2}}));
  double mean = 0;
  const auto& weighted = file["weighted"]["variables"];
  for (int i = 0; i < 2 * 150 * 3; ++i)
    mean += std::exp(weighted["log_weight"]["values"][i].get<double>()) *
            weighted["x"]["values"][2 * i].get<double>() / 300;
  for (const auto& row : cells(contents(folder_ / "out/results.csv"))) {
    if (row[0] != "b PE N=3" || row[1] != "0" || row[2] != "mean[0]") continue;
    EXPECT_NEAR(std::stod(row[3]), mean, 1e-4);
  }
}

TEST_F(StudyRuns, AMissingPythonCostsOnlyThePicture) {
  put("study.toml", study_text("20"));
  unsetenv("LOCKSTEP_PLOT_DIR");
  setenv("LOCKSTEP_PYTHON", "/no/python", 1);
  const ProgramResult result = run({"study", "study.toml", "--out", "out", "--threads", "1"});
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.err.find("no picture"), std::string::npos) << result.err;
  EXPECT_EQ(study("quiet").err, "");
  EXPECT_TRUE(fs::exists(folder_ / "out/report.html"));
  EXPECT_FALSE(fs::exists(folder_ / "out/small.png"));
}

}  // namespace
}  // namespace lockstep
