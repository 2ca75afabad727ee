// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "host/commands/item_result.hpp"
#include "host/commands/item_table.hpp"
#include "host/commands/run_files.hpp"
#include "host/options/item_config.hpp"
#include "host/paths/item_paths.hpp"

namespace lockstep {

/// What a run over items came to, but for how long it took: each of them, and their means.
ItemResult result_of_items(const RunOptions& run, const RunContext& context, const ItemConfig& config,
                           const ItemPilot& pilot, const ItemRun& found);

/// Its files, with --out: summary.json, items.csv (one line for each), images.npy and the pictures that
/// plot/plot_items.py makes of the two.
void save_items(ItemResult& result, const RunFiles& files, const RunOptions& run, const Items& items,
                const ItemTable& table);

/// A `.npy` file of bytes [item][row][column], as numpy.load reads it.
std::string npy_bytes(const std::vector<int>& shape, const std::string& type, const std::string& values);

}  // namespace lockstep
