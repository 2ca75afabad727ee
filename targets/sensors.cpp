// SPDX-License-Identifier: Apache-2.0
#include "targets/sensors.hpp"

#include <array>

namespace lockstep {
namespace {

constexpr int kMaxSensors = 200;  // and anchors

struct Network {
  int sensors = 0;
  std::vector<std::array<double, 2>> anchors;
  std::map<std::pair<int, int>, double> distances;  // seen, by sensors counted from 0, the lower one first
};

/// The data entry `name` as rows of `width` numbers; one row may come without brackets of its own.
DataArray read_rows(TargetInput& in, const std::string& name, int width, const std::string& row) {
  DataArray a = in.array(name);
  if (a.shape.size() == 1 && a.shape[0] == width) a.shape = {1, width};
  if (a.shape.size() != 2 || a.shape[1] != width || a.values.empty())
    in.fail(name + " is no table of " + std::to_string(width) + " columns (a row is " + row +
            "). Write it as [[" + row + "], ...]");
  return a;
}

int whole(TargetInput& in, double v, int low, int high, const std::string& what) {
  if (v != std::floor(v) || v < low || v > high) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", v);
    in.fail(what + " is " + text + " (it must be a whole number from " + std::to_string(low) + " to " +
            std::to_string(high) + "). Correct it");
  }
  return static_cast<int>(v);
}

Network read_network(TargetInput& in) {
  Network net;
  const DataArray count = in.array("sensors");
  if (count.values.size() != 1)
    in.fail("sensors is no single number (it is how many positions are unknown). Write it as 8");
  net.sensors = whole(in, count.values[0], 1, kMaxSensors, "sensors");
  const DataArray anchors = read_rows(in, "anchors", 2, "x, y");
  if (anchors.shape[0] > kMaxSensors)
    in.fail("anchors has " + std::to_string(anchors.shape[0]) + " rows (target sensors takes at most " +
            std::to_string(kMaxSensors) + "). Give fewer");
  for (int a = 0; a < anchors.shape[0]; ++a)
    net.anchors.push_back({anchors.values[2 * std::size_t(a)], anchors.values[2 * std::size_t(a) + 1]});
  const DataArray rows = read_rows(in, "distances", 3, "i, j, distance");
  const int all = net.sensors + anchors.shape[0];
  for (int r = 0; r < rows.shape[0]; ++r) {
    const double* row = rows.values.data() + 3 * std::size_t(r);
    const std::string place = "row " + std::to_string(r + 1) + " of distances: ";
    const int i = whole(in, row[0], 1, all, place + "i") - 1, j = whole(in, row[1], 1, all, place + "j") - 1;
    if (i == j || std::min(i, j) >= net.sensors)
      in.fail(place + (i == j ? "i equals j" : "both are anchors") +
              " (a distance is of an unknown sensor to another or to an anchor; anchors come after the " +
              std::to_string(net.sensors) + " sensors). Leave the row out");
    if (!(row[2] >= 0)) in.fail(place + "the distance is negative (it is a length). Correct it");
    if (!net.distances.emplace(std::minmax(i, j), row[2]).second)
      in.fail(place + "the pair " + std::to_string(i + 1) + ", " + std::to_string(j + 1) +
              " came before (a pair is measured once). Leave one of the two out");
  }
  return net;
}

/// Sensors and anchors anywhere in the unit square, pairs seen and distances measured by the model.
Network simulated_network(int sensors, int anchors, double range, double sd, std::uint64_t seed) {
  ExactDraw random(seed, "network");
  Network net;
  net.sensors = sensors;
  std::vector<std::array<double, 2>> position(std::size_t(sensors + anchors));
  for (auto& p : position)
    for (double& v : p) v = random.uniform();
  net.anchors.assign(position.begin() + sensors, position.end());
  for (int i = 0; i < sensors; ++i)
    for (int j = i + 1; j < sensors + anchors; ++j) {
      const auto &a = position[std::size_t(i)], &b = position[std::size_t(j)];
      const double d = std::hypot(a[0] - b[0], a[1] - b[1]);
      if (random.uniform() < std::exp(-d * d / (2 * range * range)))
        net.distances[{i, j}] = std::max(0.0, d + sd * random.normal());
    }
  return net;
}

Network read_data(TargetInput& in, double range, double sd) {
  if (!in.has_data()) {
    const int sensors = in.integer("sensors", 8, 1, kMaxSensors);
    const int anchors = in.integer("anchors", 3, 1, kMaxSensors);
    return simulated_network(sensors, anchors, range, sd,
                             std::uint64_t(in.integer("seed", 9, 0, std::numeric_limits<int>::max())));
  }
  in.refuse_beside_data({"sensors", "anchors", "seed"});
  return read_network(in);
}

}  // namespace

