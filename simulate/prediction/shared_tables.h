// Memory of tables of embeddings that ranks share.
#pragma once

#include "simulate/communication/table_exchange.h"
#include "simulate/memory/category.h"
#include "simulate/prediction/resolved_scenario.h"

namespace tbdsim {

// Takes out of a rank's memory the tables that other ranks keep, and their optimizer state.
inline void leave_out_tables_of_others(const ResolvedScenario& scenario, const TrainingStep& step,
                                       MemoryUse& use) {
  if (!scenario.sync) return;
  for (const TensorRole role : {TensorRole::weights, TensorRole::dynamic})
    use[category_of(role)] -= tables_of_other_ranks(step, role, *scenario.sync);
}

}  // namespace tbdsim
