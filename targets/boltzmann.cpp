// SPDX-License-Identifier: Apache-2.0
#include "targets/boltzmann.hpp"

#include "targets/boltzmann_exact.hpp"
#include "targets/boltzmann_mean_field.hpp"
#include "targets/boltzmann_relaxation.hpp"
#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

using Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kMaxUnits = 1024;

std::string shape_text(const std::vector<int>& shape) {
  std::string text;
  for (int s : shape) text += "[" + std::to_string(s) + "]";
  return text;
}
std::string number_text(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

/// An array under its name in JSON, or under that of the file that a folder has for it.
struct Named {
  std::string name;
  DataArray array;
};
Named read_array(TargetInput& in, const std::string& json, const std::string& file) {
  const std::string& name = !in.has(json) && in.has(file) ? file : json;
  Named n{name, in.array(name)};
  for (double v : n.array.values)
    if (!std::isfinite(v))
      in.fail(name + " has an entry that is no finite number (a density needs finite numbers). Correct it");
  return n;
}

Matrix read_couplings(TargetInput& in) {
  const auto [name, array] = read_array(in, "W", "weights");
  if (array.shape.size() != 2 || array.shape[0] != array.shape[1] || array.shape[0] == 0)
    in.fail(name + " has shape " + shape_text(array.shape) +
            " (it couples each of m units with each). Give " + name + " the shape [m][m]");
  const Index m = array.shape[0];
  if (m > kMaxUnits)
    in.fail(name + " has " + std::to_string(m) + " units (target boltzmann takes at most " +
            std::to_string(kMaxUnits) + "). Give fewer");
  const Matrix w = Eigen::Map<const RowMajor>(array.values.data(), m, m);
  const double tolerance = 1e-10 * w.cwiseAbs().maxCoeff();
  auto place = [](Index i, Index j) {
    return "row " + std::to_string(i + 1) + ", column " + std::to_string(j + 1);
  };
  for (Index i = 0; i < m; ++i) {
    if (std::abs(w(i, i)) > tolerance)
      in.fail(name + " has " + number_text(w(i, i)) + " in " + place(i, i) +
              " (a unit is not coupled with itself). Set its diagonal to zero; the diagonal of the "
              "relaxation is D");
    for (Index j = 0; j < i; ++j)
      if (std::abs(w(i, j) - w(j, i)) > tolerance)
        in.fail(name + " is not symmetric: " + number_text(w(j, i)) + " in " + place(j, i) + " and " +
                number_text(w(i, j)) + " in " + place(i, j) + ", " +
                number_text(std::abs(w(i, j) - w(j, i))) + " apart (two units have one coupling). Give (" +
                name + " + its transpose) / 2");
  }
  Matrix symmetric = 0.5 * (w + w.transpose());
  symmetric.diagonal().setZero();
  return symmetric;
}

/// One number for each unit.
Vector read_units(TargetInput& in, const std::string& json, const std::string& file, int units) {
  const auto [name, array] = read_array(in, json, file);
  if (array.shape != std::vector<int>{units})
    in.fail(name + " has shape " + shape_text(array.shape) + " (there are " + std::to_string(units) +
            " units). Give " + name + " the shape [" + std::to_string(units) + "]");
  return Eigen::Map<const Vector>(array.values.data(), units);
}

BoltzmannMachine read_machine(TargetInput& in) {
  if (!in.has_data())
    return random_boltzmann_machine(in.integer("units", 28, 2, kMaxUnits),
                                    std::uint64_t(in.integer("seed", 1, 0, std::numeric_limits<int>::max())));
  BoltzmannMachine machine;
  machine.w = read_couplings(in);
  const int m = int(machine.w.rows());
  machine.b = read_units(in, "b", "biases", m);
  if (in.integer("units", m, 1, kMaxUnits) != m)
    in.fail("target.units differs from the " + std::to_string(m) +
            " units of the data (units is for random systems). Leave it out");
  if (in.integer("seed", -1, -1, std::numeric_limits<int>::max()) != -1)
    in.fail("target.seed is given beside data (seed is for random systems). Leave one of them out");
  return machine;
}

using Facts = std::vector<std::pair<std::string, double>>;

/// Q with Q Q' = W + D, for the D that the settings ask for.
Matrix read_factor(TargetInput& in, const Matrix& w, Facts& facts) {
  const bool given = in.has("D") || in.has("D_sdp");
  const std::string diagonal = in.choice("diagonal", given ? "given" : "sdp", {"sdp", "trivial", "given"});
  Vector d;
  if (diagonal == "given") {
    if (!given)
      in.fail(
          "target.diagonal is given, and the data have no D (it is to be taken from there). Give D, or set "
          "target.diagonal to sdp");
    d = read_units(in, "D", "D_sdp", int(w.rows()));
  } else {
    d = trivial_relaxation_diagonal(w);
    if (diagonal == "sdp") {
      const RelaxationDiagonal smallest = smallest_relaxation_diagonal(w);
      d = smallest.d;
      facts.emplace_back("sdp_gap", smallest.gap);
    }
  }
  const RelaxationFactor f = factor_relaxation(w, d);
  if (f.lowest < -kZeroEigenvalue * std::max(f.highest, 0.0))
    in.fail("W + D has the eigenvalue " + number_text(f.lowest) +
            " (the relaxation needs W + D without negative ones). Add " + number_text(-f.lowest) +
            " to every entry of D, or leave D out");
  if (f.q.cols() == 0)
    in.fail(
        "W + D is zero (units without couplings leave the relaxation no dimension). Give couplings, or a D "
        "above zero");
  facts.emplace_back("lambda_max", f.highest);
  return f.q;
}

/// What the target knows beside its density, all of it said of the machine with W + D = Q Q' exactly.
struct Relaxation {
  Matrix q, w;  // W = offdiag(Q Q')
  Vector b;
  double log_z_offset;  // log Z - log Z_B = tr(D) / 2 + (r / 2) log 2 pi - m log 2

  Relaxation(Matrix factor, Vector biases)
      : q(std::move(factor)), w(q * q.transpose()), b(std::move(biases)) {
    log_z_offset = 0.5 * w.trace() + 0.5 * double(q.cols()) * std::log(2 * kPi) - double(b.size()) * kLn2;
    w.diagonal().setZero();
  }

  /// The mixture of N(Q'm, I) over mean-field solutions m, each with weight exp(-F), matched in two moments.
  BaseGuess base_guess(int starts, std::uint64_t seed) const {
    const MeanField field = solve_mean_field(w, b, starts, seed);
    const Vector p = field.weights();
    const Matrix centres = q.transpose() * field.means;
    const Vector mean = centres * p;
    const Matrix covariance = Matrix::Identity(q.cols(), q.cols()) +
                              centres * p.asDiagonal() * centres.transpose() - mean * mean.transpose();
    return {{mean.begin(), mean.end()},
            {covariance.data(), covariance.data() + covariance.size()},
            log_z_offset + field.log_sum(),
            int(p.size())};
  }

  /// Turns the axes, which are free (any Q with the same Q Q' gives the same machine): along those of the
  /// base guess's covariance, most spread first, each pointing to where its largest entry of Q is positive.
  /// What works axis by axis, a diagonal metric or base, then loses least; and no rounding decides the basis.
  void turn_axes() {
    const BaseGuess guess = base_guess(1000, 0);
    Matrix s = Eigen::Map<const Matrix>(guess.covariance.data(), q.cols(), q.cols());
    s += 1e-6 * (q.transpose() * q);  // an order for directions in which the guess has no spread
    q *= Eigen::SelfAdjointEigenSolver<Matrix>(s).eigenvectors().rowwise().reverse().eval();
    for (Index j = 0; j < q.cols(); ++j) {
      Index largest = 0;
      q.col(j).cwiseAbs().maxCoeff(&largest);
      if (q(largest, j) < 0) q.col(j) *= -1;
    }
  }
};

/// Q and b as the density reads them.
void set_density(Built<Boltzmann>& built, const Matrix& q, const Vector& b) {
  Boltzmann& density = built.density;
  const Index m = q.rows(), d = q.cols(), half = Boltzmann::kHalf;
  const Index units = (m + half - 1) / half * half;
  density.dim = int(d);
  density.units = int(units);
  density.constant = -double(units) * kLn2;
  std::vector<double> rows, biases(b.begin(), b.end());
  biases.resize(std::size_t(units), 0.0);
  for (Index i = 0; i < d; ++i)
    for (Index k = 0; k < units; ++k) rows.push_back(k < m ? q(k, i) : 0.0);
  density.q = built.pool.add(rows);
  density.b = built.pool.add(biases);
}

/// Truth and exact draws, by enumeration: E x = Q'E s, E xx' = Q'E ss' Q + I, and x given s is N(Q's, I).
void set_truth(Built<Boltzmann>& built, const std::shared_ptr<const Relaxation>& relaxation) {
  const Matrix& q = relaxation->q;
  if (q.rows() > BoltzmannEnumeration::kMaxUnits) return;
  const auto exact = std::make_shared<const BoltzmannEnumeration>(relaxation->w, relaxation->b);
  if (!std::isfinite(exact->log_z())) return;
  built.truth.log_z = relaxation->log_z_offset + exact->log_z();
  const Vector mean = q.transpose() * exact->mean();
  const Matrix covariance =
      q.transpose() * exact->second() * q + Matrix::Identity(q.cols(), q.cols()) - mean * mean.transpose();
  built.truth.mean.assign(mean.begin(), mean.end());
  built.truth.covariance.assign(covariance.data(), covariance.data() + covariance.size());
  built.draw = [relaxation, exact](ExactDraw& draw, double* x) {
    Eigen::Map<Vector> to(x, relaxation->q.cols());
    to = relaxation->q.transpose() * exact->draw(draw);
    for (double& v : to) v += draw.normal();
  };
}

}  // namespace

