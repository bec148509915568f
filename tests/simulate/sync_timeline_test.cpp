// Exchanges over a timeline made by hand: one kernel a second, backward kernels 3, 4 and 5 with a gradient
// each.
#include "simulate/communication/sync_timeline.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

constexpr double kGradient = 1e9;  // elements

TrainingStep step() {
  TrainingStep step;
  step.layers.resize(3);
  for (int k = 0; k < 6; ++k) {
    Kernel kernel;
    kernel.layer = k < 3 ? k : 5 - k;
    kernel.phase = k < 3 ? Phase::forward : Phase::backward_weights;
    step.kernels.push_back(kernel);
    if (k >= 3) step.gradients.push_back({5 - k, fixed_size(static_cast<std::int64_t>(kGradient)), k, 1});
  }
  return step;
}

Timeline timeline() {
  Timeline timeline;
  for (int k = 0; k < 6; ++k) {
    timeline.kernels.push_back({Seconds(k), Seconds(k), Seconds(k), Seconds(k + 1)});
  }
  timeline.iteration = timeline.gpu_busy = Seconds(6);
  return timeline;
}

GpuSpec endless_memory() {
  GpuSpec gpu;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = BytesPerSecond(1e30);
  return gpu;
}

// One stage that takes `seconds` for each gradient of 4 GB.
SyncPlan one_stage(double seconds, const char* method = "kvstore_local") {
  SyncPlan plan;
  plan.method = &find_sync_method(method);
  plan.cluster = {.gpus = 2};
  plan.overlaps = plan.method->overlaps;
  plan.stages.push_back(
      {.name = "all", .all_reduce = {}, .message = {}, .rate = BytesPerSecond(4e9 / seconds)});
  return plan;
}

SyncTime times(const SyncPlan& plan) {
  return simulate_sync(step(), timeline(), 1, {}, endless_memory(), plan);
}

// Ready at 4, 5 and 6 s, half a second each: only the last one is waited for.
TEST(DataParallel, OverlapsWithTheBackwardPass) {
  const SyncTime time = times(one_stage(0.5));
  EXPECT_NEAR(time.exposed.si(), 0.5, 1e-9);
  EXPECT_NEAR(time.total.si(), 1.5, 1e-9);
  EXPECT_EQ(time.messages, 3);
  EXPECT_DOUBLE_EQ(time.gradients.si(), 12e9);
}

// A program that keeps its variables on the host copies them in its own step: servers there do not do so
// again, other plans know of no host.
TEST(DataParallel, ServersOnTheHostDoTheCopiesOfVariablesThere) {
  TrainingStep copies = step();
  copies.kernels.push_back(copies.kernels.back());
  copies.kernels.back().kind = KernelKind::transfer;
  copies.kernels.back().layer = -1;
  Timeline longer = timeline();
  longer.kernels.push_back({Seconds(6), Seconds(6), Seconds(6), Seconds(6.25)});
  const auto exposed = [&](const char* method) {
    return simulate_sync(copies, longer, 1, {}, endless_memory(), one_stage(0.5, method), Seconds(0.25))
        .exposed.si();
  };
  EXPECT_NEAR(exposed("parameter_server_cpu"), 0.25, 1e-9);
  EXPECT_NEAR(exposed("all_reduce"), 0.5, 1e-9);
}

// Two seconds each, one after another from 4 s on: through at 10 s.
TEST(DataParallel, MessagesQueue) { EXPECT_NEAR(times(one_stage(2)).exposed.si(), 4, 1e-9); }

// The timeline has the kernels of two batches; the second's half of the backward pass makes gradients:
// ready at 5, 5.5 and 6 s, through at 11 s.
TEST(DataParallel, ExchangesInTheLastBatch) {
  TrainingStep both = step();
  both.batches = 2;
  EXPECT_NEAR(simulate_sync(both, timeline(), 1, {}, endless_memory(), one_stage(2)).exposed.si(), 5, 1e-9);
}

// Two stages are a pipeline: the second has the first's message while that has the next.
TEST(DataParallel, StagesArePipelined) {
  SyncPlan plan = one_stage(2);
  plan.stages.push_back(plan.stages.front());
  EXPECT_NEAR(times(plan).exposed.si(), 6, 1e-9);
}

// All of 12 GB after the backward pass.
TEST(DataParallel, WithoutOverlap) {
  SyncPlan plan = one_stage(0.5);
  plan.overlaps = false;
  EXPECT_NEAR(times(plan).exposed.si(), 1.5, 1e-9);
}

