// SPDX-License-Identifier: Apache-2.0
#pragma once
// Networks of wormholes written down directly, and their field and step by dense algebra.
#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "kernels/wormhole_metric.hpp"
#include "targets/engine.hpp"
#include "tests/support/scalar_model.hpp"

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
  /// Of kernels/wormhole_felt.hpp, in the first `dimensions` coordinates.
  Eigen::MatrixXd metric(const Eigen::VectorXd& x, int dimensions, double epsilon) const {
    Eigen::VectorXd m(a.size());
    for (std::size_t k = 0; k < a.size(); ++k)
      m[k] = std::exp(-((x - a[k]).norm() + (x - c[k]).norm() - (c[k] - a[k]).norm()) * dimensions / width);
    Eigen::MatrixXd g = Eigen::MatrixXd::Identity(x.size(), x.size());
    for (std::size_t k = 0; k < a.size(); ++k)
      g -= (1 - epsilon) * m[k] / (1 + m.sum() - m[k]) * along(k) * along(k).transpose();
    return g;
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

/// A few between points near the origin.
inline Network network_of(int d, int wormholes, bool worlds, double width) {
  Network network;
  network.width = width;
  for (int k = 0; k < wormholes; ++k) {
    Eigen::VectorXd a(d + 1), c(d + 1);
    for (int i = 0; i < d; ++i) a[i] = 1.3 * std::sin(1 + 3 * k + i), c[i] = -1.1 * std::cos(2 + k + 2 * i);
    a[d] = worlds ? -1 : 0;
    c[d] = worlds ? 1 : 0;
    network.add(a, c);
  }
  return network;
}

/// One chain in the scalar reference.
template <class Model, class Transition = Wormhole>
struct WormholeChain {
  struct Lane {
    decltype(std::declval<const ScalarModel<Model>&>().par()) parameters, energy_parameters;
    Rows<double> position, x, p, g, xe, ce, cache, fields;
    SharedLists<double> shared;
    const double* settings;
    double* counters;
    void count(int k, double value) const { counters[k] += value; }
  };
  const ScalarModel<Model>& m;
  std::vector<double> list, settings, position, x, p, g, xe, ce, cache, fields, counters;
  std::int32_t places[2];
  WormholeChain(const ScalarModel<Model>& model, std::vector<double> numbers, double worlds)
      : m(model),
        list(std::move(numbers)),
        x(m.model.rows()),
        p(x),
        g(x),
        xe(x),
        ce(m.model.cache_rows()),
        cache(ce),
        counters(Transition::info().counters.size()) {
    for (const auto& setting : Transition::info().settings) settings.push_back(setting.standard);
    settings[2] = worlds;
    int rows = 0;
    for (const auto& f : Transition::info().fields) rows += f.rows(m.model.rows());
    fields.assign(rows, 0.0);
    position = x;
    places[0] = 0;
    places[1] = int(list.size());
  }
  Lane lane() {
    return {m.par(),
            m.par(),
            m.rows(position),
            m.rows(x),
            m.rows(p),
            m.rows(g),
            m.rows(xe),
            m.rows(ce),
            m.rows(cache),
            m.rows(fields),
            {list.data(), places, 1},
            settings.data(),
            counters.data()};
  }
  template <template <class> class Layout = WormholeRows>
  Layout<Lane> rows() {
    return {m.model.dim(), m.model.rows(), m.rows(fields)};
  }
};

/// The library's wormholes, told of some: unit u has u + 3 modulo 4 of them, about the origin; in two worlds, they lead from
/// one to the other. They are so wide in squared distance, in hundredths, for each dimension.
template <class Flow = Wormhole, int kWorlds = 1, int kWidth = 15>
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
      network.width = 0.01 * kWidth * d;
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
