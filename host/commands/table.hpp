// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "host/commands/sample_result.hpp"

namespace lockstep {

/// One number with the digits its error leaves: "1.234 +- 0.056".
std::string with_error(double value, double se);

/// The estimates of a run as a table with the columns of ArviZ's: mean, sd, quantiles, mcse_mean, ess_bulk,
/// ess_tail, r_hat, and the truth where there is one. Ten parameters and ten quantities of the target's own
/// are shown; a column that nothing is known for is left out, and a cell is empty. A parameter that
/// `not_visited` names has those words in the place of its figures. Below stand log Z and a line on which
/// draws the figures are of, or that there are none.
std::string estimates_table(const RunResult& result, const DrawsSummary& of_draws = {});

}  // namespace lockstep
