// SPDX-License-Identifier: Apache-2.0
// Products with weights packed once are Eigen's own, bit for bit.
#include "targets/packed_product.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

template <class R>
void same_as_eigen(int in, int out) {
  using Weights = Eigen::Matrix<R, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Matrix = typename PackedProduct<R>::Matrix;
  constexpr int rows = 192;
  const Weights w = Weights::Random(in, out);
  PackedProduct<R> up(rows, w.data(), in, out, false), down(rows, w.data(), in, out, true);
  Matrix h(rows, out), back(rows, in);
  for (int call = 0; call < 2; ++call) {
    const Matrix a = Matrix::Random(rows, in), b = Matrix::Random(rows, out);
    Matrix expected(rows, out), expected_back(rows, in);
    expected.noalias() = a * w;
    expected_back.noalias() = b * w.transpose();
    up(a, h);
    down(b, back);
    EXPECT_TRUE(h == expected) << in << 'x' << out;
    EXPECT_TRUE(back == expected_back) << in << 'x' << out;
  }
}

TEST(PackedProduct, IsEigensOwn) {
  for (const auto& [in, out] : {std::pair{50, 200}, {200, 784}, {3, 7}, {61, 1030}, {2, 2}}) {
    same_as_eigen<float>(in, out);
    same_as_eigen<double>(in, out);
  }
}

}  // namespace
}  // namespace lockstep
