// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers on the host, as many as are asked for.
#include "kernels/philox.hpp"

namespace lockstep {

/// As many draws on the host as are asked for, of which nobody knows beforehand how many they are. Stream
/// `number` is a function of what it is for: its words are those of the counters
///   (purpose << 24 | block, carry of the block, number's low half, number's high half),
/// so that streams may be begun in any order, by any thread, with the same bits of uniforms from every standard
/// library; normals are rounded as its functions are.
class RandomStream {
 public:
  RandomStream(Purpose purpose, StreamKey key, std::uint64_t number = 0)
      : purpose_(purpose),
        draw_{key, 0, static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)} {}

  /// On the open unit interval, with 52 bits: cumulative weights are looked up with it, of many small ones.
  double uniform() {
    const std::uint32_t* w = two_words();
    return (static_cast<double>((std::uint64_t{w[0]} << 20) | (w[1] >> 12)) + 0.5) * 0x1p-52;
  }
  /// By Box and Muller, of which the second is kept.
  double normal() {
    kept_ = !kept_;
    if (!kept_) return second_;
    const std::uint32_t* w = two_words();
    double first;
    Draw<double>::normals(w[0], w[1], first, second_);
    return first;
  }
  /// A whole number below n > 0, of which the likeliest is so by less than n 2^-52.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(uniform() * static_cast<double>(n)); }

 private:
  const std::uint32_t* two_words() {
    if (taken_ % 4 == 0) {
      const std::uint64_t block = taken_ / 4;
      draw_.iteration = static_cast<std::uint32_t>(block >> 20);
      draw_.words(purpose_, static_cast<std::uint32_t>(block & 0xfffff), words_);
    }
    const std::uint32_t* w = words_ + taken_ % 4;
    taken_ += 2;
    return w;
  }

  Purpose purpose_;
  Draw<double> draw_;
  std::uint32_t words_[4] = {};
  std::uint64_t taken_ = 0;  // words
  double second_ = 0;
  bool kept_ = false;
};

}  // namespace lockstep
