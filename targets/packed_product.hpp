// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrix products on the CPU by one matrix that stays the same.
#include <Eigen/Core>
#include <algorithm>

namespace lockstep {

/// C = A B for many A of `rows` rows and one B, which is packed once in the order that Eigen's kernel reads:
/// a plain product packs it in every call, a twelfth of the time of a decoder's gradients. Same bits as that.
template <class R>
class PackedProduct {
  using Index = Eigen::Index;
  using Traits = Eigen::internal::gebp_traits<R, R>;
  template <int kOrder>
  using Mapper = Eigen::internal::const_blas_data_mapper<R, Index, kOrder>;
  using Result = Eigen::internal::blas_data_mapper<R, Index, Eigen::ColMajor>;

 public:
  using Matrix = Eigen::Matrix<R, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

  /// B is `weights` [in][out], or its transpose.
  PackedProduct(int rows, const R* weights, int in, int out, bool transposed)
      : rows_(rows), depth_(transposed ? out : in), columns_(transposed ? in : out), step_(depth_) {
    Index together = rows, columns = columns_;
    Eigen::internal::computeProductBlockingSizes<R, R>(step_, together, columns, Index(1));
    packed_.resize(depth_ * columns_);
    block_.resize(rows_ * step_);
    for (Index k = 0; k < depth_; k += step_) {
      const Index depth = std::min(step_, depth_ - k);
      if (transposed)
        Eigen::internal::gemm_pack_rhs<R, Index, Mapper<Eigen::ColMajor>, Traits::nr, Eigen::ColMajor>()(
            packed_.data() + k * columns_, Mapper<Eigen::ColMajor>(weights + k, out), depth, columns_);
      else
        Eigen::internal::gemm_pack_rhs<R, Index, Mapper<Eigen::RowMajor>, Traits::nr, Eigen::RowMajor>()(
            packed_.data() + k * columns_, Mapper<Eigen::RowMajor>(weights + k * out, out), depth, columns_);
    }
  }

  void operator()(const Matrix& a, Matrix& c) {
    c.setZero();
    for (Index k = 0; k < depth_; k += step_) {
      const Index depth = std::min(step_, depth_ - k);
      Eigen::internal::gemm_pack_lhs<R, Index, Mapper<Eigen::ColMajor>, Traits::mr, Traits::LhsProgress,
                                     typename Traits::LhsPacket4Packing, Eigen::ColMajor>()(
          block_.data(), Mapper<Eigen::ColMajor>(a.data() + k * rows_, rows_), depth, rows_);
      Eigen::internal::gebp_kernel<R, R, Index, Result, Traits::mr, Traits::nr, false, false>()(
          Result(c.data(), rows_), block_.data(), packed_.data() + k * columns_, rows_, depth, columns_,
          R(1));
    }
  }

 private:
  Index rows_, depth_, columns_, step_;
  Eigen::Matrix<R, Eigen::Dynamic, 1> packed_, block_;  // of B, and of A as far as it is being worked on
};

}  // namespace lockstep