// Buckets of 5 GB: the first two go together at 5 s, the last by itself.
TEST(DataParallel, Buckets) {
  SyncPlan plan = one_stage(0.5);
  plan.bucket = plan.first_bucket = Bytes(5e9);
  EXPECT_EQ(times(plan).messages, 2);
  EXPECT_NEAR(times(plan).exposed.si(), 0.5, 1e-9);
}

// A thread that looks every 10 s from 0 s on finds all three at 10 s; every 4.5 s the first at 4.5 s, and the
// others at 9 s. Up to 5 GB go together: what is left waits until the thread looks again.
TEST(DataParallel, AThreadThatLooksForGradients) {
  SyncPlan plan = one_stage(0.5);
  plan.bucket = plan.first_bucket = Bytes(100e9);
  plan.cycle = Seconds(10);
  EXPECT_EQ(times(plan).messages, 1);
  EXPECT_NEAR(times(plan).exposed.si(), 10 + 1.5 - 6, 1e-9);
  plan.cycle = Seconds(4.5);
  EXPECT_EQ(times(plan).messages, 2);
  EXPECT_NEAR(times(plan).exposed.si(), 9 + 1 - 6, 1e-9);
  plan.bucket = Bytes(5e9);
  EXPECT_EQ(times(plan).messages, 3);
  EXPECT_NEAR(times(plan).exposed.si(), 13.5 + 0.5 - 6, 1e-9);
}

// The communication thread sees collectives when their kernels are launched, here at once: it takes all three
// at 1 s and waits for the last gradient, computed at 6 s. In pairs it takes the third at 5 s.
TEST(DataParallel, AThreadThatIsToldEarlyWaits) {
  Timeline ahead = timeline();
  for (KernelSpan& span : ahead.kernels) span.launch_start = span.launch_end = Seconds(0.5);
  SyncPlan plan = one_stage(0.5);
  plan.stages.front().on_gpu = true;
  plan.bucket = plan.first_bucket = Bytes(100e9);
  plan.cycle = Seconds(1);
  const auto all = [&] { return simulate_sync(step(), ahead, 1, {}, endless_memory(), plan); };
  EXPECT_EQ(all().messages, 1);
  EXPECT_NEAR(all().exposed.si(), 1.5, 1e-9);
  plan.bucket = Bytes(8e9);
  EXPECT_EQ(all().messages, 2);
  EXPECT_NEAR(all().exposed.si(), 0.5, 1e-9);
}

// Ready at 4 s, while kernel 4 runs: a collective's kernel gets its room at 5 s.
TEST(DataParallel, CollectivesWaitForRoom) {
  SyncPlan plan = one_stage(2.5);
  const double copies = times(plan).exposed.si();
  plan.stages.front().on_gpu = true;
  const double kernels = times(plan).exposed.si();
  EXPECT_NEAR(copies, 4 + 3 * 2.5 - 6, 1e-9);
  EXPECT_GE(kernels, copies);
}

// Kernel 4 runs from 4 to 10 s beside kernel 5, which makes the last gradient at 6 s; the others are made at
// 4 s. In steps of 1.5 s the second message could start at 5.5 s, beside both kernels: it starts at 6 s, as
// one that came later would. Through at 9 s, and at 10 s in steps of 2 s.
TEST(DataParallelProperty, AFasterLinkFindsRoomNoLater) {
  TrainingStep chains = step();
  chains.gradients[1].ready = 3;
  Timeline longer = timeline();
  longer.kernels[4].end = Seconds(10);
  const auto exposed = [&](double seconds) {
    SyncPlan plan = one_stage(seconds);
    plan.stages.front().on_gpu = true;
    return simulate_sync(chains, longer, 1, {}, endless_memory(), plan).exposed.si();
  };
  EXPECT_NEAR(exposed(1.5), 3, 1e-9);
  EXPECT_NEAR(exposed(2), 4, 1e-9);
}

// Parameters for layers 0, 1 and 2 come at 2, 4 and 6 s; the forward pass wants them at 0, 1 and 2 s, and
// waits 2 s, 1 s more and 1 s more.
TEST(DataParallel, TheForwardPassWaitsForParameters) {
  SyncPlan plan = one_stage(2);
  plan.stages.front().next_forward = true;
  EXPECT_NEAR(times(plan).exposed.si(), 4, 1e-9);
}

