// Tables of a prediction's memory, and of the largest batches that fit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hwspecs/base/table.h"
#include "simulate/analysis/memory_breakdown.h"
#include "simulate/analysis/memory_savings.h"

namespace tbdsim {

// By the paper's categories, by layer at the peak (most first) or by kernel over time; below, where the peak
// is and whether all fits. `over_sizes`: what the allocator holds after images of many sizes, if they come
// so.
[[nodiscard]] Table memory_table(const Prediction& prediction, MemoryView view,
                                 std::optional<Bytes> over_sizes = std::nullopt);

// One row for the prediction as it is and for each change that takes less memory, with the time it costs.
[[nodiscard]] Table memory_savings_table(const Prediction& prediction, const std::vector<Saving>& savings);

// A model's largest batch on a card.
struct LargestBatch {
  Prediction prediction;          // of one sample
  std::int64_t batch = 0;         // 0: not even one sample fits
  std::int64_t power_of_two = 0;  // the largest of these
  MemoryPlan memory;              // of that batch; of one sample where none fits
  MemoryPlan next;                // of one sample more
};

[[nodiscard]] LargestBatch largest_batch_of(Prediction prediction);

[[nodiscard]] Table largest_batch_table(std::span<const LargestBatch> batches);

}  // namespace tbdsim
