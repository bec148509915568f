// Layers that ranks share instead of all computing them, as in the programs of DLRM. Tables of embeddings are
// spread over the ranks (`sparse: true` and `shard: vocabulary` of a layer): a rank looks up the rows of its
// own tables for the samples of all ranks, sends each rank its vectors, and gets their gradients back. One
// rank computes the lower network for the samples of all (`shard: first_rank`).
//
//   exchange   = max(all-reduce time of the vectors of a rank's samples, 2 * network) - hidden: two all-to-alls, of
//                half its bytes each; the interaction waits for the first one, the tables' update for the second
//   network    = i * (1 - 1 / o) * S / (e * B): what i ranks of one of o machines send out of it, of S bytes each,
//                at B bytes a second of which a link sustains the part e
//   hidden     = 0 unless tables are cut; else min(exchange / 2, forward) + min(exchange / 2, backward) over the
//                kernels of layers before the tables', beside which the vectors are exchanged
//   imbalance  = sum over passes, forward and backward, of slowest - own
//   own        = l + t: time of the lower network's and of the tables' kernels for a rank's samples
//   slowest    = max(n * l, f * t) where the first of n ranks has no tables, else n * l + f * t
//   f          = tables of the fullest rank over the mean: ceil(tables / holders) * n / tables, since a table
//                is whole; a layer has a table for each position that it looks up; 1 where tables are cut
//                (NVIDIA-Merlin/HugeCTR@2f2016f, samples/dlrm/sharding/planner.py; HugeCTR/src/pybind/
//                model_pipeline.cpp, train_intra_iteration_overlap)
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

// Bytes that the fullest rank does not hold of a step's tensors in a role: other ranks have their part of the
// tables.
[[nodiscard]] Bytes held_by_others(const TrainingStep& step, double batch, TensorRole role,
                                   const SyncPlan& plan);

[[nodiscard]] TableExchange table_exchange(const TrainingStep& step, const Timeline& timeline, double batch,
                                           const SyncPlan& plan);

}  // namespace tbdsim
