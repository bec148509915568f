// A model as training steps: one for each length to which samples are padded, with its share of the samples.
// Models without sequences have one step.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graphs/dataset.h"
#include "graphs/lowering.h"
#include "graphs/rewrites/rewrites.h"
#include "graphs/same_kernels.h"
#include "graphs/training_step.h"
#include "simulate/memory/memory_plan.h"
#include "simulate/workload/training_choices.h"

namespace tbdsim {

struct LengthStep {
  LengthBucket bucket;  // length 0, share 1 for a model without sequences
  TrainingStep step;
  std::vector<OffloadedActivation> on_host;  // maps of the step
  MemoryOutline memory;
  std::vector<KernelRuns> runs;
};

// Steps ascend in length. With `sequence_length` among `sizes` there is one step, of that length. Else a
// variant with buckets and a data set with lengths give one for each bucket that has samples; otherwise there
// is one, of the model's own length. Throws as build_model, chosen_model and rewritten, and UsageError where
// no sample fits a bucket and for choices of a captured step. `planned_memory`: as memory_outline().
[[nodiscard]] std::vector<LengthStep> expand_workload(const ModelFile& file, const Variant& variant,
                                                      const Sizes& sizes,
                                                      const std::optional<Dataset>& dataset,
                                                      const Lowering& lowering, const Rewrites& rewrites,
                                                      const Precision& precision, bool planned_memory,
                                                      const TrainingChoices& choices = {});

}  // namespace tbdsim
