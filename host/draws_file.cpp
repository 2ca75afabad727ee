// SPDX-License-Identifier: Apache-2.0
#include "host/draws_file.hpp"

#include <fmt/format.h>
#include <netcdf.h>

#include <cerrno>
#include <numeric>
#include <stdexcept>
#include <system_error>

#include "host/files.hpp"

namespace lockstep {
namespace {

using Attributes = std::map<std::string, std::string>;

nc_type type_of(float) { return NC_FLOAT; }
nc_type type_of(double) { return NC_DOUBLE; }
nc_type type_of(std::int32_t) { return NC_INT; }
nc_type type_of(std::int64_t) { return NC_INT64; }
nc_type type_of(std::uint8_t) { return NC_BYTE; }

void check(int status) {
  const int error = errno;
  if (status == NC_NOERR) return;
  // netCDF says "HDF error" for a full disk.
  const bool system = error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO;
  throw std::runtime_error(std::string(nc_strerror(status)) +
                           (system ? ": " + std::generic_category().message(error) : ""));
}

void put_attribute(int group, int variable, const std::string& name, const std::string& value) {
  check(nc_put_att_text(group, variable, name.c_str(), value.size(), value.data()));
}

/// One group of the file with its own dimensions; every dimension gets its coordinate variable 0, 1, 2, ...
class Group {
 public:
  struct Dimension {
    std::string name;
    int length;
  };

  Group(int file, const std::string& name, const std::vector<Dimension>& dimensions,
        const Attributes& attributes)
      : name_(name), dimensions_(dimensions), ids_(dimensions.size()) {
    check(nc_def_grp(file, name.c_str(), &group_));
    for (const auto& [key, value] : attributes) put_attribute(group_, NC_GLOBAL, key, value);
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      // Length 0 means "unlimited" to netCDF, which is then a dimension of current length 0: just what we
      // need.
      check(nc_def_dim(group_, dimensions[i].name.c_str(), dimensions[i].length, &ids_[i]));
    }
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      std::vector<std::int64_t> index(dimensions[i].length);
      std::iota(index.begin(), index.end(), 0);
      put_values(dimensions[i].name, index, {ids_[i]});
    }
  }

  /// Adds a variable over the first `rank` dimensions of the group.
  void put(const std::string& variable, const DrawsArray& values, std::size_t rank) {
    std::size_t size = 1;
    for (std::size_t i = 0; i < rank; ++i) size *= static_cast<std::size_t>(dimensions_[i].length);
    std::visit(
        [&](const auto& array) {
          if (array.size() != size) {
            throw std::logic_error(fmt::format("draws file: {}/{} has {} values instead of {}", name_,
                                               variable, array.size(), size));
          }
          put_values(variable, array, {ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(rank)});
        },
        values);
  }

 private:
  template <class T>
  void put_values(const std::string& variable, const std::vector<T>& values, const std::vector<int>& ids) {
    int id = 0;
    check(nc_def_var(group_, variable.c_str(), type_of(T{}), static_cast<int>(ids.size()), ids.data(), &id));
    // netCDF has no booleans; xarray, on which ArviZ stands, marks bytes that stand for them with this
    // attribute.
    if constexpr (std::is_same_v<T, std::uint8_t>) put_attribute(group_, id, "dtype", "bool");
    if (!values.empty()) check(nc_put_var(group_, id, values.data()));
  }

  std::string name_;
  std::vector<Dimension> dimensions_;
  std::vector<int> ids_;
  int group_ = 0;
};

bool empty(const DrawsArray& values) {
  return std::visit([](const auto& array) { return array.empty(); }, values);
}

void put_stats(int nc, const std::string& name, int chains, int draws,
               const std::map<std::string, DrawsArray>& stats, const Attributes& attributes) {
  if (stats.empty()) return;
  Group group(nc, name, {{"chain", chains}, {"draw", draws}}, attributes);
  for (const auto& [variable, values] : stats) group.put(variable, values, 2);
}

void put_groups(int nc, const DrawsFile& file) {
  Attributes attributes = file.attributes;
  attributes.try_emplace("inference_library", "lockstep");
  for (const auto& [key, value] : attributes) put_attribute(nc, NC_GLOBAL, key, value);

  const int chains = file.chains, draws = file.draws, dim = file.dim;
  Group(nc, "posterior", {{"chain", chains}, {"draw", draws}, {"x_dim_0", dim}}, attributes)
      .put("x", file.x, 3);
  put_stats(nc, "sample_stats", chains, draws, file.sample_stats, attributes);
  if (file.pseudo_samples > 0) {
    Group group(nc, "weighted",
                {{"chain", file.weighted_chains < 0 ? chains : file.weighted_chains},
                 {"draw", file.weighted_draws < 0 ? draws : file.weighted_draws},
                 {"pseudo_sample", file.pseudo_samples},
                 {"x_dim_0", dim}},
                attributes);
    group.put("x", file.weighted_x, 4);
    group.put("log_weight", file.log_weight, 3);
    if (!empty(file.beta)) group.put("beta", file.beta, 3);
  }
  if (file.warmup_draws > 0) {
    const int warmup = file.warmup_draws;
    Group(nc, "warmup_posterior", {{"chain", chains}, {"draw", warmup}, {"x_dim_0", dim}}, attributes)
        .put("x", file.warmup_x, 3);
    put_stats(nc, "warmup_sample_stats", chains, warmup, file.warmup_sample_stats, attributes);
  }
}

}  // namespace

void write_draws(const std::filesystem::path& path, const DrawsFile& file) {
  if (file.chains < 1 || file.draws < 0 || file.dim < 1) {
    throw std::logic_error("draws file: chains and dim must be at least 1, draws at least 0");
  }
  write_atomically(path, [&](const std::filesystem::path& temporary) {
    int nc = -1;
    errno = 0;
    try {
      check(nc_create(temporary.c_str(), NC_NETCDF4 | NC_CLOBBER, &nc));
      check(nc_set_fill(nc, NC_NOFILL,
                        nullptr));  // every value is written; filling first would double the work
      put_groups(nc, file);
      const int closing = nc;
      nc = -1;
      check(nc_close(closing));  // the last values reach the disk here, so this may fail too
    } catch (const std::runtime_error& error) {
      if (nc >= 0) nc_close(nc);
      throw std::runtime_error(fmt::format("cannot write '{}': {}", path.string(), error.what()));
    } catch (...) {
      if (nc >= 0) nc_close(nc);
      throw;
    }
  });
}

}  // namespace lockstep
