// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options/options.hpp"

namespace lockstep {

/// Draws the run that `run.out` holds: report.html, a page that needs no other file, and its pictures (those
/// of plot/pictures.list for which the run left something to draw), from summary.json and draws.nc, or,
/// without that, from .pictures.nc, which is removed. Those of an earlier run go first; a page that is not
/// older than the summary stays as it is. With `run.pictures` false, or without `run.out`, nothing is drawn.
/// A picture that fails, or is slow, is one line on standard error (none with `quiet` or `json`), and never
/// an exception: the results are there.
void draw_run(const RunOptions& run);

}  // namespace lockstep
