// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block of chains on the CPU, which go through the stages of an iteration together (kernels/block_cpu.hpp).
#include <vector>

#include "kernels/block_density.hpp"
#include "kernels/block_transition.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {

// Lane operations are named in full: here those on packs would hide those on scalars.

/// The chains [first, first + density.chains()) of a batch, as far as there are so many. Its memory is [group][row]
/// [chain of the group].
template <class L, class E, class Model>
class ChainBlock {
  using R = scalar_t<L>;
  using S = scalar_t<E>;
  using L1 = one_lane_t<L>;
  using E1 = one_lane_t<E>;
  using Iteration = BlockIteration<L, E, Model>;
  using Transition = BlockTransition<L, E, Model>;
  using Chain = typename Transition::OfChain::Chain;
  static constexpr int W = lane_width<L>;
  static constexpr bool kOnePrecision = std::is_same_v<L, E>;

 public:
  using Parts = TransitionParts<Transition>;
  /// With the transitions of an iteration.
  ChainBlock(const Model& model, BlockDensity<R, S>& density, const Parts& parts)
      : model_(model),
        parts_(parts),
        keeps_gradients_(keeps_gradients(parts)),
        density_(density),
        chains_(density.chains()),
        state_rows_(3 * model.rows()),
        energy_rows_(model.rows() + model.cache_rows()),
        quantity_rows_(model.samples() * model.density.quantities()),
        state_(std::size_t(state_rows_) * chains_),
        energy_(std::size_t(energy_rows_) * chains_),
        value_(std::size_t(model.samples()) * chains_),
        log_density_(std::size_t(model.samples()) * chains_),
        quantities_(std::size_t(quantity_rows_) * chains_),
        modes_(chains_) {}

  void take(const BatchView<R, S>& b, int first, bool covariance) {
    const int count = std::min(chains_, b.chains - first);
    std::vector<std::uint32_t> unit(chains_);
    for (int c = 0; c < chains_; ++c) unit[c] = b.unit[first + (c < count ? c : 0)];
    density_.bind(unit.data(), count);
    groups_.resize(parts_.size());
    proposals_.resize(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const auto own = parts_[p].second.of(b);
      groups_[p].clear();
      for (int c = 0, k = 0; c < count; c += W, ++k)
        groups_[p].push_back(make_lanes<L, E>(
            model_, own, first + c, covariance,
            make_workspace(model_, rows<L>(state_, state_rows_, k), rows<E>(energy_, energy_rows_, k))));
      proposals_[p].assign(groups_[p].size(), {});
    }
    batch_ = parts_.front().second.of(b);
    first_ = first;
    covariance_ = covariance;
  }

  void initialize() {
    for (const auto& w : chains()) copy_rows<L>(model_.rows(), w.position, w.x);
    evaluate(true, true);
    for (const auto& w : chains()) {
      copy_rows<L>(model_.rows(), w.g, w.gradient);
      copy_rows<E>(model_.cache_rows(), w.ce, w.cache);
    }
  }

  /// Iterations [spec.begin, spec.end) of every chain.
  void advance(const LaunchSpec& spec) {
    const Transition& only = *parts_.front().first;
    if (only.self_ending && spec.begin < spec.end) return advance_at_own_pace(only, spec);
    for (std::uint32_t number = spec.begin; number < spec.end; ++number) iterate(spec, number);
  }

 private:
  using Groups = std::vector<typename Iteration::Group>;
  const Groups& chains() const { return groups_.front(); }

  void iterate(const LaunchSpec& spec, std::uint32_t number) {
    const int parts = int(parts_.size());
    for (const auto& w : chains()) stage_anneal<L, E>(model_, spec, number, w);
    for (int k = 0; k < parts; ++k) make_transition(spec.backwards ? parts - 1 - k : k, spec, number);
    const Iteration t{model_, spec, number, chains(), proposals_.front()};
    for (int p = 1; p < parts; ++p)
      for (std::size_t k = 0; k < chains().size(); ++k)
        t.proposals[k].steps = t.proposals[k].steps + proposals_[p][k].steps;
    for (const auto& w : chains()) stage_temper<L, E>(model_, spec, t.draw(w), w);
    accumulate(t);
  }

  /// One of the transitions of an iteration. The gradient is kept with the position if any of them takes it.
  void make_transition(int part, const LaunchSpec& spec, std::uint32_t number) {
    const Transition& transition = *parts_[part].first;
    const Iteration t{model_, spec, number, groups_[part], proposals_[part], parts_[part].second.number};
    for (const auto& w : t.groups) stage_load<L>(model_, w);
    const int last = transition.begin(t);
    for (int s = 1; s <= last; ++s) {
      transition.move(t, s);
      evaluate(transition.gradients || (keeps_gradients_ && s == last), s == last || transition.energies);
      transition.push(t, s);
    }
    if (last == 0) {
      evaluate(keeps_gradients_, true);
      for (auto& proposal : t.proposals) proposal.steps = L(R(keeps_gradients_ ? 1 : 0));
    }
    transition.end(t);
    for (std::size_t k = 0; k < t.groups.size(); ++k)
      stage_decide<L, E>(model_, spec, t.draw(t.groups[k]), t.proposals[k], t.groups[k]);
    transition.decided(t);
  }

