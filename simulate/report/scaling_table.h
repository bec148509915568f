// Throughput on several GPUs and machines as a table.
#pragma once

#include <span>

#include "hwspecs/base/table.h"
#include "simulate/analysis/scaling.h"

namespace tbdsim {

// Rows of several models, batches and networks, with what to buy next as notes.
[[nodiscard]] Table scaling_table(std::span<const ScalingPoint> points,
                                  std::span<const AdvisedPoint> advised);

}  // namespace tbdsim
