// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/commands/evidence_result.hpp"
#include "host/commands/sample_result.hpp"

namespace lockstep {

// What a run found, on standard output: a table, what it cost, the verdict, warnings.
void print_result(const SampleResult& result);
void print_result(const EvidenceResult& result);
void print_result(const ItemResult& result);

}  // namespace lockstep
