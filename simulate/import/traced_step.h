// Two execution traces of a training step, of two batches, as a captured step.
#pragma once

#include "simulate/import/execution_trace.h"
#include "simulate/import/imported_file.h"

namespace tbdsim {

// A step file (docs/step_file.md) whose sizes are a + b x batch by the two traces. The batch is the smallest
// size that differs between them. A trace does not say when storages are freed (after their last use here),
// nor what parameters are called (by number here). Throws SpecError for traces of other operators or of one
// batch.
[[nodiscard]] ImportedFile traced_step(const ExecutionTrace& first, const ExecutionTrace& second);

}  // namespace tbdsim
