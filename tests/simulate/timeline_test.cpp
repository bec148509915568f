// Timelines of steps put together by hand.
#include "simulate/timeline/timeline.h"

#include <gmock/gmock.h>

#include "graphs/parameter_updates.h"

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

// 2 s once, 3 s four times, 1 s once, with launches that take no time: one after another, 15 s in all.
TEST(Timeline, KernelsRunOneAfterAnother) {
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

TEST(Timeline, NothingTakesNoTime) {
  const Timeline t = simulate({}, {});
  EXPECT_TRUE(t.kernels.empty());
  EXPECT_EQ(t.iteration.si(), 0);
}

// A launch takes 2 s, a kernel 1 s: kernel i is launched at 2 * (i + 1) s and starts at once. The thread has
// launched all at 6 s, the GPU ends at 7 s, and the synchronization 0.5 s later.
TEST(Timeline, LaunchesAreTheLimit) {
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

// Three kernels take as long as one kernel repeated three times, whether launches or the GPU are the limit.
TEST(Timeline, RepeatsAreAsManyKernels) {
  for (const double launch : {0.25, 1.0, 2.0}) {
    for (const double gap : {0.0, 0.5}) {
      const LaunchModel launch_model{.launch_overhead = Seconds(launch),
                                     .sync_overhead = Seconds(0.5),
                                     .launch_latency = Seconds(0.125),
                                     .kernel_gap = Seconds(gap)};
      const Timeline apart = simulate({{kOnce, 1}, {kOnce, 1}, {kOnce, 1}}, launch_model);
      const Timeline together = simulate({{kernel_of(KernelKind::elementwise, 3), 1}}, launch_model);
      EXPECT_DOUBLE_EQ(apart.iteration.si(), together.iteration.si()) << launch << " " << gap;
      EXPECT_DOUBLE_EQ(apart.kernels[2].end.si(), together.kernels[0].end.si());
    }
  }
}

// A call of cuDNN takes the host 3 s more than another launch of 2 s.
TEST(Timeline, CallsOfCudnnTakeTheHostLonger) {
  const LaunchModel launch_model{.launch_overhead = Seconds(2), .library_call = Seconds(3)};
  const auto launch = [&](KernelKind kind) {
    Kernel kernel;
    kernel.kind = kind;
    return host_work(kernel, 1, launch_model).launch.si();
  };
  EXPECT_DOUBLE_EQ(launch(KernelKind::convolution), 5);
  EXPECT_DOUBLE_EQ(launch(KernelKind::batch_norm), 5);
  EXPECT_DOUBLE_EQ(launch(KernelKind::elementwise), 2);
  Kernel own;
  own.kind = KernelKind::batch_norm;
  own.access = Access::elements;
  EXPECT_DOUBLE_EQ(host_work(own, 1, launch_model).launch.si(), 2) << "PyTorch's";
}

// cuDNN copies images for TF32 within its call, which costs the host 2 + 3 s; any other copy is a launch of 2
// s.
TEST(Timeline, CopiesOfConvolutionsInTf32AreNoLaunches) {
  const LaunchModel launch_model{.launch_overhead = Seconds(2), .library_call = Seconds(3)};
  const auto launch = [&](KernelKind kind, bool tf32_only) {
    Kernel kernel;
    kernel.kind = kind;
    kernel.tf32_only = tf32_only;
    return host_work(kernel, 1, launch_model).launch.si();
  };
  EXPECT_DOUBLE_EQ(launch(KernelKind::transpose, true), 0);
  EXPECT_DOUBLE_EQ(launch(KernelKind::transpose, false), 2);
  EXPECT_DOUBLE_EQ(launch(KernelKind::convolution, true), 5);
}

// Without a synchronization at its end an iteration overlaps the next: the longer of 3 * 2 s on the CPU and 3
// * 1 s on the GPU.
TEST(Timeline, OverlapsTheNext) {
  LaunchModel launch_model{.launch_overhead = Seconds(2), .sync_after_iteration = false};
  EXPECT_DOUBLE_EQ(simulate({{kOnce, 1}, {kOnce, 1}, {kOnce, 1}}, launch_model).iteration.si(), 6);
  launch_model.launch_overhead = Seconds(0.5);
  EXPECT_DOUBLE_EQ(simulate({{kOnce, 1}, {kOnce, 1}, {kOnce, 1}}, launch_model).iteration.si(), 3);
}

// A kernel of 4 s launched in 1 s; a copy of 1 s, which the host processes for 2 s; another kernel of 4 s. 1
// + 4 + 1 s, synchronization 0.5, processing 2, launch 1, run 4, synchronization 0.5. The GPU is busy for 8
// s, the thread for 3 * 1 + 2 s.
TEST(Timeline, TheHostSynchronizesWithACopyAndProcessesIt) {
  const LaunchModel launch_model{.launch_overhead = Seconds(1), .sync_overhead = Seconds(0.5)};
  const Timeline t = simulate({{kOnce, 4}, {copy_to_host(2'000'000'000), 1}, {kOnce, 4}}, launch_model);
  EXPECT_DOUBLE_EQ(t.kernels[1].end.si(), 6);
  EXPECT_DOUBLE_EQ(t.kernels[1].launch_end.si(), 8.5);
  EXPECT_DOUBLE_EQ(t.kernels[2].start.si(), 9.5);
  EXPECT_DOUBLE_EQ(t.iteration.si(), 14);
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 8);
  EXPECT_DOUBLE_EQ(t.cpu_busy.si(), 5);
}

// Synchronizes after every two kernels: 1 + 3 + 3 s and 1 s, the same again, then 1 + 3 s and the 1 s at the
// end.
TEST(Timeline, SynchronizesAfterSoManyKernels) {
  const LaunchModel launch_model{
      .launch_overhead = Seconds(1), .sync_overhead = Seconds(1), .kernels_per_sync = 2};
  EXPECT_DOUBLE_EQ(simulate({{kernel_of(KernelKind::elementwise, 5), 3}}, launch_model).iteration.si(),
                   8 + 8 + 5);
  EXPECT_DOUBLE_EQ(
      simulate({{kOnce, 3}, {kernel_of(KernelKind::elementwise, 3), 3}, {kOnce, 3}}, launch_model)
          .iteration.si(),
      8 + 8 + 5);
  // 100 times two kernels: 8 s each.
  EXPECT_DOUBLE_EQ(simulate({{kernel_of(KernelKind::elementwise, 200), 3}}, launch_model).iteration.si(),
                   801);
}

// Two updates: launch 2, run 1, synchronization 0.5 s each; then the synchronization at the end.
TEST(Timeline, SynchronizesAfterEachUpdate) {
  const LaunchModel launch_model{.launch_overhead = Seconds(1),
                                 .update_overhead = Seconds(2),
                                 .sync_overhead = Seconds(0.5),
                                 .sync_after_update = true};
  const Timeline t =
      simulate({{kernel_of(KernelKind::update), 1}, {kernel_of(KernelKind::update), 1}}, launch_model);
  EXPECT_DOUBLE_EQ(t.iteration.si(), 7.5);
  EXPECT_DOUBLE_EQ(simulate({{kernel_of(KernelKind::update, 2), 1}}, launch_model).iteration.si(), 7.5);
}

// Layers 0 and 1 forward, 1 and 0 backward, 2 s each with a synchronization of 0.5 s; updates of 3 s that are
// launched in 1 s. The update of layer 1 is ready at 7.5 s: the other thread takes it (8.5 to 11.5), this one
// continues with layer 0 (7.5 to 9.5) and, from 10 s on, its update (11 to 14).
TEST(Timeline, UpdatesRunAsynchronously) {
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
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 8 + 4.5);  // from 9.5 to 14 s only updates run
  EXPECT_DOUBLE_EQ(t.cpu_busy.si(), 2);
}

// Launches and synchronizations of 1 s for each kernel. After a first kernel (1 to 3 s, synchronized at 4 s)
// one thread has two kernels of 2 s, the other one of 4 s. Alone they take 2 * 4 and 6 s; all kernels and a
// synchronization take 9 s, and so do both chains: their times after 4 s are stretched by 9/8 and 9/6. Then a
// last kernel, from 14 s on.
TEST(Timeline, TwoThreadsRunChainsConcurrently) {
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
  EXPECT_DOUBLE_EQ(t.iteration.si(), 18);  // with the synchronization at the end
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 12);
}

// Where launches take longer than all kernels, the longer chain sets the time: 2 * (3 + 1 + 1) s.
TEST(Timeline, TheLongerChainSetsTheTime) {
  LaunchModel launch_model{
      .launch_overhead = Seconds(3), .sync_overhead = Seconds(1), .kernels_per_sync = 1, .engine_threads = 2};
  const std::vector<std::pair<Kernel, double>> three(3, {kOnce, 1});
  EXPECT_DOUBLE_EQ(simulate(three, launch_model, {{0, 2, 3}}).iteration.si(), 11);
  launch_model.engine_threads = 1;
  EXPECT_DOUBLE_EQ(simulate(three, launch_model, {{0, 2, 3}}).iteration.si(), 16);
}

// Without a synchronization at the end, chains at the start synchronize with the last kernel of the iteration
// before (launched in 1 s, 2 s long): 1 + 2 + 1 s; both chains take two kernels and a synchronization, 5 s.
TEST(Timeline, ChainsAtTheStartSynchronizeWithTheIterationBefore) {
  const LaunchModel launch_model{.launch_overhead = Seconds(1),
                                 .sync_overhead = Seconds(1),
                                 .kernels_per_sync = 2,
                                 .sync_after_iteration = false,
                                 .engine_threads = 2};
  const Timeline t = simulate({{kOnce, 2}, {kOnce, 2}, {kOnce, 2}}, launch_model, {{0, 1, 2}});
  EXPECT_DOUBLE_EQ(t.iteration.si(), 9);
  EXPECT_DOUBLE_EQ(t.gpu_busy.si(), 6);
}

// Launches of 1 s, but none for a copy that is not made.
TEST(Timeline, ACopyThatIsNotMadeIsNotLaunched) {
  const Timeline t = simulate({{kOnce, 2}, {kOnce, 0}, {kOnce, 1}}, {.launch_overhead = Seconds(1)});
  EXPECT_DOUBLE_EQ(t.kernels[2].start.si(), 3);
  EXPECT_DOUBLE_EQ(t.iteration.si(), 4);
  EXPECT_DOUBLE_EQ(t.cpu_busy.si(), 2);
}

// Ten kernels of 1 s, launched in no time into a queue of four: the last finds room when the sixth has ended.
TEST(Timeline, TheQueueIsFinite) {
  LaunchModel launch_model{.launch_queue_depth = 4};
  std::vector<std::pair<Kernel, double>> ten(10, {kOnce, 1});
  EXPECT_DOUBLE_EQ(simulate(ten, launch_model).kernels[9].launch_end.si(), 6);
  EXPECT_DOUBLE_EQ(
      simulate({{kernel_of(KernelKind::elementwise, 10), 1}}, launch_model).kernels[0].launch_end.si(), 6);
  EXPECT_DOUBLE_EQ(simulate(ten, launch_model).iteration.si(), 10);
}

}  // namespace
}  // namespace tbdsim
