// Two clocks on steps put together by hand.
#include <gmock/gmock.h>

#include "graphs/parameter_updates.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {
namespace {

Kernel kernel_of(KernelKind kind, std::int64_t repeat = 1) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.repeat = repeat;
  return kernel;
}

Kernel copy_to_host(std::int64_t host_nanoseconds = 0) {
  Kernel kernel = kernel_of(KernelKind::transfer);
  kernel.op = "device_to_host";
  kernel.host_nanoseconds = {host_nanoseconds, 0};
  return kernel;
}

Timeline simulate(const std::vector<std::pair<Kernel, double>>& work, const LaunchModel& launch_model,
                  const std::vector<IndependentChains>& chains = {}) {
  TrainingStep step;
  step.chains = chains;
  std::vector<KernelCost> costs;
  for (const auto& [kernel, seconds] : work) {
    step.kernels.push_back(kernel);
    if (kernel.layer >= static_cast<int>(step.layers.size())) step.layers.resize(step.layers.size() + 1);
    costs.emplace_back().total = Seconds(seconds);
  }
  step.updates = parameter_updates(step);
  return simulate_timeline(step, costs, 1, launch_model);
}

const Kernel kOnce = kernel_of(KernelKind::elementwise);

// 2 s once, 3 s four times, 1 s once, issued in no time: one after another, 15 s in all.
TEST(Iteration, KernelsRunOneAfterAnother) {
  const Timeline t = simulate({{kOnce, 2}, {kernel_of(KernelKind::elementwise, 4), 3}, {kOnce, 1}}, {});
  const double expected[][2] = {{0, 2}, {2, 14}, {14, 15}};
  ASSERT_EQ(t.kernels.size(), 3u);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_DOUBLE_EQ(t.kernels[k].start.si(), expected[k][0]);
    EXPECT_DOUBLE_EQ(t.kernels[k].end.si(), expected[k][1]);
  }
  EXPECT_DOUBLE_EQ(t.iteration.si(), 15);
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 15);
}

TEST(Iteration, NothingTakesNoTime) {
  const Timeline t = simulate({}, {});
  EXPECT_TRUE(t.kernels.empty());
  EXPECT_EQ(t.iteration.si(), 0);
}

// Issue takes 2 s, a kernel 1 s: kernel i is issued at 2 (i + 1) and starts at once. The thread ends at 6 s,
// the GPU at 7 s, where the thread waits; 0.5 s later the next iteration begins.
TEST(Iteration, TheThreadIsTheLimit) {
  const LaunchModel launch_model{.launch_overhead = Seconds(2), .sync_overhead = Seconds(0.5)};
  const Timeline t = simulate({{kOnce, 1}, {kOnce, 1}, {kOnce, 1}}, launch_model);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_DOUBLE_EQ(t.kernels[k].launch_start.si(), 2.0 * static_cast<double>(k));
    EXPECT_DOUBLE_EQ(t.kernels[k].start.si(), 2.0 * static_cast<double>(k + 1));
  }
  EXPECT_DOUBLE_EQ(t.iteration.si(), 7.5);
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 3);
  EXPECT_DOUBLE_EQ(t.cpu_busy.si(), 6);
}

// The same three as one kernel that repeats, whichever side is the limit.
TEST(Iteration, RepeatsAreAsManyKernels) {
  for (const double issue : {0.25, 1.0, 2.0}) {
    for (const double gap : {0.0, 0.5}) {
      const LaunchModel launch_model{.launch_overhead = Seconds(issue),
                                     .sync_overhead = Seconds(0.5),
                                     .launch_latency = Seconds(0.125),
                                     .kernel_gap = Seconds(gap)};
      const Timeline apart = simulate({{kOnce, 1}, {kOnce, 1}, {kOnce, 1}}, launch_model);
      const Timeline together = simulate({{kernel_of(KernelKind::elementwise, 3), 1}}, launch_model);
      EXPECT_DOUBLE_EQ(apart.iteration.si(), together.iteration.si()) << issue << " " << gap;
      EXPECT_DOUBLE_EQ(apart.kernels[2].end.si(), together.kernels[0].end.si());
    }
  }
}

// Without a wait at its end an iteration overlaps the next: the longer of 3 x 2 s on the CPU and 3 x 1 s on
// the GPU.
TEST(Iteration, OverlapsTheNext) {
  LaunchModel launch_model{.launch_overhead = Seconds(2), .sync_after_iteration = false};
  EXPECT_DOUBLE_EQ(simulate({{kOnce, 1}, {kOnce, 1}, {kOnce, 1}}, launch_model).iteration.si(), 6);
  launch_model.launch_overhead = Seconds(0.5);
  EXPECT_DOUBLE_EQ(simulate({{kOnce, 1}, {kOnce, 1}, {kOnce, 1}}, launch_model).iteration.si(), 3);
}

