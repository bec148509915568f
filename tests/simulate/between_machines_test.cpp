// Limits of an exchange between machines: servers whose arrays lie whole on one of them, and GPUs in slots.
#include <gtest/gtest.h>

#include "simulate/communication/sync_timeline.h"
#include "simulate/prediction/predict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

// Arrays of 3, 2, 6 and 1 on two servers in turn: 3 and 6 on the first of two servers, 2 and 1 on the other,
// the mean is 6.
TEST(BetweenMachines, ArraysLieOnServersInTurn) {
  std::vector<ParameterGradient> arrays;
  for (const std::int64_t size : {1, 6, 2, 3}) arrays.push_back({0, fixed_size(size), 0, 1});
  EXPECT_DOUBLE_EQ(fullest_in_turn(arrays, 1, 2), 1.5);
  EXPECT_DOUBLE_EQ(fullest_in_turn(arrays, 1, 1), 1);
  EXPECT_DOUBLE_EQ(fullest_in_turn({}, 1, 4), 1);
}

// One server of 4 machines has twice the mean, half of all bytes S: it sends S / 2 to each of three workers,
// its own worker the half that lies elsewhere, 2 S together. Alike servers send 3 / 4 S, as their workers do.
// Each of two machines sends S, wherever the arrays lie.
TEST(BetweenMachines, ALargeArrayLoadsOneMachinesNetwork) {
  EXPECT_DOUBLE_EQ(busiest_server(2, 4), 2 / 1.5);
  EXPECT_DOUBLE_EQ(busiest_server(1, 4), 1);
  EXPECT_DOUBLE_EQ(busiest_server(1.9, 2), 1);
}

// VGG-16's first fully connected layer has 102,760,448 of 138,361,641 parameters, so that four machines'
// servers in memory are held up by one of them, and eight by twice as much. An equal part of four would
// be 1.5 S of an exchange's bytes: that server sends 3 * 0.7427 S, its worker 0.2573 S.
TEST(BetweenMachines, VariablesLieWholeOnOneMachine) {
  SpecCache specs = test::source_specs();
  const auto network = [&](const char* method, int machines) {
    Scenario scenario{.model = "vgg16", .framework = "tensorflow_1_12", .gpu = "p100_pcie", .batch = 64};
    scenario.variant = "tf_cnn_benchmarks";
    scenario.cluster = {.gpus = 4, .machines = machines, .network = "ethernet_25g", .method = method};
    return predict(scenario, specs).iterations.front().sync.total.si();
  };
  // The greedy placement of parameter_server_cpu puts the largest array with the first convolutions alone.
  const double fc6 = 102'760'448.0 / 138'361'641;
  EXPECT_GT(network("parameter_server_cpu", 4), 553.4e6 * (3 * fc6 + 1 - fc6) / 1.1e9);
  EXPECT_GT(network("parameter_server_cpu", 8), 553.4e6 * (7 * fc6 + 1 - fc6) / 1.1e9);
  EXPECT_GT(network("distributed_replicated", 8), 553.4e6 * (7 * fc6 + 1 - fc6) / 1.1e9);
}

// GPUs in slots of 15.754 * 0.78 GB/s pass a network card at 0.38 of that, or at its own 2.9375 GB/s; GPUs
// joined by NVLink at its 12.125 GB/s; over sockets GPUs in slots are slower.
TEST(BetweenMachines, ANetworkCardOfGpusInSlots) {
  SpecCache specs = test::source_specs();
  const auto rate = [&](const char* gpu, const char* network, const char* method = "all_reduce") {
    Scenario scenario{.model = "resnet50", .framework = "pytorch", .gpu = gpu, .batch = 16};
    scenario.cluster = {.gpus = 4, .machines = 2, .network = network, .method = method};
    return predict(scenario, specs).sync->stages.front().all_reduce->outer.bandwidth.si();
  };
  EXPECT_NEAR(rate("v100_pcie_16gb", "infiniband_100g"), 0.38 * 0.78 * 15.754e9, 1);
  EXPECT_NEAR(rate("v100_pcie_16gb", "ethernet_25g"), 2.9375e9, 1);
  EXPECT_NEAR(rate("v100_sxm2_16gb", "infiniband_100g"), 12.125e9, 1);
  EXPECT_NEAR(rate("v100_pcie_16gb", "infiniband_100g", "all_reduce_tcp"), 1.4e9, 1);
}

}  // namespace
}  // namespace tbdsim
