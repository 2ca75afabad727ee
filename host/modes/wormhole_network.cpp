// SPDX-License-Identifier: Apache-2.0
#include "host/modes/wormhole_network.hpp"

#include <Eigen/Dense>

namespace lockstep {

NetworkPlan network_plan(const std::vector<double>& settings) {
  return {settings[0], settings[1] > 0.5, settings[2] > 1.5, settings[3]};
}

double most_network_numbers(int dim, const NetworkPlan& plan) {
  const double modes = most_used_modes(dim), wormholes = plan.two_worlds ? modes * modes
                                                         : plan.complete ? modes * (modes - 1) / 2
                                                                         : modes - 1;
  return 2 + wormholes * (2 * (dim + 1) + 2) + 2 * wormholes * wormholes;
}

std::vector<std::pair<int, int>> spanning_tree(const std::vector<std::vector<double>>& places) {
  const int n = int(places.size());
  const auto distance = [&](int i, int j) {
    double sum = 0;
    for (std::size_t k = 0; k < places[i].size(); ++k) sum += std::pow(places[i][k] - places[j][k], 2);
    return sum;
  };
  std::vector<std::pair<int, int>> edges;
  std::vector<double> nearest(n, INFINITY);  // of those within, to each without
  std::vector<int> from(n, -1);
  std::vector<bool> within(n, false);
  for (int at = 0, left = n - 1; left > 0; --left) {
    within[at] = true;
    for (int j = 0; j < n; ++j)
      if (!within[j] && distance(at, j) < nearest[j]) nearest[j] = distance(at, j), from[j] = at;
    at = -1;
    for (int j = 0; j < n; ++j)
      if (!within[j] && (at < 0 || nearest[j] < nearest[at])) at = j;
    edges.emplace_back(from[at], at);
  }
  return edges;
}

std::vector<double> network_list(const ModeLibrary& library, const NetworkPlan& plan) {
  std::vector<std::vector<double>> places;
  for (const int k : library.most_used()) places.push_back(library[k].place);
  const int d = library.dim(), modes = int(places.size());
  if (modes < 2) return {};
  std::vector<std::pair<Eigen::VectorXd, Eigen::VectorXd>> ends;
  const auto connect = [&](int i, int j, double h) {
    Eigen::VectorXd a(d + 1), c(d + 1);
    a << Eigen::Map<const Eigen::VectorXd>(places[i].data(), d), -h;
    c << Eigen::Map<const Eigen::VectorXd>(places[j].data(), d), h;
    ends.emplace_back(a, c);
  };
  if (plan.two_worlds) {
    for (int i = 0; i < modes; ++i)
      for (int j = 0; j < modes; ++j) connect(i, j, plan.separation);
  } else if (plan.complete) {
    for (int i = 0; i < modes; ++i)
      for (int j = 0; j < i; ++j) connect(i, j, 0);
  } else {
    for (const auto& [i, j] : spanning_tree(places)) connect(i, j, 0);
  }
  std::vector<double> list = {double(ends.size()), plan.influence * (plan.two_worlds ? d + 1 : d)};
  std::vector<Eigen::VectorXd> along;
  for (const auto& [a, c] : ends) {
    along.push_back((c - a).normalized());
    list.insert(list.end(), a.begin(), a.end());
    list.insert(list.end(), along.back().begin(), along.back().end());
    list.insert(list.end(), {(c - a).norm(), a.dot(along.back())});
  }
  for (const auto& [a, c] : ends)
    for (const auto& n : along) list.push_back((a + c).dot(n));
  for (const auto& m : along)
    for (const auto& n : along) list.push_back(m.dot(n));
  return list;
}

}  // namespace lockstep
