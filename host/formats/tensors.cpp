// SPDX-License-Identifier: Apache-2.0
#include "host/formats/tensors.hpp"

#include <fmt/format.h>

#include <string_view>

#include "host/formats/idx.hpp"
#include "host/formats/safetensors.hpp"
#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "host/util/user_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Arrays = std::map<std::string, NumericArray>;

void require_there(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw UserError(
        fmt::format("{} does not exist (there are no arrays to read). Check the name.", path.string()));
}

Arrays arrays_of_folder(const fs::path& folder) {
  Arrays arrays;
  for (const fs::path& path : files_in(folder))
    if (path.extension() == ".npy") arrays.emplace(path.stem().string(), load_npy(path));
  if (arrays.empty())
    throw UserError(
        fmt::format("{} is a folder without .npy files (a folder stands for the arrays in it). Give a folder "
                    "of them, or a .npz or .safetensors file.",
                    folder.string()));
  return arrays;
}

NumericArray images_of(Arrays arrays, const fs::path& path) {
  for (const char* name : {"images", "x"})
    if (const auto found = arrays.find(name); found != arrays.end()) return std::move(found->second);
  if (arrays.size() == 1) return std::move(arrays.begin()->second);
  throw UserError(
      fmt::format("{} holds {} arrays, none of them named images or x (one must be chosen). Name the images "
                  "so, or write them alone.",
                  path.string(), arrays.size()));
}

/// Does it begin as IDX or gzip do?
bool begins_as_idx(const fs::path& path) {
  char start[3] = {1, 1, 0};
  open_user_file(path).stream.read(start, sizeof start);
  const std::string_view bytes(start, sizeof start);
  return bytes.starts_with("\x1f\x8b") ||
         (bytes.starts_with(std::string_view("\0\0", 2)) && start[2] >= 0x08 && start[2] <= 0x0E);
}

}  // namespace

Arrays load_tensors(const fs::path& path) {
  require_there(path);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return arrays_of_folder(path);
  const std::string ending = path.extension().string();
  if (ending == ".npz") return load_npz(path);
  if (ending == ".safetensors") return load_safetensors(path);
  throw UserError(
      fmt::format("{} has the unknown ending {} (the ending tells the format). Give a .npz or .safetensors "
                  "file, or a folder of .npy files.",
                  path.string(), shown(ending)));
}

NumericArray load_images(const fs::path& path) {
  require_there(path);
  std::error_code ignored;
  const std::string ending = path.extension().string();
  if (!fs::is_directory(path, ignored)) {
    if (ending == ".npy") return load_npy(path);
    if (ending == ".npz") return images_of(load_npz(path), path);
    if (ending == ".gz" || path.filename().string().find("idx") != std::string::npos || begins_as_idx(path))
      return load_idx(path);
  }
  throw UserError(
      fmt::format("{} is in no known format (images must be one array). Give a .npy, .npz or IDX file; IDX, "
                  "as of MNIST, may be packed as .gz.",
                  path.string()));
}

}  // namespace lockstep
