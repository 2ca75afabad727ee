// SPDX-License-Identifier: Apache-2.0
#include "host/commands/print_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/commands/summary.hpp"
#include "host/commands/table.hpp"
#include "host/modes/mode_reach.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kShownItems = 10, kShownTourMeans = 4;

void print_method(const RunResult& r, const std::string& base) {
  fmt::print("method {}, base {}\n", r.sampler.name, base);
}

/// Draws of the base, where they stand beside the chains, and what is left to these.
void print_draws(const NamedFigures& of_method) {
  const auto number = [&](const char* name) {
    for (const auto& [known, figure] : of_method)
      if (const double* v = known == name ? std::get_if<double>(&figure) : nullptr) return *v;
    return double(NAN);
  };
  const double draws = number("base_draws"), beyond = number("base_draws_beyond");
  if (std::isnan(beyond)) return;
  fmt::print(
      "{:.3g} draws of the base, worth {:.3g} of the target; what these seldom see, {:.2g} % of what was "
      "met, by "
      "chains\n",
      draws, draws * number("base_draws_effective"), 100 * beyond);
}

/// Items one by one, where they are few.
void print_items(const std::vector<OneItem>& items) {
  const auto text = [](double v) { return std::isnan(v) ? std::string() : fmt::format("{:.3f}", v); };
  fmt::print("{:>6} {:>12} {:>8} {:>12} {:>12} {:>8} {:>8}\n", "item", "log_z", "se", "lower", "upper", "gap",
             "ess");
  for (std::size_t i = 0; i < std::min(items.size(), kShownItems); ++i) {
    const LogZSummary& z = items[i].log_z;
    fmt::print("{:>6} {:>12} {:>8} {:>12} {:>12} {:>8} {:>8}\n", i, text(z.estimate), text(z.se),
               text(z.lower), text(z.upper), text(z.gap),
               text(std::fmin(items[i].weight_ess, items[i].reverse_ess)));
  }
  if (items.size() > kShownItems)
    fmt::print("... and {} more (--json, or items.csv of --out, show all)\n", items.size() - kShownItems);
}

/// A mean over items with the error of the runs for these items and, of others like them, of which there are.
void print_mean(const char* name, double estimate, double of_runs, double over_items) {
  if (std::isnan(estimate)) return;
  fmt::print("{:<30} {:>24}", name, with_error(estimate, of_runs));
  if (!std::isnan(over_items)) fmt::print("  (over images +- {:.2g})", over_items);
  fmt::print("\n");
}

/// What is known of the modes: never that these are all.
void print_modes(const ModesSummary& m) {
  if (!m.found) return;
  if (m.stopped == "dimension") {
    fmt::print("\nno modes searched for: too many dimensions");
    return;
  }
  if (*m.found == 0) {
    fmt::print("\nno modes found");
    return;
  }
  const bool given = m.stopped == "given";
  const int own = given ? m.listed.value_or(*m.found) : *m.found - m.met;
  fmt::print("\n{} mode{} {}", own, own == 1 ? "" : "s", given ? "given" : "found");
  if (given && m.beside > 0) fmt::print(", {:.0f} starts elsewhere led to no other of over 1 %", m.beside);
  if (m.met > 0) fmt::print(", and {} that chains came upon", m.met);
  if (!std::isnan(m.least_hits) && !given)
    fmt::print(" (hits {:.0f}{}{})", m.least_hits,
               m.most_hits > m.least_hits ? fmt::format(" to {:.0f}", m.most_hits) : "",
               m.stopped == "hits" ? "" : ", stopped by " + m.stopped);
  if (m.base) fmt::print(", {}", *m.found == 1 ? "the base made of it" : "a mixture of them the base");
  if (m.expected && *m.expected == 0 && *m.found > 1)
    fmt::print("; none should hold over 1 %, and visits to each are not asked for");
  if (m.expected && *m.expected > 0) {
    if (*m.expected == 1)
      fmt::print("; the one that should hold over 1 % was{} visited", *m.visited == 1 ? "" : " not");
    else if (*m.visited == *m.expected)
      fmt::print("; all {} known that should hold over 1 % were visited", *m.expected);
    else
      fmt::print("; {} of {} that should hold over 1 % were visited as they should be", *m.visited,
                 *m.expected);
  }
  fmt::print(". {}", of_others(m.narrowest, *m.found, m.narrowest_unknown));
}

/// How often modes were visited, and how often they should be.
void print_shares(const std::vector<ModeShare>& shares) {
  constexpr std::size_t kShown = 10, kAxes = 6;
  constexpr double kNought = 1e-12;
  if (shares.empty()) return;
  const auto known = [](double x) { return std::isnan(x) ? "?" : fmt::format("{:.4f}", x); };
  fmt::print("\n{:>4} {:>8} {:>8} {:>8} {:>8}  {}", "mode", "share", "se", "expected", "hits", "place");
  for (std::size_t k = 0; k < std::min(kShown, shares.size()); ++k) {
    const ModeShare& m = shares[k];
    std::vector<std::string> place;
    for (std::size_t i = 0; i < std::min(kAxes, m.place.size()); ++i)
      place.push_back(fmt::format("{:.4g}", std::abs(m.place[i]) < kNought ? 0 : m.place[i]));
    fmt::print("\n{:>4} {:>8.4f} {:>8} {:>8} {:>8.0f}  {}{}", k + 1, m.share, known(m.se), known(m.expected),
               m.hits, fmt::join(place, " "), m.place.size() > kAxes ? " .." : "");
  }
  if (shares.size() > kShown)
    fmt::print("\n     and {} more (--json, and summary.json, have them)", shares.size() - kShown);
}