TargetInfo SensorsTarget::info() {
  return {.name = "sensors",
          .summary = "positions of sensors from noisy distances of those that see each other: many modes",
          .formula =
              "pairs at distance d: seen with probability exp(-d^2 / (2 R^2)), then y ~ N(d, sd^2), not seen "
              "otherwise; coordinates ~ N(0, prior_sd^2); x = (x_1, y_1, .., x_N, y_N)",
          .settings = {{"R", "range of sight (default 0.3)"},
                       {"sd", "standard deviation of a measured distance (default 0.02)"},
                       {"prior_sd",
                        "standard deviation of each coordinate's prior (default 10: nearly the flat prior of "
                        "Ahn et al., and proper, as in Tak et al.)"},
                       {"sensors", "unknown positions of simulated data (default 8; without data)"},
                       {"anchors", "known positions of simulated data (default 3; without data)"},
                       {"seed",
                        "seed of simulated data (default 9, by which 18 of 52 pairs are seen, as in the "
                        "network of Ahn et al.; without data)"}},
          .data =
              "optional, by name: sensors (how many are unknown, N), anchors [A][2] (known positions, "
              "sensors N + 1 .. N + A), distances [pairs][3] (i, j, distance; of pairs that saw each other, "
              "counted from 1: all others did not); JSON, or a folder of CSV tables",
          .truth = "none known"};
}

Built<Sensors> SensorsTarget::build(TargetInput& in) {
  const double range = in.number("R", 0.3, 1e-3, 1e3), sd = in.number("sd", 0.02, 1e-4, 1e3);
  const double prior = in.number("prior_sd", 10, 1e-2, 1e4);
  const Network net = read_data(in, range, sd);
  const int all = net.sensors + int(net.anchors.size());
  Built<Sensors> built(2 * net.sensors);
  Sensors& density = built.density;
  density.dim = 2 * net.sensors;
  density.inv_range2 = 1 / (range * range);
  density.inv_sd2 = 1 / (sd * sd);
  density.inv_prior2 = 1 / (prior * prior);
  density.constant = -density.dim * (0.5 * std::log(2 * kPi) + std::log(prior)) -
                     double(net.distances.size()) * (0.5 * std::log(2 * kPi) + std::log(sd));
  std::vector<double> table;
  for (int i = 0; i < net.sensors; ++i) {
    for (int j = i + 1; j < all; ++j) {
      const bool sensor = j < net.sensors;
      const auto at = sensor ? std::array{0.0, 0.0} : net.anchors[std::size_t(j - net.sensors)];
      const auto seen = net.distances.find({i, j});
      table.insert(table.end(), {double(i), sensor ? double(j) : -1, at[0], at[1],
                                 seen != net.distances.end() ? seen->second : -1});
    }
    built.names.push_back("x[" + std::to_string(i) + "]");
    built.names.push_back("y[" + std::to_string(i) + "]");
  }
  density.pairs = int(table.size()) / Sensors::kColumns;
  density.pair = built.pool.add(table);
  built.facts = {{"pairs", double(density.pairs)}, {"pairs_seen", double(net.distances.size())}};
  return built;
}

}  // namespace lockstep