// E of the largest of n normal draws: 0.564 of 2, 1.029 of 4, 1.424 of 8, 1.766 of 16, 2.508 of 100.
TEST(DataParallel, Stragglers) {
  EXPECT_EQ(expected_largest(1), 0);
  EXPECT_NEAR(expected_largest(2), 0.564, 0.03);
  EXPECT_NEAR(expected_largest(4), 1.029, 0.03);
  EXPECT_NEAR(expected_largest(16), 1.766, 0.03);
  EXPECT_NEAR(expected_largest(100), 2.508, 0.03);
  EXPECT_NEAR(times(one_stage(0.5)).stragglers.si(), 6 * kRankSpread * expected_largest(2), 1e-12);
  EXPECT_EQ(times(one_stage(0.5, "kvstore_dist_async")).stragglers, Seconds(0));
}

// Three arrays of a billion elements are sharded over the servers. Small arrays of one key are on one server.
TEST(DataParallel, MxnetsServers) {
  EXPECT_DOUBLE_EQ(fullest_server(step().gradients, 1, 4), 1);
  std::vector<ParameterGradient> small{{0, fixed_size(100), 0, 1}};
  EXPECT_DOUBLE_EQ(fullest_server(small, 1, 4), 4);
  small.push_back({0, fixed_size(100), 0, 1});  // 9973 mod 4 is 1: on the next one
  EXPECT_DOUBLE_EQ(fullest_server(small, 1, 4), 2);
}

// Arrays of 6, 3, 2 and 1 on two GPUs: 6 beside 3 + 2 + 1; the mean is 6. On four the largest is twice the
// mean.
TEST(DataParallel, ArraysLieWholeOnOneGpu) {
  std::vector<ParameterGradient> arrays;
  for (const std::int64_t size : {1, 6, 2, 3}) arrays.push_back({0, fixed_size(size), 0, 1});
  EXPECT_DOUBLE_EQ(fullest_gpu(arrays, 1, 2), 1);
  EXPECT_DOUBLE_EQ(fullest_gpu(arrays, 1, 4), 2);
  EXPECT_DOUBLE_EQ(fullest_gpu({}, 1, 4), 1);
}

// The same as the forward pass needs them, the last gradient first: 3 on one, 2 + 6 on the other, 1 on the
// first.
TEST(DataParallel, ArraysLieOnGpusInTheOrderOfTheProgram) {
  std::vector<ParameterGradient> arrays;
  for (const std::int64_t size : {1, 6, 2, 3}) arrays.push_back({0, fixed_size(size), 0, 1});
  EXPECT_DOUBLE_EQ(fullest_gpu(arrays, 1, 2, true), 8.0 / 6);
}

// tf_cnn_benchmarks spreads variables over the GPUs unless told otherwise, and stores them in fp32; copies of
// them on every GPU are kept alike in half precision.
TEST(DataParallel, VariablesOfTfCnnBenchmarks) {
  using Exchange = std::pair<std::string, double>;  // method, bytes of all gradients
  SpecCache specs = test::source_specs();
  const auto exchange = [&](const char* variant, const char* framework, const std::string& method) {
    Scenario scenario{.model = "resnet50", .framework = framework, .gpu = "rtx3090", .batch = 16};
    scenario.variant = variant;
    scenario.precision = "fp16";
    scenario.cluster = {.gpus = 4, .network = "pcie4_host", .method = method};
    const Prediction p = predict(scenario, specs);
    return Exchange(p.sync->method->name, p.iterations.front().sync.gradients.si());
  };
  constexpr double kParameters = 25'559'081;
  EXPECT_EQ(exchange("v1", "tensorflow_ngc", ""), Exchange("parameter_server", 4 * kParameters));
  EXPECT_EQ(exchange("v1", "tensorflow_ngc", "replicated_copy"),
            Exchange("replicated_copy", 2 * kParameters));
  EXPECT_EQ(exchange("v1.5", "tensorflow_ngc", "").first, "all_reduce");
  EXPECT_EQ(exchange("v1", "pytorch", "").first, "all_reduce");
}

// 4 GB at 8 GB/s of all, and at 6 GB/s where one server has 1.5 times its part: 1 s instead of 0.5.
TEST(DataParallel, TheFullestServerHoldsUpAStage) {
  SyncStage stage{.name = "push", .all_reduce = {}, .message = {}, .rate = BytesPerSecond(8e9)};
  EXPECT_DOUBLE_EQ(stage.time(Bytes(4e9), 1.5).si(), 0.5);
  stage.one_server = BytesPerSecond(6e9);
  EXPECT_DOUBLE_EQ(stage.time(Bytes(4e9), 1.5).si(), 1);
  EXPECT_DOUBLE_EQ(stage.time(Bytes(4e9), 0.5).si(), 0.5);
}

