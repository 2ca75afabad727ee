// SPDX-License-Identifier: Apache-2.0
#include "targets/lattice.hpp"

#include "targets/decompositions.hpp"

namespace lockstep {

Eigen::VectorXd step_uphill(const Eigen::MatrixXd& hessian, const Eigen::VectorXd& gradient) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(hessian);
  const Eigen::VectorXd along = eigen.eigenvectors().transpose() * gradient;
  return eigen.eigenvectors() * along.cwiseQuotient(eigen.eigenvalues().cwiseAbs().cwiseMax(1e-3)).eval();
}

}  // namespace lockstep
