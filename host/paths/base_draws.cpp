// SPDX-License-Identifier: Apache-2.0
#include "host/paths/base_draws.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "host/paths/base_fit.hpp"
#include "host/runs/state_moments.hpp"
#include "host/util/clock.hpp"

namespace lockstep {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kFine =
    1e-5;  // an error that nobody needs smaller: what it leaves of the gradients is the chains'
constexpr double kLeastDraws = 1e6;     // all the same, for what no draw has met
constexpr double kLittleBeyond = 0.01;  // of the target, by the trial
constexpr int kLeastBatches = 8;        // of fewer, errors are not to be relied on
constexpr double kWorth = 2;            // variance of a draw's estimates over those of an independent draw
constexpr double kMostTrial = 0.2;      // of what may be spent
constexpr int kLeastTrial = 2048, kTrialOfControl = 16, kMostAtOnce = 8192, kManyNumbers = 1 << 20;

/// The run has jumps and numbers of its own; draws and their densities need none.
RunContext of_draws(const RunContext& context) {
  RunContext own = with_own_numbers(context, "base draws");
  own.jumps.reset();
  return own;
}
/// What the target may be made of, where modes do not say: what the base was made of, before it was widened.
std::vector<NormalComponent> normals_of(const PathBase& base) {
  if (base.of_modes) return base.normals;
  constexpr double kInflation = 1.2;  // the usual one
  const NormalComponent& first = base.density.components.front();
  return {{1, first.mean, first.factor / kInflation}};
}
/// In an order that does not depend on where the numbers lie, as Eigen's does; eight sums, for they are added at once.
double sum_of(const double* numbers, int count) {
  std::array<double, 8> sums{};
  int i = 0;
  for (; i + 8 <= count; i += 8)
    for (int s = 0; s < 8; ++s) sums[std::size_t(s)] += numbers[i + s];
  double sum = 0;
  for (; i < count; ++i) sum += numbers[i];
  for (double s : sums) sum += s;
  return sum;
}
int at_once(int dim, int groups) {
  return std::max(1, std::clamp(kManyNumbers / dim, 512, kMostAtOnce) / groups) * groups;
}

/// The draws in hand.
class BaseDrawsRun {
 public:
  BaseDrawsRun(const RunContext& context, const PathBase& base, const BaseDrawsOptions& options)
      : context_(of_draws(context)),
        density_(base.density, base.normals),
        options_(options),
        layout_{base.dim(), int(context.target->quantities().size()), options.covariance},
        controls_(density_, normals_of(base)),
        points_(context_, 0, at_once(base.dim(), options.groups)) {}

  /// Whether there is more to do.
  bool step() {
    const auto clock = Clock::now();
    const bool more = step_ == 0 ? trial() : batch();
    found_.seconds += seconds_since(clock);
    return more;
  }
  void tell() const {
    context_.tell("base draws", std::min(1.0, found_.number / (most_ > 0 ? most_ : options_.gradients)),
                  {found_.number, NAN});
  }
  BaseDraws finish() {
    for (std::size_t g = 0; g < sums_.size(); ++g) found_.sums.push_back(means(g));
    for (const BaseDraws::Unmet& of : unmet_) found_.unmet.take_in(of);
    if (std::any_of(found_.sums.begin(), found_.sums.end(),
                    [](const auto& s) { return !(s[MomentLayout::count] > 0); }))
      found_.sums.clear();
    return std::move(found_);
  }

  template <class Archive>
  void fields(Archive& archive) {
    archive("found", found_);
    archive("points", points_);
    archive("step", step_);
    archive("each", each_);
    archive("most", most_);
    archive("coefficients", coefficients_);
    archive("sums", sums_);
    archive("controls", control_sums_);
    archive("unmet", unmet_);
  }

