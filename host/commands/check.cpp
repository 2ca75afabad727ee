// SPDX-License-Identifier: Apache-2.0
// What anyone who brings a target wants to know before trusting a run on it.
#include "host/commands/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "host/modes/mode_search.hpp"
#include "host/modes/wormhole_network.hpp"
#include "host/options/target_input.hpp"
#include "host/runs/run_context.hpp"

namespace lockstep {
namespace {

constexpr int kPoints = 64;

/// Points that matter: exact draws where the target gives them, else normals of the initial scale.
std::vector<double> points(const TargetInstance& target, double scale, int count) {
  const int d = target.dim();
  std::vector<double> x(std::size_t(count) * d);
  for (int p = 0; p < count; ++p) {
    ExactDraw random(StreamKey{}, std::uint64_t(p));
    if (target.can_draw())
      target.draw(random, x.data() + std::size_t(p) * d);
    else
      for (int i = 0; i < d; ++i) x[p * d + i] = scale * random.normal();
  }
  return x;
}

/// Maximum that keeps a NaN, so that a NaN anywhere fails its check.
double larger(double worst, double value) { return std::isnan(worst) || value <= worst ? worst : value; }

bool report(const char* what, bool good, const std::string& detail) {
  fmt::print("{:<12} {:<5} {}\n", what, good ? "ok" : "FAIL", detail);
  return good;
}

constexpr double kAgreement = 1e-4;

/// Largest difference between the gradient and central differences, relative to the gradient's size.
bool check_gradient(const TargetInstance& target, const std::vector<double>& x) {
  const int d = target.dim();
  double worst = 0;
  std::vector<double> g(d);
  for (int p = 0; p < kPoints; ++p) {
    std::vector<double> at(x.begin() + std::size_t(p) * d, x.begin() + std::size_t(p + 1) * d);
    target.log_density(at.data(), g.data());
    double size = 1;
    for (double v : g) size = std::max(size, std::abs(v));
    for (int i = 0; i < d; ++i) {
      // Far below the width of what is here, which a steep gradient shows to be narrow; or, where that is lost in the
      // rounding of a density that is steep because it is far out, wider.
      const double wide = 1e-5 * std::max(0.1, std::abs(at[i])), centre = at[i];
      const auto error = [&](double h) {
        at[i] = centre + h;
        const double up = target.log_density(at.data(), nullptr);
        at[i] = centre - h;
        const double down = target.log_density(at.data(), nullptr);
        at[i] = centre;
        return std::abs((up - down) / (2 * h) - g[i]) / size;
      };
      double e = error(std::min(wide, 1e-3 / size));
      if (e >= kAgreement) e = std::min(e, error(wide));
      worst = larger(worst, e);
    }
  }
  return report("gradient", worst < kAgreement,
                fmt::format("largest relative difference from central differences {:.1e}", worst));
}

/// Log density and gradient of the batch engine against the scalar reference.
bool check_lanes(const TargetInstance& target, const RunContext& context, const std::vector<double>& x) {
  const int d = target.dim();
  const auto engine = target.engine(engine_spec(context, {}, {0}, kPoints));
  std::vector<double> rows(std::size_t(d) * kPoints), at(d), g(d);
  for (int p = 0; p < kPoints; ++p)
    for (int i = 0; i < d; ++i) {
      // The reference sees what the batch sees: positions rounded to the state's precision.
      const double v = x[std::size_t(p) * d + i];
      rows[std::size_t(i) * kPoints + p] = context.precision == Precision::double_ ? v : double(float(v));
    }
  engine->set_position(rows);
  engine->initialize();
  const auto gradient = engine->gradient(), cache = engine->cache();
  double worst = 0;
  for (int p = 0; p < kPoints; ++p) {
    for (int i = 0; i < d; ++i) at[i] = rows[std::size_t(i) * kPoints + p];
    const double l = target.log_density(at.data(), g.data());
    worst = larger(worst, std::abs(cache[p] - l) / std::max(1.0, std::abs(l)));
    double size = 1;
    for (double v : g) size = std::max(size, std::abs(v));
    for (int i = 0; i < d; ++i)
      worst = larger(worst, std::abs(gradient[std::size_t(i) * kPoints + p] - g[i]) / size);
  }
  const double limit = context.precision == Precision::double_ ? 1e-10 : 2e-4;
  return report("lanes", worst < limit,
                fmt::format("{}: largest relative difference from the scalar reference {:.1e}",
                            device_name(context), worst));
}

/// Standard deviation of each of the `dim` axes of [axis][chain]; 1 where nothing varies.
std::vector<double> spread(const std::vector<double>& rows, int dim) {
  const std::size_t chains = rows.size() / dim;
  std::vector<double> sd(dim);
  for (int i = 0; i < dim; ++i) {
    const auto x = std::span(rows).subspan(i * chains, chains);
    double mean = 0, square = 0;
    for (double v : x) mean += v / double(chains);
    for (double v : x) square += (v - mean) * (v - mean) / double(chains);
    sd[i] = square > 0 ? std::sqrt(square) : 1;
  }
  return sd;
}

/// The list by which a transition goes between these modes: a network of wormholes; empty where it has none.
std::vector<double> network_of(const TransitionInfo& transition, const ModeLibrary& modes) {
  const auto& shared = transition.shared;
  if (std::find(shared.begin(), shared.end(), "network") == shared.end()) return {};
  std::vector<double> settings;
  for (const TransitionSetting& setting : transition.settings) settings.push_back(setting.standard);
  return network_list(modes, network_plan(settings));
}

/// Modes that a short search finds.
ModeLibrary few_modes(const RunContext& context, double init_scale) {
  constexpr double kGradients = 1e5;
  if (context.target->dim() > kMostSearchedDim) return ModeLibrary(context.target->dim());
  return search_modes(context, 0, {.init_scale = init_scale, .gradients = kGradients}).library;
}

/// Exact draws, 20 transitions of a kind: means and second moments must not move by more standard errors than chance
/// allows.
bool check_invariance(const TargetInstance& target, const RunContext& context,
                      const TransitionInfo& transition, const ModeLibrary& modes) {
  const int d = target.dim();
  const auto network = network_of(transition, modes);
  double fields = 1;  // of those that keep a history fewer chains have room
  for (const TransitionField& field : transition.fields) fields += field.rows(d);
  // The implicit solves along a network take minutes for as many as the others have.
  constexpr int kFew = 512;
  const int chains = int(std::clamp(6e7 / fields, double(kFew), network.empty() ? 8192.0 : 1024.0));
  const auto x = points(target, 1, chains);
  // [axis][chain] of the first so many chains, and an engine of them.
  const auto rows_of = [&](int count) {
    std::vector<double> rows(std::size_t(d) * count);
    for (int p = 0; p < count; ++p)
      for (int i = 0; i < d; ++i) rows[std::size_t(i) * count + p] = x[std::size_t(p) * d + i];
    return rows;
  };
  const auto rows = rows_of(chains), few_rows = rows_of(kFew);
  const auto sd = spread(rows, d);
  const auto engine_of = [&](int count) {
    EngineSpec spec = engine_spec(context, {}, {0}, count);
    spec.transition = &transition;
    auto engine = target.engine(spec);
    set_axis(*engine, engine->layout().scale(), sd, d);
    if (!network.empty()) engine->set_shared(0, {{0, network}});
    return engine;
  };
  const auto engine = engine_of(chains), few = engine_of(kFew);
  LaunchSpec launch;
  launch.key = context.key;
  launch.num_leapfrog = 5;
  // The mean acceptance of these iterations.
  const auto advance = [&](Engine& e, const std::vector<double>& from, double step, int begin, int end) {
    set_per_unit(e, ParameterLayout::step_size, {step});
    e.set_position(from);
    e.initialize();
    launch.begin = begin;
    launch.end = end;
    e.advance(launch);
    return unit_means(e.take_stats(), stat_acceptance, e.chains(), 1)[0] / (end - begin);
  };
  // The longest step that is accepted half the time, by few chains: modes may be far narrower than the whole target, and
  // transitions that go on until they accept take long where the step is not theirs.
  double step = 1 / std::pow(double(d), 0.25);
  for (int t = 100; t < 400 && !(advance(*few, few_rows, step, t, t + 5) >= 0.5); t += 5) step /= 2;
  const double acceptance = advance(*engine, rows, step, 0, 20);
  const auto after = engine->position();
  // Each chain's own change has mean zero under invariance: a paired z-score.
  double worst = 0;
  for (int i = 0; i < d; ++i)
    for (int power = 1; power <= 2; ++power) {
      double sum = 0, square = 0;
      for (int c = 0; c < chains; ++c) {
        const double a = rows[std::size_t(i) * chains + c], b = after[std::size_t(i) * chains + c];
        const double change = power == 1 ? b - a : b * b - a * a;
        sum += change;
        square += change * change;
      }
      if (square > 0) worst = larger(worst, std::abs(sum) / std::sqrt(square));
    }
  // Of all transitions together, false alarms below 1e-4.
  const double limit = std::sqrt(2 * std::log(2 * d * double(transition_registry().size()) / 1e-4));
  return report(
      "invariance", worst < limit && acceptance > 0.01,
      fmt::format("20 transitions {}{} from {} exact draws: largest |z| {:.2f} (limit {:.2f}), "
                  "acceptance {:.2f}, step "
                  "{:.1e} of the spread",
                  transition.name, network.empty() ? "" : fmt::format(" along a network of {}", network[0]),
                  chains, worst, limit, acceptance, step));
}

}  // namespace

bool check_target(const RunOptions& run) {
  const auto target = build_target(run);
  const RunContext context = make_context(run, *target, "check");
  const auto x = points(*target, run.init_scale, kPoints);
  const bool gradient = check_gradient(*target, x);
  const bool lanes = check_lanes(*target, context, x);
  bool good = gradient && lanes;
  if (!target->can_draw())
    return report("invariance", true, "skipped: the target has no exact draws to start from") && good;
  const ModeLibrary modes = few_modes(context, run.init_scale);
  for (const TransitionInfo* transition : transition_registry())
    good = check_invariance(*target, context, *transition, modes) && good;
  return good;
}

}  // namespace lockstep
