// What a model is made of: its layers, and the kernels of one training iteration with their cost.
#pragma once

#include "simulate/prediction.h"
#include "hwspecs/base/sheet.h"

namespace tbdsim {

// Layers with output shape, parameters, multiply-adds and output bytes for one sample; totals.
[[nodiscard]] Sheet layer_sheet(const Model& model, const TrainingStep& step, const Precision& precision);

// Every kernel in the order it runs, its work, time, bound and where the time comes from; totals.
[[nodiscard]] Sheet kernel_sheet(const Prediction& prediction);

}  // namespace tbdsim
