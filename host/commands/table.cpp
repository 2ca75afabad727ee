// SPDX-License-Identifier: Apache-2.0
#include "host/commands/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/estimators/weighted_moments.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kShownRows = 10;

/// With as many decimals as leave `digits` of `scale`; empty for a NaN.
std::string rounded(double value, double scale, int digits) {
  if (std::isnan(value)) return "";
  if (!(scale > 1e-9 * std::abs(value)) || std::abs(value) >= 1e7) return fmt::format("{:.6g}", value);
  const int decimals = std::clamp(digits - 1 - int(std::floor(std::log10(scale))), 0, 10);
  return decimals > 7 ? fmt::format("{:.{}g}", value, digits + 2) : fmt::format("{:.{}f}", value, decimals);
}

struct Figures {
  std::string name;
  bool visited;
  double mean, se, sd, q5, q50, q95, bulk, tail, rhat, truth;
};

std::vector<std::string> cells(const Figures& f) {
  const auto whole = [](double v) { return std::isnan(v) ? std::string() : fmt::format("{:.0f}", v); };
  const std::string truth = std::isnan(f.truth) ? "" : fmt::format("{:.6g}", f.truth);
  if (!f.visited) {  // of a probability near 0: nobody was there
    const double share = is_probability(f.name) ? f.mean : 1;
    const std::string seen =
        share < 0.01 ? "not visited"
                     : fmt::format("{:.6g} ({})", f.mean, share < 0.99 ? "the same in all" : "never left");
    return {f.name, seen, "", "", "", "", "", "", "", "", truth};
  }
  return {f.name,
          rounded(f.mean, f.se, 2),
          rounded(f.sd, f.sd, 3),
          rounded(f.q5, f.sd, 3),
          rounded(f.q50, f.sd, 3),
          rounded(f.q95, f.sd, 3),
          rounded(f.se, f.se, 2),
          whole(f.bulk),
          whole(f.tail),
          std::isnan(f.rhat) ? "" : fmt::format("{:.3f}", f.rhat),
          truth};
}

/// Rows of equally many cells, aligned; columns without a cell but the title are left out.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width(rows[0].size(), 0);
  std::vector<bool> used(rows[0].size(), false);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < width.size(); ++c) {
      width[c] = std::max(width[c], rows[r][c].size());
      used[c] = used[c] || (r > 0 && !rows[r][c].empty());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], width[0]);
    for (std::size_t c = 1; c < width.size(); ++c)
      if (used[c]) line += fmt::format("  {:>{}}", row[c], width[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string ordinal(std::int64_t n) {
  const char* ending = n % 100 / 10 == 1 ? "th"
                       : n % 10 == 1     ? "st"
                       : n % 10 == 2     ? "nd"
                       : n % 10 == 3     ? "rd"
                                         : "th";
  return fmt::format("{}{}", n, ending);
}

/// log Z with what is known of it; empty without.
std::string log_z_line(const RunResult& r) {
  const LogZSummary& z = r.log_z;
  if (to_json(z).empty()) return {};
  if (std::isnan(z.estimate)) return "log_z unknown\n";
  std::string text = fmt::format("log_z {}", with_error(z.estimate, z.se));
  for (const auto& [interval, level] : {std::pair{z.interval95, "95"}, {z.interval997, "99.7"}}) {
    const auto [low, high] = interval;
    if (!std::isnan(low))
      text += fmt::format(", {} % from {} to {}", level, rounded(low, high - low, 3),
                          rounded(high, high - low, 3));
  }
  return text + (std::isnan(r.truth.log_z) ? "\n" : fmt::format(" (truth {:.6g})\n", r.truth.log_z));
}

/// Which draws the figures are of.
std::string draws_line(const RunResult& r, const DrawsSummary& of_draws) {
  if (of_draws.draws)
    return of_draws.draws->every <= 1
               ? ""
               : fmt::format("quantiles, ess and r_hat are over every {} iteration of all chains\n",
                             ordinal(of_draws.draws->every));
  return r.command == "sample" ? "no quantiles, ess and r_hat: draws of so many chains and parameters are "
                                 "not kept (--draws all "
                                 "keeps them)\n"
                               : "no quantiles, ess and r_hat: estimates are sums over weighted states "
                                 "(--draws --out DIR stores "
                                 "unweighted draws)\n";
}

}  // namespace

std::string with_error(double value, double se) {
  if (!(se > 1e-9 * std::abs(value))) return fmt::format("{:.6g}", value);
  if (!(se < 1e7)) return fmt::format("{:.6g} +- {:.2g}", value, se);
  const int digits = std::clamp(2 - int(std::floor(std::log10(se))) - 1, 0, 12);
  return fmt::format("{:.{}f} +- {:.{}f}", value, digits, se, digits);
}

std::string estimates_table(const RunResult& r, const DrawsSummary& of_draws) {
  const EstimatesSummary& e = r.estimates;
  const auto visited = [&](const std::string& name) {
    return std::find(e.not_visited.begin(), e.not_visited.end(), name) == e.not_visited.end();
  };
  const auto& parameters = r.target.parameters;
  std::vector<std::vector<std::string>> rows = {
      {"", "mean", "sd", "5%", "50%", "95%", "mcse_mean", "ess_bulk", "ess_tail", "r_hat", "truth"}};
  for (std::size_t i = 0; i < std::min(parameters.size(), kShownRows); ++i)
    rows.push_back(cells({parameters[i], visited(parameters[i]), entry(e.mean, i), entry(e.mean_se, i),
                          entry(e.sd, i), entry(e.quantiles.q5, i), entry(e.quantiles.q50, i),
                          entry(e.quantiles.q95, i), entry(of_draws.ess_bulk, i), entry(of_draws.ess_tail, i),
                          entry(of_draws.rhat, i), entry(r.truth.mean, i)}));
  for (std::size_t q = 0; q < std::min(e.quantities.size(), kShownRows); ++q) {
    const auto& [name, value] = e.quantities[q];
    rows.push_back(
        cells({name, visited(name), value, entry(e.quantities_se, name), entry(e.quantities_sd, name),
               entry(e.quantities_quantiles.q5, name), entry(e.quantities_quantiles.q50, name),
               entry(e.quantities_quantiles.q95, name), entry(of_draws.quantities_ess_bulk, name),
               entry(of_draws.quantities_ess_tail, name), entry(of_draws.quantities_rhat, name),
               entry(r.truth.quantities, name)}));
  }
  std::string text = aligned(rows);
  const auto more = [&](std::size_t all, const char* what) {
    if (all > kShownRows)
      text +=
          fmt::format("... and {} more {} (--json, and summary.json, have all)\n", all - kShownRows, what);
  };
  more(parameters.size(), "parameters");
  more(e.quantities.size(), "quantities");
  return text + log_z_line(r) + draws_line(r, of_draws);
}

}  // namespace lockstep
