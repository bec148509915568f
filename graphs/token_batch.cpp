#include "graphs/token_batch.h"

#include <algorithm>

namespace tbdsim {
namespace {

// Highly composite numbers, in tensor2tensor's list.
constexpr std::int64_t kHighlyComposite[] = {
    1,        2,        4,        6,        12,       24,       36,       48,       60,       120,
    180,      240,      360,      720,      840,      1260,     1680,     2520,     5040,     7560,
    10080,    15120,    20160,    25200,    27720,    45360,    50400,    55440,    83160,    110880,
    166320,   221760,   277200,   332640,   498960,   554400,   665280,   720720,   1081080,  1441440,
    2162160,  2882880,  3603600,  4324320,  6486480,  7207200,  8648640,  10810800, 14414400, 17297280,
    21621600, 32432400, 36756720, 43243200, 61261200, 73513440, 110270160};

std::int64_t fitting(std::int64_t tokens, std::int64_t length) {
  return std::max<std::int64_t>(1, tokens / std::max<std::int64_t>(1, length));
}

}  // namespace

std::int64_t token_batch(TokenBatches rule, std::int64_t tokens, std::int64_t length, std::int64_t shortest) {
  const std::int64_t most = fitting(tokens, length);
  if (rule == TokenBatches::fitting) return most;
  constexpr std::int64_t kWindows = 3;
  const auto above = std::upper_bound(std::begin(kHighlyComposite), std::end(kHighlyComposite),
                                      kWindows * fitting(tokens, shortest));
  const std::int64_t window = *std::prev(above);
  std::int64_t batch = std::min(most, window);
  while (window % batch != 0) --batch;
  return batch;
}

}  // namespace tbdsim
