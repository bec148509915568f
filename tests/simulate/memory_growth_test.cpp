// Memory does not fall when the batch or the images grow, unless a smaller workspace explains it: another
// algorithm runs, because it is faster there or because the workspace of the one before exceeds the
// framework's limit.
#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/predict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

constexpr const char* kGpus[] = {"titanxp", "v100_sxm2_16gb", "h100_sxm"};
constexpr std::int64_t kBatches[] = {1, 2, 3, 4, 6, 8, 12, 14, 15, 16, 18, 19, 24, 32, 48, 62, 63, 64, 128};

Bytes workspace(const MemoryPlan& plan) { return plan.use[MemoryCategory::workspace]; }

// `larger`: of a larger batch or image.
void expect_growth(const MemoryPlan& smaller, const MemoryPlan& larger) {
  const Bytes fallen = smaller.total() - larger.total();
  if (fallen <= smaller.total() * 1e-9) return;  // rounding
  EXPECT_LE(fallen, (workspace(smaller) - workspace(larger)) * (1 + 1e-9))
      << to_text(smaller.total()) << " falls to " << to_text(larger.total()) << ", workspaces "
      << to_text(workspace(smaller)) << " and " << to_text(workspace(larger));
}

// With so much memory that the allocator's segments, which take long to replay, do not decide what fits.
Prediction on_a_roomy_gpu(Prediction p) {
  GpuSpec roomy = *p.gpu;
  roomy.usable_memory = Bytes(1e15);
  p.gpu = std::make_shared<const GpuSpec>(roomy);
  return p;
}

std::vector<std::string> frameworks_of(const Variant& variant) {
  return variant.frameworks.empty() ? std::vector<std::string>{"pytorch"} : variant.frameworks;
}

// Every variant of every model on its frameworks.
TEST(MemoryGrowth, FollowsTheBatchUnlessAWorkspaceShrinks) {
  SpecCache specs = test::source_specs();
  for (const std::string& model : specs.catalog().names(Kind::model)) {
    for (const Variant& variant : specs.model(model)->variants) {
      for (const std::string& framework : frameworks_of(variant)) {
        for (const char* gpu : kGpus) {
          SCOPED_TRACE(model + " " + variant.name + " " + framework + " " + gpu);
          const Prediction p = on_a_roomy_gpu(
              predict({.model = model, .framework = framework, .gpu = gpu, .variant = variant.name}, specs));
          MemoryPlan before = p.memory_at(kBatches[0]);
          for (const std::int64_t batch : kBatches) {
            if (p.model->largest_batch > 0 && batch > p.model->largest_batch) break;
            const MemoryPlan plan = p.memory_at(batch);
            expect_growth(before, plan);
            before = plan;
          }
        }
      }
    }
  }
}

TEST(MemoryGrowth, FollowsTheImageUnlessAWorkspaceShrinks) {
  SpecCache specs = test::source_specs();
  for (const char* model : {"alexnet", "vgg16", "resnet50", "inception_v3"}) {
    for (const std::string& framework : frameworks_of(specs.model(model)->variants.front())) {
      for (const char* gpu : kGpus) {
        SCOPED_TRACE(std::string(model) + " " + framework + " " + gpu);
        std::optional<MemoryPlan> before;
        for (std::int64_t side = 320; side <= 512; side += 32) {
          const Prediction p = predict({.model = model,
                                        .framework = framework,
                                        .gpu = gpu,
                                        .batch = 4,
                                        .variant = specs.model(model)->variants.front().name,
                                        .sizes = {{"image_size", side}}},
                                       specs);
          if (before) expect_growth(*before, p.memory);
          before = p.memory;
        }
      }
    }
  }
}

// VGG-13's largest workspace on a V100 is 1,014 MiB at batch 49; at 50 that algorithm needs more than the 1
// GiB that MXNet allows, and the breakdown shows the smaller one.
TEST(MemoryGrowth, ShowsTheWorkspaceThatShrinks) {
  SpecCache specs = test::source_specs();
  const Prediction p = predict({.model = "vgg13", .framework = "mxnet", .gpu = "v100_sxm2_16gb"}, specs);
  const MemoryPlan at_49 = p.memory_at(49);
  const MemoryPlan at_50 = p.memory_at(50);
  EXPECT_LT(at_50.total(), at_49.total());
  EXPECT_LT(workspace(at_50), workspace(at_49));
  EXPECT_GT(at_50.use[MemoryCategory::feature_maps], at_49.use[MemoryCategory::feature_maps]);
}

}  // namespace
}  // namespace tbdsim