void print_cost(const RunResult& r, const RunDiagnostics& d) {
  const double sampled = r.cost.gradients_per_s * r.cost.sampling;  // the others are before
  fmt::print(
      "\n{} chain{} x {} iterations, {:.3g} gradients, {}{:.2f} s of sampling ({:.3g} gradients per "
      "second)\n",
      r.chains, r.chains == 1 ? "" : "s", r.iterations, r.cost.gradients,
      sampled < 0.99 * r.cost.gradients ? fmt::format("{:.3g} of them in ", sampled) : "", r.cost.sampling,
      r.cost.gradients_per_s);
  if (!std::isnan(d.acceptance))
    fmt::print("acceptance {:.3f}, step size {:.4g}, {}divergences {:.0f}", d.acceptance, d.step_size,
               std::isnan(d.num_leapfrog) ? "" : fmt::format("leapfrog steps {:.1f}, ", d.num_leapfrog),
               d.divergences);
  const auto also = [](const char* name, double value) {
    if (!std::isnan(value)) fmt::print(", {} {:.4g}", name, value);
  };
  also("rhat_max (by values too)", d.rhat_max);
  also("nested_rhat_max (judged: chains are short)", d.nested_rhat_max);
  also("weight_ess", d.weight_ess);
  for (const auto& [name, count] : d.counters)
    if (count != 0) also(name.c_str(), count);
  if (std::any_of(d.counters.begin(), d.counters.end(),
                  [](const auto& c) { return c.first == kRecycledStates; }))
    fmt::print(
        "\nmeans, their errors and sd are recycled (sampler.recycle); quantiles, ess, r_hat and sd of the "
        "target's own "
        "quantities are the chains'");
  print_modes(d.modes);
  print_shares(d.modes.shares);
  fmt::print("\nverdict: {}", r.verdict);
  for (const auto& gate : r.failed_gates) fmt::print(" ({})", gate);
  const auto off = [](const std::string& w) { return w.find(kFromTruth) != w.npos; };
  if (r.failed_gates.empty() && std::any_of(r.warnings.begin(), r.warnings.end(), off))
    fmt::print(", by what a run can see: the truth known of this target is missed (below)");
  fmt::print("\n");
  if (!r.failed_gates.empty())
    fmt::print("what each gate asks, and what to do: report.html of a run with --out, or docs/trust.md\n");
  for (const auto& warning : r.warnings) fmt::print("warning: {}\n", warning);
}

/// Tours between regenerations, and means over them.
void print_tours(const SampleResult& r) {
  const TourMeans& t = r.diagnostics.tours;
  if (!(t.number > 0)) return;
  fmt::print("{:.0f} tours of {:.1f} iterations on average{}, independent draws accepted {:.3f}\n", t.number,
             t.mean_length,
             t.dropped_draws > 0
                 ? fmt::format(" ({:.0f} draws from before a mode was learned left out)", t.dropped_draws)
                 : "",
             t.acceptance);
  std::vector<std::string> means;
  for (std::size_t i = 0; i < std::min(t.mean.size(), kShownTourMeans); ++i)
    means.push_back(fmt::format("{} {}", r.target.parameters[i], with_error(t.mean[i], t.mean_se[i])));
  if (t.mean.size() > kShownTourMeans) means.push_back("... (all: diagnostics.tours of --json)");
  fmt::print("means over tours: {}\n", fmt::join(means, ", "));
}

}  // namespace

void print_result(const SampleResult& r) {
  fmt::print("{}", estimates_table(r, r.diagnostics.of_draws));
  print_tours(r);
  print_cost(r, r.diagnostics);
}

void print_result(const EvidenceResult& r) {
  fmt::print("{}", estimates_table(r));
  if (!r.diagnostics.base.empty()) print_method(r, r.diagnostics.base);
  print_draws(r.diagnostics.of_method);
  print_cost(r, r.diagnostics);
}

void print_result(const ItemResult& r) {
  print_items(r.items);
  fmt::print("\n");
  print_method(r, r.diagnostics.base);
  const LogZSummary& z = r.log_z;
  print_mean("mean log_z", z.estimate, z.mc_se, z.se);
  print_mean("mean lower bound", z.lower, z.lower_mc_se, z.lower_se);
  print_mean("mean upper bound", z.upper, z.upper_mc_se, z.upper_se);
  if (!std::isnan(z.gap)) fmt::print("{:<30} {:>24}\n", "mean gap", with_error(z.gap, z.gap_se));
  fmt::print("{:<30} {:>24}\n", "mean importance-weighted bound",
             with_error(r.diagnostics.importance_bound, r.diagnostics.importance_bound_se));
  if (!r.truth.items.empty()) fmt::print("{:<30} {:>24.6g}\n", "mean truth", r.truth.log_z);
  print_cost(r, r.diagnostics);
}

}  // namespace lockstep
