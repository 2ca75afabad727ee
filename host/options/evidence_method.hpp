// SPDX-License-Identifier: Apache-2.0
#pragma once
// The methods of `lockstep evidence`, one row of a table each.
#include <string>
#include <vector>

#include "host/options/sampler_config.hpp"

namespace lockstep {

/// How a method gets from base to target.
enum class EvidenceKind {
  chains,           // that move along the path, to and fro
  ladder,           // at fixed levels, which swap them
  annealing,        // once from base to target, each run on its own
  particles,        // once, with resampling
  pseudo_extended,  // the chain of `sample`
  items             // of targets with many items alone
};

struct EvidenceMethod {
  SamplerInfo info;
  EvidenceKind kind;
  int num_leapfrog = 5;        // default
  const char* estimator = "";  // of chains and of ladders: one that is in paths/evidence_methods.cpp
  // Of chains: what moves beta.
  Tempering tempering = Tempering::levels;
  Control control = Control::none;
  const char* transition = "hmc";  // that moves them; its settings are the method's
  // Annealing both ways looks at it from outside, where exact draws are at hand.
  bool checks_both_ways = false;
  bool both_ways = false;                  // annealing is; needs exact draws
  bool scheduled = false;                  // takes sampler.schedule
  bool of_items = false;                   // does for targets of many items too
  int (*steps)(double barrier) = nullptr;  // of the schedule, where it takes a number of them, by default

  /// Whether its chains run on and on: their state can be saved, and gone on from.
  bool is_resumable() const { return kind != EvidenceKind::annealing && kind != EvidenceKind::particles; }
};

const std::vector<EvidenceMethod>& method_registry();

/// The method of a name; UserError where there is none.
const EvidenceMethod& find_method(const std::string& name);

/// Whether --chains, --iterations or --warmup ("chains", ..) is a method's to take: the chains of `pt` and `ti`
/// are their levels, those that go once from base to target have as many runs as the budget pays, and `pe`
/// alone warms up.
bool method_takes(const std::string& method, const std::string& key);

}  // namespace lockstep
