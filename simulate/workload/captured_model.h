// A captured step where a model is expected.
#pragma once

#include <filesystem>
#include <string>

#include "graphs/lowering.h"
#include "graphs/model.h"
#include "graphs/precision.h"
#include "graphs/training_step.h"

namespace tbdsim {

// The step of a file as a model of one variant, which PyTorch trains. Throws as read_step_file.
[[nodiscard]] ModelFile captured_model(const std::filesystem::path& file);

// The precision of that name, "fp32" -> Precision; where the name is empty the one in which the model was
// captured, fp32 for a model that was not. Throws UsageError, with "did you mean", for another name, and for
// a precision in which a captured step does not run.
[[nodiscard]] const Precision& precision_for(const ModelFile& file, const std::string& name);

// Throws UsageError where a captured step is known at another batch alone.
void require_captured_batch(const ModelFile& file, std::int64_t batch);

// The training step of a captured model. Throws UsageError where sizes are asked for, which it has already.
[[nodiscard]] TrainingStep expand_captured(const ModelFile& file, const Sizes& sizes,
                                           const Lowering& lowering, const Precision& precision);

}  // namespace tbdsim
