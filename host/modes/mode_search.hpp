// SPDX-License-Identifier: Apache-2.0
#pragma once
// The search for the modes of a target, in rounds of descents side by side on the lanes (kernels/lbfgs.hpp).
#include <Eigen/Core>
#include <vector>

#include "host/engines/point_engine.hpp"
#include "host/modes/search_result.hpp"

namespace lockstep {

/// Descents of -log density from starts in rounds (mode_starts.hpp), the particles with the first; known points, and what
/// descents from them find, are modes before that, without a hit. From
/// the second on those are left out whose end the gradient foretells (mode_forecast.hpp); they count as hits. It ends where
/// every mode has been found 10 times and 2,048 starts are made; or at its budget; or at so many modes. Starts matter more
/// than the minimiser: docs/decisions/0014-modes.md.
///
/// With a residual energy descents after the first round minimise that, and where they rest beside the modes known they go
/// on without it; gradients of both are counted.
///
/// Where descents end within a Mahalanobis distance of 1 of a mode they have found it again; elsewhere it is looked at
/// (mode_shape.hpp). In the end the largest are weighed. A run that is stopped keeps its rounds.
///
/// What no search from gradients can find: a mode that is narrow beside its neighbours in many dimensions, whose basin
/// no start is in. Mode k is to be seen from x only where its squared Mahalanobis distance is below that of j plus 2
/// log(w_k / w_j) + 2 d log(s_j / s_k).
SearchResult search_modes(const RunContext& context, std::uint32_t unit, const SearchPlan& plan);
/// The same gone on with, where it turns out that more may be spent than a search had; as it was, if not twice as much.
SearchResult search_on(const RunContext& context, std::uint32_t unit, const SearchPlan& plan,
                       const SearchResult& found);

/// What was found, and beside it the modes that descents from the columns of `from` find, if there are new_modes. Else nothing
/// changes but the gradients. Of the plan the scale of the first steps and the budget are used, this only for weighing them.
SearchResult modes_beside(const RunContext& context, std::uint32_t unit, const SearchPlan& plan,
                          const SearchResult& found, const PointEngine::Rows& from);
/// How many modes of a library hold over a hundredth of all that it knows, resemble a normal, are not in another library, which it was
/// made of, and lie over 3 standard deviations from all that are, by either covariance (along a ridge descents come to rest
/// anywhere).
int new_modes(const ModeLibrary& library, const ModeLibrary& other);

/// A library of places that somebody gives: each is made a mode as the search would, or where it is none, the mode that
/// a descent from it finds. Throws UserError where that is none either.
SearchResult modes_at(const RunContext& context, std::uint32_t unit,
                      const std::vector<Eigen::VectorXd>& places);

}  // namespace lockstep