 private:
  /// Draws of one group, few enough for the cache: log gamma / b, log gamma / base, and their controls.
  struct Block {
    Matrix x, controls;  // [draw][d], [draw][control]
    Vector log_weight, of_base;
  };
  static constexpr int kOfBlock = 128;
  /// So many of each group, each block given to take(group, block): a group's one after the other, groups side by side.
  template <class Take>
  void with_blocks(int each, const Take& take) {
    const int d = layout_.dim, groups = options_.groups;
    PointEngine::Rows x(d, Eigen::Index(each) * groups), gradient;
    Vector log_density;
#pragma omp parallel for num_threads(context_.threads) schedule(static)
    for (int g = 0; g < groups; ++g)
      for (int c = 0; c < each; ++c)
        x.col(Eigen::Index(g) * each + c) =
            density_.draw({context_.key, std::uint32_t(step_), std::uint32_t(c), std::uint32_t(g)});
    points_.evaluate(x, log_density, gradient);
#pragma omp parallel for num_threads(context_.threads) schedule(static)
    for (int g = 0; g < groups; ++g)
      for (int c = 0; c < each; c += kOfBlock) {
        const auto first = Eigen::Index(g) * each + c, n = Eigen::Index(std::min(kOfBlock, each - c));
        Block b{x.middleCols(first, n).transpose(), {}, {}, {}};
        auto values = controls_.at(b.x);
        b.log_weight = log_density.segment(first, n) - values.log_density;
        b.of_base = log_density.segment(first, n) - values.log_base;
        b.controls = std::move(values.controls);
        take(std::size_t(g), b);
      }
    ++step_;
    found_.number += double(each) * groups;
  }
  std::vector<Block> draw(int each) {
    std::vector<std::vector<Block>> of_group(options_.groups);
    with_blocks(each, [&](std::size_t g, Block& b) { of_group[g].push_back(std::move(b)); });
    std::vector<Block> blocks;
    for (auto& of : of_group) std::move(of.begin(), of.end(), std::back_inserter(blocks));
    return blocks;
  }
  Eigen::ArrayXd weights(const Block& b) const {
    const Eigen::ArrayXd weight = b.log_weight.array() - found_.log_scale;
    return (b.of_base.array() <= found_.log_limit).select(weight.exp(), 0);
  }
  /// w f(x) of draw c, of weight w, added.
  void add(const Block& b, Eigen::Index c, double w, std::vector<double>& sums) const {
    const Vector x = b.x.row(c);
    add_state(*context_.target, layout_, x.data(), w, sums);
  }
  /// w f(x), [draw][row].
  Matrix weighted(const Block& b) const {
    Matrix y(b.x.rows(), layout_.rows());
    const Eigen::ArrayXd weight = weights(b);
    std::vector<double> one(layout_.rows());
    for (Eigen::Index c = 0; c < b.x.rows(); ++c) {
      std::fill(one.begin(), one.end(), 0.0);
      add(b, c, weight[c], one);
      y.row(c) = Eigen::Map<const Eigen::RowVectorXd>(one.data(), layout_.rows());
    }
    return y;
  }

  bool trial() {
    const int least = std::max(kLeastTrial, kTrialOfControl * controls_.count());
    const int each = (least + options_.groups - 1) / options_.groups;
    if (2.0 * each * options_.groups > kMostTrial * options_.gradients) return false;
    const auto fitted = draw(each);
    LogSum sum, square;
    for (const Block& b : fitted)
      for (double w : b.log_weight) {
        sum.add(w);
        square.add(2 * w);
      }
    found_.log_scale = sum.log() - std::log(found_.number);
    if (!std::isfinite(found_.log_scale)) return false;
    found_.log_limit = found_.log_scale + std::log(BaseDraws::kLimit);
    LogSum beyond;
    for (const Block& b : fitted)
      for (Eigen::Index c = 0; c < b.x.rows(); ++c)
        if (b.of_base[c] > found_.log_limit) beyond.add(b.log_weight[c]);
    if (beyond.sum > 0 && beyond.log() > sum.log() + std::log(kLittleBeyond)) return false;
    found_.effective = std::exp(2 * sum.log() - square.log()) / found_.number;
    ControlFit fit(controls_.count(), layout_.rows());
    for (const Block& b : fitted) fit.add(b.controls, weighted(b));
    coefficients_ = fit.coefficients();
    const double each_draw = variance(draw(each));
    if (!(each_draw <= kWorth)) return false;
    const int groups = options_.groups;
    each_ = at_once(layout_.dim, groups) / groups;
    most_ = std::min(options_.gradients, found_.number + std::max(each_draw / (kFine * kFine), kLeastDraws));
    sums_.assign(groups, std::vector<double>(layout_.rows(), 0.0));
    const std::vector<double> none(2 * layout_.dim, 0.0);
    unmet_.assign(groups, {0, none, none});
    control_sums_.assign(groups, std::vector<double>(controls_.count(), 0.0));
    return true;
  }

  /// What one draw leaves uncertain of log Z or, on the average, of the means in units of the target's variance, whichever
  /// is more. By draws to which nothing was fitted.
  double variance(const std::vector<Block>& blocks) const {
    const int d = layout_.dim, mean = layout_.mean(), second = layout_.second();
    const Eigen::RowVectorXd fitted = coefficients_.row(0);
    const double z = fitted[MomentLayout::count];
    Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(1 + d), square = sum;
    double n = 0;
    for (const Block& b : blocks) {
      const Matrix rest = weighted(b) - b.controls * coefficients_.bottomRows(controls_.count());
      Matrix h(rest.rows(), 1 + d);
      h.col(0) = rest.col(MomentLayout::count);
      for (int i = 0; i < d; ++i)
        h.col(1 + i) = rest.col(mean + i) - fitted[mean + i] / z * rest.col(MomentLayout::count);
      sum += h.colwise().sum();
      square += h.cwiseAbs2().colwise().sum();
      n += double(rest.rows());
    }
    const Eigen::RowVectorXd variance = (square / n - (sum / n).cwiseAbs2()) / (z * z);
    double of_means = 0;
    for (int i = 0; i < d; ++i) {
      const double m = fitted[mean + i] / z, of_target = fitted[second + i] / z - m * m;
      if (!(of_target > 0)) return INFINITY;
      of_means += variance[1 + i] / of_target / d;
    }
    return std::max(variance[0], of_means);
  }

