// SPDX-License-Identifier: Apache-2.0
#pragma once
// A target with what a search for its modes goes by.
#include "host/runs/run_context.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep::testing {

template <class Definition>
struct SearchCase {
  explicit SearchCase(MemoryInput in = {}) : target(in) {
    context.target = &target;
    context.key = make_stream_key(5, "search");
  }
  TargetOf<Definition> target;
  RunContext context;
};

}  // namespace lockstep::testing
