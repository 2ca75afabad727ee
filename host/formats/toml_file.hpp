// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "host/util/settings.hpp"

namespace lockstep {

/// A TOML file as JSON, with the line on which each value stands.
struct TomlFile {
  std::filesystem::path path;
  Settings values = Settings::object();
  std::map<std::string, unsigned> lines;  ///< JSON pointer -> line, from 1

  /// "KEY (FILE, line 7)" for the value at a JSON pointer.
  std::string name(const std::string& pointer, const std::string& key) const;
};

/// Reads a TOML file; dates become texts. Throws UserError with the line for what is no TOML.
TomlFile read_toml(const std::filesystem::path& path);

/// A key, bare where TOML allows it.
std::string toml_key(const std::string& key);

/// A value as one line of TOML, doubles with the fewest digits that read back to the same bits. (The writer
/// of toml++ sorts keys and prints 0.1 as 0.10000000000000001.)
std::string toml_text(const Settings& value);

}  // namespace lockstep
