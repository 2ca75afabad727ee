// SPDX-License-Identifier: Apache-2.0
#include "host/modes/wormhole_network.hpp"

#include <gtest/gtest.h>

#include <random>

#include "host/runs/chain_run.hpp"
#include "tests/support/sampler_run.hpp"
#include "tests/support/wormholes.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

double length(const std::vector<std::vector<double>>& places, const std::vector<std::pair<int, int>>& edges) {
  double sum = 0;
  for (const auto& [i, j] : edges) {
    double square = 0;
    for (std::size_t k = 0; k < places[i].size(); ++k) square += std::pow(places[i][k] - places[j][k], 2);
    sum += std::sqrt(square);
  }
  return sum;
}
bool connects(int n, const std::vector<std::pair<int, int>>& edges) {
  std::vector<int> group(n);
  for (int i = 0; i < n; ++i) group[i] = i;
  for (const auto& [i, j] : edges) {
    const int from = group[i], to = group[j];
    std::replace(group.begin(), group.end(), from, to);
  }
  return std::count(group.begin(), group.end(), group[0]) == n;
}

TEST(WormholeNetwork, SpanningTreesAreTheShortestOfAll) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  const int n = 5;
  std::vector<std::pair<int, int>> all;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j) all.emplace_back(i, j);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<std::vector<double>> places(n, std::vector<double>(3));
    for (auto& p : places)
      for (double& x : p) x = normal(random);
    double least = INFINITY;  // of all choices of n - 1 edges that connect
    for (unsigned bits = 0; bits < 1u << all.size(); ++bits) {
      std::vector<std::pair<int, int>> some;
      for (std::size_t e = 0; e < all.size(); ++e)
        if (bits >> e & 1) some.push_back(all[e]);
      if (int(some.size()) == n - 1 && connects(n, some)) least = std::min(least, length(places, some));
    }
    const auto tree = spanning_tree(places);
    EXPECT_TRUE(connects(n, tree));
    EXPECT_EQ(int(tree.size()), n - 1);
    EXPECT_NEAR(length(places, tree), least, 1e-12);
  }
  EXPECT_TRUE(spanning_tree({{1.0}}).empty());
}

TEST(WormholeNetwork, TheListIsThatOfItsWormholes) {
  ModeLibrary library(2);
  const double places[3][2] = {{0, 0}, {3, 0}, {3, 4}};
  for (int k = 0; k < 3; ++k) {
    Mode mode;
    mode.place = {places[k][0], places[k][1]};
    mode.factor = {1, 0, 0, 1};
    mode.laplace_log_mass = -k;  // in this order
    library.add(mode);
  }
  const auto point = [&](int k, double y) { return Eigen::Vector3d(places[k][0], places[k][1], y); };
  Network tree, complete, worlds;
  tree.width = complete.width = 0.6;
  worlds.width = 0.9;
  tree.add(point(0, 0), point(1, 0));
  tree.add(point(1, 0), point(2, 0));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < i; ++j) complete.add(point(i, 0), point(j, 0));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) worlds.add(point(i, -2), point(j, 2));
  const auto expect = [](const std::vector<double>& list, const Network& network) {
    const auto known = network.list();
    ASSERT_EQ(list.size(), known.size());
    for (std::size_t k = 0; k < list.size(); ++k) EXPECT_NEAR(list[k], known[k], 1e-12) << k;
  };
  expect(network_list(library, {}), tree);
  expect(network_list(library, {.complete = true}), complete);
  expect(network_list(library, {.two_worlds = true, .separation = 2}), worlds);
  EXPECT_TRUE(network_list(ModeLibrary(2), {}).empty());
}

