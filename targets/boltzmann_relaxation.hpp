// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a Boltzmann machine to the shape of its Gaussian relaxation: random machines, the diagonal D that
// makes W + D positive semidefinite with the smallest largest eigenvalue, and the factor Q with Q Q' = W + D.
#include <Eigen/Core>
#include <cstdint>

namespace lockstep {

/// P(s) ~ exp(s'Ws / 2 + s'b), s in {-1, 1}^m: W [m][m] symmetric with zero diagonal, b [m].
struct BoltzmannMachine {
  Eigen::MatrixXd w;
  Eigen::VectorXd b;
};

/// The random systems of Graham & Storkey (2017): W = offdiag(R diag(e) R'), R orthogonal and uniform (Haar),
/// e_i = 6 tanh(2 n_i), b_i = 0.1 n'_i, with n, n' standard normal. One stream of normals from
/// mt19937_64(seed): the matrix that R is the QR factor of, row by row, then n, then n'.
BoltzmannMachine random_boltzmann_machine(int units, std::uint64_t seed);

/// A diagonal D with W + D positive semidefinite, the largest eigenvalue of W + D, and how much smaller, at
/// the very most, that of any other such D could be.
struct RelaxationDiagonal {
  Eigen::VectorXd d;
  double lambda_max = 0, gap = 0;
};

/// Minimises lambda_max(W + D) over diagonal D with W + D >= 0: Newton's method in (D, t) on
///   t / mu - log det(W + D) - log det(t I - W - D),   mu falling tenfold,
/// and a bound by duality that holds whatever the iteration did: for X, Y >= 0 with diag X = diag Y and tr Y
/// = 1, every t and D that are allowed have t >= tr((Y - X) W). The barrier gives X = mu (W + D)^-1 and Y =
/// mu (t I - W - D)^-1, which are scaled to fit the conditions exactly. Last, the eigenvalues of W + D that
/// the optimum has at zero, and the barrier near it, are moved there.
RelaxationDiagonal smallest_relaxation_diagonal(const Eigen::MatrixXd& w);

/// D = -lambda_min(W) I: the trivial choice, with a largest eigenvalue some 10 % above the smallest.
Eigen::VectorXd trivial_relaxation_diagonal(const Eigen::MatrixXd& w);

/// Eigenvalues of W + D up to this share of the largest, of either sign, count as zero: those that were
/// rounded to a file come out as small as -3e-12.
inline constexpr double kZeroEigenvalue = 1e-8;

/// Q [m][r] with Q Q' = W + D without its zero eigenvalues; r is their rank. `lowest` and `highest` are the
/// extreme eigenvalues of W + D: below -kZeroEigenvalue highest there is no Q.
struct RelaxationFactor {
  Eigen::MatrixXd q;
  double lowest = 0, highest = 0;
};
RelaxationFactor factor_relaxation(const Eigen::MatrixXd& w, const Eigen::VectorXd& d);

}  // namespace lockstep
