// What holds for every prediction: timelines without gaps, memory that adds up and grows, tight largest
// batches, and the same bytes twice.
#include <algorithm>
#include <functional>

#include <gmock/gmock.h>

#include "simulate/catalog_report.h"
#include "simulate/prediction.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

constexpr const char* kGpus[] = {"titanxp", "p4000", "v100_sxm2_16gb", "a100_sxm_80gb", "t4", "rtx4090"};

// Calls `check` for every model variant of the catalogue under the frameworks that train it (PyTorch where
// none is named), in two precisions, at its shortest and longest length.
using Check = std::function<void(const TrainingStep&, const Framework&)>;
void for_every_step(Library& library, const Check& check) {
  for (const std::string& model : library.catalog().names(Kind::model)) {
    for (const Variant& variant : library.model(model).variants) {
      auto frameworks = variant.frameworks;
      if (frameworks.empty()) frameworks = {"pytorch"};
      for (const std::string& framework : frameworks) {
        for (const char* precision : {"fp32", "amp"}) {
          SCOPED_TRACE(model + " " + variant.name + " " + framework + " " + precision);
          const auto& steps =
              library.workload(model, variant, framework, find_precision(precision), variant.dataset);
          check(steps.front().step, library.framework(framework));
          if (steps.size() > 1) check(steps.back().step, library.framework(framework));
        }
      }
    }
  }
}

// Kernels start in order and none before it is issued; an iteration is at least as long as either clock
// works.
TEST(SimulateProperty, BothClocksGoForward) {
  Library library = test::source_library();
  for_every_step(library, [&](const TrainingStep& step, const Framework& framework) {
    const auto costs =
        estimate(step, 32, calibration_of(library.profile("uncalibrated"), library.gpu("rtx3090")));
    const Timeline timeline = simulate_iteration(step, costs, 32, framework.execution);
    ASSERT_EQ(timeline.kernels.size(), step.kernels.size());
    KernelSpan last;
    for (const KernelSpan& span : timeline.kernels) {
      ASSERT_GE(span.issue, last.issued);
      ASSERT_GE(span.issued, span.issue);
      ASSERT_GE(span.start, span.issue);
      ASSERT_GE(span.start, last.end);
      ASSERT_GT(span.end, span.start);
      last = span;
    }
    ASSERT_GE(timeline.iteration, timeline.gpu_busy * (1 - 1e-9));
    ASSERT_GE(timeline.iteration, timeline.cpu_busy * (1 - 1e-9));
  });
}

// What is alive at the peak kernel, added up afresh: the plan's categories less the workspace; and no kernel
// has more.
TEST(SimulateProperty, CategoriesAddUpToThePeak) {
  Library library = test::source_library();
  for_every_step(library, [](const TrainingStep& step, const Framework& framework) {
    constexpr double kBatch = 16;
    const MemoryPlan plan = plan_memory(step, kBatch, framework);
    const auto alive = [&](int k) {
      double bytes = 0;
      for (const Tensor& tensor : step.tensors) {
        if (tensor.first_use <= k && k <= tensor.last_use) bytes += tensor.bytes.at(kBatch);
      }
      return bytes;
    };
    ASSERT_EQ((plan.model() - plan.workspace).si(), alive(plan.peak_kernel));
    for (int k = 0; k < static_cast<int>(step.kernels.size()); k += 7) {
      ASSERT_LE(alive(k), (plan.model() - plan.workspace).si());
    }
    double scratch = 0;  // temporary tensors know no limit
    for (const Kernel& kernel : step.kernels) scratch = std::max(scratch, kernel.scratch_bytes.at(kBatch));
    ASSERT_LE(plan.workspace.si(), framework.workspace_limit.si() + scratch);
    ASSERT_EQ(plan.total(), plan.weights + plan.weight_gradients + plan.feature_maps + plan.workspace +
                                plan.dynamic + plan.context);
  });
}

// More samples never need fewer bytes of tensors. (Workspaces may shrink: above the framework's limit other
// algorithms run.)
TEST(SimulateProperty, TensorsGrowWithTheBatch) {
  Library library = test::source_library();
  for_every_step(library, [](const TrainingStep& step, const Framework& framework) {
    double before = 0;
    for (const double batch : {1, 2, 3, 8, 32, 33, 64, 256, 1000}) {
      const MemoryPlan plan = plan_memory(step, batch, framework);
      const double tensors = (plan.model() - plan.workspace).si();
      ASSERT_GE(tensors, before);
      before = tensors;
    }
  });
}

TEST(SimulateProperty, LargestBatchIsTight) {
  Library library = test::source_library();
  for_every_step(library, [&](const TrainingStep& step, const Framework& framework) {
    for (const char* name : kGpus) {
      const Bytes capacity = library.gpu(name).memory_size;
      const std::int64_t largest = largest_batch(step, framework, capacity, kMostSamples);
      ASSERT_GE(largest, 1) << name;
      ASSERT_LE(plan_memory(step, static_cast<double>(largest), framework).total(), capacity) << name;
      ASSERT_GT(plan_memory(step, static_cast<double>(largest + 1), framework).total(), capacity) << name;
    }
  });
}

// Twice the memory never holds a smaller batch.
TEST(SimulateProperty, LargestBatchGrowsWithTheMemory) {
  Library library = test::source_library();
  for_every_step(library, [](const TrainingStep& step, const Framework& framework) {
    std::int64_t before = 0;
    for (double gib = 1; gib <= 256; gib *= 2) {
      const std::int64_t largest =
          largest_batch(step, framework, Bytes(gib * 1024 * 1024 * 1024), kMostSamples);
      ASSERT_GE(largest, before) << gib;
      before = largest;
    }
  });
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
