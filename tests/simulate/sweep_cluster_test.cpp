// Sweeps over GPUs, machines, networks and what joins them.
#include <algorithm>
#include <limits>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "simulate/analysis/scaling.h"
#include "simulate/analysis/whatif.h"
#include "simulate/sweep/point_predictor.h"
#include "simulate/sweep/sweep_spec.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

constexpr const char* kMetrics = "throughput,efficiency,exposed_communication,memory_total";

SweepOptions options_with(std::vector<std::pair<std::string, std::string>> more) {
  SweepOptions options;
  options.axes = {{"model", "resnet50"}, {"framework", "mxnet"}};
  options.axes.insert(options.axes.end(), more.begin(), more.end());
  options.metrics = kMetrics;
  return options;
}

std::vector<nlohmann::json> rows(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {"sweep", "--model", "resnet50", "--framework", "mxnet", "--format", "jsonl"});
  const test::CliResult result = test::run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.out);
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

std::string error(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"sweep", "--model", "resnet50", "--framework", "mxnet", "--gpu",
                                       "p4000", "--batch", "8"});
  const test::CliResult result = test::run(arguments);
  EXPECT_EQ(result.exit_code, 2);
  return result.err;
}

// A scenario and its changes as a what-if has them, axis by axis: the sweep's own way takes none of its
// steps.
Prediction predicted_apart(const Sweep& sweep, const SweepPoint& point, SpecCache& specs) {
  SpecChanges changes;
  for (std::size_t a = 0; a < point.values.size(); ++a)
    changes.push_back(parse_change(sweep.axes[a].key() + "=" + point.values[a]));
  return predict_changed({}, changes, specs);
}

TEST(SweepOfClusters, APointIsThePredictionOfItsCluster) {
  SpecCache specs = test::source_specs();
  const SweepRun run = sweep_run(options_with({{"gpu", "p4000,t4"},
                                               {"batch", "8"},
                                               {"gpus", "1,4"},
                                               {"machines", "1,2"},
                                               {"network", "10 Gbit/s,infiniband_100g"},
                                               {"gpu.memory_bandwidth", "+0%,x2"},
                                               {"link.network.bandwidth", "x1,x0.1"},
                                               {"machine.peer_access", "none,machine"}}),
                                 RowFormat::csv, specs);
  PointPredictor predictor(run.sweep, specs);
  for (std::int64_t point = 0; point < run.end; point += 3) {
    const SweepPoint found = predictor.at(point);
    ASSERT_EQ(found.status, "ok");
    const Prediction expected = predicted_apart(run.sweep, found, specs);
    EXPECT_DOUBLE_EQ(*found.metrics[0], expected.throughput()) << point;
    EXPECT_DOUBLE_EQ(*found.metrics[3], expected.memory.total().si()) << point;
  }
}

TEST(SweepOfClusters, RowsAreThoseOfScaling) {
  SpecCache specs = test::source_specs();
  const SweepRun run =
      sweep_run(options_with({{"gpu", "p4000"}, {"batch", "8"}, {"gpus", "1,2,4"}, {"machine", "tbd_p4000"}}),
                RowFormat::csv, specs);
  const Scenario scenario{.model = "resnet50", .framework = "mxnet", .gpu = "p4000", .batch = 8};
  std::vector<Cluster> clusters;
  for (const int gpus : {1, 2, 4}) clusters.push_back({.gpus = gpus, .machine = "tbd_p4000"});
  const std::vector<ScalingPoint> points = predict_scaling(scenario, clusters, specs);
  PointPredictor predictor(run.sweep, specs);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SweepPoint row = predictor.at(static_cast<std::int64_t>(i));
    EXPECT_DOUBLE_EQ(*row.metrics[0], points[i].prediction.throughput());
    EXPECT_NEAR(*row.metrics[1], points[i].efficiency, 1e-9);
    EXPECT_NEAR(*row.metrics[2], points[i].exposed.si(), 1e-12);
  }
}

TEST(SweepOfClusters, NetworksAreAWholeRangeOfRates) {
  const auto all = rows({"--gpu", "p4000", "--batch", "8", "--machines", "2", "--network",
                         "1Gbit/s:100Gbit/s:1Gbit/s", "--metrics", kMetrics});
  ASSERT_EQ(all.size(), 100u);
  EXPECT_EQ(all[9]["network"], "10 Gbit/s");
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i]["throughput"], all[i - 1]["throughput"]);
  EXPECT_LT(all.front()["efficiency"], 0.2);
  EXPECT_GT(all.back()["efficiency"], 0.9);
}

