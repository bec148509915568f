// Batches that count tokens: how many samples of a length they hold.
#pragma once

#include <cstdint>

#include "graphs/model.h"

namespace tbdsim {

// fitting:  tokens / length, at least 1.
// dividing: the largest divisor of a window that is at most that. The window is the largest highly composite
//           number up to three times the batch of the shortest samples. (2048 tokens, shortest 8: batch 256,
//           window 720, so batches of 240, 180, 144, 120, 90, ...)
[[nodiscard]] std::int64_t token_batch(TokenBatches rule, std::int64_t tokens, std::int64_t length,
                                       std::int64_t shortest);

}  // namespace tbdsim