// Kernel of 4 s issued in 1 s; copy of 1 s; the host works 2 s; another kernel of 4 s. 1 + 4 + 1, wait 0.5,
// work 2, issue 1, run 4, wait 0.5. The GPU is busy 8 s, the thread works 3 x 1 + 2 s.
TEST(Iteration, TheHostWaitsForACopyAndWorksOnIt) {
  const LaunchModel launch_model{.launch_overhead = Seconds(1), .sync_overhead = Seconds(0.5)};
  const Timeline t = simulate({{kOnce, 4}, {copy_to_host(2'000'000'000), 1}, {kOnce, 4}}, launch_model);
  EXPECT_DOUBLE_EQ(t.kernels[1].end.si(), 6);
  EXPECT_DOUBLE_EQ(t.kernels[1].launch_end.si(), 8.5);
  EXPECT_DOUBLE_EQ(t.kernels[2].start.si(), 9.5);
  EXPECT_DOUBLE_EQ(t.iteration.si(), 14);
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 8);
  EXPECT_DOUBLE_EQ(t.cpu_busy.si(), 5);
}

// Segments of two: 1 + 3 + 3, wait 1, the same again, then half a segment of 1 + 3 and the wait at the end.
TEST(Iteration, WaitsAfterEachSegment) {
  const LaunchModel launch_model{
      .launch_overhead = Seconds(1), .sync_overhead = Seconds(1), .kernels_per_sync = 2};
  EXPECT_DOUBLE_EQ(simulate({{kernel_of(KernelKind::elementwise, 5), 3}}, launch_model).iteration.si(),
                   8 + 8 + 5);
  EXPECT_DOUBLE_EQ(
      simulate({{kOnce, 3}, {kernel_of(KernelKind::elementwise, 3), 3}, {kOnce, 3}}, launch_model)
          .iteration.si(),
      8 + 8 + 5);
  // Many segments are as long as a few of them say: 100 of 8 s.
  EXPECT_DOUBLE_EQ(simulate({{kernel_of(KernelKind::elementwise, 200), 3}}, launch_model).iteration.si(),
                   801);
}

// Two updates: issue 2, run 1, wait 0.5 each; then the wait at the end.
TEST(Iteration, WaitsAfterEachUpdate) {
  const LaunchModel launch_model{.launch_overhead = Seconds(1),
                                 .update_overhead = Seconds(2),
                                 .sync_overhead = Seconds(0.5),
                                 .sync_after_update = true};
  const Timeline t =
      simulate({{kernel_of(KernelKind::update), 1}, {kernel_of(KernelKind::update), 1}}, launch_model);
  EXPECT_DOUBLE_EQ(t.iteration.si(), 7.5);
  EXPECT_DOUBLE_EQ(simulate({{kernel_of(KernelKind::update, 2), 1}}, launch_model).iteration.si(), 7.5);
}

// Layers 0 and 1 forward, 1 and 0 backward, 2 s each with a wait of 0.5; updates of 3 s that are issued in 1.
// That of layer 1 is ready at 7.5 s: the other worker takes it (8.5 to 11.5), this one goes on with layer 0
// (7.5 to 9.5) and, from 10 s on, its update (11 to 14).
TEST(Iteration, UpdatesRunBeside) {
  const auto of = [](int layer, Phase phase) {
    Kernel kernel = kernel_of(phase == Phase::update ? KernelKind::update : KernelKind::elementwise);
    kernel.layer = layer;
    kernel.phase = phase;
    return kernel;
  };
  const LaunchModel launch_model{.update_overhead = Seconds(1),
                                 .sync_overhead = Seconds(0.5),
                                 .kernels_per_sync = 1,
                                 .engine_threads = 2};
  const Timeline t = simulate({{of(0, Phase::forward), 2},
                               {of(1, Phase::forward), 2},
                               {of(1, Phase::backward_data), 2},
                               {of(0, Phase::backward_data), 2},
                               {of(0, Phase::update), 3},
                               {of(1, Phase::update), 3}},
                              launch_model);
  const double expected[][4] = {{0, 0, 2, 0},     {0, 2.5, 4.5, 0}, {0, 5, 7, 0},
                                {0, 7.5, 9.5, 0}, {1, 11, 14, 0},   {1, 8.5, 11.5, 1}};
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_EQ(t.kernels[k].async_update, expected[k][0] == 1);
    EXPECT_DOUBLE_EQ(t.kernels[k].start.si(), expected[k][1]);
    EXPECT_DOUBLE_EQ(t.kernels[k].end.si(), expected[k][2]);
    EXPECT_EQ(t.kernels[k].engine_thread, static_cast<int>(expected[k][3]));
  }
  EXPECT_DOUBLE_EQ(t.iteration.si(), 15);
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 8 + 4.5);  // of the updates, from 9.5 to 14 s nothing else runs
  EXPECT_DOUBLE_EQ(t.cpu_busy.si(), 2);
}

// 1 s to issue and 1 s to wait for each. After a first kernel (1 to 3 s, waited for until 4 s) one worker has
// two kernels of 2 s, the other one of 4 s. Alone they take 2 x 4 and 6 s; all kernels and a wait take 9 s,
// and so both do: times after 4 s are 9/8 and 9/6 of those alone. Then a last kernel, from 14 s on.
TEST(Iteration, TwoWorkersRunChainsSideBySide) {
  const LaunchModel launch_model{
      .launch_overhead = Seconds(1), .sync_overhead = Seconds(1), .kernels_per_sync = 1, .engine_threads = 2};
  const Timeline t =
      simulate({{kOnce, 2}, {kOnce, 2}, {kOnce, 2}, {kOnce, 4}, {kOnce, 2}}, launch_model, {{1, 3, 4}});
  const double expected[][3] = {
      {1, 3, 0}, {5.125, 7.375, 0}, {9.625, 11.875, 0}, {5.5, 11.5, 1}, {14, 16, 0}};
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_DOUBLE_EQ(t.kernels[k].start.si(), expected[k][0]);
    EXPECT_DOUBLE_EQ(t.kernels[k].end.si(), expected[k][1]);
    EXPECT_EQ(t.kernels[k].engine_thread, static_cast<int>(expected[k][2]));
  }
  EXPECT_DOUBLE_EQ(t.iteration.si(), 18);  // with the wait at the end
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 12);
}