TEST(SweepOfClusters, ABoundOfARatioMayBeInPerCent) {
  const std::vector<std::string> three{"--gpu",  "p4000", "--batch",   "8",
                                       "--gpus", "1,2,4", "--machine", "tbd_p4000"};
  const auto kept = [&](const char* bound) {
    std::vector<std::string> options = three;
    options.insert(options.end(), {"--where", bound});
    return rows(options).size();
  };
  EXPECT_EQ(kept("efficiency>=0"), 3u);
  EXPECT_EQ(kept("efficiency>=100 %"), 1u);  // one GPU
  EXPECT_EQ(kept("efficiency>=100%"), kept("efficiency>=1"));
}

TEST(SweepOfClusters, ColumnsSayWhatTheJobGetsAndByWhatItWasChosen) {
  const auto plain = rows({"--gpu", "t4", "--batch", "8"});
  EXPECT_FALSE(plain[0].contains("efficiency"));
  const auto chosen = rows({"--gpu", "t4", "--batch", "8", "--gpus", "2", "--best", "rent"});
  for (const char* name : {"throughput", "efficiency", "exposed_communication", "rent"})
    EXPECT_TRUE(chosen[0].contains(name)) << name;
}

TEST(SweepOfClusters, AMachineBringsItsGpu) {
  const auto own = rows({"--machine", "tbd_p4000,dgx1_v100", "--gpus", "4", "--batch", "8"});
  const auto named =
      rows({"--machine", "dgx1_v100", "--gpu", "v100_sxm2_16gb", "--gpus", "4", "--batch", "8"});
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[1]["throughput"], named[0]["throughput"]);
  EXPECT_GT(own[1]["throughput"], own[0]["throughput"]);
}

TEST(SweepOfClusters, TheCheapestForATargetIsTheCheapestOfAllThatReachIt) {
  const std::vector<std::string> sweep{
      "--gpu",     "t4,v100_sxm2_16gb", "--batch",    "16,32",
      "--gpus",    "1,2,4,8",           "--machines", "1,2",
      "--network", "ethernet_25g",      "--metrics",  "throughput,rent,epoch_time,epoch_cost"};
  double least_rent = std::numeric_limits<double>::infinity(), least_cost = least_rent;
  for (const auto& row : rows(sweep)) {
    if (row["throughput"] >= 1000) least_rent = std::min(least_rent, row["rent"].get<double>());
    if (row["epoch_time"] <= 3600) least_cost = std::min(least_cost, row["epoch_cost"].get<double>());
  }
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> all = sweep;
    all.insert(all.end(), more);
    return rows(all);
  };
  const auto target = with({"--best", "rent", "--where", "throughput>=1000"});
  ASSERT_EQ(target.size(), 1u);
  EXPECT_EQ(target[0]["rent"], least_rent);
  const auto epoch = with({"--best", "epoch_cost", "--where", "epoch_time<=1 h"});
  ASSERT_EQ(epoch.size(), 1u);
  EXPECT_EQ(epoch[0]["epoch_cost"], least_cost);
  // More throughput for more rent, less of both never.
  const auto front = with({"--pareto", "throughput,rent"});
  ASSERT_GE(front.size(), 3u);
  for (const auto& a : front) {
    for (const auto& b : front) EXPECT_TRUE(a["throughput"] <= b["throughput"] || a["rent"] > b["rent"]);
  }
}

// The P4000 has no rent in its file.
TEST(SweepOfClusters, PricesMayBeGivenForOneGpu) {
  const auto priced = rows({"--gpu", "p4000,t4", "--batch", "8", "--gpus", "2", "--set",
                            "gpu.p4000.price_per_hour=0.4 USD/h", "--metrics", "rent"});
  EXPECT_NEAR(priced[0]["rent"], 2 * 0.4 / 3600, 1e-9);
  EXPECT_NEAR(priced[1]["rent"], 2 * 0.526 / 3600, 1e-9);
  EXPECT_TRUE(rows({"--gpu", "p4000", "--batch", "8", "--metrics", "rent"})[0]["rent"].is_null());
}

TEST(SweepOfClusters, RowsSayWhatIsImpossible) {
  const auto all = rows({"--machine", "tbd_p4000", "--batch", "8", "--gpus", "4,8", "--metrics", kMetrics});
  EXPECT_EQ(all[0]["status"], "ok");
  EXPECT_THAT(all[1]["status"].get<std::string>(), HasSubstr("8 GPUs in a machine"));
  EXPECT_TRUE(all[1]["throughput"].is_null());
}

