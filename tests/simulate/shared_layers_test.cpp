// Layers whose work or statistics ranks share, over a timeline made by hand: a kernel a second, forward of a
// table, a lower network and the rest, backward of the rest, the lower network and the table.
#include <gtest/gtest.h>

#include "simulate/communication/sync_timeline.h"
#include "simulate/communication/synced_norms.h"
#include "simulate/communication/table_exchange.h"

namespace tbdsim {
namespace {

constexpr int kTable = 0, kLower = 1, kRest = 2;
constexpr double kSamples = 1e6;

TrainingStep step(std::int64_t tables, Sharding lower) {
  TrainingStep step;
  step.layers.resize(3);
  step.layers[kTable].shard = Sharding::vocabulary;
  step.layers[kTable].output = {{0, 1}, {tables, 128}};
  step.layers[kLower].shard = lower;
  for (const int layer : {kTable, kLower, kRest, kRest, kLower, kTable}) {
    Kernel kernel;
    kernel.layer = layer;
    kernel.phase = step.kernels.size() < 3 ? Phase::forward : Phase::backward_weights;
    step.kernels.push_back(kernel);
  }
  step.gradients = {{kRest, fixed_size(1'000'000), 3, 1},
                    {kLower, fixed_size(1'000'000), 4, 1},
                    {kTable, {0, tables * 128}, 5, 1}};
  return step;
}

Timeline timeline() {
  Timeline timeline;
  for (int k = 0; k < 6; ++k)
    timeline.kernels.push_back({Seconds(k), Seconds(k), Seconds(k), Seconds(k + 1)});
  timeline.iteration = timeline.gpu_busy = Seconds(6);
  return timeline;
}

SyncPlan plan_of(int gpus) {
  SyncPlan plan;
  plan.method = &find_sync_method("all_reduce");
  plan.cluster = {.gpus = gpus};
  SyncStage stage;
  stage.all_reduce =
      AllReduceRanks{{.ranks = gpus, .bandwidth = BytesPerSecond(4e9), .per_rank = {}, .cost = {}}, {}};
  plan.stages.push_back(stage);
  return plan;
}

SyncTime times(const TrainingStep& step, const SyncPlan& plan) {
  GpuSpec gpu;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = BytesPerSecond(1e30);
  return simulate_sync(step, timeline(), kSamples, {}, gpu, plan);
}

// Three tables on two ranks: one has 2 where the mean is 1.5. Its kernels, of 2 s, take 4/3 as long, and its
// vectors, 4/3 of 1.536 GB, are in no bucket but waited for.
TEST(SharedLayers, TheFullestRankDecides) {
  TrainingStep tables = step(3, Sharding::none);
  const SyncPlan plan = plan_of(2);
  const TableExchange moved = table_exchange(tables, timeline(), kSamples, plan);
  EXPECT_DOUBLE_EQ(moved.vectors.si(), 1.536e9);
  EXPECT_NEAR(moved.imbalance.si(), 2.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(moved.exchange.si(), all_reduce_time(*plan.stages[0].all_reduce, Bytes(2.048e9)).si());
  EXPECT_GT(moved.exchange.si(), 0.5);  // half of the bytes to the other rank, and back
  const SyncTime time = times(tables, plan);
  EXPECT_EQ(time.messages, 2);
  EXPECT_GE(time.exposed, moved.exchange);

  tables.layers[kTable].shard = Sharding::none;  // a copy on each rank
  EXPECT_DOUBLE_EQ(table_exchange(tables, timeline(), kSamples, plan).vectors.si(), 0);
}

// Cut tables: both ranks have a table and a half, and of each all-to-all a second passes beside the lower
// network, which comes before the tables here.
TEST(SharedLayers, CutTablesAreEvenAndExchangedBesideTheLowerNetwork) {
  TrainingStep tables = step(3, Sharding::none);
  std::swap(tables.layers[kTable], tables.layers[kLower]);
  for (Kernel& kernel : tables.kernels) {
    if (kernel.layer != kRest) kernel.layer = kernel.layer == kTable ? kLower : kTable;
  }
  for (ParameterGradient& gradient : tables.gradients) {
    if (gradient.layer != kRest) gradient.layer = gradient.layer == kTable ? kLower : kTable;
  }
  SyncPlan plan = plan_of(2);
  plan.stages[0].all_reduce->inner.bandwidth = BytesPerSecond(1e8);
  plan.cut_tables = true;
  const TableExchange moved = table_exchange(tables, timeline(), kSamples, plan);
  EXPECT_DOUBLE_EQ(moved.imbalance.si(), 0);
  const double whole = all_reduce_time(*plan.stages[0].all_reduce, Bytes(1.536e9)).si();
  EXPECT_NEAR(moved.exchange.si(), whole - 2, 1e-9);
}

// Four machines of two ranks: each machine sends 3/4 of two ranks' bytes, there and back, at 1 GB/s.
TEST(SharedLayers, WhatLeavesAMachineCrossesItsNetwork) {
  const TrainingStep tables = step(8, Sharding::none);
  SyncPlan plan = plan_of(2);
  plan.cluster.machines = 4;
  plan.stages[0].all_reduce->outer = {
      .ranks = 4, .bandwidth = BytesPerSecond(1e9), .per_rank = {}, .cost = {}};
  const double efficiency = plan.stages[0].all_reduce->outer.cost.efficiency;
  const TableExchange moved = table_exchange(tables, timeline(), kSamples, plan);
  EXPECT_GE(moved.exchange.si(), 2 * 0.75 * 2 * moved.vectors.si() / (efficiency * 1e9) * (1 - 1e-9));
}

// Three tables of 4 GB each: the fuller of two ranks holds two of them, or one and a half where tables are
// cut; each of eight holds at most one.
TEST(SharedLayers, OtherRanksHoldTheirPartOfTheTables) {
  TrainingStep tables = step(3, Sharding::none);
  tables.tensors.push_back(
      {.role = TensorRole::weights, .layer = kTable, .bytes = fixed_size(12'000'000'000)});
  tables.tensors.push_back({TensorRole::weights, kRest, fixed_size(300), 0, 5});
  const auto others = [&](const SyncPlan& plan, TensorRole role = TensorRole::weights) {
    return held_by_others(tables, kSamples, role, plan).si();
  };
  EXPECT_NEAR(others(plan_of(2)), 4e9, 1);
  EXPECT_NEAR(others(plan_of(8)), 8e9, 1);
  EXPECT_EQ(others(plan_of(2), TensorRole::dynamic), 0);
  SyncPlan cut = plan_of(2);
  cut.cut_tables = true;
  EXPECT_NEAR(others(cut), 6e9, 1);
  tables.layers[kTable].shard = Sharding::none;
  EXPECT_EQ(others(plan_of(2)), 0);
}

// Two ranks: the first has one of two tables and computes the lower network twice, 3 s of a pass instead
// of 2.
TEST(SharedLayers, TheFirstRankHasTheLowerNetworkToo) {
  const TrainingStep both = step(2, Sharding::first_rank);
  EXPECT_NEAR(table_exchange(both, timeline(), kSamples, plan_of(2)).imbalance.si(), 2 * (3 - 2), 1e-12);
  EXPECT_EQ(times(both, plan_of(2)).messages, 1);  // the lower network's gradient is one rank's
}

// Eight ranks, the first without tables: 8 s of a pass for the lower network beside 8/7 s for two of 14
// tables.
TEST(SharedLayers, OfManyRanksTheFirstHasNoTables) {
  const TrainingStep both = step(14, Sharding::first_rank);
  EXPECT_NEAR(table_exchange(both, timeline(), kSamples, plan_of(8)).imbalance.si(), 2 * (8 - 2), 1e-12);
}

// A norm of 64 channels: 129 numbers forward, 128 back.
TEST(SyncedNorms, WaitTwiceForAllRanks) {
  TrainingStep norms = step(1, Sharding::none);
  norms.layers[kRest].type = "batch_norm";
  norms.layers[kRest].trained_parameters = norms.layers[kRest].statistics = 128;
  const SyncPlan plan = plan_of(4);
  EXPECT_DOUBLE_EQ(synced_norm_time(norms, plan).si(), 0);  // statistics of its own
  norms.synced_norms = true;
  const auto of = [&](double numbers) {
    return all_reduce_time(*plan.stages[0].all_reduce, Bytes(4 * numbers)).si();
  };
  EXPECT_DOUBLE_EQ(synced_norm_time(norms, plan).si(), of(129) + of(128));
  EXPECT_GE(times(norms, plan).exposed, synced_norm_time(norms, plan));
  norms.layers[kRest].trained_parameters = 0;  // frozen: constants
  EXPECT_DOUBLE_EQ(synced_norm_time(norms, plan).si(), 0);
}

}  // namespace
}  // namespace tbdsim
