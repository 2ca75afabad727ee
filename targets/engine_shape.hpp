// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the memory of an engine (targets/engine_memory.hpp) asks of its model and of its back end.
#include <concepts>

#include "targets/engine.hpp"

namespace lockstep {

/// What memory needs to know of a model.
struct EngineShape {
  int dim, samples, rows, cache_rows, quantities;
  ParameterLayout layout;
  bool tempered;   // knows Tempering
  bool work_rows;  // working rows of energies in memory, for the whole batch
};

template <class Model>
EngineShape engine_shape(const Model& model, bool work_rows) {
  return {model.dim(),  model.samples(),  model.rows(), model.cache_rows(), model.density.quantities(),
          model.layout, Model::kTempered, work_rows};
}

/// Gives memory (`vector<T>`), some rows of it to read or to write on the host (`read_rows`, `write_rows`), and a round
/// of `swap`.
template <class B>
concept MemoryBackend = std::constructible_from<B, const EngineSpec&> &&
    requires(typename B::template vector<double>& v, std::vector<double>& host,
             void (*reads)(const double*, std::size_t), void (*writes)(double*, std::size_t)) {
  { B::data(v) } -> std::same_as<double*>;
  { B::to_host(v) } -> std::same_as<std::vector<double>>;
  { B::seen(v, std::size_t(1), host) } -> std::same_as<std::span<const double>>;
  B::from_host(v, host);
  B::fill(v, 0.0);
  B::read_rows(v, 1, 1, 0, 1, reads);
  B::write_rows(v, 1, 1, 0, 1, writes);
};

}  // namespace lockstep
