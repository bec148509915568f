// Properties of every prediction: timelines without gaps, memory that adds up and grows, tight largest
// batches, and the same bytes twice.
#include <algorithm>
#include <functional>

#include <gmock/gmock.h>

#include "graphs/parameter_updates.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/catalog_tables.h"
#include "simulate/workload/precision_choice.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

constexpr const char* kGpus[] = {"titanxp", "p4000", "v100_sxm2_16gb", "a100_sxm_80gb", "t4", "rtx4090"};

// Calls `check` for every model variant of the catalogue under the frameworks that train it (PyTorch where
// none is named), in two precisions, at its shortest and longest length.
using Check = std::function<void(const TrainingStep&, const Framework&)>;
void for_every_step(SpecCache& specs, const Check& check) {
  for (const std::string& model : specs.catalog().names(Kind::model)) {
    for (const Variant& variant : specs.model(model)->variants) {
      auto frameworks = variant.frameworks;
      if (frameworks.empty()) frameworks = {"pytorch"};
      for (const std::string& framework : frameworks) {
        for (const char* precision : {"fp32", "amp"}) {
          SCOPED_TRACE(model + " " + variant.name + " " + framework + " " + precision);
          const auto& steps = *specs.workload(model, variant, {framework, specs.framework(framework)},
                                              find_precision(precision), variant.dataset);
          check(steps.front().step, *specs.framework(framework));
          if (steps.size() > 1) check(steps.back().step, *specs.framework(framework));
        }
      }
    }
  }
}

// On each stream kernels start in order, and none before it is issued; an iteration is at least as long as
// any clock works.
TEST(SimulateProperty, BothClocksGoForward) {
  SpecCache specs = test::source_specs();
  for_every_step(specs, [&](const TrainingStep& step, const Framework& framework) {
    const auto costs =
        estimate(step, 32, calibration_of(*specs.profile("uncalibrated"), *specs.gpu("rtx3090")));
    const Timeline timeline = simulate_timeline(step, costs, 32, framework.launch_model);
    ASSERT_EQ(timeline.kernels.size(), step.kernels.size());
    const std::int64_t workers = framework.launch_model.engine_threads;
    std::vector<KernelSpan> lasts(static_cast<std::size_t>(workers));
    Seconds all;
    for (const std::size_t k : in_launch_order(timeline)) {
      const KernelSpan& span = timeline.kernels[k];
      KernelSpan& last = lasts.at(static_cast<std::size_t>(span.engine_thread));
      ASSERT_GE(span.launch_start, last.launch_end);
      ASSERT_GE(span.launch_end, span.launch_start);
      ASSERT_GE(span.start, span.launch_start);
      ASSERT_GE(span.start, last.end);
      ASSERT_GT(span.end, span.start);
      ASSERT_EQ(span.async_update, workers > 1 && updates_parameter(step.kernels[k]));
      last = span;
      if (step.kernels[k].kind != KernelKind::transfer)
        all += costs[k].total * static_cast<double>(step.kernels[k].repeat);
    }
    ASSERT_GE(timeline.iteration, timeline.gpu_busy * (1 - 1e-9));
    ASSERT_GE(timeline.iteration * static_cast<double>(workers), timeline.cpu_busy * (1 - 1e-9));
    ASSERT_LE(timeline.gpu_busy, all * (1 + 1e-9));
    if (workers == 1) {
      ASSERT_GE(timeline.gpu_busy, all * (1 - 1e-9));
    }
  });
}

// Without workspaces.
MemoryPlan plan(const TrainingStep& step, double batch, const Framework& framework) {
  return plan_memory(memory_outline(step), step, std::vector<KernelCost>(step.kernels.size()), batch,
                     framework);
}

double alive_at(int k, const TrainingStep& step, double batch, bool gradient_maps) {
  double bytes = 0;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role == TensorRole::gradient_map && !gradient_maps) continue;
    if (tensor.first_use <= k && k <= tensor.last_use) bytes += tensor.bytes.at(batch);
  }
  return bytes;
}

// The bytes alive at the peak kernel, summed here, are the plan's categories less the workspace, and no
// kernel has more. A static plan holds all of them at any kernel, but gradients share a block with their
// successors.
TEST(SimulateProperty, CategoriesAddUpToThePeak) {
  SpecCache specs = test::source_specs();
  for_every_step(specs, [](const TrainingStep& step, const Framework& framework) {
    constexpr double kBatch = 16;
    const MemoryPlan made = plan(step, kBatch, framework);
    const bool planned = framework.allocator.static_plan;
    if (!planned) {
      ASSERT_EQ((made.model() - made.use[MemoryCategory::workspace]).si(),
                alive_at(made.peak_kernel, step, kBatch, true));
    }
    for (int k = 0; k < static_cast<int>(step.kernels.size()); k += 7) {
      const double scratch = step.kernels[static_cast<std::size_t>(k)].scratch_bytes.at(kBatch);
      ASSERT_LE(alive_at(k, step, kBatch, !planned) + (planned ? 0 : scratch), made.model().si());
    }
    ASSERT_EQ(made.total(), made.use[MemoryCategory::weights] + made.use[MemoryCategory::weight_gradients] +
                                made.use[MemoryCategory::feature_maps] + made.use[MemoryCategory::workspace] +
                                made.use[MemoryCategory::dynamic] + made.context);
  });
}

