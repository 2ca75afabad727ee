// SPDX-License-Identifier: Apache-2.0
#pragma once
// A density on the CPU behind calls for a block of chains: what transitions and models are compiled against once, for
// all densities (kernels/block_cpu.hpp). Whether it goes through the block pack by pack or by matrix products is its
// own affair.
#include <functional>
#include <memory>

#include "kernels/rows.hpp"

namespace lockstep {

/// A point of every chain of a block, and where to put what is wanted there: null where it is not. Rows are
/// [group][row][chain of the group], a group of chains being a pack of lanes; the strides are those from a group to the
/// next. R is the precision of state and gradients, E of energies.
template <class R, class E>
struct BlockPoint {
  const R* x = nullptr;              // [dim]
  const E* energy_x = nullptr;       // [dim]: the same, for log_density
  R* gradient = nullptr;             // [dim]
  R* value = nullptr;                // [1]: log density where the gradient is taken, in its precision
  E* log_density = nullptr;          // [1]
  std::ptrdiff_t state_stride = 0;   // of x and gradient
  std::ptrdiff_t energy_stride = 0;  // of energy_x
  std::ptrdiff_t value_stride = 0;   // of value and log_density
};

template <class R, class E>
class BlockDensity {
 public:
  virtual ~BlockDensity() = default;
  /// Of a block. It is padded, never cut, so that no bit of a chain depends on how many there are or where it stands.
  virtual int chains() const = 0;
  /// For the block to come: whose data each of its chains sees, and how many of them, from the first on, count.
  virtual void bind(const std::uint32_t* unit, int count) = 0;
  virtual void evaluate(const BlockPoint<R, E>& at) = 0;
  /// The mode that x belongs to, [1], and the target's own expectations there, [quantity].
  virtual void modes(const E* x, std::ptrdiff_t x_stride, E* mode) = 0;
  virtual void quantities(const E* x, std::ptrdiff_t x_stride, E* values, std::ptrdiff_t stride) = 0;
};

/// One for each thread. It is asked for blocks of so many chains, a multiple of a pack; a density that has a size of its
/// own takes no notice.
template <class R, class E>
using BlockDensityMaker = std::function<std::unique_ptr<BlockDensity<R, E>>(int chains)>;

/// In the place of the density of a model whose density is behind a BlockDensity.
struct OpaqueDensity {
  int dim = 0, expectations = 0;
  LOCKSTEP_FN int quantities() const { return expectations; }
};

}  // namespace lockstep
