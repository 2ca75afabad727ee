// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "host/options/options.hpp"
#include "host/util/errors.hpp"
#include "host/util/processes.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// The state of an interrupted run, by name. A class lists its state once, for both directions:
///
///     template <class Archive> void fields(Archive& archive) { archive("sums", sums_); }
///
/// The file is one line (what it is, and of which run), CBOR, and the length and the checksum of all that;
/// arrays are kept as the bytes of this machine, so that they come back bit for bit.
class Checkpoint {
 public:
  Checkpoint() = default;  // to be filled and written
  /// Reads `file`, as far as verify() has nothing against it; of several processes the first does, for all.
  Checkpoint(const std::filesystem::path& file, const std::string& identity);
  /// Throws UserError when there is no such file, or when it is damaged, of another version or of another run
  /// than `identity`. Returns its text: all but the line and the checksum is CBOR.
  static std::string verify(const std::filesystem::path& file, const std::string& identity);
  /// Whether anything is kept under `name`.
  bool holds(const std::string& name) const;
  /// Writes, atomically.
  void write(const std::filesystem::path& file, const std::string& identity);

  template <class T>
  void operator()(const std::string& name, T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      using Kept = std::conditional_t<std::is_same_v<T, bool>, char, T>;  // vector<bool> has no bytes
      std::vector<Kept> one = {static_cast<Kept>(value)};
      bytes(scope_ + name, one);
      if (one.size() != 1) refuse();
      value = static_cast<T>(one[0]);
    } else if constexpr (requires { value.fields(*this); }) {
      const std::string outer = std::exchange(scope_, scope_ + name + "/");
      value.fields(*this);
      scope_ = outer;
    } else if constexpr (requires { value.rows(), value.cols(), value.data(); }) {  // a matrix
      std::int64_t rows = value.rows(), cols = value.cols();
      (*this)(name + "/rows", rows);
      std::vector<typename T::Scalar> numbers(value.data(), value.data() + value.size());
      (*this)(name + "/numbers", numbers);
      if (rows < 0 || (rows == 0) != numbers.empty() || (rows > 0 && std::int64_t(numbers.size()) % rows))
        refuse();
      cols = rows > 0 ? std::int64_t(numbers.size()) / rows : 0;
      value.resize(rows, cols);
      std::copy(numbers.begin(), numbers.end(), value.data());
    } else if constexpr (std::is_same_v<T, std::string>) {
      std::vector<char> text(value.begin(), value.end());
      bytes(scope_ + name, text);
      value.assign(text.begin(), text.end());
    } else if constexpr (std::is_arithmetic_v<typename T::value_type>) {
      bytes(scope_ + name, value);
    } else {
      std::size_t size = value.size();
      (*this)(name + "/size", size);
      if (reading_ && size > data_.size()) refuse();  // each has an entry of its own at least
      if constexpr (std::is_default_constructible_v<typename T::value_type>) value.resize(size);
      if (value.size() != size) refuse();
      for (std::size_t i = 0; i < size; ++i) (*this)(name + "/" + std::to_string(i), value[i]);
    }
  }

 private:
  template <class T, class Allocator>
  void bytes(const std::string& name, std::vector<T, Allocator>& value) {
    if (!reading_) {
      const auto* first = reinterpret_cast<const std::uint8_t*>(value.data());
      data_[name] = nlohmann::json::binary({first, first + value.size() * sizeof(T)});
      return;
    }
    const auto found = data_.find(name);
    if (found == data_.end() || !found->is_binary() || found->get_binary().size() % sizeof(T) != 0) refuse();
    const auto& stored = found->get_binary();
    value.resize(stored.size() / sizeof(T));
    if (!stored.empty()) std::memcpy(value.data(), stored.data(), stored.size());
  }
  [[noreturn]] void refuse() const;

  nlohmann::json data_ = nlohmann::json::object();
  std::filesystem::path file_;
  std::string scope_;
  bool reading_ = false;
};

/// When a run saves its state and whether it starts from a saved one.
struct CheckpointPlan {
  std::filesystem::path file;  // empty: never
  std::string identity;
  double seconds = 0;  // between two; 0: only when interrupted
  bool resume = false;
  double last = Processes::all().now();
  bool failed = false;  // the last one could not be written

  /// Whether a run that stops now, or goes on, is to save its state; the clock then starts again. All processes
  /// decide alike.
  bool due(bool interrupted);
  /// By the first process. A file that cannot be written is said once, and costs the run nothing: the one before stays.
  void write(Checkpoint& now);
  /// What `state.fields(archive)` lists, into the file and out of it.
  template <class T>
  void save(T& state) {
    Checkpoint now;
    state.fields(now);
    write(now);
  }
  template <class T>
  void load(T& state) const {
    Checkpoint saved(file, identity);
    state.fields(saved);
  }
};

/// Raised by whoever changes the numbers that the same settings lead to: what an earlier program computed is
/// then not taken for the present one's.
inline constexpr int kNumbersVersion = 35;

/// The options that a run's numbers depend on, as run.toml has them: all but its Surroundings.
std::string essential_options(const RunOptions& run);

/// What a run's numbers depend on, as a text that tells runs apart: the versions, the essential options,
/// the sampler's settings with the defaults that hold (`effective`), and values of the density itself (the
/// data behind it may change under the same name).
std::string run_identity(const RunOptions& run, const TargetInstance& target, const Settings& effective);

}  // namespace lockstep
