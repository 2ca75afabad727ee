// SPDX-License-Identifier: Apache-2.0
#include "host/formats/draws_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netcdf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <numeric>
#include <span>
#include <stdexcept>
#include <system_error>

#include "host/util/bare_vector.hpp"
#include "host/util/files.hpp"

namespace lockstep {
namespace {

using Attributes = std::map<std::string, DrawsAttribute>;

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

constexpr std::size_t kChunkValues = std::size_t(1) << 18;  // about a megabyte: read and unpacked as one
constexpr int kDeflateLevel = 1;
constexpr std::size_t kWorthPacking = 1024;  // values: a chunk takes some hundred bytes of its own
// Of draws packing saves a fifth, and takes ten times as long as sampling a cheap density; of weighted states, in double
// from what was a float, half.
constexpr std::size_t kMostPacked = std::size_t(1) << 17;
// Of a source, at a time: a megabyte. By more at once files grow ten times as slowly on some systems.
constexpr int kPartValues = 1 << 18;

void put_attribute(int group, int variable, const std::string& name, const DrawsAttribute& value) {
  const auto put = [&](nc_type type, std::size_t size, const void* data) {
    check(nc_put_att(group, variable, name.c_str(), type, size, data));
  };
  if (const auto* text = std::get_if<std::string>(&value)) return put(NC_CHAR, text->size(), text->data());
  if (const auto* seed = std::get_if<std::uint64_t>(&value)) return put(NC_UINT64, 1, seed);
  const auto& numbers = std::get<std::vector<std::int64_t>>(value);
  put(NC_INT64, numbers.size(), numbers.data());
}

/// Sends what was written on its way to the disk, so that the end of a file has little to wait for.
class Writeback {
 public:
  explicit Writeback(const std::filesystem::path& file) : file_(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Writeback() { close(file_); }
  Writeback(const Writeback&) = delete;
  Writeback& operator=(const Writeback&) = delete;
  void add(std::size_t bytes) {
    constexpr std::size_t kTogether = std::size_t(1) << 24;
    if ((waiting_ += bytes) < kTogether) return;
    waiting_ = 0;
    sync_file_range(file_, 0, 0, SYNC_FILE_RANGE_WRITE);  // what fails is told by the fsync at the end
  }

 private:
  const int file_;
  std::size_t waiting_ = 0;
};

struct OpenFile {
  int id;
  Writeback& writeback;
};

/// One group of the file with its own dimensions; every dimension gets its coordinate variable.
class Group {
 public:
  struct Dimension {
    std::string name;
    int length;
    std::vector<std::string> labels = {};  // its coordinate; empty: 0, 1, 2, ...
  };

  Group(const OpenFile& file, const std::string& name, const std::vector<Dimension>& dimensions,
        const Attributes& attributes)
      : name_(name), writeback_(file.writeback) {
    check(nc_def_grp(file.id, name.c_str(), &group_));
    for (const auto& [key, value] : attributes) put_attribute(group_, NC_GLOBAL, key, value);
    for (const Dimension& dimension : dimensions) define(dimension);
    for (std::size_t i = 0; i < dimensions.size(); ++i) put_coordinate(i);
  }

  /// Adds a variable over the first `rank` dimensions of the group.
  void put(const std::string& variable, const DrawsArray& values, std::size_t rank) {
    std::vector<std::size_t> over(rank);
    std::iota(over.begin(), over.end(), 0);
    std::visit([&](const auto& array) { put_array(variable, array, over); }, values);
  }
  /// Adds variables [chain][draw], with a dimension of their own where they have a size; `values` makes all of a draw.
  void put_quantities(const std::vector<DrawsQuantity>& quantities, const DrawsSource<float>& values) {
    std::vector<int> ids;
    std::size_t all = 0;
    for (const DrawsQuantity& q : quantities) {
      std::vector<std::size_t> over{0, 1};
      if (q.size > 0) {
        define({q.name + "_dim_0", q.size});
        put_coordinate(dimensions_.size() - 1);
        over.push_back(dimensions_.size() - 1);
      }
      ids.push_back(define_variable<float>(q.name, over));
      all += std::size_t(std::max(q.size, 1));
    }
    const std::size_t dim = std::size_t(dimensions_[2].length);  // x is read for them
    BareVector<float> of_one;
    put_parts<float>(std::max(all, dim), values, [&](const DrawsPart& part, const float* of_all) {
      const std::size_t draws = std::size_t(part.chains) * part.draws;
      for (std::size_t k = 0; k < ids.size(); ++k) {
        const std::size_t size = std::max(quantities[k].size, 1);
        of_one.resize(draws * size);
        for (std::size_t i = 0; i < draws; ++i) std::copy_n(of_all + i * all, size, &of_one[i * size]);
        put_part(ids[k], part, {size}, of_one.data());
        of_all += size;
      }
    });
  }

