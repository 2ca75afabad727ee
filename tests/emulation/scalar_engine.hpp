// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "targets/engine.hpp"

namespace lockstep::testing {

/// An engine on the CPU with one chain to a lane, as a GPU's threads have it: the same arithmetic, operation by
/// operation, as the kernels on the emulated device, so the same bits. The target is one of the Gaussians of
/// make_target.
std::unique_ptr<Engine> scalar_engine(const std::string& target, const EngineSpec& spec);

}  // namespace lockstep::testing