// Where issuing takes longer than all kernels, the longer chain sets the time: 2 x (3 + 1 + 1) s.
TEST(Iteration, TheLongerChainSetsTheTime) {
  LaunchModel launch_model{
      .launch_overhead = Seconds(3), .sync_overhead = Seconds(1), .kernels_per_sync = 1, .engine_threads = 2};
  const std::vector<std::pair<Kernel, double>> three(3, {kOnce, 1});
  EXPECT_DOUBLE_EQ(simulate(three, launch_model, {{0, 2, 3}}).iteration.si(), 11);
  launch_model.engine_threads = 1;
  EXPECT_DOUBLE_EQ(simulate(three, launch_model, {{0, 2, 3}}).iteration.si(), 16);
}

// Where nothing is waited for at the end, chains at the start wait for the last kernel of the iteration
// before (2 s, from 1 s after its issue began) and 1 s: 1 + 2 + 1 s; both together take two kernels and a
// wait, 5 s.
TEST(Iteration, ChainsAtTheStartWaitForTheIterationBefore) {
  const LaunchModel launch_model{.launch_overhead = Seconds(1),
                                 .sync_overhead = Seconds(1),
                                 .kernels_per_sync = 2,
                                 .sync_after_iteration = false,
                                 .engine_threads = 2};
  const Timeline t = simulate({{kOnce, 2}, {kOnce, 2}, {kOnce, 2}}, launch_model, {{0, 1, 2}});
  EXPECT_DOUBLE_EQ(t.iteration.si(), 9);
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 6);
}

// 1 s to issue each, but for a copy that is not made.
TEST(Iteration, WhatIsNotMadeIsNotIssued) {
  const Timeline t = simulate({{kOnce, 2}, {kOnce, 0}, {kOnce, 1}}, {.launch_overhead = Seconds(1)});
  EXPECT_DOUBLE_EQ(t.kernels[2].start.si(), 3);
  EXPECT_DOUBLE_EQ(t.iteration.si(), 4);
  EXPECT_DOUBLE_EQ(t.cpu_busy.si(), 2);
}

// Ten kernels of 1 s, issued in no time into a queue of four: the last finds room when the sixth has ended.
TEST(Iteration, TheQueueIsFinite) {
  LaunchModel launch_model{.launch_queue_depth = 4};
  std::vector<std::pair<Kernel, double>> ten(10, {kOnce, 1});
  EXPECT_DOUBLE_EQ(simulate(ten, launch_model).kernels[9].launch_end.si(), 6);
  EXPECT_DOUBLE_EQ(
      simulate({{kernel_of(KernelKind::elementwise, 10), 1}}, launch_model).kernels[0].launch_end.si(), 6);
  EXPECT_DOUBLE_EQ(simulate(ten, launch_model).iteration.si(), 10);
}

}  // namespace
}  // namespace tbdsim
