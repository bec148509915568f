// Memory that ranks add to, and take from, that of one GPU alone.
#pragma once

#include "simulate/memory/memory_plan.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Changes the plan of a step at so many samples to that of a rank; without a plan to synchronize it is left.
//
//   buckets            hold a copy of the gradients
//   tables             of embeddings that ranks share: the parts of other ranks, with their optimizer state
//   optimizer's state  divided by the ranks where they divide the update (ZeRO-1)
void add_sync_memory(const Prediction& p, const TrainingStep& step, double samples, MemoryPlan& plan);

}  // namespace tbdsim
