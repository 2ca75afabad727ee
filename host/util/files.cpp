// SPDX-License-Identifier: Apache-2.0
#include "host/util/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <regex>
#include <system_error>

#include "host/util/errors.hpp"
#include "host/util/user_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A name in the folder of `target` that no other process or thread uses; hidden, so that a listing or a
/// `*.csv` during a run does not show half a file.
fs::path temporary_beside(const fs::path& target) {
  static std::atomic<int> count{0};
  fs::path temporary = target;
  temporary.replace_filename(fmt::format(".{}.{}-{}.tmp", target.filename().string(), getpid(), count++));
  return temporary;
}

std::string reason(int error) { return std::generic_category().message(error); }

/// Without this a crash of the machine shortly after the rename may leave an empty file under the final name.
void flush_to_disk(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw std::runtime_error(reason(errno));
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  if (error != 0 && error != EINVAL)
    throw std::runtime_error(reason(error));  // EINVAL: nothing to flush there
}

/// Removes what JSON cannot say from `value`; false when `value` itself has to go.
bool strip(Json& value, const std::string& name, std::vector<std::string>* removed) {
  if (value.is_null()) return false;
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    if (removed && std::find(removed->begin(), removed->end(), name) == removed->end())
      removed->push_back(name);
    return false;
  }
  if (value.is_array()) {
    bool any = value.empty();
    for (Json& element : value) {
      if (strip(element, name, removed) || element.is_object())
        any = true;
      else
        element = nullptr;
    }
    return any;
  }
  if (value.is_object()) {
    const bool was_empty = value.empty();
    for (auto member = value.begin(); member != value.end();) {
      const std::string member_name = name.empty() ? member.key() : name + "." + member.key();
      member = strip(member.value(), member_name, removed) ? std::next(member) : value.erase(member);
    }
    return was_empty || !value.empty();
  }
  return true;
}

/// nlohmann's own indented form puts every number of a matrix on a line of its own; this one does not.
void append(std::string& text, const Json& value, int indent) {
  const bool nested =
      std::any_of(value.begin(), value.end(), [](const Json& part) { return part.is_structured(); });
  if (value.empty() || !(value.is_object() || (value.is_array() && nested))) {
    std::string line = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    text += line;
    return;
  }
  const std::string margin(indent + 2, ' ');
  const char* separator = "\n";
  text += value.is_object() ? '{' : '[';
  for (const auto& [key, part] : value.items()) {
    text += separator + margin;
    if (value.is_object()) text += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    append(text, part, indent + 2);
    separator = ",\n";
  }
  text += "\n" + std::string(indent, ' ') + (value.is_object() ? '}' : ']');
}

}  // namespace

void ensure_writable_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error)) {
    throw UserError(
        fmt::format("cannot create the folder '{}' (results would have no place: {}). "
                    "Name another folder",
                    folder.string(), error ? error.message() : "it is not a folder"));
  }
  const fs::path probe = temporary_beside(folder / "probe");
  std::ofstream stream(probe);
  stream << "probe\n";
  stream.close();
  const int failure = stream ? 0 : errno;
  fs::remove(probe, error);
  if (failure != 0 || !stream) {
    throw UserError(
        fmt::format("cannot write in the folder '{}' (results would be lost: {}). "
                    "Name another folder or change its permissions",
                    folder.string(), reason(failure)));
  }
}

void remove_temporaries(const fs::path& folder) {
  static const std::regex ours(R"(\..+\.\d+(-\d+)?\.tmp)");  // as temporary_beside makes them, and plot
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (std::regex_match(entry.path().filename().string(), ours)) found.push_back(entry.path());
  for (const fs::path& file : found) fs::remove(file, ignored);
}

void Checksum::add(std::string_view bytes) {
  const auto* first = reinterpret_cast<const Bytef*>(bytes.data());
  crc_ = crc32_z(crc_, first, bytes.size());
  adler_ = adler32_z(adler_, first, bytes.size());
}

std::string Checksum::text() const { return fmt::format("{:08x}{:08x}", crc_, adler_); }

std::string checksum(std::string_view text) {
  Checksum sum;
  sum.add(text);
  return sum.text();
}

AtomicFile::AtomicFile(fs::path target) : target_(std::move(target)), temporary_(temporary_beside(target_)) {}

AtomicFile::~AtomicFile() {
  std::error_code ignored;
  fs::remove(temporary_, ignored);  // there is none after finish()
}

void AtomicFile::finish() {
  try {
    flush_to_disk(temporary_);
    std::error_code error;
    fs::rename(temporary_, target_, error);
    if (error) throw std::runtime_error(error.message());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("cannot write '{}': {}", target_.string(), error.what()));
  }
}

void write_atomically(const fs::path& target, std::string_view text) {
  AtomicFile file(target);
  std::ofstream stream(file.temporary(), std::ios::binary);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) throw std::runtime_error(fmt::format("cannot write '{}': {}", target.string(), reason(errno)));
  file.finish();
}

std::string read_text(const fs::path& file) { return read_user_text(file, 1); }

Json strip_non_finite(Json value, std::vector<std::string>* removed) {
  if (!strip(value, "", removed) && !value.is_object()) return nullptr;
  return value;
}

std::string summary_text(const Json& value) {
  std::string text;
  append(text, strip_non_finite(value), 0);
  return text + "\n";
}

void write_summary(const fs::path& file, const Json& value) { write_atomically(file, summary_text(value)); }

}  // namespace lockstep
