#include "calibrate/measure/run/dry_run.h"

#include <fstream>

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"

namespace tbdsim::measure {
namespace {
using testing::HasSubstr;
using testing::StartsWith;

TEST(DryRun, RestrictsThePlanToOpsAndPrecisions) {
  Options options;
  options.only = {"gemm", "adam"};
  options.precisions = {"fp32"};
  const Plan plan = plan_of(options);
  EXPECT_GT(plan.points.size(), 50U);
  for (const PlanPoint& point : plan.points) {
    EXPECT_TRUE(point.op == "gemm" || point.op == "adam");
    EXPECT_EQ(point.precision, "fp32");
  }
}

TEST(DryRun, LaunchesComeFirst) {
  // Launch costs are timed before CUPTI has run in the process: it slows launches down for good.
  EXPECT_EQ(plan_of(Options{}).points.front().op, "launch");
}

TEST(DryRun, ReadsAPlanFile) {
  const std::string path = testing::TempDir() + "dry_run_test.csv";
  std::ofstream(path) << "op,precision,elements\nadd,fp32,1000\nadd,fp32,0\n";
  Options options;
  options.plan = path;
  EXPECT_THAT(
      dry_run_text(plan_of(options), 0),
      AllOf(HasSubstr("add forward fp32 cold elements=1000\n"), HasSubstr("skipped: " + path + ":3: add"),
            HasSubstr("1 points, 1 of them in time"), HasSubstr("1 skipped")));
  options.plan = path + ".absent";
  EXPECT_THROW(static_cast<void>(plan_of(options)), UsageError);
}

TEST(DryRun, ShowsWhatFallsOutOfTime) {
  const Plan plan = plan_of(Options{});
  EXPECT_THAT(dry_run_text(plan, 1), HasSubstr("(out of time)"));
  EXPECT_THAT(dry_run_text(plan, 0), testing::Not(HasSubstr("(out of time)")));
}

TEST(DryRun, EightMinutesHoldEveryOp) {
  const Plan plan = plan_of(Options{});
  const std::string text = dry_run_text(plan, 8);
  for (const char* op : {"gemm", "batched_gemm", "conv", "batch_norm", "max_pool", "softmax", "lstm", "gru",
                         "adam", "copy_h2d"}) {
    bool in_time = false;
    std::size_t at = 0;
    while (!in_time && (at = text.find(std::string("  ") + op + " ", at)) != std::string::npos) {
      const std::string line = text.substr(at, text.find('\n', at) - at);
      in_time = line.find("(out of time)") == std::string::npos;
      ++at;
    }
    EXPECT_TRUE(in_time) << op;
  }
}

}  // namespace
}  // namespace tbdsim::measure
