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

// Throws UsageError where a captured step is known at another batch alone.
void require_captured_batch(const ModelFile& file, std::int64_t batch);

// The training step of a captured model. Throws UsageError where sizes are asked for, which it has already.
[[nodiscard]] TrainingStep expand_captured(const ModelFile& file, const Sizes& sizes,
                                           const Lowering& lowering, const Precision& precision);

}  // namespace tbdsim