  /// The same where a chain's transition ends when it sees fit: it then begins the next one at once, while other lanes
  /// go on with theirs. Steps are taken in packs; what begins and ends a transition, by each chain alone.
  void advance_at_own_pace(const Transition& transition, const LaunchSpec& spec) {
    const std::size_t count = chains().size() * W;
    numbers_.assign(count, spec.begin);
    steps_.assign(count, R(1));
    wanted_.resize(count);
    for (std::size_t c = 0; c < count; ++c) begin_chain(transition, spec, c);
    for (std::size_t going = count; going > 0;) {
      const Iteration t{model_,          spec,         spec.begin, chains(), proposals_.front(), 0,
                        numbers_.data(), steps_.data()};
      transition.move(t, 0);
      bool energies = transition.energies;
      for (std::size_t c = 0; c < count; ++c) energies |= steps_[c] == wanted_[c];
      evaluate(transition.gradients, energies);
      transition.push(t, 0);
      for (std::size_t k = 0; k < chains().size(); ++k)
        lockstep::store(&wanted_[k * W], proposals_.front()[k].steps);
      ended_.clear();
      for (std::size_t c = 0; c < count; ++c) {
        if (numbers_[c] == spec.end) continue;
        if (steps_[c] < wanted_[c])
          steps_[c] += 1;
        else
          ended_.push_back(c);
      }
      end_chains(transition, spec);
      for (const std::size_t c : ended_) {
        if (++numbers_[c] < spec.end) {
          steps_[c] = 1;
          begin_chain(transition, spec, c);
        } else {  // waits
          steps_[c] = wanted_[c] + 1;
          --going;
        }
      }
    }
  }

  /// The rows of one chain, and its proposal.
  Chain chain(std::size_t c) {
    const int k = int(c / W), i = int(c % W);
    return make_lanes<L1, E1>(
        model_, batch_, first_ + int(c), covariance_,
        make_workspace(model_, Rows<L1>{state_.data() + std::size_t(k) * state_rows_ * W + i, W},
                       Rows<E1>{energy_.data() + std::size_t(k) * energy_rows_ * W + i, W}));
  }
  Draw<L1> draw(const LaunchSpec& spec, std::size_t c, const Chain& w) const {
    return {spec.key, numbers_[c], w.chain, w.unit};
  }
  void begin_chain(const Transition& transition, const LaunchSpec& spec, std::size_t c) {
    const Chain w = chain(c);
    const Draw<L1> of_chain = draw(spec, c, w);
    Proposal<L1, E1> proposal;
    stage_anneal<L1, E1>(model_, spec, numbers_[c], w);
    stage_load<L1>(model_, w);
    transition.begin_chain({model_, spec, of_chain, w, proposal});
    lockstep::store(&wanted_[c], proposal.steps);
    set_lane(proposals_.front()[c / W], int(c % W), proposal);
  }
  /// All of those that have ended.
  void end_chains(const Transition& transition, const LaunchSpec& spec) {
    ends_.clear();
    for (const std::size_t c : ended_) {
      const Chain w = chain(c);
      Proposal<L1, E1>& proposal = ends_.emplace_back(lane_of(proposals_.front()[c / W], int(c % W)));
      const Draw<L1> of_chain = draw(spec, c, w);
      transition.end_chain({model_, spec, of_chain, w, proposal});
      stage_decide<L1, E1>(model_, spec, of_chain, proposal, w);
      transition.decided_chain({model_, spec, of_chain, w, proposal});
      stage_temper<L1, E1>(model_, spec, of_chain, w);
      copy_rows<E1>(model_.rows(), w.position, w.xe);
    }
    if (ended_.empty() || (!spec.record && batch_.draws == nullptr)) return;
    const int count = model_.density.quantities();
    expectations(spec);
    for (const std::size_t c : ended_) {
      const Chain w = chain(c);
      const Rows<E1> values{quantities_.data() + c / W * quantity_rows_ * W + c % W, W};
      stage_sum<L1, E1>(model_, spec, draw(spec, c, w), w, w.xe, [&](int i, auto&& put) {
        for (int q = 0; q < count; ++q) put(q, values[i * count + q]);
      });
    }
    density_.modes(energy_.data(), std::ptrdiff_t(energy_rows_) * W, modes_.data());
    for (std::size_t e = 0; e < ended_.size(); ++e) {
      const std::size_t c = ended_[e];
      const Chain w = chain(c);
      if (spec.record || w.draws != nullptr)
        stage_store<L1, E1>(model_, spec, numbers_[c], ends_[e], Drawn{w.xe, lockstep::load<E1>(&modes_[c])},
                            w);
    }
  }

