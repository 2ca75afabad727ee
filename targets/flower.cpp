// SPDX-License-Identifier: Apache-2.0
#include "targets/flower.hpp"

namespace lockstep {
namespace {

/// m[n] = integral over t > 0 of t^n exp(-(t - a)^2 / 2), by parts: m[n + 1] = a m[n] + n m[n - 1].
/// For a far below zero the recurrence cancels; such angles carry no mass beside those of a >= 0, which there
/// are.
struct RadialMoments {
  double m[4];
  explicit RadialMoments(double a) {
    m[0] = std::sqrt(kPi / 2) * std::erfc(-a / std::sqrt(2.0));
    m[1] = std::exp(-0.5 * a * a) + a * m[0];
    m[2] = a * m[1] + m[0];
    m[3] = a * m[2] + 2 * m[1];
  }
};

/// Truth in polar coordinates: closed form along the radius, the rectangle rule around the circle. The
/// integrand is a function of u = w theta, entire and periodic, and varies over changes of u of about sigma /
/// A: at 16 points to each of those the rule's error is far below rounding.
Truth flower_truth(int w, double r, double a, double sigma) {
  const long points = 64 + 16 * static_cast<long>(std::ceil(a / sigma));
  double mass = 0, square = 0, cosine = 0, first = 0, twice = 0;
  for (long i = 0; i < points; ++i) {
    const double c = std::cos(2 * kPi * static_cast<double>(i) / static_cast<double>(points));
    const RadialMoments t((r + a * c) / sigma);
    mass += t.m[1];
    square += t.m[3];
    cosine += t.m[1] * c;
    first += t.m[2] * c;                             // rho cos(theta), where w = 1
    twice += t.m[3] * (w == 1 ? 2 * c * c - 1 : c);  // rho^2 cos(2 theta), where w <= 2
  }
  const double mean = w == 1 ? sigma * first / mass : 0;  // other w: the petals balance
  const double half = 0.5 * sigma * sigma * square / mass,
               uneven = w <= 2 ? 0.5 * sigma * sigma * twice / mass : 0;
  Truth truth;
  truth.mean = {mean, 0};
  truth.covariance = {half + uneven - mean * mean, 0, 0, half - uneven};
  truth.log_z = std::log(2 * kPi * sigma * sigma * mass / static_cast<double>(points));
  truth.quantities = {cosine / mass};
  return truth;
}

/// An exact draw from t exp(-(t - a)^2 / 2) on t > 0. Its logarithm bends down at least as fast as -t^2 / 2,
/// so the normal around the mode, scaled to touch there, lies above it everywhere.
double draw_radius(ExactDraw& draw, double a) {
  const double mode = a > 0 ? 0.5 * (a + std::sqrt(a * a + 4)) : 2 / (std::sqrt(a * a + 4) - a);
  for (;;) {
    const double z = draw.normal(), t = mode + z;
    if (t <= 0) continue;
    // log of target over envelope; (t - a)^2 - (mode - a)^2 - z^2 = 2 z (mode - a) and mode - a = 1 / mode.
    if (std::log(draw.uniform()) < std::log(t / mode) - z / mode) return t;
  }
}

}  // namespace

TargetInfo FlowerTarget::info() {
  return {.name = "flower",
          .summary = "closed ridge with w petals, in two dimensions (pseudo-extended paper)",
          .formula = "-(|x| - r - A cos(w theta))^2 / (2 sigma^2), theta the angle of x",
          .settings = {{"r", "mean radius, 0 to 1000 (default 10)"},
                       {"A", "length of the petals, 0 to 1000 (default 6)"},
                       {"w", "number of petals, a whole number from 1 to 32 (default 6)"},
                       {"sigma", "width of the ridge, 0.01 to 1000 (default 1)"}},
          .truth =
              "quadrature: log Z, mean, second moments, E cos(w theta); by default log Z = 5.05940, mean 0, "
              "second moments 78.50000, E cos(6 theta) = 0.30000"};
}

Built<Flower> FlowerTarget::build(TargetInput& in) {
  const double r = in.number("r", 10, 0, 1000), a = in.number("A", 6, 0, 1000);
  const double sigma = in.number("sigma", 1, 0.01, 1000);
  const int w = in.integer("w", 6, 1, 32);
  Built<Flower> b(2);
  b.density.w = w;
  b.density.r = r;
  b.density.a = a;
  b.density.inv_sigma = 1 / sigma;
  b.truth = flower_truth(w, r, a, sigma);
  b.quantities = {"cos_w_theta"};
  // The angle by rejection under the largest mass along a radius, which grows with the ridge's distance.
  b.draw = [=, most = RadialMoments((r + a) / sigma).m[1]](ExactDraw& draw, double* x) {
    double theta, centre;
    do {
      theta = 2 * kPi * draw.uniform();
      centre = (r + a * std::cos(w * theta)) / sigma;
    } while (draw.uniform() * most >= RadialMoments(centre).m[1]);
    const double rho = sigma * draw_radius(draw, centre);
    x[0] = rho * std::cos(theta);
    x[1] = rho * std::sin(theta);
  };
  return b;
}

}  // namespace lockstep
