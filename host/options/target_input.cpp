// SPDX-License-Identifier: Apache-2.0
#include "host/options/target_input.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "host/formats/data.hpp"
#include "host/formats/tensors.hpp"
#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

class HostInput : public TargetInput {
 public:
  HostInput(const RunOptions& run, const std::filesystem::path& relative_to)
      : what_("target " + run.target),
        settings_(run.target_settings, what_),
        data_dir_(run.data_dir),
        relative_to_(relative_to) {
    if (run.data.empty()) return;
    const auto path = resolve_data_path(run.data, run.data_dir, relative_to);
    DataSet data = load_data(path);
    if (path.extension() == ".json")
      for (const auto& item : data.values.items()) given_.push_back(item.key());
    data_.emplace(std::move(data), what_ + " (" + path.filename().string() + ")");
  }

  double number(const std::string& key, double standard, double low, double high) override {
    return settings_.in_range(key, standard, low, high);
  }
  int integer(const std::string& key, int standard, int low, int high) override {
    return static_cast<int>(settings_.integer(key, standard, low, high));
  }
  std::string choice(const std::string& key, const std::string& standard,
                     const std::vector<std::string>& allowed) override {
    return settings_.one_of(key, standard, allowed);
  }
  std::string text(const std::string& key, const std::string& standard) override {
    return settings_.get<std::string>(key, standard);
  }
  std::map<std::string, DataArray> tensors(const std::string& path) override {
    std::map<std::string, DataArray> all;
    for (const auto& [name, array] : load_tensors(resolve_data_path(path, data_dir_, relative_to_)))
      all.emplace(name, dense(array));
    return all;
  }
  DataArray images(const std::string& path) override {
    return dense(load_images(resolve_data_path(path, data_dir_, relative_to_)));
  }
  bool has_data() override { return data_.has_value(); }
  bool has(const std::string& name) override {
    asked_.insert(name);
    return data_ && data_->has(name);
  }

  DataArray array(const std::string& name) override {
    asked_.insert(name);
    const int depth = data_->depth(name);
    DataArray a;
    auto append = [&](const Eigen::MatrixXd& m) {
      for (Eigen::Index i = 0; i < m.rows(); ++i)
        for (Eigen::Index j = 0; j < m.cols(); ++j) a.values.push_back(m(i, j));
    };
    if (depth <= 1) {
      const Eigen::VectorXd v = data_->vector(name);
      a.values.assign(v.begin(), v.end());
      a.shape = {int(v.size())};
    } else if (depth == 2) {
      const Eigen::MatrixXd m = data_->matrix(name);
      append(m);
      a.shape = {int(m.rows()), int(m.cols())};
    } else {
      const auto list = data_->matrices(name);
      for (const auto& m : list) append(m);
      a.shape = {int(list.size()), int(list[0].rows()), int(list[0].cols())};
    }
    return a;
  }

  [[noreturn]] void fail(const std::string& message) override {
    refuse_slips();  // a misspelt name is often why
    throw UserError(message);
  }
  void finish() const {
    settings_.finish();
    refuse_slips();
  }

 private:
  /// Published files hold more than a target reads; only what looks like one of its names is refused.
  void refuse_slips() const {
    for (const auto& name : given_)
      for (const auto& asked : asked_)
        if (!asked_.contains(name) && name.size() > 1 && is_slip(name, asked))
          throw UserError(fmt::format(
              "the data give '{}', which {} does not read (it would have no effect). Did you mean "
              "{}? Rename or remove it.",
              name, what_, asked));
  }

  static DataArray dense(const NumericArray& a) {
    DataArray out;
    for (const std::size_t size : a.shape) {
      if (size > std::size_t(std::numeric_limits<int>::max()))
        throw UserError(
            fmt::format("an array has {} entries along one axis (at most {} are read). Give less data.", size,
                        std::numeric_limits<int>::max()));
      out.shape.push_back(int(size));
    }
    std::visit([&](const auto& v) { out.values.assign(v.begin(), v.end()); }, a.values);
    return out;
  }

  std::string what_;
  SettingsReader settings_;
  std::filesystem::path data_dir_, relative_to_;
  std::optional<DataReader> data_;
  std::vector<std::string> given_;  // names in a JSON file
  std::set<std::string> asked_;
};

}  // namespace

const TargetEntry& require_target(const std::string& name) {
  if (const TargetEntry* entry = find_target(name)) return *entry;
  std::vector<std::string> known;
  for (const auto& e : target_registry()) known.push_back(e.info().name);
  throw UserError("there is no target " + name + " (a run needs one it knows). " +
                  near_or_known(name, known, "targets") + " See: lockstep targets");
}

std::unique_ptr<TargetInstance> build_target(const RunOptions& run,
                                             const std::filesystem::path& relative_to) {
  const TargetEntry& entry = require_target(run.target);
  const TargetInfo info = entry.info();
  if (!run.data.empty() && info.data.empty())
    throw UserError("target " + run.target + " takes no data (" + run.data.string() +
                    " would be ignored). Leave out the data, or use target mixture");
  HostInput input(run, relative_to);
  auto target = entry.make(input);
  input.finish();
  return target;
}

}  // namespace lockstep
