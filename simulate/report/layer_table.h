// The layers of a model as a table.
#pragma once

#include "graphs/model.h"
#include "graphs/precision.h"
#include "graphs/training_step.h"
#include "hwspecs/base/table.h"

namespace tbdsim {

// Layers with output shape, parameters, multiply-adds and output bytes for one sample; totals.
[[nodiscard]] Table layer_table(const ModelFile& model, const Variant& variant, const TrainingStep& step,
                                const Precision& precision);

}  // namespace tbdsim
