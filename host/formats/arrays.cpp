// SPDX-License-Identifier: Apache-2.0
#include "host/formats/arrays.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <memory>

#include "host/formats/npy.hpp"
#include "host/util/settings.hpp"
#include "host/util/user_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Array number `index` of an archive, whose file has `file_bytes`.
NumericArray read_member(zip_t* archive, zip_uint64_t index, const std::string& name, const zip_stat_t& stat,
                         std::uint64_t file_bytes) {
  const bool stored = stat.comp_method == ZIP_CM_STORE;
  if (!stored && stat.comp_method != ZIP_CM_DEFLATE)
    refuse(
        "{} is compressed with method {} (numpy stores or deflates). Write it with numpy.savez_compressed.",
        name, stat.comp_method);
  // Deflate makes nothing smaller than by 1032 to 1: sizes beyond that are wrong, and must not be allocated.
  if (stat.comp_size > file_bytes || (stored && stat.size != stat.comp_size) ||
      stat.size / 1032 > stat.comp_size)
    refuse_damaged(name, fmt::format("it cannot unpack to {} bytes", stat.size));
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(archive, index, 0),
                                                               zip_fclose);
  if (!file) refuse_damaged(name, zip_strerror(archive));
  const auto read = [&](char* to, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      const zip_int64_t got = zip_fread(file.get(), to + done, count - done);
      if (got < 0) refuse_damaged(name, zip_file_strerror(file.get()));
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  };
  return read_npy({name, stat.size, read});
}

}  // namespace

NumericArray load_npy(const fs::path& path) {
  UserFile file = open_user_file(path);
  return read_npy({path.string(), file.bytes, [&](char* to, std::size_t count) {
                     file.stream.read(to, static_cast<std::streamsize>(count));
                     return static_cast<std::size_t>(file.stream.gcount());
                   }});
}

std::map<std::string, NumericArray> load_npz(const fs::path& path) {
  const std::uint64_t bytes = open_user_file(path).bytes;
  int code = 0;
  const std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open(path.c_str(), ZIP_RDONLY, &code),
                                                         zip_discard);
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    refuse("{} cannot be opened: {} (a .npz file is a zip archive). Write it with numpy.savez.",
           path.string(), reason);
  }
  std::map<std::string, NumericArray> arrays;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), index, 0, &stat) != 0)
      refuse_damaged(path.string(), zip_strerror(archive.get()));
    std::string name = stat.name;
    if (!name.ends_with(".npy"))
      refuse("{} holds {} (only arrays, NAME.npy, have a meaning there). Write it with numpy.savez.",
             path.string(), shown(name));
    name.resize(name.size() - 4);
    if (arrays.contains(name))
      refuse("{} gives {} twice (one of them would be ignored). Remove one.", path.string(), shown(name));
    arrays.emplace(name, read_member(archive.get(), index,
                                     fmt::format("{} in {}", shown(name), path.string()), stat, bytes));
  }
  if (arrays.empty())
    refuse("{} holds no arrays (there is nothing to read). Write it with numpy.savez.", path.string());
  return arrays;
}

}  // namespace lockstep
