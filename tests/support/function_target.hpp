// SPDX-License-Identifier: Apache-2.0
#pragma once
// A target that is a function of a point, written as it stands, in double: for densities that no target of the library has.
#include <functional>
#include <stdexcept>

#include "targets/block_engine.hpp"
#include "targets/registry.hpp"

namespace lockstep::testing {

class FunctionTarget : public TargetInstance {
 public:
  /// The log density at x, and its gradient.
  using Function = std::function<double(const double* x, double* gradient)>;
  FunctionTarget(int dim, Function f) : f_(std::move(f)), names_(dim, "x") {}

  int dim() const override { return int(names_.size()); }
  const Truth& truth() const override { return truth_; }
  Tails tails() const override { return Tails::gaussian; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<std::string>& quantities() const override { return none_; }
  void quantities_at(const double*, double*) const override {}
  const std::vector<std::pair<std::string, double>>& facts() const override { return facts_; }
  bool can_draw() const override { return false; }
  void draw(ExactDraw&, double*) const override { throw std::logic_error("it has no exact draws"); }
  double log_density(const double* x, double* gradient) const override {
    std::vector<double> own(dim());
    return f_(x, gradient != nullptr ? gradient : own.data());
  }
  double operations_per_gradient() const override { return 1; }
  std::unique_ptr<Engine> engine(const EngineSpec& spec) const override {
    if (spec.precision != Precision::double_ || spec.cuda)
      throw std::logic_error("in double on the CPU alone");
    return make_block_engine<double, double>(
        spec, {dim(), 0}, [this](int chains) { return std::make_unique<Block>(*this, chains); },
        library_transitions<double, double>(spec));
  }

 private:
  class Block final : public BlockDensity<double, double> {
   public:
    Block(const FunctionTarget& target, int chains)
        : target_(target), chains_(chains), point_(target.dim()), slope_(target.dim()) {}
    int chains() const override { return chains_; }
    void bind(const std::uint32_t*, int count) override { count_ = count; }
    void evaluate(const BlockPoint<double, double>& at) override {
      for (int c = 0; c < count_; ++c) {
        const std::ptrdiff_t group = c / kWidth, lane = c % kWidth;
        if (at.gradient != nullptr) {
          const double value = at_point(at.x + group * at.state_stride + lane);
          double* gradient = at.gradient + group * at.state_stride + lane;
          for (int i = 0; i < target_.dim(); ++i) gradient[i * kWidth] = slope_[i];
          if (at.value != nullptr) at.value[group * at.value_stride + lane] = value;
        }
        if (at.log_density != nullptr)
          at.log_density[group * at.value_stride + lane] =
              at_point(at.energy_x + group * at.energy_stride + lane);
      }
    }
    void modes(const double*, std::ptrdiff_t, double* mode) override { std::fill_n(mode, chains_, 0.0); }
    void quantities(const double*, std::ptrdiff_t, double*, std::ptrdiff_t) override {}

   private:
    static constexpr int kWidth = lane_width<MachinePack<double>>;
    double at_point(const double* x) {
      for (int i = 0; i < target_.dim(); ++i) point_[i] = x[i * kWidth];
      return target_.f_(point_.data(), slope_.data());
    }
    const FunctionTarget& target_;
    const int chains_;
    int count_ = 0;
    std::vector<double> point_, slope_;
  };

  const Function f_;
  const std::vector<std::string> names_, none_;
  const std::vector<std::pair<std::string, double>> facts_;
  const Truth truth_;
};

}  // namespace lockstep::testing
