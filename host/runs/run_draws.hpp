// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/formats/draws_file.hpp"
#include "host/runs/chain_result.hpp"

namespace lockstep {

/// Beside the results of a run with --out that stores no draws: the usual number of them, for whoever draws
/// pictures of the run, and then removes the file.
inline constexpr const char* kPictureDraws = ".pictures.nc";

/// The names of its coordinates where they are not x[0], x[1], .., which readers make of their numbers.
std::vector<std::string> own_names(const TargetInstance& target);

/// The target's own quantities; those named q[0], q[1], .. are one quantity q.
std::vector<DrawsQuantity> quantities_of(const TargetInstance& target);
/// Their values at draws x [chain][draw][dim].
DrawsSource<float> quantity_values(const TargetInstance& target, DrawsSource<float> x, int threads);

/// Writes the draws that `sample` stored (contracts: "Files of a run"), with attributes that say which these
/// are: chains (chains_kept of chains_run), the first iteration after warm-up, and how far they are apart.
void write_run_draws(const std::filesystem::path& path, const ChainRunResult& r, const RunOptions& run,
                     const RunContext& context, const SamplerConfig& config);

}  // namespace lockstep
