#include "simulate/schedule/pipeline.h"

#include <algorithm>

namespace tbdsim {
namespace {

Seconds mean_total(std::span<const StageTime> stages) {
  Seconds sum;
  for (const StageTime& stage : stages) sum = sum + stage.total();
  return sum * (1 / static_cast<double>(stages.size()));
}

Seconds gpipe_time(std::span<const StageTime> stages, double micro_batches) {
  Seconds forward, backward, most_forward, most_backward;
  for (const StageTime& stage : stages) {
    forward = forward + stage.forward;
    backward = backward + stage.backward;
    most_forward = std::max(most_forward, stage.forward);
    most_backward = std::max(most_backward, stage.backward);
  }
  return forward + backward + (most_forward + most_backward) * (micro_batches - 1);
}

Seconds one_f_one_b_time(std::span<const StageTime> stages, std::int64_t micro_batches) {
  Seconds after;  // of all stages behind the one looked at
  for (const StageTime& stage : stages) after = after + stage.total();
  Seconds before, longest;
  const auto m = static_cast<double>(micro_batches);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageTime& stage = stages[i];
    after = after - stage.total();
    const auto ahead = std::min(static_cast<std::int64_t>(stages.size() - i), micro_batches);
    const double others = static_cast<double>(ahead - 1);
    const Seconds start = std::max(Seconds(0), after - stage.forward * others);
    const Seconds end = std::max(Seconds(0), after - stage.backward * others);
    const Seconds waits = ahead < micro_batches ? start + end : std::max(start, end);
    longest = std::max(longest, before + stage.total() * m + waits);
    before = before + stage.total();
  }
  return longest;
}

}  // namespace

PipelineTime pipeline_time(PipelineOrder order, std::span<const StageTime> stages, std::int64_t micro_batches,
                           std::int64_t chunks) {
  PipelineTime time;
  const auto m = static_cast<double>(micro_batches);
  for (std::size_t i = 1; i < stages.size(); ++i) {
    if (stages[i].total() > stages[static_cast<std::size_t>(time.busiest)].total())
      time.busiest = static_cast<int>(i);
  }
  time.busy = stages[static_cast<std::size_t>(time.busiest)].total() * m;
  const double others = static_cast<double>(stages.size()) - 1;
  if (order == PipelineOrder::gpipe) {
    time.step = gpipe_time(stages, m);
  } else if (order == PipelineOrder::zero_bubble) {
    Seconds weights;
    for (const StageTime& stage : stages) weights = weights + stage.weights;
    weights = weights * (1 / static_cast<double>(stages.size()));
    time.step = time.busy + std::max(Seconds(0), mean_total(stages) - weights * 2) * others;
  } else if (chunks > 1) {
    time.step = time.busy + mean_total(stages) * (others / static_cast<double>(chunks));
  } else {
    time.step = one_f_one_b_time(stages, micro_batches);
  }
  return time;
}

double micro_batches_in_flight(PipelineOrder order, std::int64_t stage, std::int64_t stages,
                               std::int64_t micro_batches, std::int64_t chunks) {
  const auto m = static_cast<double>(micro_batches);
  if (order == PipelineOrder::gpipe) return m;
  const auto behind = static_cast<double>(stages - 1 - stage);
  if (chunks == 1) return std::min(m, behind + 1);
  // Forward passes of chunks before the first backward pass: Megatron-LM's schedules.py.
  const auto v = static_cast<double>(chunks);
  const double warm_up = 2 * behind + (v - 1) * static_cast<double>(stages) + 1;
  return std::min(m, warm_up / v);
}

}  // namespace tbdsim
