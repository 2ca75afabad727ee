// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/commands/item_evidence.hpp"
#include "host/commands/run_files.hpp"

namespace lockstep {

/// The summary of a run over items and, with --out, its files: summary.json, run.toml, items.csv (one line
/// for each), images.npy and the pictures that plot/plot_items.py makes of the two.
nlohmann::ordered_json report_items(const RunOptions& run, const RunFiles& files, const RunContext& context,
                                    const ItemConfig& config, const ItemPilot& pilot, const ItemTable& table,
                                    double sampling_seconds, double wall_seconds, bool interrupted);

/// A `.npy` file of bytes [item][row][column], as numpy.load reads it.
std::string npy_bytes(const std::vector<int>& shape, const std::string& type, const std::string& values);

}  // namespace lockstep
