// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library's jumps between modes, told of some, and of components of a base.
#include <array>
#include <cmath>
#include <vector>

#include "kernels/mode_jump.hpp"
#include "targets/engine.hpp"

namespace lockstep::testing {

struct KnownModes : ModeJump {
  /// Numbers that go through all their pairs, no modes and some components among them. The first unit has no components:
  /// it is that of tests of invariance of every transition, whose base this does not know, and draws of another would
  /// not leave it (with the components of their base: tests/kernels/statistical_mode_jumps.cpp).
  static int modes_of(int unit) { return (unit + 3) % 4; }
  static int components_of(int unit) { return std::array{0, 1, 3}[std::size_t(unit % 3)]; }

  /// Of component b of a unit: its weight's share below, its mean, and L = diagonal I + off below it in the first column.
  static double weight_before(int b) { return 0.4 * b; }  // weights 0.4, 0.4, 0.2
  static double mean(int unit, int b, int i) { return 0.5 - 0.6 * b + 0.2 * ((i + b + unit) % 3); }
  static double diagonal(int b) { return 1.2 + 0.3 * b; }
  static double off(int b) { return 0.2 - 0.3 * b; }

  /// So many modes of a unit, of different widths, correlated.
  static void put_modes(std::vector<double>& list, int d, int unit, int count) {
    for (int k = 0; k < count; ++k) {
      const double width = 0.7 + 0.25 * k, off = 0.3 - 0.2 * k;
      for (int i = 0; i < d; ++i) list.push_back(0.7 * k - 0.6 + 0.2 * ((i + k + unit) % 3));
      put_triangle(list, d, 1 / width, -off / (width * width));  // L^-1
      put_triangle(list, d, width, off);
      list.push_back(d * std::log(width));
    }
  }

  static UnitList lists(int d, int units) {
    UnitList lists;
    for (int u = 0; u < units; ++u) {
      auto& list = lists[u];
      list.insert(list.end(), {double(modes_of(u)), double(components_of(u))});
      put_modes(list, d, u, modes_of(u));
      for (int b = 0; b < components_of(u); ++b) {
        for (int i = 0; i < d; ++i) list.push_back(mean(u, b, i));
        put_triangle(list, d, 0, 0);  // nobody comes back from there
        put_triangle(list, d, diagonal(b), off(b));
        list.push_back(weight_before(b));
      }
    }
    return lists;
  }
  static void prepare(Engine& engine, int units) { engine.set_shared(0, lists(engine.dim(), units)); }

 private:
  /// Of a multiple of I, and `off` below the diagonal in the first column, as its inverse is.
  static void put_triangle(std::vector<double>& list, int d, double diagonal, double off) {
    for (int i = 0; i < d; ++i)
      for (int j = 0; j <= i; ++j) list.push_back(i == j ? diagonal : j == 0 ? off : 0);
  }
};

}  // namespace lockstep::testing
