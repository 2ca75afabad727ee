// SPDX-License-Identifier: Apache-2.0
#include "targets/radon.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "targets/columns.hpp"
#include "targets/radon_exact.hpp"

namespace lockstep {
namespace {

constexpr int kMaxCounties = 10000, kMaxHouseholds = 1000000;

std::string number_text(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

RadonData read_households(TargetInput& in) {
  RadonData data;
  data.y = read_column(in, "y", "household");
  const std::size_t n = data.y.size();
  if (n > std::size_t(kMaxHouseholds))
    in.fail("y has " + std::to_string(n) + " entries (target radon takes at most " +
            std::to_string(kMaxHouseholds) + "). Give fewer");
  const std::vector<double> county = read_column(in, "county", "household", data.y);
  data.floor = read_column(in, "floor", "household", data.y);
  data.log_uranium = read_column(in, "log_uranium", "household", data.y);
  for (std::size_t i = 0; i < n; ++i) {
    const std::string entry = "entry " + std::to_string(i + 1) + " of ";
    if (county[i] != std::floor(county[i]) || county[i] < 1)
      in.fail(entry + "county is " + number_text(county[i]) +
              " (counties are numbered 1, 2, ...). Correct it; if they count from 0, add 1 to all");
    if (county[i] > kMaxCounties)
      in.fail(entry + "county is " + number_text(county[i]) + " (target radon takes at most " +
              std::to_string(kMaxCounties) + " counties, numbered without gaps). Renumber them");
    if (data.floor[i] != 0 && data.floor[i] != 1)
      in.fail(entry + "floor is " + number_text(data.floor[i]) +
              " (0 is the basement, 1 the first floor). Correct it");
    data.county.push_back(static_cast<int>(county[i]) - 1);
    data.counties = std::max(data.counties, data.county.back() + 1);
  }
  std::vector<bool> met(std::size_t(data.counties), false);
  for (int c : data.county) met[std::size_t(c)] = true;
  if (const auto gap = std::find(met.begin(), met.end(), false); gap != met.end())
    in.fail("county " + std::to_string(gap - met.begin() + 1) + " has no household, and county " +
            std::to_string(data.counties) +
            " has (an effect without data is prior only). Number the counties without gaps");
  return data;
}

/// Households drawn from the model with s_a = 0.4, s_b = 0.8, eps = 0.7; every county has one, the others
/// fall anywhere; a fifth are on the first floor; log uranium belongs to the county.
RadonData simulated_households(int counties, int households, std::uint64_t seed) {
  ExactDraw random(seed, "households");
  RadonData data;
  data.counties = counties;
  const double mu_a = 1 + 0.5 * random.normal(), mu_b = 0.5 * random.normal();
  const double b1 = mu_b + 0.8 * random.normal(), b2 = mu_b + 0.8 * random.normal();
  std::vector<double> level(std::size_t(counties), 0.0), uranium(std::size_t(counties), 0.0);
  for (double& a : level) a = mu_a + 0.4 * random.normal();
  for (double& u : uranium) u = 0.4 * random.normal();
  for (int i = 0; i < households; ++i) {
    const int c = i < counties ? i : std::min(counties - 1, int(counties * random.uniform()));
    const double floor = random.uniform() < 0.2 ? 1 : 0;
    data.county.push_back(c);
    data.floor.push_back(floor);
    data.log_uranium.push_back(uranium[std::size_t(c)]);
    data.y.push_back(level[std::size_t(c)] + floor * b1 + uranium[std::size_t(c)] * b2 +
                     0.7 * random.normal());
  }
  return data;
}

RadonData read_data(TargetInput& in) {
  if (!in.has_data()) {
    const int counties = in.integer("counties", 8, 1, 1000);
    const int households = in.integer("households", 60, 1, kMaxHouseholds);
    if (households < counties)
      in.fail("target.households is below target.counties (every county has a household). Raise it to " +
              std::to_string(counties));
    return simulated_households(counties, households,
                                std::uint64_t(in.integer("seed", 1, 0, std::numeric_limits<int>::max())));
  }
  in.refuse_beside_data({"counties", "households", "seed"});
  return read_households(in);
}

/// The cells of the density, counties in order.
void set_density(Built<Radon>& built, const RadonData& data) {
  Radon& density = built.density;
  const std::size_t n = data.y.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t(0));
  auto key = [&](std::size_t i) { return std::tuple(data.county[i], data.floor[i], data.log_uranium[i]); };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
  std::vector<double> cell, size(std::size_t(data.counties), 0.0);
  for (std::size_t first = 0, end; first < n; first = end) {
    const std::size_t i = order[first];
    double sum = 0;
    for (end = first; end < n && key(order[end]) == key(i); ++end) sum += data.y[order[end]];
    const double count = double(end - first), mean = sum / count;
    for (std::size_t k = first; k < end; ++k)
      density.within += (data.y[order[k]] - mean) * (data.y[order[k]] - mean);
    cell.insert(cell.end(), {mean, data.floor[i], data.log_uranium[i], count});
    size[std::size_t(data.county[i])] += 1;
  }
  density.dim = data.counties + 7;
  density.counties = data.counties;
  density.cells = int(cell.size() / 4);
  density.households = double(n);
  density.constant = -0.5 * double(n + std::size_t(data.counties) + 4) * std::log(2 * kPi) +
                     3 * LogHalfCauchy<double>::kConstant;
  density.cell = built.pool.add(cell);
  density.county_size = built.pool.add(size);
}

}  // namespace

TargetInfo RadonTarget::info() {
  return {.name = "radon",
          .summary = "hierarchical regression of radon in homes on floor and uranium, non-centred",
          .formula =
              "y_i ~ N(a_c + floor_i b_1 + log_uranium_i b_2, eps^2), a_j = mu_a + s_a n_j, b_k = mu_b + s_b "
              "m_k; "
              "mu_a, mu_b, n_j, m_k ~ N(0, 1), s_a, s_b, eps ~ half-Cauchy(2.5); x = (mu_a, mu_b, log s_a, "
              "log s_b, log eps, n, m)",
          .settings = {{"counties", "counties of simulated data (default 8; without data)"},
                       {"households", "households of simulated data (default 60; without data)"},
                       {"seed", "seed of simulated data (default 1; without data)"}},
          .data =
              "optional, by name, one entry per household: y, county (1, 2, ... without gaps), floor (0 or "
              "1), log_uranium; JSON, or CSV with these columns",
          .truth =
              "closed form given the scales, quadrature over those: log Z = log p(y), mean, covariance, "
              "posterior means of the scales sd_county, sd_slope, sd_residual; draws"};
}

Built<Radon> RadonTarget::build(TargetInput& in) {
  const RadonData data = read_data(in);
  Built<Radon> built(data.counties + 7);
  set_density(built, data);
  built.quantities = {"sd_county", "sd_slope", "sd_residual"};
  built.names = {"mu_a", "mu_b", "log_sd_county", "log_sd_slope", "log_sd_residual"};
  for (int j = 0; j < data.counties; ++j) built.names.push_back("n[" + std::to_string(j) + "]");
  for (int k = 0; k < 2; ++k) built.names.push_back("m[" + std::to_string(k) + "]");
  const RadonMarginal marginal(data);
  if (marginal.improper())
    in.fail(
        "y is fitted exactly by county, floor and log_uranium (the residual scale can go to 0, and the "
        "posterior has no normaliser). Give measurements with some scatter");
  built.truth.quantities.assign(3, std::numeric_limits<double>::quiet_NaN());
  auto known = integrate(marginal);
  if (!known) known = integrate(marginal, 0.5, false);
  if (known) {
    built.truth = std::move(known->truth);
    built.draw = [marginal, scales = std::make_shared<const LatticeDraws<3>>(std::move(known->scales))](
                     ExactDraw& draw, double* x) {
      marginal.draw(draw,
                    scales->draw(draw, [&](const Eigen::Vector3d& s) { return marginal.log_density(s); }), x);
    };
  }
  return built;
}

}  // namespace lockstep