 private:
  void define(const Dimension& dimension) {
    // Length 0 means "unlimited" to netCDF, which is then a dimension of current length 0: just what we need.
    dimensions_.push_back(dimension);
    check(nc_def_dim(group_, dimension.name.c_str(), dimension.length, &ids_.emplace_back()));
  }
  void put_coordinate(std::size_t i) {
    const Dimension& dimension = dimensions_[i];
    if (!dimension.labels.empty()) {
      int id = 0;
      check(nc_def_var(group_, dimension.name.c_str(), NC_STRING, 1, &ids_[i], &id));
      std::vector<const char*> labels;
      for (const std::string& label : dimension.labels) labels.push_back(label.c_str());
      return check(nc_put_var_string(group_, id, labels.data()));
    }
    std::vector<std::int64_t> index(dimension.length);
    std::iota(index.begin(), index.end(), 0);
    put_array(dimension.name, index, {i});
  }
  std::vector<std::size_t> lengths(std::span<const std::size_t> over) const {
    std::vector<std::size_t> all;
    for (std::size_t i : over) all.push_back(std::size_t(dimensions_[i].length));
    return all;
  }
  static std::size_t product(const std::vector<std::size_t>& lengths) {
    return std::accumulate(lengths.begin(), lengths.end(), std::size_t(1), std::multiplies<>());
  }
  template <class T>
  void put_array(const std::string& variable, const std::vector<T>& values,
                 const std::vector<std::size_t>& over) {
    const std::size_t size = product(lengths(over));
    if (values.size() != size) {
      throw std::logic_error(
          fmt::format("draws file: {}/{} has {} values instead of {}", name_, variable, values.size(), size));
    }
    const int id = define_variable<T>(variable, over);
    if (size > 0) check(nc_put_var(group_, id, values.data()));
  }
  template <class T>
  void put_array(const std::string& variable, const DrawsSource<T>& source,
                 const std::vector<std::size_t>& over) {
    const int id = define_variable<T>(variable, over);
    const std::vector<std::size_t> of_draw = lengths(std::span(over).subspan(2));
    put_parts<T>(product(of_draw), source,
                 [&](const DrawsPart& part, const T* values) { put_part(id, part, of_draw, values); });
  }
  /// f(part, its values) of all draws, by parts of at most about kPartValues; at most `each` values of a draw.
  template <class T, class F>
  void put_parts(std::size_t each, const DrawsSource<T>& source, F f) {
    const int chains = dimensions_[0].length, draws = dimensions_[1].length;
    if (draws == 0) return;
    const int most = int(std::max<std::size_t>(1, kPartValues / each)), most_draws = std::min(draws, most),
              most_chains = std::min(chains, most / most_draws);
    std::vector<DrawsPart> parts;
    for (int chain = 0; chain < chains; chain += most_chains)
      for (int draw = 0; draw < draws; draw += most_draws)
        parts.push_back(
            {chain, std::min(most_chains, chains - chain), draw, std::min(most_draws, draws - draw)});
    const std::size_t most_values = std::size_t(most_chains) * most_draws * each;
    BareVector<T> values(most_values), next(most_values);
    // One is made while the one before is written: here, for the library is silent in the thread that opened the file.
    const auto make = [&](std::size_t k) {
      return std::async(std::launch::async, [&, k] { source(parts[k], next.data()); });
    };
    std::future<void> made = make(0);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      made.get();
      values.swap(next);
      if (k + 1 < parts.size()) made = make(k + 1);
      f(parts[k], values.data());
    }
  }
  template <class T>
  void put_part(int id, const DrawsPart& part, const std::vector<std::size_t>& of_draw, const T* values) {
    std::vector<std::size_t> start{std::size_t(part.chain), std::size_t(part.draw)},
        count{std::size_t(part.chains), std::size_t(part.draws)};
    start.resize(2 + of_draw.size());
    count.insert(count.end(), of_draw.begin(), of_draw.end());
    check(nc_put_vara(group_, id, start.data(), count.data(), values));
    writeback_.add(sizeof(T) * product(count));
  }
  template <class T>
  int define_variable(const std::string& variable, const std::vector<std::size_t>& over) {
    const std::vector<std::size_t> length = lengths(over);
    const std::size_t size = product(length);
    int id = 0;
    std::vector<int> ids;
    ids.reserve(over.size());
    for (std::size_t i : over) ids.push_back(ids_[i]);
    check(nc_def_var(group_, variable.c_str(), type_of(T{}), static_cast<int>(ids.size()), ids.data(), &id));
    // netCDF has no booleans; xarray, on which ArviZ stands, marks bytes that stand for them with this
    // attribute.
    if constexpr (std::is_same_v<T, std::uint8_t>) put_attribute(group_, id, "dtype", "bool");
    if (size >= kWorthPacking && (size <= kMostPacked || sizeof(T) > sizeof(float))) {
      // Whole trailing dimensions as long as a chunk has room.
      std::vector<std::size_t> chunk(over.size(), 1);
      std::size_t room = kChunkValues;
      for (std::size_t i = over.size(); i-- > 0 && room > 1; room /= chunk[i])
        chunk[i] = std::min(room, length[i]);
      check(nc_def_var_chunking(group_, id, NC_CHUNKED, chunk.data()));
      check(nc_def_var_deflate(group_, id, 1, 1, kDeflateLevel));
    }
    return id;
  }

