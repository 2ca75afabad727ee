// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Creates `folder` (and its parents) where it is missing and proves, with a small file that is removed
/// again, that it can be written. Call it before any work starts, so that hours of sampling never end in
/// "permission denied". Throws UserError when the folder cannot be created or written.
void ensure_writable_folder(const std::filesystem::path& folder);

/// Removes the temporary files that write_atomically leaves in `folder` when its process is killed. Call it
/// where no other process can be writing there.
void remove_temporaries(const std::filesystem::path& folder);

/// CRC-32 and Adler-32 over the same bytes (zlib's), by which a file tells that it is damaged: the first sees
/// any error within 32 bits and any one to three flipped bits, and a change that is none of these passes both
/// by chance, once in 2^64.
class Checksum {
 public:
  void add(std::string_view bytes);
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  unsigned long crc_ = 0, adler_ = 1;
};

/// That of a whole text.
std::string checksum(std::string_view text);

/// A temporary file in the folder of `target`, to be filled. finish() flushes it to disk and renames it to
/// `target`: a reader sees the old file or the whole new one, never a part, even after a crash or a full
/// disk. Without finish() it is removed. Throws std::runtime_error when the file system refuses (full disk,
/// folder gone): not a mistake in the input, which ensure_writable_folder has checked.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  const std::filesystem::path& temporary() const { return temporary_; }
  void finish();

 private:
  const std::filesystem::path target_, temporary_;
};

/// Writes a text through one.
void write_atomically(const std::filesystem::path& target, std::string_view text);

/// The whole content of a file. Throws UserError when it cannot be read.
std::string read_text(const std::filesystem::path& file);

/// `value` without what JSON cannot say: members that are null, NaN or infinite are left out (absent means
/// "not applicable"); an element of a vector or matrix is null, because dropping it would shift the others,
/// and a vector of such elements alone is left out. An object that loses its last member this way goes too,
/// except inside an array, where its place counts. The names of members lost to NaN or infinity, such as
/// `estimates.mean`, are appended to `removed` when given, for the warnings of the run.
nlohmann::ordered_json strip_non_finite(nlohmann::ordered_json value,
                                        std::vector<std::string>* removed = nullptr);

/// JSON text of strip_non_finite(value): members in the order they were given, one per line, vectors on one
/// line and matrices one row per line, numbers with up to 17 significant digits so that they read back to the
/// same bits, a newline at the end.
std::string summary_text(const nlohmann::ordered_json& value);

/// Writes summary_text(value) to `file`, atomically.
void write_summary(const std::filesystem::path& file, const nlohmann::ordered_json& value);

}  // namespace lockstep
