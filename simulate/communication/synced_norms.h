// The time in which batch norms wait for the statistics of all ranks (SyncBatchNorm; `synced_norms` of a
// lowering). Each norm of C channels has two collectives that the next kernel needs: means, deviations and a
// count (2 * C + 1 numbers) in the forward pass, two sums for each channel (2 * C) in the backward pass
// (pytorch/pytorch, torch/nn/modules/_functions.py, SyncBatchNorm). Both are taken as all-reduces of single
// precision.
#pragma once

#include "graphs/training_step.h"
#include "simulate/communication/sync_plan.h"

namespace tbdsim {

// Seconds of an iteration; 0 for ranks that do not meet in all-reduces.
[[nodiscard]] Seconds synced_norm_time(const TrainingStep& step, const SyncPlan& plan);

}  // namespace tbdsim