TEST(WormholeNetwork, NumbersArePlannedForTheLargest) {
  const int dim = 3;
  ModeLibrary library(dim);
  for (int k = 0; k < most_used_modes(dim) + 2; ++k) {
    Mode mode;
    mode.place = {double(k), std::sin(double(k)), 0};
    mode.factor = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    mode.laplace_log_mass = -k;
    library.add(mode);
  }
  for (const NetworkPlan& plan : {NetworkPlan{}, {.complete = true}, {.two_worlds = true}})
    EXPECT_EQ(double(network_list(library, plan).size()), most_network_numbers(dim, plan));
  const NetworkPlan plan = network_plan({0.4, 1, 2, 3, 0.03});
  EXPECT_EQ(plan.influence, 0.4);
  EXPECT_TRUE(plan.complete && plan.two_worlds);
  EXPECT_EQ(plan.separation, 3);
  // Of two worlds over 32 modes: over 15 MB more a replicate than of one, three times.
  const auto planned = [](const Settings& settings) {
    const Job job{.target = "gaussian", .sampler = "wormhole", .sampler_settings = settings};
    const RunOptions run = run_of(job);
    const auto target = build_target(run);
    RunContext context;
    context.target = target.get();
    const SamplerConfig config = sampler_config(run, target->dim(), Tails::gaussian);
    RunSize size = run_size(run, config, target->dim(), 4, false);
    size.searches = true;
    return planned_memory(context, config.model, size).host;
  };
  EXPECT_GT(planned({{"worlds", 2}}) - planned(Settings::object()), 4 * 3 * 1.5e7);
}

Outcome whole_run(const std::string& target, const std::string& sampler, const Settings& settings) {
  const Job job{.target = target, .sampler = sampler, .sampler_settings = settings, .iterations = 100};
  const RunOptions run = run_of(job);
  Outcome out;
  out.target = build_target(run);
  out.config = sampler_config(run, out.target->dim(), out.target->tails());
  const RunContext context = make_context(run, *out.target, "");
  ChainRunOptions options{run, {0}};
  options.searches = true;
  out.result = run_chains(context, out.config, options);
  return out;
}

/// Steps of a default run are of the order of HMC's: what the flow does to H shortens none.
TEST(WormholeNetwork, DefaultStepsAreNotShortenedByTheFlow) {
  const auto step = [](const std::string& sampler) {
    return whole_run("welling_teh", sampler, {{"mode_jumps", false}}).result.frozen.step_size[0];
  };
  const double hmc = step("hmc"), wormhole = step("wormhole");
  EXPECT_GT(wormhole, 0.2 * hmc);
  EXPECT_LT(wormhole, 2 * hmc);
}

/// Users read them by these names in summaries; whatever is not accepted has one cause.
TEST(WormholeNetwork, RejectionsAreCountedByCause) {
  const std::vector<std::string> causes = {"rejected_unsolved", "rejected_no_way_back", "rejected_crowded",
                                           "rejected_outside", "rejected_by_ratio"};
  for (const std::string sampler : {"wormhole", "wormhole_metric"}) {
    const Outcome out = whole_run(
        "welling_teh", sampler,
        {{"mode_jumps", false}, {"num_leapfrog", 4}, {"step_size", sampler == "wormhole" ? 0.7 : 0.1}});
    const UnitMoments& unit = out.result.units[0];
    double rejected = 0;
    int seen = 0;
    for (const auto& [name, count] : counters_of(unit, *out.config.transition)) {
      EXPECT_EQ(std::count(causes.begin(), causes.end(), name), 1) << name;
      rejected += count;
      seen += count > 0;
    }
    EXPECT_GE(seen, 2) << sampler;
    EXPECT_EQ(rejected, double(unit.iterations) * unit.chains - unit.stats[stat_accepted]) << sampler;
  }
}

TEST(WormholeNetwork, SettingsAreRefusedWhereThereIsOneMode) {
  try {
    whole_run("gaussian", "wormhole", {{"worlds", 2}});
    FAIL() << "it was taken";
  } catch (const UserError& error) {
    EXPECT_NE(
        std::string(error.what()).find("setting worlds of sampler wormhole has no effect (one mode is known"),
        std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW(whole_run("gaussian", "wormhole", Settings::object()));
}

}  // namespace
