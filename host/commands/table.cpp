// SPDX-License-Identifier: Apache-2.0
#include "host/commands/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/estimators/weighted_moments.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShown = 10;

/// A number of a summary, by keys and at last an index; NaN where there is none.
double number_at(const Json& from, const std::vector<std::string>& keys, int index = -1) {
  const Json* at = &from;
  for (const std::string& key : keys) {
    if (!at->is_object() || !at->contains(key)) return NAN;
    at = &(*at)[key];
  }
  if (index >= 0) {
    if (!at->is_array() || std::size_t(index) >= at->size()) return NAN;
    at = &(*at)[std::size_t(index)];
  }
  return at->is_number() ? at->get<double>() : NAN;
}

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
  if (!f.visited) {  // of a probability below one half: nobody was there
    const bool empty = is_probability(f.name) && f.mean < 0.5;
    return {f.name, empty ? "not visited" : fmt::format("{:.6g} (never left)", f.mean),
            "",     "",
            "",     "",
            "",     "",
            "",     "",
            truth};
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

}  // namespace

std::string with_error(double value, double se) {
  if (!(se > 1e-9 * std::abs(value))) return fmt::format("{:.6g}", value);
  const int digits = std::clamp(2 - int(std::floor(std::log10(se))) - 1, 0, 12);
  return fmt::format("{:.{}f} +- {:.{}f}", value, digits, se, digits);
}

std::string estimates_table(const Json& s) {
  const Json none = Json::object();
  const auto part = [&](const char* key) -> const Json& { return s.contains(key) ? s[key] : none; };
  const Json &e = part("estimates"), &d = part("diagnostics"), &truth = part("truth");
  const auto visited = [&](const std::string& name) {
    return !e.contains("not_visited") ||
           std::find(e["not_visited"].begin(), e["not_visited"].end(), Json(name)) == e["not_visited"].end();
  };
  const std::vector<std::string> parameters = s["target"]["parameters"];
  std::vector<std::vector<std::string>> rows = {
      {"", "mean", "sd", "5%", "50%", "95%", "mcse_mean", "ess_bulk", "ess_tail", "r_hat", "truth"}};
  for (std::size_t k = 0; k < std::min(parameters.size(), kShown); ++k) {
    const int i = int(k);
    rows.push_back(cells(
        {parameters[k], visited(parameters[k]), number_at(e, {"mean"}, i), number_at(e, {"mean_se"}, i),
         number_at(e, {"sd"}, i), number_at(e, {"quantiles", "5%"}, i), number_at(e, {"quantiles", "50%"}, i),
         number_at(e, {"quantiles", "95%"}, i), number_at(d, {"ess_bulk"}, i), number_at(d, {"ess_tail"}, i),
         number_at(d, {"rhat"}, i), number_at(truth, {"mean"}, i)}));
  }
  std::vector<std::string> quantities;
  if (e.contains("quantities"))
    for (const auto& [name, value] : e["quantities"].items()) quantities.push_back(name);
  for (std::size_t q = 0; q < std::min(quantities.size(), kShown); ++q) {
    const std::string& name = quantities[q];
    rows.push_back(
        cells({name, visited(name), number_at(e, {"quantities", name}), number_at(e, {"quantities_se", name}),
               number_at(e, {"quantities_sd", name}), number_at(e, {"quantities_quantiles", "5%", name}),
               number_at(e, {"quantities_quantiles", "50%", name}),
               number_at(e, {"quantities_quantiles", "95%", name}),
               number_at(d, {"quantities_ess_bulk", name}), number_at(d, {"quantities_ess_tail", name}),
               number_at(d, {"quantities_rhat", name}), number_at(truth, {"quantities", name})}));
  }
  std::string text = aligned(rows);
  const auto more = [&](std::size_t all, const char* what) {
    if (all > kShown)
      text += fmt::format("... and {} more {} (--json, and summary.json, have all)\n", all - kShown, what);
  };
  more(parameters.size(), "parameters");
  more(quantities.size(), "quantities");
  if (s.contains("log_z")) {
    const double known = number_at(truth, {"log_z"});
    text += fmt::format("log_z {}",
                        with_error(number_at(s["log_z"], {"estimate"}), number_at(s["log_z"], {"se"})));
    for (const auto& [key, level] : {std::pair{"interval95", "95"}, {"interval997", "99.7"}}) {
      const double low = number_at(s["log_z"], {key}, 0), high = number_at(s["log_z"], {key}, 1);
      if (!std::isnan(low))
        text += fmt::format(", {} % from {} to {}", level, rounded(low, high - low, 3),
                            rounded(high, high - low, 3));
    }
    text += std::isnan(known) ? "\n" : fmt::format(" (truth {:.6g})\n", known);
  }
  if (const double every = number_at(d, {"draws", "every"}); every > 1)
    text += fmt::format("quantiles, ess and r_hat are over every {} iteration of all chains\n",
                        ordinal(std::int64_t(every)));
  else if (std::isnan(every))
    text += s["command"] == "sample" ? "no quantiles, ess and r_hat: draws of so many chains and parameters "
                                       "are not kept (--draws all keeps "
                                       "them)\n"
                                     : "no quantiles, ess and r_hat: estimates are sums over weighted states "
                                       "(--draws --out DIR stores "
                                       "unweighted draws)\n";
  return text;
}

}  // namespace lockstep
