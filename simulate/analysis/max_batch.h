// The largest batch with which a model trains in a GPU's memory.
#pragma once

#include <cstdint>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Batches are in samples of the padded length that needs most memory.
struct LargestBatch {
  Prediction prediction;          // of one sample
  std::int64_t batch = 0;         // 0: not even one sample fits
  std::int64_t power_of_two = 0;  // the largest power of two up to `batch`; 0 where `batch` is 0
  MemoryPlan memory;              // of that batch; of one sample where none fits
  MemoryPlan next;                // of one sample more
};

[[nodiscard]] LargestBatch largest_batch_of(Prediction prediction);

}  // namespace tbdsim
