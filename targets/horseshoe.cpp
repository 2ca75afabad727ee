// SPDX-License-Identifier: Apache-2.0
#include "targets/horseshoe.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace lockstep {
namespace {

/// Cases [n][1 + p], the class, 0 or 1, first.
struct Cases {
  std::vector<double> values;
  int count = 0, features = 0;
  const double* of(int i) const { return values.data() + std::size_t(i) * (1 + features); }
};

struct Asked {
  int count, features, split;
  double held_out, relevant, slab_df, slab_scale;
  bool standardise;
  std::uint64_t seed;

  explicit Asked(TargetInput& in) {
    constexpr int kAny = std::numeric_limits<int>::max();
    if (in.has_data()) in.refuse_beside_data({"cases", "features", "seed"});
    count = in.has_data() ? 0 : in.integer("cases", 60, 2, 100000);
    features = in.has_data() ? 0 : in.integer("features", 200, 1, 100000);
    seed = in.has_data() ? 0 : std::uint64_t(in.integer("seed", 1, 0, kAny));
    split = in.integer("split", 1, 0, kAny);
    held_out = in.number("held_out", 0.2, 0, 0.9);
    relevant = in.number("relevant", 0, 0, 1e6);
    slab_df = in.number("slab_df", 3, 0.1, 1e6);
    slab_scale = in.number("slab_scale", 2, 1e-6, 1e6);
    standardise = in.choice("standardise", "yes", {"yes", "no"}) == "yes";
  }
};

Cases read_cases(TargetInput& in) {
  DataArray a = in.array("table");
  if (a.shape.size() != 2 || a.shape[0] < 2 || a.shape[1] < 2)
    in.fail(
        "table is no matrix of two rows and columns or more (a row is a case: its class, 0 or 1, then its "
        "features). Write it so");
  Cases cases{std::move(a.values), a.shape[0], a.shape[1] - 1};
  for (int i = 0; i < cases.count; ++i) {
    const double y = cases.of(i)[0];
    if (y != 0 && y != 1) {
      char text[32];
      std::snprintf(text, sizeof text, "%.6g", y);
      in.fail("row " + std::to_string(i + 1) + " of table begins with " + text +
              " (there a case has its class, 0 or 1). Recode the classes, or put their column first");
    }
  }
  return cases;
}

/// Features in groups of five that share a normal, correlated by .8 as genes that act together are; the first of each of
/// three groups has a coefficient of 4, -4 and 4, so that others of its group can stand in for it.
Cases simulated_cases(const Asked& asked) {
  constexpr int kGroup = 5;
  ExactDraw random(asked.seed, "cases");
  Cases cases{{}, asked.count, asked.features};
  const double shared_sd = std::sqrt(0.8), own_sd = std::sqrt(0.2);
  for (int i = 0; i < asked.count; ++i) {
    const std::size_t at = cases.values.size();
    cases.values.push_back(0);
    double shared = 0, logit = 0;
    for (int j = 0; j < asked.features; ++j) {
      if (j % kGroup == 0) shared = random.normal();
      cases.values.push_back(shared_sd * shared + own_sd * random.normal());
      if (j % kGroup == 0 && j < 3 * kGroup) logit += (j == kGroup ? -4 : 4) * cases.values.back();
    }
    cases.values[at] = random.uniform() < sigmoid(logit) ? 1 : 0;
  }
  return cases;
}

/// The rows in an order drawn for the split, those held out first; each part ascending.
std::vector<int> split_rows(int count, int held_out, int split) {
  std::vector<int> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  ExactDraw random(std::uint64_t(split), "held-out cases");
  for (int i = 0; i < held_out; ++i) std::swap(rows[i], rows[i + random.below(std::size_t(count - i))]);
  std::sort(rows.begin(), rows.begin() + held_out);
  std::sort(rows.begin() + held_out, rows.end());
  return rows;
}

/// To mean 0 and standard deviation 1 over the cases `rows`; a column that is constant there becomes 0 everywhere.
void standardise(Cases& cases, std::span<const int> rows) {
  for (int j = 1; j <= cases.features; ++j) {
    double mean = 0, squares = 0;
    for (int i : rows) mean += cases.of(i)[j] / double(rows.size());
    for (int i : rows) squares += (cases.of(i)[j] - mean) * (cases.of(i)[j] - mean);
    const double sd = std::sqrt(squares / double(rows.size())),
                 scale = sd > 1e-12 * std::abs(mean) ? 1 / sd : 0;
    for (int i = 0; i < cases.count; ++i) {
      double& x = cases.values[std::size_t(i) * (1 + cases.features) + j];
      x = (x - mean) * scale;
    }
  }
}

/// [1 + feature][row, and zeros up to `columns`]: 1 and the features, times the sign of the class.
std::vector<double> signed_cases(const Cases& cases, std::span<const int> rows, int columns) {
  std::vector<double> signed_values(std::size_t(1 + cases.features) * columns, 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double* row = cases.of(rows[i]);
    for (int j = 0; j <= cases.features; ++j)
      signed_values[std::size_t(j) * columns + i] = (2 * row[0] - 1) * (j == 0 ? 1 : row[j]);
  }
  return signed_values;
}

/// Of everything that does not depend on the state.
double log_constant(const Horseshoe& density) {
  const double a = density.half_df;
  return (density.features + 1) * (LogHalfCauchy<double>::kConstant - 0.5 * std::log(2 * kPi)) -
         std::log(Horseshoe::kInterceptSd) + a * std::log(a) - std::lgamma(a);
}

}  // namespace

