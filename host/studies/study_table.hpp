// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace lockstep {

/// Cells as text, for Markdown and HTML alike; rows[0] is the header, the first column the label. Rows of
/// truth and of published values have a label that starts with two spaces.
struct StudyTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;
};

}  // namespace lockstep
