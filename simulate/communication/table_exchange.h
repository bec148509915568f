// Layers that ranks share instead of all computing them, as in the programs of DLRM. Tables of embeddings are
// spread over the ranks (`sparse: true` and `shard: vocabulary` of a layer): a rank looks up the rows of its
// own tables for the samples of all ranks, sends each rank its vectors, and gets their gradients back. One
// rank computes the lower network for the samples of all (`shard: first_rank`).
//
//   exchange   = all-reduce time of the vectors of a rank's samples: two all-to-alls, of half its bytes each; the
//                interaction waits for the first one, the tables' update for the second
//   imbalance  = sum over passes, forward and backward, of slowest - own
//   own        = l + t: time of the lower network's and of the tables' kernels for a rank's samples
//   slowest    = max(n * l, f * t) where the first of n ranks has no tables, else n * l + f * t
//   f          = tables of the fullest rank over the mean: ceil(tables / holders) * n / tables, since a table
//                is not cut; a layer has a table for each position that it looks up
//   holders    = n - 1 beside a lower network where n > 4, else n (NVIDIA/DeepLearningExamples@729963dd,
//                PyTorch/Recommendation/DLRM/dlrm/utils/distributed.py, get_device_mapping)
#pragma once

#include "graphs/training_step.h"
#include "simulate/communication/sync_plan.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {

struct TableExchange {
  Seconds exchange;
  Seconds imbalance;
  Bytes vectors;  // of a rank's samples
};

// True if the gradient is of a layer that the plan's ranks share: it is exchanged in no bucket.
[[nodiscard]] bool is_of_shared_layer(const TrainingStep& step, const ParameterGradient& gradient,
                                      const SyncPlan& plan);

// Bytes of the tensors of tables that the fullest rank does not keep, of those with this role; 0 where no
// table is shared.
[[nodiscard]] Bytes tables_of_other_ranks(const TrainingStep& step, TensorRole role, const SyncPlan& plan);

[[nodiscard]] TableExchange table_exchange(const TrainingStep& step, const Timeline& timeline, double batch,
                                           const SyncPlan& plan);

}  // namespace tbdsim
