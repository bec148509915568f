// The time of one step of a pipeline: every micro-batch passes all stages forward and back. Closed forms, in
// O(stages), for the schedules of Megatron-LM; pipeline_events.h simulates the same schedules event by event.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "hwspecs/base/quantity.h"

namespace tbdsim {

// Orders in which a stage runs forward and backward passes.
//   gpipe        all forward passes, then all backward passes (Huang et al. 2019)
//   one_f_one_b  a backward pass as early as one can be, then one forward and one backward pass in turns
//                (Narayanan et al. 2019; 2021 with several chunks of layers on a stage: interleaved)
//   zero_bubble  the same, with the gradients of weights later, where a stage would wait (Qi et al. 2023, ZB-H1)
enum class PipelineOrder { gpipe, one_f_one_b, zero_bubble };
inline constexpr std::array<std::string_view, 3> kPipelineOrderNames = {"gpipe", "1f1b", "zero_bubble"};

// Times of one micro-batch on one stage, all its chunks together, with what it waits for in sending.
struct StageTime {
  Seconds forward;
  Seconds backward;  // all of it
  Seconds weights;   // of the backward pass: gradients of weights, which zero_bubble can postpone

  [[nodiscard]] Seconds total() const { return forward + backward; }
};

struct PipelineTime {
  Seconds step;     // from the first forward pass to the last backward pass
  Seconds busy;     // of the busiest stage
  int busiest = 0;  // its index, the first of several

  // Seconds in which the busiest stage waits: fill and drain of the pipeline.
  [[nodiscard]] Seconds bubble() const { return step - busy; }
};

// Step time of `micro_batches` through `stages`, each of which has `chunks` of layers (more than one:
// interleaved). For p stages with forward and backward times f and b, m micro-batches and v chunks:
//
//   gpipe        sum of f + (m - 1) * max f, and the same of b
//   one_f_one_b  the most over stages i of  a_i + m * (f_i + b_i) + w_i
//                a_i = sum of f + b before stage i; d_i = sum of f + b after it; n = min(p - i, m)
//                waits w_i: x = max(0, d_i - (n - 1) f_i), y = max(0, d_i - (n - 1) b_i); x + y, or the larger
//                of both where n = m
//   interleaved  m * max (f + b) + (p - 1) * (mean of f + b) / v
//   zero_bubble  m * max (f + b) + (p - 1) * (mean of f + b - 2 * weights)
//
// Exact for equal stages; one_f_one_b also where the first and the last stage do more than the others.
// Elsewhere within 5 % of the simulation (tests/simulate/schedule_test.cpp).
[[nodiscard]] PipelineTime pipeline_time(PipelineOrder order, std::span<const StageTime> stages,
                                         std::int64_t micro_batches, std::int64_t chunks = 1);

// Micro-batches whose activations stage `stage` of `stages` holds at most, in micro-batches of all its
// layers: with v chunks (Korthikanti et al. 2022, section 4.2.3) min(p, m) * (1 + (p - 1) / (p * v)) on the
// first stage, two micro-batches' chunks fewer on each later one.
[[nodiscard]] double micro_batches_in_flight(PipelineOrder order, std::int64_t stage, std::int64_t stages,
                                             std::int64_t micro_batches, std::int64_t chunks = 1);

}  // namespace tbdsim