// Faster R-CNN with VGG-16 under MXNet, whose first fully connected layer has 3 / 4 of all parameters, is
// faster on two cards without peer access than on one, and slower on four than on two (apache/mxnet#5845).
TEST(DataParallel, ALargeArrayDoesNotScale) {
  SpecCache specs = test::source_specs();
  const auto rate = [&](int gpus) {
    Scenario scenario{.model = "faster_rcnn_c4", .framework = "mxnet_0_9", .gpu = "gtx1080"};
    scenario.variant = "jwyang_vgg16";
    scenario.cluster = {.gpus = gpus, .network = "pcie3_host", .method = "kvstore_device"};
    return predict(scenario, specs).throughput();
  };
  EXPECT_GT(rate(2), rate(1));
  EXPECT_LT(rate(4), rate(2));
}

// Four threads decode for each GPU, 4 ms a sample: 16 samples take 16 ms, whatever the GPUs, until their
// threads are more than cores. 28 cores for eight GPUs are 3.5 each.
TEST(DataParallel, GpusOfAMachineShareItsCores) {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 16};
  Prediction one = predict(scenario, specs);
  ASSERT_EQ(one.framework->launch_model.input_threads, 4);
  EXPECT_NEAR(one.iterations.front().input.si(), 0.016, 1e-9);
  SyncPlan plan = one_stage(0.1);
  plan.cluster = {.gpus = 8};
  plan.cores = 3.5;
  one = with_cluster(std::move(one), plan.cluster, plan);
  EXPECT_NEAR(one.iterations.front().input.si(), 0.064 / 3.5, 1e-9);
  EXPECT_NEAR(with_cluster(std::move(one), {}, std::nullopt).iterations.front().input.si(), 0.016, 1e-9);
}

// Automatic mixed precision leaves gradients in fp32 where variables are; what a model in half precision
// sends is half of that.
TEST(DataParallel, GradientsOfAutomaticMixedPrecision) {
  SpecCache specs = test::source_specs();
  const auto sent = [&](const char* framework, const char* precision) {
    const Scenario scenario{.model = "resnet50",
                            .framework = framework,
                            .gpu = "v100_sxm2_16gb",
                            .batch = 16,
                            .precision = precision,
                            .cluster = {.gpus = 2, .method = "all_reduce"}};
    return predict(scenario, specs).iterations.front().sync.gradients.si();
  };
  EXPECT_DOUBLE_EQ(sent("mxnet_ngc", "amp"), 2 * sent("mxnet_ngc", "fp16"));
  EXPECT_DOUBLE_EQ(sent("tensorflow_ngc", "amp"), sent("tensorflow_ngc", "fp32"));
  EXPECT_DOUBLE_EQ(sent("tensorflow_2", "amp"), 0.5 * sent("tensorflow_2", "fp32"));
}

double throughput(const std::string& network, const std::string& method, int machines = 2) {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = "resnet50", .framework = "mxnet", .gpu = "p4000", .batch = 16};
  scenario.cluster = {.gpus = 2, .machines = machines, .network = network, .method = method};
  return predict(scenario, specs).throughput();
}

TEST(DataParallelProperty, MoreBandwidthIsNeverSlower) {
  for (const char* method : {"", "all_reduce", "all_reduce_cpu_tcp", "kvstore_dist_device_sync", "zero1",
                             "distributed_replicated", "kvstore_dist_async"}) {
    double before = 0;
    for (const char* network : {"1 Gbit/s", "2 Gbit/s", "10 Gbit/s", "25 Gbit/s", "100 Gbit/s"}) {
      const double now = throughput(network, method);
      EXPECT_GE(now, before) << method << " over " << network;
      before = now;
    }
  }
}