TargetInfo HorseshoeTarget::info() {
  return {
      .name = "horseshoe",
      .summary =
          "logistic regression with a regularised horseshoe prior, as for gene expression, non-centred",
      .formula =
          "P(y_i = 1) = sigmoid(b_0 + x_i'b), b_j = z_j tau c lambda_j / sqrt(c^2 + tau^2 lambda_j^2); b_0 ~ "
          "N(0, 10^2), z_j ~ N(0, 1), lambda_j ~ half-Cauchy(1), tau ~ half-Cauchy(tau_0), tau_0 = relevant "
          "/ "
          "(features - relevant) 2 / sqrt(cases), c = slab_scale sqrt(v), v ~ inverse-gamma(slab_df / 2, "
          "slab_df / 2); x = (b_0, log tau, log v, z, log lambda)",
      .settings =
          {{"relevant",
            "guess of how many coefficients matter (published: 3 for colon, 55 leukaemia, 200 prostate) "
            "(default 3, half of the features if they are fewer than 6)"},
           {"standardise",
            "yes: features to mean 0 and standard deviation 1 over the cases trained on; no: as given "
            "(default yes)"},
           {"held_out", "share of the cases that is held out for prediction (default 0.2)"},
           {"split", "number of the random split into cases trained on and held out (default 1)"},
           {"slab_df", "degrees of freedom of the slab (default 3)"},
           {"slab_scale", "scale of the slab (default 2)"},
           {"cases", "cases of simulated data (default 60; without data)"},
           {"features", "features of simulated data (default 200; without data)"},
           {"seed", "seed of simulated data (default 1; without data)"}},
      .data =
          "optional: CSV without a header, a row for each case: its class, 0 or 1, then its features; or "
          "that as the matrix table of a JSON or .npz file",
      .truth = "none; held_out[row] are the predictive probabilities of the classes of the cases held out"};
}

Built<Horseshoe> HorseshoeTarget::build(TargetInput& in) {
  const Asked asked(in);
  Cases cases = in.has_data() ? read_cases(in) : simulated_cases(asked);
  const int p = cases.features, held_out = int(std::lround(asked.held_out * cases.count)),
            training = cases.count - held_out;
  if (training < 2)
    in.fail("target.held_out leaves " + std::to_string(training) + " of " + std::to_string(cases.count) +
            " cases (two at least are trained on). Lower it");
  const double relevant = asked.relevant > 0 ? asked.relevant : std::min(3.0, p / 2.0);
  if (relevant >= p)
    in.fail("target.relevant is not below the " + std::to_string(p) +
            " features (tau_0 is relevant / (features - relevant) 2 / sqrt(cases)). Lower it");
  const std::vector<int> rows = split_rows(cases.count, held_out, asked.split);
  const std::span<const int> test(rows.data(), std::size_t(held_out)),
      train(rows.data() + held_out, std::size_t(training));
  if (asked.standardise) standardise(cases, train);

  Built<Horseshoe> built(2 * p + 3);
  Horseshoe& density = built.density;
  density.dim = 2 * p + 3;
  density.features = p;
  density.training = training;
  density.held_out = held_out;
  density.log_tau0 = std::log(relevant / (p - relevant) * 2 / std::sqrt(double(training)));
  density.log_slab_scale = std::log(asked.slab_scale);
  density.half_df = asked.slab_df / 2;
  density.constant = log_constant(density);
  density.cases = built.pool.add(signed_cases(cases, train, training));
  density.held_out_cases = built.pool.add(signed_cases(cases, test, density.padded_held_out()));

  built.names = {"intercept", "log_tau", "log_slab"};
  for (const char* name : {"z", "log_lambda"})
    for (int j = 0; j < p; ++j) built.names.push_back(name + ("[" + std::to_string(j) + "]"));
  for (int row : test) built.quantities.push_back("held_out[" + std::to_string(row) + "]");
  built.truth.quantities.assign(std::size_t(held_out), std::numeric_limits<double>::quiet_NaN());
  built.facts = {{"cases_trained_on", training}, {"tau_0", std::exp(density.log_tau0)}};
  return built;
}

}  // namespace lockstep
