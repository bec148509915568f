#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/measure/plan/plan.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/export/benchmark_plan.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

std::vector<Prediction> predictions(SpecCache& specs) {
  std::vector<Prediction> all;
  for (const std::int64_t batch : {4, 16}) {
    for (const char* framework : {"tensorflow", "mxnet"}) {
      for (const char* precision : {"fp32", "amp"}) {
        all.push_back(predict({.model = "resnet50",
                               .framework = framework,
                               .gpu = "a100_sxm_80gb",
                               .batch = batch,
                               .precision = precision},
                              specs));
      }
    }
  }
  return all;
}

// Nothing is lost: executions and time of the distinct kernels are those of all kernels.
TEST(DistinctKernels, KeepCountsAndTime) {
  SpecCache specs = test::source_specs();
  const std::vector<Prediction> all = predictions(specs);
  double count = 0;
  Seconds time;
  for (const UniqueKernel& kernel : unique_kernels(all)) {
    count += kernel.count;
    time += kernel.total;
  }
  double expected_count = 0;
  Seconds expected_time;
  for (const Prediction& p : all) {
    const Iteration& iteration = p.typical();
    for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
      const auto repeat = static_cast<double>(iteration.step->kernels[k].repeat);
      expected_count += repeat;
      expected_time += iteration.costs[k].total * repeat;
    }
  }
  EXPECT_EQ(count, expected_count);
  EXPECT_NEAR(time / expected_time, 1, 1e-9);
}

// ResNet-50 v1.5 has 53 convolutions of 23 distinct shapes: of the sixteen units those of one stage repeat.
TEST(DistinctKernels, ResNet50HasTwentyThreeConvolutions) {
  SpecCache specs = test::source_specs();
  const Prediction p =
      predict({.model = "resnet50", .framework = "cntk", .gpu = "titanxp", .batch = 32}, specs);
  int distinct = 0;
  double count = 0;
  for (const UniqueKernel& k : unique_kernels(std::span(&p, 1))) {
    if (k.kernel.kind != KernelKind::convolution || k.kernel.phase != Phase::forward) continue;
    ++distinct;
    count += k.count;
  }
  EXPECT_EQ(distinct, 23);
  EXPECT_EQ(count, 53);
}

// PyTorch's momentum is four operators over all 25,557,032 parameters: decay, and three of momentum.
TEST(DistinctKernels, FusedUpdateCoversEveryParameter) {
  SpecCache specs = test::source_specs();
  const Prediction p =
      predict({.model = "resnet50", .framework = "pytorch", .gpu = "titanxp", .batch = 32}, specs);
  std::int64_t written = 0;
  for (const Kernel& kernel : p.typical().step->kernels) {
    if (kernel.kind == KernelKind::update) written += kernel.written_bytes.fixed;
  }
  EXPECT_EQ(written, 4 * 4 * 25'557'032);  // bytes: four kernels, each writes a number for a parameter
}

// The plan is what tbd-measure reads: every row is accepted, most time first.
TEST(MeasuringPlan, IsAcceptedByTheMeasuringProgram) {
  SpecCache specs = test::source_specs();
  std::stringstream csv;
  write_measuring_plan(csv, unique_kernels(predictions(specs)));
  const measure::Plan plan = measure::read_plan(csv, "plan.csv");
  EXPECT_THAT(plan.skipped, testing::IsEmpty());
  EXPECT_GT(plan.points.size(), 300u);
}

// A plan measures what runs: images of a framework with channels last are NHWC in every row.
TEST(MeasuringPlan, HasTheLayoutOfTheFramework) {
  SpecCache specs = test::source_specs();
  const Prediction p = predict({.model = "resnet50",
                                .framework = "pytorch_channels_last",
                                .gpu = "a100_sxm_80gb",
                                .batch = 16,
                                .precision = "amp"},
                               specs);
  std::stringstream csv;
  write_measuring_plan(csv, unique_kernels(std::span(&p, 1)));
  EXPECT_THAT(csv.str(), testing::HasSubstr("\nbatch_norm,fp16,forward,NHWC,"));
  EXPECT_THAT(csv.str(), testing::HasSubstr("\nconv,fp16,forward,NHWC,"));
  EXPECT_THAT(csv.str(), testing::Not(testing::HasSubstr("NCHW")));
}

TEST(MeasuringPlan, ComesOutOfOneCommandWithoutAGpu) {
  const test::CliResult result = test::run({"kernels", "all", "--batch", "4,16,64", "--unique", "--plan"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::StartsWith("op,precision,phase,layout,value,m,n,k,batch,channels"));
  EXPECT_THAT(result.out, testing::HasSubstr("\nconv,fp32,forward,NCHW,"));
  EXPECT_THAT(test::run({"kernels", "all", "--batch", "4,x", "--plan"}).err,
              testing::HasSubstr("--batch: 'x' is not a whole number"));
  EXPECT_THAT(test::run({"kernels", "all", "--batch", "4", "--plan", "--format", "json"}).err,
              testing::HasSubstr("--plan writes CSV"));
}

}  // namespace
}  // namespace tbdsim
