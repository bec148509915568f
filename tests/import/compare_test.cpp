// A measured step beside its prediction.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "simulate/compare/compare_run.h"
#include "simulate/prediction/predict.h"
#include "tests/import/files.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using test::import_file;
using testing::HasSubstr;

Prediction prediction_on(const std::string& gpu) {
  SpecCache specs = test::source_specs();
  return predict(Scenario{.model = "resnet50", .framework = "pytorch_1_8", .gpu = gpu, .batch = 32}, specs);
}

// A run of exactly the predicted kernels.
MeasuredRun run_as_predicted(const Prediction& p, double steps, bool parts) {
  MeasuredRun run{.file = "x", .tool = "x", .gpu = {}};
  const Iteration& iteration = p.typical();
  KernelSums sums;
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    if (!iteration.costs[k].runs()) continue;
    const Kernel& kernel = iteration.step->kernels[k];
    MeasuredKernel one{.name = std::to_string(k), .kind = name_of(kernel.kind)};
    if (parts)
      one.part = kernel.phase == Phase::forward  ? StepPart::forward
                 : kernel.phase == Phase::update ? StepPart::update
                                                 : StepPart::backward;
    one.count = static_cast<double>(kernel.repeat) * steps;
    one.time = iteration.costs[k].total * one.count;
    run.kernel_time += one.time;
    run.kernels.push_back(std::move(one));
  }
  run.busy = iteration.timeline.gpu_busy * steps;
  run.span = iteration.time() * steps;
  return run;
}

TEST(Compare, FindsNoDifferenceWhereThereIsNone) {
  const Prediction p = prediction_on("v100_sxm2_16gb");
  for (const bool parts : {true, false}) {
    const Comparison comparison = compare_run(p, run_as_predicted(p, 3, parts), 3);
    EXPECT_EQ(comparison.parts, parts);
    for (const ComparedKernels& row : comparison.rows) {
      EXPECT_NEAR(row.measured.si(), row.predicted.si(), 1e-9) << row.kind;
      EXPECT_NEAR(row.measured_count, row.predicted_count, 1e-9) << row.kind;
    }
    EXPECT_NEAR(comparison.measured.kernel_time / comparison.predicted.kernel_time, 1, 1e-9);
    EXPECT_NEAR(*comparison.measured.step / *comparison.predicted.step, 1, 1e-9);
    EXPECT_NEAR(comparison.measured.idle->si(), comparison.predicted.idle->si(), 1e-9);
  }
}

// A profile without updates of their own keeps them among the element-wise kernels: nothing is lost.
TEST(Compare, MergesUpdatesThatAProfileCannotTell) {
  const Prediction p = prediction_on("v100_sxm2_16gb");
  MeasuredRun run = run_as_predicted(p, 1, false);
  for (MeasuredKernel& kernel : run.kernels) {
    if (kernel.kind == name_of(KernelKind::update)) kernel.kind = name_of(KernelKind::elementwise);
  }
  const Comparison comparison = compare_run(p, run, 1);
  EXPECT_TRUE(comparison.updates_merged);
  for (const ComparedKernels& row : comparison.rows) {
    EXPECT_NE(row.kind, "update");
    EXPECT_NEAR(row.measured.si(), row.predicted.si(), 1e-9) << row.kind;
  }
}

// A step that takes what is predicted on one GPU is scaled to what is predicted on another; one that takes
// twice as long to twice that.
TEST(Compare, ScalesTheMeasuredKernelsToAnotherGpu) {
  const Prediction here = prediction_on("v100_sxm2_16gb"), there = prediction_on("a100_sxm_40gb");
  MeasuredRun run = run_as_predicted(here, 1, true);
  Comparison same = compare_run(here, run, 1);
  const ScaledStep scaled = scale_to(same, here, there);
  EXPECT_NEAR(scaled.kernel_time.si(), compare_run(there, run, 1).predicted.kernel_time.si(), 1e-6);
  EXPECT_GT(scaled.factor, 1);
  for (MeasuredKernel& kernel : run.kernels) kernel.time = kernel.time * 2;
  Comparison slow = compare_run(here, run, 1);
  EXPECT_NEAR(scale_to(slow, here, there).kernel_time / scaled.kernel_time, 2, 1e-9);
}

TEST(Compare, IsACommand) {
  const test::CliResult result =
      test::run({"compare", import_file("trace.json"), "--model", "resnet50", "--framework", "pytorch_1_8",
                 "--batch", "32", "--on", "a100_sxm_40gb", "--format", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  const auto& totals = json.at("totals").at(0);
  EXPECT_NEAR(totals.at("measured_kernel_time").get<double>(), 440e-6, 1e-12);
  EXPECT_NEAR(totals.at("measured_step_time").get<double>(), 1e-3, 1e-12);
  EXPECT_EQ(totals.at("measured_kernels"), 6);
  EXPECT_EQ(totals.at("gpu_elsewhere"), "a100_sxm_40gb");
  EXPECT_LT(totals.at("step_time_elsewhere_low").get<double>(),
            totals.at("step_time_elsewhere").get<double>());
  // The GPU is the trace's, unless one is given.
  EXPECT_THAT(test::run({"compare", import_file("trace.json"), "--model", "resnet50", "--framework",
                         "pytorch_1_8", "--batch", "32"})
                  .out,
              HasSubstr("NVIDIA Tesla V100 SXM2 16 GB"));
  EXPECT_THAT(test::run({"compare", import_file("ncu.csv"), "--model", "resnet50", "--batch", "32"}).err,
              HasSubstr("--gpu is missing"));
  EXPECT_THAT(
      test::run({"compare", import_file("smi_query.csv"), "--model", "resnet50", "--batch", "32"}).err,
      HasSubstr("expected kernels of a run"));
}

}  // namespace
}  // namespace tbdsim
