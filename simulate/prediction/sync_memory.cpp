#include "simulate/prediction/sync_memory.h"

#include "simulate/communication/table_exchange.h"

namespace tbdsim {

void add_sync_memory(const Prediction& p, const TrainingStep& step, double samples, MemoryPlan& plan) {
  if (!p.sync) return;
  // Horovod has one fusion buffer, DistributedDataParallel has buckets for all gradients.
  Bytes& gradients = plan.use[MemoryCategory::weight_gradients];
  if (p.sync->bucket > Bytes(0)) {
    const bool one_buffer = p.sync->cycle > Seconds(0);
    gradients += one_buffer ? p.sync->bucket : gradients;
  }
  plan.use[MemoryCategory::weights] -= held_by_others(step, samples, TensorRole::weights, *p.sync);
  Bytes& optimizer = plan.use[MemoryCategory::dynamic];
  optimizer -= held_by_others(step, samples, TensorRole::dynamic, *p.sync);
  if (p.sync->method->shards_update) optimizer = optimizer * (1.0 / static_cast<double>(p.ranks()));
}

}  // namespace tbdsim
