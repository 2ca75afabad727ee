// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lockstep {

/// A file of the user, open at its first byte, and how many bytes it has.
struct UserFile {
  std::ifstream stream;
  std::uint64_t bytes = 0;
};

/// Opens what `path` names, links followed, when it is a regular file that can be read. Throws UserError for
/// the rest: devices may have no end, and pipes and sockets no writer to wait for.
UserFile open_user_file(const std::filesystem::path& path);

/// Throws UserError unless `bytes` of memory, which reading `name` takes with the copies that follow, are
/// available. Call it before anything of that size is allocated.
void require_memory(const std::string& name, double bytes);

/// The content of a file as open_user_file and require_memory let it through. `memory_per_byte`: what the
/// program then makes of one byte of it.
std::string read_user_text(const std::filesystem::path& path, double memory_per_byte);

/// The files of a folder, in the order of their names, without the folders in it. Throws UserError where it
/// cannot be read.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder);

}  // namespace lockstep
