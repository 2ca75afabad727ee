// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options.hpp"
#include "host/units.hpp"

namespace lockstep {

/// Device, precision, threads and stream key of a run. Under `--device cuda` without a usable GPU: UserError;
/// under `auto` the CPU. `label` is the setting's, empty for a single run.
RunContext make_context(const RunOptions& run, const TargetInstance& target, const std::string& label);

/// Says on standard error, once, that `--device auto` found no GPU. For when nothing can be refused any more.
void say_device(const RunOptions& run, const RunContext& context);

/// The device a context computes on, for summaries: "cpu (AVX-512, 2 threads)" or the GPU's name.
std::string device_name(const RunContext& context);

/// A progress printer on standard error: the stage, a bar and the time left, only on a terminal and only
/// after two seconds.
std::function<void(const std::string&, double)> progress_printer(bool quiet, std::string what);

/// Bytes a batch of `chains` chains needs; printed before anything is allocated.
double planned_bytes(const ModelSpec& model, int dim, std::int64_t chains, std::int64_t stored_draws);

/// Prints the memory plan, or throws UserError when the machine has less.
void check_memory(double bytes, bool quiet);

}  // namespace lockstep
