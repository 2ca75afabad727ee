// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small batches of every kind of kernel, on targets that need no data.
#include <ostream>

#include "targets/registry.hpp"
#include "tests/support/engines.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep::testing {

/// Of a target that outlives them.
inline EngineFactory engines(const TargetInstance& target, bool cuda) {
  return [&target, cuda](EngineSpec spec) {
    spec.cuda = cuda;
    return target.engine(spec);
  };
}

inline MemoryInput input_of(const std::string& target) {
  MemoryInput input;
  if (target == "gaussian") input.numbers = {{"dim", 2}, {"ratio", 3}};
  if (target == "gaussian5") input.numbers = {{"dim", 5}, {"ratio", 3}};
  if (target == "two_modes") input.numbers = {{"dim", 5}};
  return input;
}
inline std::unique_ptr<TargetInstance> make_target(const std::string& name) {
  MemoryInput input = input_of(name);
  return find_target(name == "gaussian5" ? "gaussian" : name)->make(input);
}

struct Named {
  std::string name, target;
  BatchCase batch;
};
inline void PrintTo(const Named& n, std::ostream* out) { *out << n.name; }

inline Named named(std::string name, std::string target, ModelKind kind, int samples = 1) {
  Named n{std::move(name), std::move(target), {}};
  n.batch.model.kind = kind;
  n.batch.model.pseudo_samples = samples;
  n.batch.precision = Precision::double_;
  n.batch.chains = 70;
  if (n.target == "mixture20" || n.target == "flower") {  // narrow
    n.batch.step_size = 0.05;
    n.batch.trajectory_time = 0.25;
  }
  return n;
}

/// A program without the mixtures (the emulation of a device) has Gaussians in five and two dimensions instead.
inline bool has_mixtures() { return find_target("two_modes") != nullptr; }
inline std::string five_dimensional() { return has_mixtures() ? "two_modes" : "gaussian5"; }

/// Every kind of kernel: the register models (two dimensions; plain, path, N = 2 to 5), and general ones.
inline std::vector<Named> all_cases() {
  std::vector<Named> cases;
  const std::string narrow = has_mixtures() ? "mixture20" : "gaussian", many = five_dimensional();
  for (const std::string& t : {std::string("gaussian"), std::string("mixture20"), many, std::string("banana"),
                               std::string("flower")}) {
    if (!has_mixtures() && t != "gaussian" && t != many) continue;
    cases.push_back(named(t + "_plain", t, ModelKind::plain));
    cases.push_back(named(t + "_path", t, ModelKind::path));
    for (int n : {2, 3, 4, 5})
      cases.push_back(named(t + "_pe" + std::to_string(n), t, ModelKind::pseudo_extended, n));
  }
  Named fixed = named(narrow + "_fixed_beta", narrow, ModelKind::pseudo_extended, 2);
  fixed.batch.model.learned = false;
  fixed.batch.model.fixed_beta = 0.3;
  cases.push_back(fixed);
  Named boxed = named("gaussian_box", "gaussian", ModelKind::pseudo_extended, 2);
  boxed.batch.model.box = 1.5;
  boxed.batch.model.low = 0.1;
  boxed.batch.model.g_exponent = 0.5;
  cases.push_back(boxed);
  Named dense = named(many + "_dense", many, ModelKind::path);
  dense.batch.model.dense_metric = true, dense.batch.model.base = 1;
  cases.push_back(dense);
  for (auto [name, tempering] : {std::pair{"gibbs", Tempering::gibbs}, std::pair{"levels", Tempering::levels},
                                 std::pair{"anneal", Tempering::anneal}}) {
    cases.push_back(named(many + "_" + name, many, ModelKind::path));
    cases.back().batch.tempering = tempering;
  }
  for (auto [name, control] :
       {std::pair{"joint", Control::logistic}, std::pair{"plateaus", Control::plateaus}}) {
    cases.push_back(named(many + "_" + name, many, ModelKind::path));
    cases.back().batch.tempering = Tempering::joint;
    cases.back().batch.model.control = control;
  }
  cases.push_back(cases.back());
  cases.back().name = many + "_adiabatic";
  cases.back().batch.transition = find_transition("adiabatic");
  for (const TransitionInfo* t : transition_registry())
    for (int kind : {0, 1, 2}) {
      if (t == transition_registry().front()) continue;
      cases.push_back(
          named(narrow + "_" + t->name + std::to_string(kind), narrow, ModelKind(kind), kind == 2 ? 3 : 1));
      cases.back().batch.transition = t;
    }
  for (Named& c : cases) c.batch.chees = true;
  return cases;
}

}  // namespace lockstep::testing
