// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include "host/modes/mode_library.hpp"

namespace lockstep {

/// How modes are connected, as the settings of kernels/wormhole.hpp have it.
struct NetworkPlan {
  double influence = 0.3;
  bool complete = false, two_worlds = false;
  double separation = 1;
};

/// Of a transition's settings, which begin with these.
NetworkPlan network_plan(const std::vector<double>& settings);

/// The edges of the minimal spanning tree of these places (by Euclidean distance; Prim 1957).
std::vector<std::pair<int, int>> spanning_tree(const std::vector<std::vector<double>>& places);

/// List "network" of kernels/wormhole_field.hpp over the largest modes of a library; empty where there are not two.
/// In two worlds a wormhole leads from every mode at -h to every mode at h, its own image too.
std::vector<double> network_list(const ModeLibrary& library, const NetworkPlan& plan);
/// How many numbers it has at most, in so many dimensions.
double most_network_numbers(int dim, const NetworkPlan& plan);

}  // namespace lockstep
