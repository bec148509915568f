// Tables of a prediction's memory, and of the largest batches that fit.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hwspecs/base/table.h"
#include "simulate/analysis/max_batch.h"
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

// A row for each.
[[nodiscard]] Table largest_batch_table(std::span<const LargestBatch> batches);

}  // namespace tbdsim
