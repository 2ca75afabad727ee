// SPDX-License-Identifier: Apache-2.0
#include "host/util/user_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "host/util/errors.hpp"
#include "host/util/memory.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

const char* kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::fifo:
      return "pipe";
    case fs::file_type::socket:
      return "socket";
    default:
      return "device";
  }
}

}  // namespace

UserFile open_user_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
    throw UserError(fmt::format("{} is a {} (reading from it might never end). Give a file.", path.string(),
                                kind_of(status.type())));
  UserFile file;
  file.bytes = fs::file_size(path, error);
  if (!error) file.stream.open(path, std::ios::binary);
  if (error || !file.stream)
    throw UserError(fmt::format(
        "cannot read the file '{}' (its content is needed). Check its name and permissions.", path.string()));
  return file;
}

void require_memory(const std::string& name, double bytes) {
  const double have = available_memory();
  if (bytes <= have) return;
  throw UserError(
      fmt::format("{} is too large (to use it may take {:.1f} GiB of memory, and {:.1f} GiB are available). "
                  "Give less data, numbers as .npz rather than as text, or a machine with more memory.",
                  name, bytes / 1073741824, have / 1073741824));
}

std::string read_user_text(const fs::path& path, double memory_per_byte) {
  UserFile file = open_user_file(path);
  require_memory(path.string(), memory_per_byte * static_cast<double>(file.bytes));
  std::string text(file.bytes, '\0');
  file.stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.stream.gcount()));  // it may have been cut short meanwhile
  return text;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (!fs::is_directory(entry->path(), ignored)) files.push_back(entry->path());
  if (error)
    throw UserError(fmt::format("cannot read the folder '{}' ({}). Check its permissions.", folder.string(),
                                error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace lockstep
