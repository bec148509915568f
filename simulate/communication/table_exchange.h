// Tables of embeddings that are spread over the ranks instead of copied to each (`sparse: true` and `shard:
// vocabulary` of a layer), as in the programs of DLRM: a rank looks up the rows of its own tables for the
// samples of all ranks, sends each rank its vectors, and gets their gradients back.
//
//   exchange   = all-reduce time of the vectors of a rank's samples: two all-to-alls, of half its bytes each; the
//                interaction waits for the first one, the tables' update for the second
//   imbalance  = (fullest - 1) * time of the tables' kernels
//   fullest    = tables of the fullest rank over the mean: ceil(tables / ranks) * ranks / tables, since a table is
//                not cut; a layer has a table for each position that it looks up
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

// True if the gradient is that of tables which the plan spreads over the ranks: it is exchanged in no bucket.
[[nodiscard]] bool is_spread_table(const TrainingStep& step, const ParameterGradient& gradient,
                                   const SyncPlan& plan);

[[nodiscard]] TableExchange table_exchange(const TrainingStep& step, const Timeline& timeline, double batch,
                                           const SyncPlan& plan);

}  // namespace tbdsim