  std::string name_;
  Writeback& writeback_;
  std::vector<Dimension> dimensions_;
  std::vector<int> ids_;
  int group_ = 0;
};

bool empty(const DrawsArray& values) {
  return std::visit(
      [](const auto& array) {
        if constexpr (requires { array.empty(); })
          return array.empty();
        else
          return !array;
      },
      values);
}

void put_stats(const OpenFile& out, const std::string& name, int chains, int draws,
               const std::map<std::string, DrawsArray>& stats, const Attributes& attributes) {
  if (stats.empty()) return;
  Group group(out, name, {{"chain", chains}, {"draw", draws}}, attributes);
  for (const auto& [variable, values] : stats) group.put(variable, values, 2);
}

void put_groups(const OpenFile& out, const DrawsFile& file) {
  Attributes attributes = file.attributes;
  attributes.try_emplace("inference_library", "lockstep");
  for (const auto& [key, value] : attributes) put_attribute(out.id, NC_GLOBAL, key, value);

  const int chains = file.chains, draws = file.draws, dim = file.dim;
  if (!file.names.empty() && file.names.size() != std::size_t(dim))
    throw std::logic_error(fmt::format("draws file: {} names of {} coordinates", file.names.size(), dim));
  const Group::Dimension axis{"x_dim_0", dim, file.names};
  const auto put_posterior = [&](const char* name, int count, const DrawsArray& x,
                                 const DrawsSource<float>& quantity_values) {
    Group group(out, name, {{"chain", chains}, {"draw", count}, axis}, attributes);
    group.put("x", x, 3);
    if (!file.quantities.empty()) group.put_quantities(file.quantities, quantity_values);
  };
  put_posterior("posterior", draws, file.x, file.quantity_values);
  put_stats(out, "sample_stats", chains, draws, file.sample_stats, attributes);
  if (file.pseudo_samples > 0) {
    Group group(out, "weighted",
                {{"chain", file.weighted_chains < 0 ? chains : file.weighted_chains},
                 {"draw", file.weighted_draws < 0 ? draws : file.weighted_draws},
                 {"pseudo_sample", file.pseudo_samples},
                 axis},
                attributes);
    group.put("x", file.weighted_x, 4);
    group.put("log_weight", file.log_weight, 3);
    if (!empty(file.beta)) group.put("beta", file.beta, 3);
  }
  if (file.warmup_draws > 0) {
    const int warmup = file.warmup_draws;
    attributes["first_iteration"] = std::vector<std::int64_t>{0};  // that of the posterior is after it
    put_posterior("warmup_posterior", warmup, file.warmup_x, file.warmup_quantity_values);
    put_stats(out, "warmup_sample_stats", chains, warmup, file.warmup_sample_stats, attributes);
  }
}

}  // namespace

void write_draws(const std::filesystem::path& path, const DrawsFile& file) {
  if (file.chains < 1 || file.draws < 0 || file.dim < 1) {
    throw std::logic_error("draws file: chains and dim must be at least 1, draws at least 0");
  }
  AtomicFile out(path);
  int nc = -1;
  errno = 0;
  try {
    check(nc_create(out.temporary().c_str(), NC_NETCDF4 | NC_CLOBBER, &nc));
    check(
        nc_set_fill(nc, NC_NOFILL, nullptr));  // every value is written; filling first would double the work
    Writeback writeback(out.temporary());
    put_groups({nc, writeback}, file);
    const int closing = nc;
    nc = -1;
    check(nc_close(closing));  // the last values reach the disk here, so this may fail too
  } catch (const std::runtime_error& error) {
    if (nc >= 0) nc_close(nc);
    // After a failed write HDF5 1.10 keeps what it could not close, and crashes over it in its exit
    // handler: this one, registered later, runs before it and ends the process.
    on_exit(
        [](int exit_status, void*) {
          std::fflush(nullptr);
          _exit(exit_status);
        },
        nullptr);
    throw std::runtime_error(fmt::format("cannot write '{}': {}", path.string(), error.what()));
  } catch (...) {
    if (nc >= 0) nc_close(nc);
    throw;
  }
  out.finish();
}

}  // namespace lockstep
