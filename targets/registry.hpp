// SPDX-License-Identifier: Apache-2.0
#pragma once
// The targets by name. The host knows no target but through this interface; the list is targets/targets.list.
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/counting.hpp"
#include "targets/engine.hpp"
#include "targets/target.hpp"

namespace lockstep {

/// One target with its settings and data, ready to be sampled on any back end.
class TargetInstance {
 public:
  virtual ~TargetInstance() = default;
  virtual int dim() const = 0;
  virtual const Truth& truth() const = 0;
  virtual Tails tails() const = 0;
  /// Names of the coordinates: the target's own, or x[0], x[1], ..
  virtual const std::vector<std::string>& names() const = 0;
  virtual const std::vector<std::string>& quantities() const = 0;
  /// Whether its density says which of its modes an x belongs to.
  virtual bool names_modes() const { return false; }
  /// The integrands of these expectations (there must be some) at x, in the scalar reference.
  virtual void quantities_at(const double* x, double* values) const = 0;
  virtual const std::vector<std::pair<std::string, double>>& facts() const = 0;
  /// Its items, or null where it is one density.
  virtual const Items* items() const { return nullptr; }
  virtual bool can_draw() const = 0;
  virtual void draw(ExactDraw& random, double* x) const = 0;
  /// Whether the target can propose a base, and that proposal (BaseGuess).
  virtual bool has_base_guess() const { return false; }
  virtual BaseGuess base_guess(int /*starts*/, std::uint64_t /*seed*/) const {
    throw std::logic_error("this target proposes no base");
  }
  /// log density at x in the scalar reference, and its gradient where `gradient` is not null.
  virtual double log_density(const double* x, double* gradient) const = 0;
  /// Floating-point operations of one log density with gradient, counted on a lane that counts.
  virtual double operations_per_gradient() const = 0;
  /// Whether it takes gradients of many chains at once, by matrix products.
  virtual bool batched() const { return false; }
  virtual std::unique_ptr<Engine> engine(const EngineSpec& spec) const = 0;
};

struct TargetEntry {
  TargetInfo (*info)();
  std::unique_ptr<TargetInstance> (*make)(TargetInput&);
};

/// Every target, in the order of targets.list.
const std::vector<TargetEntry>& target_registry();

/// The entry of a name, or null.
const TargetEntry* find_target(const std::string& name);

/// Instantiated for each density in files of their own (engine.in).
template <DensityFunction Density, class R, class E>
std::unique_ptr<Engine> make_cpu_engine(const Density& density, const EngineSpec& spec);
template <class Density, class R, class E>
std::unique_ptr<Engine> make_cuda_engine(const Density& density, const EngineSpec& spec);

/// A definition from a target header as an instance.
template <class Definition>
class TargetOf : public TargetInstance {
 public:
  using Density = typename Definition::Density;
  explicit TargetOf(TargetInput& in) : built_(Definition::build(in)) {
    for (int i = int(built_.names.size()); i < dim(); ++i)
      built_.names.push_back("x[" + std::to_string(i) + "]");
  }

  int dim() const override { return built_.density.dim; }
  const Truth& truth() const override { return built_.truth; }
  Tails tails() const override { return built_.tails; }
  const std::vector<std::string>& names() const override { return built_.names; }
  const std::vector<std::string>& quantities() const override { return built_.quantities; }
  bool names_modes() const override {
    using Inherited = double (DensityDefaults::*)(const Rows<double>&) const;
    return !std::is_same_v<decltype(&Density::template mode<0, double, Rows<double>>), Inherited>;
  }
  void quantities_at(const double* x, double* values) const override {
    built_.density.template quantity<0, double>(Rows<double, const double>{x, 1},
                                                [&](int q, double value) { values[q] = value; });
  }
  const std::vector<std::pair<std::string, double>>& facts() const override { return built_.facts; }
  const Items* items() const override { return built_.items.get(); }
  bool can_draw() const override { return static_cast<bool>(built_.draw); }
  void draw(ExactDraw& random, double* x) const override { built_.draw(random, x); }
  bool has_base_guess() const override { return static_cast<bool>(built_.base_guess); }
  BaseGuess base_guess(int starts, std::uint64_t seed) const override {
    return has_base_guess() ? built_.base_guess(starts, seed) : TargetInstance::base_guess(starts, seed);
  }
  double log_density(const double* x, double* gradient) const override {
    std::vector<double> position(x, x + dim()), g(dim());
    const double l = built_.density.template log_density<0, double>(Rows<double>{position.data(), 1},
                                                                    Rows<double>{g.data(), 1});
    if (gradient != nullptr) std::copy(g.begin(), g.end(), gradient);
    return l;
  }
  double operations_per_gradient() const override {  // of the code that runs: specialised where it is
    double count = 0;
    in_dimension(built_.density, [&]<int D>() { count = operations<D>(); });
    return count;
  }
  bool batched() const override { return Density::kBatch; }
  std::unique_ptr<Engine> engine(const EngineSpec& spec) const override {
    switch (spec.precision) {
      case Precision::single:
        return make<float, float>(spec);
      case Precision::mixed:
        return make<float, double>(spec);
      default:
        return make<double, double>(spec);
    }
  }

 private:
  template <int D>
  double operations() const {
    std::vector<double> position(dim(), 0.5), g(dim());
    Counting::operations = 0;
    built_.density.template log_density<D, Counting>(CountingRows{position.data()}, CountingRows{g.data()});
    return Counting::operations;
  }
  template <class R, class E>
  std::unique_ptr<Engine> make(const EngineSpec& spec) const {
#ifdef LOCKSTEP_CUDA
    if (spec.cuda) return make_cuda_engine<Density, R, E>(built_.density, spec);
#endif
    return make_cpu_engine<Density, R, E>(built_.density, spec);
  }
  Built<Density> built_;
};

template <class Definition>
std::unique_ptr<TargetInstance> make_target_of(TargetInput& in) {
  if constexpr (check_density<typename Definition::Density>())
    return std::make_unique<TargetOf<Definition>>(in);
  return nullptr;
}

}  // namespace lockstep
