// Scaling over the machines of the catalogue: what must hold of any of them, and the paper's Observation 12.

#include <gtest/gtest.h>

#include "hwspecs/base/error.h"
#include "simulate/prediction/cluster_machine.h"
#include "simulate/report/scaling_table.h"
#include "simulate/workload/spec_cache.h"
#include "tests/support/cli.h"
#include "tests/support/temp_catalog.h"

namespace tbdsim {
namespace {

const Scenario kResNet{.model = "resnet50", .framework = "mxnet", .gpu = "p4000", .batch = 32};

Cluster machines(int count, const std::string& network) {
  return {.gpus = 1, .machines = count, .machine = "tbd_p4000", .network = network};
}

class Scaling : public testing::Test {
 protected:
  std::vector<ScalingPoint> over(const std::vector<Cluster>& clusters) {
    return predict_scaling(kResNet, clusters, specs_);
  }
  ScalingPoint one(const Cluster& cluster) { return over({cluster}).front(); }

  SpecCache specs_ = test::source_specs();
};

TEST_F(Scaling, OneGpuExchangesNothing) {
  const ScalingPoint point = one({.gpus = 1, .machine = "tbd_p4000"});
  EXPECT_EQ(point.speed_up, 1);
  EXPECT_EQ(point.efficiency, 1);
  EXPECT_EQ(point.exposed, Seconds(0));
  EXPECT_FALSE(point.busiest.has_value());
}

TEST_F(Scaling, SpeedUpIsOverOneGpu) {
  const std::vector<ScalingPoint> points =
      over({{.gpus = 1, .machine = "tbd_p4000"}, {.gpus = 2, .machine = "tbd_p4000"}});
  const ScalingPoint& two = points.back();
  const double one_gpu = points.front().prediction.throughput();
  EXPECT_NEAR(two.speed_up, two.prediction.throughput() / one_gpu, 1e-9);
  EXPECT_NEAR(two.efficiency, two.speed_up / 2, 1e-12);
  EXPECT_LT(two.speed_up, 2);
  EXPECT_GT(two.speed_up, 1.5);
}

// Observation 12: 1 Gbit/s makes two machines slower than one; InfiniBand and PCIe scale well.
TEST_F(Scaling, NetworksOfThePaper) {
  EXPECT_LT(one(machines(2, "ethernet_1g")).speed_up, 1);
  EXPECT_GT(one(machines(2, "infiniband_100g")).efficiency, 0.9);
  EXPECT_GT(one({.gpus = 4, .machine = "tbd_p4000"}).efficiency, 0.9);
}

// A link of the catalogue or of a file joins machines whatever its name.
TEST(ScalingOverOwnLink, ByNameAndByPath) {
  const test::TempCatalog own(Kind::link);
  const std::string path = own.add("roce_100g",
                                   "title: RoCE\nkind: network\nbandwidth: 100 Gbit/s\nefficiency: 0.9\n"
                                   "latency: 3 us\nsources: {bandwidth: a, efficiency: a, latency: a}\n");
  SpecCache specs(own.catalog());
  const auto efficiency = [&](const std::string& network) {
    const std::vector<Cluster> two = {{.gpus = 1, .machines = 2, .network = network}};
    return predict_scaling(kResNet, two, specs).front().efficiency;
  };
  require_network("roce_100g", specs.catalog());
  EXPECT_GT(efficiency("roce_100g"), 0.9);
  EXPECT_EQ(efficiency(path), efficiency("roce_100g"));
  const test::CliResult scaling = test::run({"scaling", "resnet50:mxnet", "--gpu", "p4000", "--batch", "32",
                                             "--gpus", "1", "--machines", "2", "--network", path});
  EXPECT_EQ(scaling.exit_code, 0) << scaling.err;
}

TEST_F(Scaling, FasterNetworksAreNeverSlower) {
  double before = 0;
  for (const char* network : {"100 Mbit/s", "1 Gbit/s", "3 Gbit/s", "10 Gbit/s", "40 Gbit/s", "100 Gbit/s"}) {
    const double throughput = one(machines(4, network)).prediction.throughput();
    EXPECT_GE(throughput, before) << network;
    before = throughput;
  }
}

// At the advised bandwidth an iteration waits for the network less than 1 %, at a half of it more.
TEST_F(Scaling, AdviceOnBandwidthIsWhatHidesTheExchange) {
  const auto hiding = advise(one(machines(2, "ethernet_1g")), specs_).hiding;
  ASSERT_TRUE(hiding.has_value());
  const double alone = one({.gpus = 1, .machine = "tbd_p4000"}).prediction.throughput();
  const auto lost = [&](double rate) {
    const std::string network = std::to_string(rate / 1e9) + " GB/s";
    return 1 - one(machines(2, network)).prediction.throughput() / (2 * alone);
  };
  EXPECT_LT(lost(hiding->si()), 0.05);
  EXPECT_GT(lost(hiding->si() / 4), lost(hiding->si()) + kHidden);
}

TEST_F(Scaling, RowsInTheirOrder) {
  const std::vector<ScalingPoint> points = over({machines(2, "ethernet_1g"), machines(1, "ethernet_1g")});
  ASSERT_EQ(points.size(), 2);
  EXPECT_EQ(points[0].prediction.ranks(), 2);
  EXPECT_EQ(points[1].prediction.ranks(), 1);
  EXPECT_EQ(scaling_table(points, advise_largest(points, specs_)).rows.size(), 2);
}

// Identical ranks are simulated once: as many as the largest clusters have. The paper's had eight machines.
TEST_F(Scaling, HundredThousandRanks) {
  const Cluster cluster{
      .gpus = 1, .machines = 100'000, .machine = "server_pcie3", .network = "infiniband_100g"};
  const ScalingPoint point = one(cluster);
  EXPECT_EQ(point.prediction.ranks(), 100'000);
  EXPECT_GT(point.speed_up, 1);
  EXPECT_LT(point.efficiency, 1);
  EXPECT_THROW((void)one(machines(9, "infiniband_100g")), UsageError);
}

}  // namespace
}  // namespace tbdsim
