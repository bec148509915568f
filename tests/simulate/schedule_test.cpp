// Pipelines: closed forms against the simulation of every event, and against sums done by hand.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/schedule/pipeline.h"
#include "simulate/schedule/pipeline_events.h"

namespace tbdsim {
namespace {

// Deterministic numbers in [0, 1): a linear congruential generator (Knuth).
class Numbers {
 public:
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) / 9007199254740992.0;
  }
  std::int64_t next(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(next() * static_cast<double>(most - least + 1));
  }

 private:
  std::uint64_t state_ = 1;
};

using Stages = std::vector<StageTime>;

StageTime stage(double forward, double backward) { return {Seconds(forward), Seconds(backward), Seconds(0)}; }

Seconds simulated(PipelineOrder order, const Stages& stages, std::int64_t micro_batches) {
  const std::vector<Stages> chunks{stages};
  return simulate_pipeline(order, chunks, micro_batches).step;
}

// Two stages of 1 s and 2 s, three micro-batches: 1F1B takes (3 + 2 - 1) * 3 = 12 s.
TEST(Schedule, EqualStagesByHand) {
  const Stages stages(2, stage(1, 2));
  for (const auto order : {PipelineOrder::one_f_one_b, PipelineOrder::gpipe}) {
    const PipelineTime time = pipeline_time(order, stages, 3);
    EXPECT_DOUBLE_EQ(time.step.si(), 12);
    EXPECT_DOUBLE_EQ(time.busy.si(), 9);
    EXPECT_DOUBLE_EQ(time.bubble().si(), 3);
    EXPECT_DOUBLE_EQ(simulated(order, stages, 3).si(), 12);
  }
}

// Narayanan et al. 2021: v chunks divide the bubble (p - 1)(f + b) by v. 4 stages of 2 chunks, 8
// micro-batches of 1 + 2 s: 8 * 3 + 3 * 3 / 2 = 28.5 s.
TEST(Schedule, InterleavingDividesTheBubble) {
  const Stages stages(4, stage(1, 2));
  EXPECT_DOUBLE_EQ(pipeline_time(PipelineOrder::one_f_one_b, stages, 8, 2).step.si(), 28.5);
  const std::vector<Stages> chunks(2, Stages(4, stage(0.5, 1)));
  EXPECT_DOUBLE_EQ(simulate_pipeline(PipelineOrder::one_f_one_b, chunks, 8).step.si(), 28.5);
}

// Qi et al. 2023, Table 1: the bubble of ZB-H1 is (p - 1)(f + b - w) with b of inputs alone: f = b = w = 1 s,
// 4 stages and 8 micro-batches 8 * 3 + 3 * 1 = 27 s; 1F1B 33 s.
TEST(Schedule, ZeroBubblePostponesWeights) {
  const Stages stages(4, {Seconds(1), Seconds(2), Seconds(1)});
  EXPECT_DOUBLE_EQ(pipeline_time(PipelineOrder::zero_bubble, stages, 8).step.si(), 27);
  EXPECT_DOUBLE_EQ(pipeline_time(PipelineOrder::one_f_one_b, stages, 8).step.si(), 33);
}

TEST(Schedule, ClosedFormIsExactForEqualStagesAndLongerEnds) {
  Numbers numbers;
  for (int i = 0; i < 500; ++i) {
    const auto count = static_cast<std::size_t>(numbers.next(1, 8));
    const std::int64_t passes = numbers.next(1, 24);
    Stages stages(count, stage(0.5 + numbers.next(), 1 + 2 * numbers.next()));
    if (i % 2 == 1) {
      stages.front().forward += Seconds(0.2 * numbers.next());
      stages.back().forward += Seconds(numbers.next());
      stages.back().backward += Seconds(numbers.next());
    }
    const double exact = simulated(PipelineOrder::one_f_one_b, stages, passes).si();
    EXPECT_NEAR(pipeline_time(PipelineOrder::one_f_one_b, stages, passes).step.si(), exact, 1e-12 * exact)
        << count << " stages, " << passes << " micro-batches";
    const double all = simulated(PipelineOrder::gpipe, Stages(count, stages[0]), passes).si();
    EXPECT_NEAR(pipeline_time(PipelineOrder::gpipe, Stages(count, stages[0]), passes).step.si(), all,
                1e-12 * all);
  }
}