  bool batch() {
    with_blocks(each_, [&](std::size_t g, const Block& b) {
      const Eigen::ArrayXd weight = weights(b);
      for (Eigen::Index c = 0; c < b.x.rows(); ++c) add(b, c, weight[c], sums_[g]);
      look_beyond(b, weight, unmet_[g]);
      for (int k = 0; k < controls_.count(); ++k)
        control_sums_[g][std::size_t(k)] += sum_of(b.controls.col(k).data(), int(b.controls.rows()));
    });
    return found_.number + double(each_) * options_.groups <= most_ && !enough();
  }
  void look_beyond(const Block& b, const Eigen::ArrayXd& weight, BaseDraws::Unmet& of) const {
    const Eigen::RowVectorXd fitted = coefficients_.row(0);
    const double z = fitted[MomentLayout::count];
    const Eigen::ArrayXd beyond =
        (b.of_base.array() > found_.log_limit).select((b.log_weight.array() - found_.log_scale).exp(), 0);
    of.greatest = std::max(of.greatest, weight.maxCoeff());
    const auto take = [&](int moment, const Eigen::ArrayXd& f, int row) {
      const Eigen::ArrayXd apart = (f - fitted[row] / z).abs();
      of.moment[moment] = std::max(of.moment[moment], (weight * apart).maxCoeff());
      of.beyond[moment] += (beyond * apart).sum();
    };
    for (int i = 0; i < layout_.dim; ++i) {
      take(i, b.x.col(i), layout_.mean() + i);
      take(layout_.dim + i, b.x.col(i).array().square(), layout_.second() + i);
    }
  }
  double draws_of_group() const { return double(step_ - 2) * each_; }
  double mean_of(std::size_t g, int row) const {
    double sum = sums_[g][std::size_t(row)];
    for (int k = 0; k < controls_.count() && row != MomentLayout::weight_square; ++k)
      sum -= control_sums_[g][std::size_t(k)] * coefficients_(1 + k, row);
    return sum / draws_of_group();
  }
  std::vector<double> means(std::size_t g) const {
    std::vector<double> mean;
    for (int r = 0; r < layout_.rows(); ++r) mean.push_back(mean_of(g, r));
    mean[MomentLayout::weight_square] /= draws_of_group();  // for (sum w)^2 / sum w^2 to be a number of draws
    return mean;
  }
  bool enough() const {
    if (!(options_.se > 0) || step_ < 2 + kLeastBatches || found_.number < options_.least) return false;
    std::vector<double> z;
    for (std::size_t g = 0; g < sums_.size(); ++g) z.push_back(mean_of(g, MomentLayout::count));
    return log_mean(z, found_.log_scale).value().se < options_.se;
  }

  const RunContext context_;
  const DrawnDensity density_;
  const BaseDrawsOptions options_;
  const MomentLayout layout_;
  const BaseControls controls_;
  PointEngine points_;
  BaseDraws found_;
  std::int64_t step_ = 0;  // batches, by which draws are numbered: two of the trial, then the others
  int each_ = 0;           // draws of a group in a batch
  double most_ = 0;        // gradients
  Matrix coefficients_;    // [1 + control][row]
  std::vector<std::vector<double>> sums_, control_sums_;  // [group][..], after the trial
  std::vector<BaseDraws::Unmet> unmet_;                   // [group]
};

}  // namespace

void BaseDraws::Unmet::take_in(const Unmet& other) {
  greatest = std::max(greatest, other.greatest);
  moment.resize(other.moment.size());
  beyond.resize(other.beyond.size());
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    moment[i] = std::max(moment[i], other.moment[i]);
    beyond[i] += other.beyond[i];
  }
}

LogZ BaseDraws::log_z() const {
  std::vector<double> z;
  for (const auto& s : sums) z.push_back(s[MomentLayout::count]);
  return log_mean(z, log_scale).value();
}

double base_draws_memory(int dim, int groups) {
  constexpr double kCopies = 8;  // of positions, by the engine, in blocks and standardised
  return 8.0 * at_once(dim, groups) * (kCopies * dim + BaseControls::kMost);
}

BaseDraws run_base_draws(const RunContext& context, const PathBase& base, const BaseDrawsOptions& options) {
  constexpr int kMostDim = 256;  // matrices would cost more than draws are worth, which is little by then
  // Modes that the base has not are the chains' to weigh, and what chains have not met no draw would.
  if (base.dim() > kMostDim || (base.of_modes && base.normals.empty())) return {};
  BaseDrawsRun run(context, base, options);
  context.stages->take_up("batches", run);
  while (run.step()) {
    context.stages->save("batches", run);
    run.tell();
  }
  return run.finish();
}

}  // namespace lockstep
