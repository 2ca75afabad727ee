// SPDX-License-Identifier: Apache-2.0
#pragma once
// Networks of wormholes written down directly, and their field and step by dense algebra.
#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "kernels/wormhole.hpp"
#include "targets/engine.hpp"

namespace lockstep::testing {

/// Wormholes between points of d + 1 coordinates, as a unit's list.
struct Network {
  double width = 1;  // D F
  std::vector<Eigen::VectorXd> a, c;

  void add(Eigen::VectorXd from, Eigen::VectorXd to) {
    a.push_back(std::move(from));
    c.push_back(std::move(to));
  }
  Eigen::VectorXd along(std::size_t k) const { return (c[k] - a[k]) / (c[k] - a[k]).norm(); }
  double strength(std::size_t k, const Eigen::VectorXd& x) const {
    const Eigen::VectorXd n = along(k);
    const double vicinity =
        (x - a[k]).dot(x - c[k]) + std::abs((x - a[k]).dot(n)) * std::abs((x - c[k]).dot(n));
    return std::exp(-vicinity / width);
  }
  Eigen::VectorXd field(const Eigen::VectorXd& x, const Eigen::VectorXd& v) const {
    Eigen::VectorXd f = Eigen::VectorXd::Zero(x.size());
    for (std::size_t k = 0; k < a.size(); ++k) f += strength(k, x) * v.dot(along(k)) * along(k);
    return f;
  }
  std::vector<double> list() const {
    std::vector<double> l = {double(a.size()), width};
    for (std::size_t k = 0; k < a.size(); ++k) {
      const Eigen::VectorXd n = along(k);
      l.insert(l.end(), a[k].begin(), a[k].end());
      l.insert(l.end(), n.begin(), n.end());
      l.insert(l.end(), {(c[k] - a[k]).norm(), a[k].dot(n)});
    }
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < a.size(); ++j) l.push_back((a[i] + c[i]).dot(along(j)));
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < a.size(); ++j) l.push_back(along(i).dot(along(j)));
    return l;
  }
};

/// The library's wormholes, told of some: unit u has u + 3 modulo 4 of them, about the origin; in two worlds, they lead from
/// one to the other.
template <class Flow = Wormhole, int kWorlds = 1>
struct KnownWormholes : Flow {
  static TransitionInfo info() {
    TransitionInfo info = Flow::info();
    info.settings[Flow::worlds].standard = kWorlds;
    return info;
  }
  static void prepare(Engine& engine, int units) {
    const int d = engine.dim();
    UnitList lists;
    for (int u = 0; u < units; ++u) {
      Network network;
      network.width = 0.15 * d;
      for (int k = 0; k < (u + 3) % 4; ++k) {
        Eigen::VectorXd from(d + 1), to(d + 1);
        for (int i = 0; i < d; ++i)
          from[i] = 0.9 * std::cos(2 * k + i + u), to[i] = 0.2 - std::cos(2 * k + i + u + 0.4 * k);
        from[d] = kWorlds == 2 ? -0.8 : 0;
        to[d] = kWorlds == 2 ? 0.8 : 0;
        network.add(from, to);
      }
      if (!network.a.empty()) lists[u] = network.list();
    }
    engine.set_shared(0, lists);
  }
};

}  // namespace lockstep::testing