// The same of Horovod's thread, whose messages hang on when it is free. Copies that come earlier run beside
// kernels, which they slow: by 0.3 % of the iteration at the most here.
TEST(DataParallelProperty, MoreBandwidthIsNeverSlowerUnderHorovod) {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = "inception_v3", .framework = "tensorflow", .gpu = "p100_pcie", .batch = 64};
  for (const char* method : {"all_reduce_cpu_tcp", "all_reduce_tcp"}) {
    double before = 0;
    for (int rate = 4; rate < 60; ++rate) {  // 1 to 15 Gbit/s
      scenario.cluster = {.gpus = 4, .machines = 2, .network = std::to_string(rate * 250) + " Mbit/s"};
      scenario.cluster.method = method;
      const double now = predict(scenario, specs).throughput();
      EXPECT_GE(now, before * (1 - 0.003)) << method << " over " << scenario.cluster.network;
      before = std::max(before, now);
    }
  }
}

// Horovod's table of Inception-v3: sums by MPI in host memory are ahead of NCCL among 16 GPUs on 25 Gbit/s
// (2073 to 1991 images/s) and behind it among 64 on 40 Gbit/s (6550 to 7932): each process is a step of the
// ring.
TEST(DataParallel, ProcessesOfMpiFallBehindAsTheyBecomeMore) {
  SpecCache specs = test::source_specs();
  const auto rate = [&](const char* method, int machines, const char* network) {
    Scenario scenario{.model = "inception_v3", .framework = "tensorflow", .gpu = "p100_pcie", .batch = 64};
    scenario.cluster = {.gpus = 4, .machines = machines, .network = network, .method = method};
    return predict(scenario, specs).throughput();
  };
  EXPECT_GT(rate("all_reduce_cpu_tcp", 4, "ethernet_25g"), rate("all_reduce_tcp", 4, "ethernet_25g"));
  EXPECT_LT(rate("all_reduce_cpu_tcp", 16, "ethernet_40g"), rate("all_reduce_tcp", 16, "ethernet_40g"));
}

// EfficientDet-D3 has hundreds of small arrays, which CNTK sums one by one: each of their collectives takes
// its time to start, not to send, and holds few SMs whatever the links.
TEST(DataParallelProperty, ManySmallArraysAreNoSlowerOverNvLink) {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = "efficientdet_d3", .framework = "cntk", .gpu = "a100_sxm_40gb", .batch = 4};
  const auto rate = [&](const char* network, int gpus) {
    scenario.cluster = {.gpus = gpus, .network = network};
    return predict(scenario, specs).throughput();
  };
  for (const int gpus : {2, 4, 8}) EXPECT_GE(rate("nvlink", gpus), rate("pcie3", gpus) * (1 - 2e-5)) << gpus;
}

// Ring of 2 over 10 GB/s with a launch of 20 us: 100 bytes take 20.01 us, 1 GB takes 100.02 ms.
TEST(SyncStage, FlowsForTheTimeOfItsBytes) {
  RankGroup pair{.ranks = 2, .bandwidth = BytesPerSecond(1e10), .per_rank = {}, .cost = {}};
  pair.cost.launch = Seconds(20e-6);
  const SyncStage stage{.name = "all_reduce", .all_reduce = AllReduceRanks{pair, {}}, .message = {}};
  EXPECT_NEAR(stage.flowing(Bytes(100)), 1e-8 / 20.01e-6, 1e-9);
  EXPECT_NEAR(stage.flowing(Bytes(1e9)), 0.1 / 0.10002, 1e-9);
}

TEST(DataParallelProperty, LessLatencyIsNeverSlower) {
  EXPECT_GE(throughput("infiniband_100g", "all_reduce"), throughput("100 Gbit/s", "all_reduce"));
}

TEST(DataParallelProperty, EfficiencyNeverGrowsWithMachines) {
  double before = throughput("10 Gbit/s", "all_reduce", 1);
  for (const int machines : {2, 3, 8, 64, 1000}) {
    const double now = throughput("10 Gbit/s", "all_reduce", machines) / machines;
    EXPECT_LE(now, before * (1 + 1e-9)) << machines;
    before = now;
  }
}

TEST(DataParallel, WrongClusters) {
  EXPECT_THROW((void)throughput("", "all_reduce"), UsageError);               // no network
  EXPECT_THROW((void)throughput("0 Gbit/s", "all_reduce"), UsageError);       // carries nothing
  EXPECT_THROW((void)throughput("10 Gbit", "all_reduce"), UsageError);        // no rate
  EXPECT_THROW((void)throughput("10 Gbit/s", "all_reduze"), UsageError);      // no method
  EXPECT_THROW((void)throughput("10 Gbit/s", "kvstore_device"), UsageError);  // of one machine
  EXPECT_THROW((void)throughput("qpi", "all_reduce"), UsageError);            // no network
}

}  // namespace
}  // namespace tbdsim