TEST(Schedule, ClosedFormIsNearForAnyStages) {
  Numbers numbers;
  for (int i = 0; i < 500; ++i) {
    Stages stages(static_cast<std::size_t>(numbers.next(2, 8)));
    for (StageTime& each : stages) each = stage(0.5 + 1.5 * numbers.next(), 0.5 + 3.5 * numbers.next());
    const std::int64_t passes = numbers.next(1, 24);
    const double exact = simulated(PipelineOrder::one_f_one_b, stages, passes).si();
    const double closed = pipeline_time(PipelineOrder::one_f_one_b, stages, passes).step.si();
    EXPECT_LE(closed, exact * (1 + 1e-12));
    EXPECT_GE(closed, exact * 0.94);
  }
}

TEST(Schedule, InterleavedClosedFormIsNear) {
  Numbers numbers;
  for (int i = 0; i < 200; ++i) {
    const std::int64_t count = 2 * numbers.next(1, 4), v = numbers.next(2, 6);
    const std::int64_t passes = count * numbers.next(1, 6);
    std::vector<Stages> chunks(static_cast<std::size_t>(v),
                               Stages(static_cast<std::size_t>(count), stage(1, 2)));
    chunks.back().back().forward += Seconds(0.5 * numbers.next());
    Stages stages(static_cast<std::size_t>(count));
    for (const Stages& chunk : chunks) {
      for (std::size_t s = 0; s < stages.size(); ++s) {
        stages[s].forward += chunk[s].forward;
        stages[s].backward += chunk[s].backward;
      }
    }
    const double exact = simulate_pipeline(PipelineOrder::one_f_one_b, chunks, passes).step.si();
    EXPECT_NEAR(pipeline_time(PipelineOrder::one_f_one_b, stages, passes, v).step.si(), exact, 0.02 * exact);
  }
}

// A stage never runs two passes at once, and a pass starts after the one it needs.
TEST(Schedule, EventsKeepTheirOrder) {
  const std::vector<Stages> chunks(2, Stages(4, stage(1, 2)));
  const PipelineEvents all = simulate_pipeline(PipelineOrder::one_f_one_b, chunks, 8, Seconds(0.25));
  EXPECT_EQ(all.events.size(), 4u * 2 * 8 * 2);
  for (std::size_t i = 1; i < all.events.size(); ++i) {
    if (all.events[i].stage != all.events[i - 1].stage) continue;
    EXPECT_GE(all.events[i].start, all.events[i - 1].end);
  }
}

// Korthikanti et al. 2022, section 4.2.3: 1F1B keeps p micro-batches on the first of p stages, one on the
// last; interleaving with v = 2 on 4 stages p * (1 + (p - 1) / (p v)) = 4 * (1 + 3 / 8) = 5.5.
TEST(Schedule, MicroBatchesInFlight) {
  EXPECT_DOUBLE_EQ(micro_batches_in_flight(PipelineOrder::one_f_one_b, 0, 4, 16), 4);
  EXPECT_DOUBLE_EQ(micro_batches_in_flight(PipelineOrder::one_f_one_b, 3, 4, 16), 1);
  EXPECT_DOUBLE_EQ(micro_batches_in_flight(PipelineOrder::one_f_one_b, 0, 4, 2), 2);
  EXPECT_DOUBLE_EQ(micro_batches_in_flight(PipelineOrder::gpipe, 3, 4, 16), 16);
  EXPECT_DOUBLE_EQ(micro_batches_in_flight(PipelineOrder::one_f_one_b, 0, 4, 16, 2), 5.5);
}

TEST(Schedule, RejectsWhatItCannotSimulate) {
  const std::vector<Stages> chunks(2, Stages(4, stage(1, 2)));
  EXPECT_THROW((void)simulate_pipeline(PipelineOrder::one_f_one_b, chunks, 6), std::invalid_argument);
  EXPECT_THROW((void)simulate_pipeline(PipelineOrder::gpipe, chunks, 8), std::invalid_argument);
  EXPECT_THROW((void)simulate_pipeline(PipelineOrder::zero_bubble, std::vector<Stages>{chunks[0]}, 8),
               std::invalid_argument);
  EXPECT_THROW((void)simulate_pipeline(PipelineOrder::gpipe, {}, 8), std::invalid_argument);
}

}  // namespace
}  // namespace tbdsim
