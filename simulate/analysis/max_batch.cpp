#include "simulate/analysis/max_batch.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tbdsim {

LargestBatch largest_batch_of(Prediction p) {
  LargestBatch answer;
  answer.batch = p.largest_batch();
  answer.power_of_two = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(answer.batch)));
  answer.memory = p.memory_at(std::max<std::int64_t>(1, answer.batch));
  answer.next = p.memory_at(answer.batch + 1);
  answer.prediction = std::move(p);
  return answer;
}

}  // namespace tbdsim