TEST(SweepOfClusters, RefusesWhatContradicts) {
  EXPECT_THAT(error({"--machines", "2,4"}), HasSubstr("machines are several, and nothing joins them"));
  EXPECT_THAT(error({"--exchange", "all_reduce,kvstore_device"}),
              HasSubstr("exchange is of several GPUs, and every point has one"));
  EXPECT_THAT(error({"--set", "machine.peer_access=none"}),
              HasSubstr("machine.peer_access is of several GPUs"));
  EXPECT_THAT(error({"--gpus", "0:4"}), HasSubstr("gpus: '0' is no whole number from 1 to 1000"));
  EXPECT_THAT(error({"--gpus", "2", "--compression", "2"}), HasSubstr("compression: '2'"));
  EXPECT_THAT(error({"--gpus", "2", "--gradients", "fp8"}), HasSubstr("expected fp16 or fp32"));
  EXPECT_THAT(error({"--gpus", "2", "--network", "etherne_1g"}), HasSubstr("did you mean 'ethernet_1g'?"));
  EXPECT_THAT(error({"--gpus", "2", "--network", "10 GHz"}), HasSubstr("'GHz' is no unit of a bandwidth"));
  EXPECT_THAT(error({"--gpus", "2", "--exchange", "alreduce"}), HasSubstr("did you mean 'all_reduce'?"));
  EXPECT_THAT(error({"--gpus", "2", "--machine", "dgx1_v10"}), HasSubstr("did you mean 'dgx1_v100'?"));
  EXPECT_THAT(error({"--gpus", "2", "--set", "machine.peer_acess=none"}),
              HasSubstr("did you mean 'peer_access'?"));
  EXPECT_THAT(error({"--gpus", "2", "--set", "link.pcie33.bandwidth=10 GB/s"}),
              HasSubstr("no link is called 'pcie33'; did you mean 'pcie3'?"));
  EXPECT_THAT(error({"--best", "rent"}),
              HasSubstr("(p4000) has a price_per_hour; expected one, as --set gpu.p4000."));
  EXPECT_THAT(error({"--set", "gpu.t4.sm_count=10"}),
              HasSubstr("is of t4; expected one of the sweep's: p4000"));
  EXPECT_THAT(error({"--set", "gpu.p4000.sm_cout=10"}), HasSubstr("did you mean 'sm_count'?"));
  EXPECT_THAT(error({"--gpus", "2", "--set", "machine.gpu=t4"}), HasSubstr("is what --gpu says"));
  EXPECT_THAT(error({"--gpus", "2", "--where", "efficiency>=90 GB"}),
              HasSubstr("efficiency: '90 GB' is no ratio; expected as 0.9 or '90 %'"));
  EXPECT_THAT(error({"--gpus", "2", "--where", "efficiency>=90"}), HasSubstr("'90' is no ratio"));
  EXPECT_THAT(error({"--gpus", "2", "--where", "rent<=90 GB"}), HasSubstr("is no number in USD/s"));
  EXPECT_THAT(error({"--gpus", "1:1000", "--machines", "1:1000000", "--network", "ethernet_1g", "--set",
                     "gpu.sm_count=1:1000"}),
              HasSubstr("the axes make 1000000000000 points"));
}

// Where nothing can be chosen an error says why, rather than a table without rows; bounds may leave none.
TEST(SweepOfClusters, SaysWhyNothingCanBeChosen) {
  const auto sweep = [](std::vector<std::string> more) {
    std::vector<std::string> all = {"sweep", "--framework", "pytorch", "--gpu", "titanxp"};
    all.insert(all.end(), more.begin(), more.end());
    return test::run(all);
  };
  const auto unmeasured = sweep({"--model", "rnnt", "--batch", "8", "--best", "time_to_target"});
  EXPECT_EQ(unmeasured.exit_code, 2);
  EXPECT_THAT(unmeasured.err, HasSubstr("no point can be chosen: no value of time_to_target (points: 1)"));
  const auto full = sweep({"--model", "resnet50", "--batch", "5000,6000", "--best", "throughput"});
  EXPECT_THAT(full.err, HasSubstr("out of memory (points: 2)"));
  const auto bounded = sweep({"--model", "resnet50", "--batch", "8", "--where", "throughput>=1000000"});
  EXPECT_EQ(bounded.exit_code, 0);
}

}  // namespace
}  // namespace tbdsim
