// SPDX-License-Identifier: Apache-2.0
#pragma once
// Eigen's decompositions of matrices of double that several files take, compiled once (decompositions.cpp): each costs a
// compiler two to six seconds. Of an expression take .eval(), which is declared here; the expression itself is not.
#include <Eigen/Dense>

namespace Eigen {

extern template LLT<MatrixXd>& LLT<MatrixXd>::compute(const EigenBase<MatrixXd>&);
extern template SelfAdjointEigenSolver<MatrixXd>& SelfAdjointEigenSolver<MatrixXd>::compute(
    const EigenBase<MatrixXd>&, int);

}  // namespace Eigen