  /// Of group k, in an array of so many rows.
  template <class V, class Array>
  static GroupRows<V> rows(Array& array, int count, std::size_t k) {
    return {array.data() + k * count * W};
  }

  /// The model's gradients and energies at the working positions, from the target's.
  void evaluate(bool gradients, bool energies) {
    const int n = model_.samples();
    const bool finishes = gradients && model_.gradient_takes_value();
    if (energies && !kOnePrecision)
      for (const auto& w : chains()) copy_rows<E>(model_.rows(), w.x, w.xe);
    for (int i = 0; i < n; ++i) {
      const std::size_t at = std::size_t(i) * model_.dim() * W;
      BlockPoint<R, S> point{.x = state_.data() + at};
      point.state_stride = std::ptrdiff_t(state_rows_) * W;
      point.value_stride = std::ptrdiff_t(n) * W;
      if constexpr (kOnePrecision) {
        point.energy_x = point.x;
        point.energy_stride = point.state_stride;
      } else {
        point.energy_x = energy_.data() + at;
        point.energy_stride = std::ptrdiff_t(energy_rows_) * W;
      }
      if (gradients) point.gradient = state_.data() + std::size_t(2) * model_.rows() * W + at;
      if (finishes) point.value = value_.data() + i * W;
      if (energies) point.log_density = log_density_.data() + i * W;
      density_.evaluate(point);
    }
    for (std::size_t k = 0; k < chains().size() && (finishes || energies); ++k) {
      const auto& w = chains()[k];
      if (finishes) model_.template finish_gradient<L>(rows<L>(value_, n, k), w.x, w.parameters, w.g);
      const auto log_density = rows<E>(log_density_, n, k);
      if (energies) {
        if constexpr (kOnePrecision)
          model_.template finish_log_density<E>(log_density, w.x, w.energy_parameters, w.ce);
        else
          model_.template finish_log_density<E>(log_density, w.xe, w.energy_parameters, w.ce);
      }
    }
  }

  /// The target's own, at every sample, where they are recorded.
  void expectations(const LaunchSpec& spec) {
    const int count = model_.density.quantities();
    const std::ptrdiff_t stride = std::ptrdiff_t(energy_rows_) * W;
    for (int i = 0; i < model_.samples() && count > 0 && spec.record; ++i)
      density_.quantities(energy_.data() + std::size_t(i) * model_.dim() * W, stride,
                          quantities_.data() + std::size_t(i) * count * W,
                          std::ptrdiff_t(quantity_rows_) * W);
  }

  void accumulate(const Iteration& t) {
    const auto wanted = [&](const auto& w) { return t.spec.record || w.draws != nullptr; };
    if (std::none_of(t.groups.begin(), t.groups.end(), wanted)) return;
    const int count = model_.density.quantities();
    for (const auto& w : chains()) copy_rows<E>(model_.rows(), w.position, w.xe);
    expectations(t.spec);
    for (std::size_t k = 0; k < chains().size(); ++k)
      stage_sum<L, E>(model_, t.spec, t.draw(t.groups[k]), t.groups[k], t.groups[k].xe,
                      [&](int i, auto&& put) {
                        const auto values = rows<E>(quantities_, quantity_rows_, k);
                        for (int q = 0; q < count; ++q) put(q, values[i * count + q]);
                      });
    density_.modes(energy_.data(), std::ptrdiff_t(energy_rows_) * W, modes_.data());
    for (std::size_t k = 0; k < chains().size(); ++k)
      if (wanted(t.groups[k]))
        stage_store<L, E>(model_, t.spec, t.number, t.proposals[k],
                          Drawn{t.groups[k].xe, lockstep::load<E>(&modes_[k * W])}, t.groups[k]);
  }

  const Model& model_;
  const Parts& parts_;
  const bool keeps_gradients_;
  BlockDensity<R, S>& density_;
  const int chains_, state_rows_, energy_rows_, quantity_rows_;
  AlignedVector<R> state_;                              // position, momentum, gradient
  AlignedVector<S> energy_;                             // position, cache
  AlignedVector<R> value_;                              // [sample]
  AlignedVector<S> log_density_;                        // [sample]
  AlignedVector<S> quantities_, modes_;                 // [sample][quantity], [1]
  std::vector<Groups> groups_;                          // of each transition
  std::vector<std::vector<Proposal<L, E>>> proposals_;  // likewise
  BatchView<R, S> batch_;
  int first_ = 0;
  bool covariance_ = false;
  // Of chains at their own pace: iteration, step, steps wanted; those that have ended one, their proposals.
  std::vector<std::uint32_t> numbers_;
  AlignedVector<R> steps_, wanted_;
  std::vector<std::size_t> ended_;
  std::vector<Proposal<L1, E1>> ends_;
};

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
