// SPDX-License-Identifier: Apache-2.0
// The truth of every registered target that has exact draws, confirmed by those and by quadrature.
#include <gtest/gtest.h>

#include "tests/support/all_targets.hpp"
#include "tests/support/quadrature.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {
namespace {

/// Largest |z| of mean, covariance and quantities of exact draws against a truth, and how many there are; |z| of the first
/// axis' mean against one that is wrong by 3 % of its standard deviation, and of its variance against one wrong by 5 %.
struct DrawCheck {
  double largest = 0;
  std::size_t tests = 0;
  double wrong_mean = 0, wrong_variance = 0;
};
DrawCheck check_draws(const Subject& s, const Truth& truth, int draws) {
  const int d = s.dim();
  std::vector<RunningMean> mean(d), covariance(d * d), quantity(truth.quantities.size());
  ExactDraw random(71);
  Point x(d);
  for (int n = 0; n < draws; ++n) {
    s.target->draw(random, x.data());
    for (int i = 0; i < d; ++i) {
      mean[i].add(x[i]);
      for (int j = 0; j <= i; ++j) covariance[i * d + j].add((x[i] - truth.mean[i]) * (x[j] - truth.mean[j]));
    }
    if (quantity.empty()) continue;
    const Point q = s.quantities(x);
    for (std::size_t k = 0; k < quantity.size(); ++k) quantity[k].add(q[k]);
  }
  DrawCheck r;
  auto compare = [&](const RunningMean& m, double expected) {
    r.largest = std::max(r.largest, std::abs(m.z(expected)));
    ++r.tests;
  };
  for (int i = 0; i < d; ++i) compare(mean[i], truth.mean[i]);
  for (int i = 0; i < d; ++i)
    for (int j = 0; j <= i; ++j) compare(covariance[i * d + j], truth.covariance[i * d + j]);
  for (std::size_t k = 0; k < quantity.size(); ++k) compare(quantity[k], truth.quantities[k]);
  r.wrong_mean = std::abs(mean[0].z(truth.mean[0] + 0.03 * std::sqrt(truth.covariance[0])));
  r.wrong_variance = std::abs(covariance[0].z(1.05 * truth.covariance[0]));
  return r;
}

/// Rate of false alarms of one target's family, if its seed were drawn anew.
constexpr double kAlarmRate = 1e-5;

/// Calls check(subject, truth) for every target that has exact draws and is `suitable`. (As parameters of tests they would
/// all be made, with their truths, whenever the program starts.)
template <class Check>
void for_each_truth(bool (*suitable)(const Subject&), Check check) {
  int checked = 0;
  for (const SubjectCase& c : all_targets()) {
    const auto subject = c.make();
    if (!subject->target->can_draw() || !suitable(*subject)) continue;
    SCOPED_TRACE(c.label);
    check(*subject, subject->target->truth());
    ++checked;
  }
  EXPECT_GE(checked, 7);
}

TEST(Truths, ExactDrawsConfirmThem) {
  for_each_truth([](const Subject& s) { return std::isfinite(s.target->truth().mean[0]); },
                 [](const Subject& s, const Truth& truth) {
                   const DrawCheck r = check_draws(s, truth, 200000);
                   const double limit = family_quantile(kAlarmRate, r.tests);
                   EXPECT_LT(r.largest, limit);
                   EXPECT_GT(r.wrong_mean, limit);
                   EXPECT_GT(r.wrong_variance, limit);
                 });
}

TEST(Truths, QuadratureConfirmsThem) {
  for_each_truth([](const Subject& s) { return s.dim() <= 2 && std::isfinite(s.target->truth().log_z); },
                 [](const Subject& s, const Truth& truth) {
                   const int d = s.dim();
                   const Truth found = integrate(s);
                   EXPECT_NEAR(found.log_z, truth.log_z, 1e-6);
                   for (int i = 0; i < d; ++i) {
                     const double sd = std::sqrt(truth.covariance[i * d + i]);
                     EXPECT_NEAR(found.mean[i], truth.mean[i], 1e-6 * sd);
                     for (int j = 0; j < d; ++j)
                       EXPECT_NEAR(found.covariance[i * d + j], truth.covariance[i * d + j],
                                   2e-6 * sd * std::sqrt(truth.covariance[j * d + j]));
                   }
                   for (std::size_t k = 0; k < truth.quantities.size(); ++k)
                     EXPECT_NEAR(found.quantities[k], truth.quantities[k], 1e-5) << s.target->quantities()[k];
                 });
}

}  // namespace
}  // namespace lockstep::testing