// More samples never need fewer bytes of tensors. (Workspaces may shrink: other algorithms run.)
TEST(SimulateProperty, TensorsGrowWithTheBatch) {
  SpecCache specs = test::source_specs();
  for_every_step(specs, [](const TrainingStep& step, const Framework& framework) {
    const MemoryOutline outline = memory_outline(step);
    const std::vector<KernelCost> costs(step.kernels.size());
    double before = 0;
    for (const double batch : {1, 2, 3, 8, 32, 33, 64, 256, 1000}) {
      const double bytes = plan_memory(outline, step, costs, batch, framework).model().si();
      ASSERT_GE(bytes, before);
      before = bytes;
    }
  });
}

// The largest that fits and one more, of predictions with their workspaces.
TEST(SimulateProperty, LargestBatchIsTight) {
  SpecCache specs = test::source_specs();
  for (const char* model : {"resnet50", "seq2seq", "vgg16", "deep_speech2"}) {
    for (const char* gpu : kGpus) {
      const Prediction p = predict({.model = model,
                                    .framework = "mxnet",
                                    .gpu = gpu,
                                    .variant = specs.model(model)->variants.front().name},
                                   specs);
      const std::int64_t largest = p.largest_batch();
      ASSERT_GE(largest, 1) << model << gpu;
      ASSERT_LE(p.memory_at(largest).needed(), p.usable_memory()) << model << gpu;
      ASSERT_GT(p.memory_at(largest + 1).needed(), p.usable_memory()) << model << gpu;
    }
  }
}

// The largest batch of every model on every GPU takes no more than CUDA reports.
TEST(SimulateProperty, NothingFitsBeyondTheUsableMemory) {
  SpecCache specs = test::source_specs();
  for (const std::string& gpu : specs.catalog().names(Kind::gpu)) {
    for (const char* model : {"resnet50", "bert_base", "vgg16"}) {
      const Prediction p = predict({.model = model,
                                    .framework = "pytorch",
                                    .gpu = gpu,
                                    .variant = specs.model(model)->variants.front().name},
                                   specs);
      const std::int64_t largest = p.largest_batch();
      ASSERT_LE(p.memory_at(largest).needed(), p.usable_memory()) << model << gpu;
      ASSERT_LT(p.memory_at(largest).total(), p.gpu->memory_size) << model << gpu;
      ASSERT_EQ(p.fits, p.memory.needed() <= p.usable_memory()) << model << gpu;
    }
  }
}

// Memory at the predicted batch is the prediction's own.
TEST(SimulateProperty, MemoryAtTheBatchIsThatOfThePrediction) {
  SpecCache specs = test::source_specs();
  for (const char* framework : {"mxnet", "tensorflow", "pytorch", "cntk"}) {
    const Prediction p =
        predict({.model = "resnet50", .framework = framework, .gpu = "p4000", .batch = 24}, specs);
    EXPECT_EQ(p.memory_at(24).total(), p.memory.total()) << framework;
  }
}

TEST(SimulateProperty, EveryCommandPrintsTheSameBytesTwice) {
  const test::TempDir directory;
  const std::string runs =
      directory
          .write("runs.csv", test::table({test::run_row(), test::run_row({{"gpu", "p4000"}}),
                                          test::run_row({{"gpus", "2"}})}))
          .string();
  std::vector<std::vector<std::string>> commands{{"--gpu", "titanxp", "--batch", "64"},
                                                 {"show", "resnet50", "--framework", "tensorflow"},
                                                 {"kernels", "all", "--gpu", "p4000", "--batch", "16"},
                                                 {"predict", "--scenarios", runs},
                                                 {"validate", "--runs", runs}};
  for (const Listing& listing : listings()) commands.push_back({"list", std::string(listing.name)});
  for (const auto& command : commands) {
    for (const char* format : {"table", "json", "csv"}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"--format", format});
      const test::CliResult first = test::run(arguments);
      ASSERT_EQ(first.exit_code, 0) << first.err;
      ASSERT_FALSE(first.out.empty()) << command[0];
      ASSERT_EQ(first.out, test::run(arguments).out) << command[0] << " " << format;
    }
  }
}

}  // namespace
}  // namespace tbdsim
