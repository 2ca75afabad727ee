// SPDX-License-Identifier: Apache-2.0
#pragma once
// A target under test, with what the registry hides: the density's own type, for dual numbers and quantities.
#include <functional>
#include <memory>
#include <ostream>

#include "targets/registry.hpp"
#include "tests/support/dual.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep::testing {

class Subject {
 public:
  explicit Subject(const TargetInfo& info, MemoryInput in) : input(std::move(in)) {
    const TargetEntry* entry = find_target(info.name);
    if (entry == nullptr) throw std::logic_error("target " + info.name + " is not registered");
    target = entry->make(input);
  }
  virtual ~Subject() = default;
  /// log density alone, as the samplers evaluate energies: the code without a gradient.
  virtual double value(std::vector<double> x) const = 0;
  /// Gradient by forward-mode differentiation of `value`: one evaluation per coordinate.
  virtual std::vector<double> dual_gradient(const std::vector<double>& x) const = 0;
  /// The target's own quantities at x.
  virtual std::vector<double> quantities(std::vector<double> x) const = 0;

  int dim() const { return target->dim(); }
  double log_density(const std::vector<double>& x, std::vector<double>* gradient = nullptr) const {
    if (gradient != nullptr) gradient->resize(x.size());
    return target->log_density(x.data(), gradient != nullptr ? gradient->data() : nullptr);
  }

  MemoryInput input;
  std::unique_ptr<TargetInstance> target;
  /// How many times what its inputs' last digits do to it the density's rounding at a position is: above 1 where it
  /// solves equations in which they are lost. No test can ask for more digits than are there.
  std::function<double(const std::vector<double>&)> lost = [](const auto&) { return 1.0; };
};

template <class Definition>
class SubjectOf : public Subject {
 public:
  explicit SubjectOf(const MemoryInput& in)
      : Subject(Definition::info(), in), built_(Definition::build(input)) {}
  double value(std::vector<double> x) const override {
    return built_.density.template log_density<0, double>(Rows<double>{x.data(), 1}, NoGradient{});
  }
  std::vector<double> dual_gradient(const std::vector<double>& x) const override {
    std::vector<double> g(x.size());
    for (int i = 0; i < dim(); ++i)
      g[i] = built_.density.template log_density<0, Dual>(DualPosition{x.data(), i}, NoGradient{}).d;
    return g;
  }
  std::vector<double> quantities(std::vector<double> x) const override {
    std::vector<double> q(built_.density.quantities());
    if (q.empty()) return q;  // the samplers do not call a density that counts none
    built_.density.template quantity<0, double>(Rows<double>{x.data(), 1},
                                                [&](int i, double v) { q.at(i) = v; });
    return q;
  }
  const typename Definition::Density& density() const { return built_.density; }

 private:
  Built<typename Definition::Density> built_;
};

/// One case of the contract suite.
struct SubjectCase {
  std::string label, name;  // label: letters, digits and underscores
  std::function<std::unique_ptr<Subject>()> make;
};
inline void PrintTo(const SubjectCase& c, std::ostream* out) { *out << c.label; }

template <class Definition>
SubjectCase subject(std::string label = Definition::info().name, MemoryInput in = {}) {
  return {label, Definition::info().name, [in] { return std::make_unique<SubjectOf<Definition>>(in); }};
}
template <class Definition>
SubjectCase subject(const std::string& label, const MemoryInput& in,
                    const std::function<double(const std::vector<double>&)>& lost) {
  return {label, Definition::info().name, [in, lost] {
            auto made = std::make_unique<SubjectOf<Definition>>(in);
            made->lost = lost;
            return made;
          }};
}

}  // namespace lockstep::testing