TargetInfo BoltzmannTarget::info() {
  return {.name = "boltzmann",
          .summary = "Gaussian relaxation of a Boltzmann machine, given or random",
          .formula =
              "-x'x / 2 + sum_k log cosh(q_k'x + b_k), Q Q' = W + D, for P(s) ~ exp(s'Ws / 2 + s'b), s = +-1",
          .settings = {{"units", "units of a random system, 2 to 1024 (default 28; without data)"},
                       {"seed", "seed of the random system (default 1; without data)"},
                       {"diagonal",
                        "D: sdp (least largest eigenvalue of W + D), trivial (a multiple of I), given (by "
                        "the data; the default where they have it, else sdp)"}},
          .data =
              "optional, by name: W [m][m] symmetric with zero diagonal, b [m], optionally D [m]; "
              "or a folder with weights.csv, biases.csv and optionally D_sdp.csv",
          .truth =
              "up to 32 units exact by enumeration: log Z, mean, covariance, draws; beyond none. Summaries "
              "say under target.facts by how much log Z is above the machine's own (the log of the sum "
              "over s), the largest eigenvalue of W + D, and of D by sdp how far it may be from the least"};
}

Built<Boltzmann> BoltzmannTarget::build(TargetInput& in) {
  const BoltzmannMachine machine = read_machine(in);
  Facts facts;
  const auto relaxation = std::make_shared<Relaxation>(read_factor(in, machine.w, facts), machine.b);
  relaxation->turn_axes();
  Built<Boltzmann> built(int(relaxation->q.cols()));
  facts.emplace_back("log_z_above_machine", relaxation->log_z_offset);
  built.facts = std::move(facts);
  set_density(built, relaxation->q, relaxation->b);
  set_truth(built, relaxation);
  built.base_guess = [relaxation](int starts, std::uint64_t seed) {
    return relaxation->base_guess(starts, seed);
  };
  return built;
}

}  // namespace lockstep
