// A GPU with at least as much of everything that a data sheet says is no slower than another with the same
// instructions. Not held: a GPU that was timed keeps what was measured on it, which may be less than a better
// data sheet promises (a TITAN Xp beside a GTX 1080 Ti), and gives that to boards with its chip; in TF32 a
// faster GPU may choose tensor cores and the copies before them, three launches instead of one, which a step
// that waits for its host pays (ResNet-50 with 4 images, at most 1.8 %).
#include <vector>

#include <gtest/gtest.h>

#include "costmodel/power.h"
#include "simulate/prediction/predict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

struct Step {
  const char* model;
  const char* precision;
  std::int64_t batch;
};

// True if `a` has the peaks, sizes and rates of `b` or more, and the same instructions.
bool has_all_of(const GpuSpec& a, const GpuSpec& b) {
  bool all = instructions_of(a) == instructions_of(b) && a.sm_count >= b.sm_count &&
             a.boost_clock >= b.boost_clock && a.memory_bandwidth >= b.memory_bandwidth &&
             a.memory_size >= b.memory_size && a.l2_size >= b.l2_size && a.tdp >= b.tdp;
  for (std::size_t m = 0; m < kMathTypeCount; ++m) {
    if (b.math[m]) all &= a.math[m] && a.math[m]->peak >= b.math[m]->peak;
  }
  return all;
}

// Products were timed on a B200 alone, attention on a GB200 too: its calls leave residuals that other boards
// of the architecture do not have, up to 1 % of a step.
TEST(GpuOrder, OfBlackwells) {
  SpecCache specs = test::source_specs();
  for (const char* precision : {"bf16", "fp8", "tf32"}) {
    const auto time = [&](const char* gpu) {
      return predict({.model = "llama3.2_1b",
                      .framework = "pytorch",
                      .gpu = gpu,
                      .batch = 1,
                      .precision = precision,
                      .sizes = {{"sequence_length", 4'096}}},
                     specs)
          .iteration_time()
          .si();
    };
    EXPECT_LE(time("b300"), 1.01 * time("b200")) << precision;
    EXPECT_LE(time("gb200"), 1.001 * time("b200")) << precision;
    EXPECT_LE(time("gb300"), 1.001 * time("gb200")) << precision;
  }
}

// Recurrent layers were timed on an H100, whose blocks Blackwell's GPUs have: no step of a B200 waits longer.
TEST(GpuOrder, OfRecurrentLayers) {
  SpecCache specs = test::source_specs();
  for (const char* precision : {"fp16", "tf32", "fp32"}) {
    for (const std::int64_t batch : {1, 16, 64, 512}) {
      const auto time = [&](const char* gpu) {
        return predict({.model = "gnmt",
                        .framework = "pytorch",
                        .gpu = gpu,
                        .batch = batch,
                        .precision = precision},
                       specs)
            .iteration_time()
            .si();
      };
      EXPECT_LE(time("b200"), time("h100_sxm")) << precision << ", " << batch;
      EXPECT_LE(time("h100_sxm"), time("a100_sxm_80gb")) << precision << ", " << batch;
    }
  }
}

// Boards of a chip that nobody timed have the profile of their architecture, boards of one chip that of the
// same measured board: only GPUs with one profile are compared.
TEST(GpuOrder, OfGpusThatNobodyTimed) {
  SpecCache specs = test::source_specs();
  std::vector<std::shared_ptr<const GpuSpec>> gpus;
  std::vector<std::string> profiles;
  for (const std::string& name : specs.catalog().names(Kind::gpu)) {
    if (specs.catalog().contains(Kind::profile, name)) continue;
    gpus.push_back(specs.gpu(name));
    profiles.push_back(specs.profile_for({name, gpus.back()}, "")->name);
  }
  for (const Step& run :
       {Step{"resnet50", "fp32", 32}, Step{"resnet50", "amp", 64}, Step{"bert_base", "bf16", 16}}) {
    std::vector<Seconds> times;
    for (const auto& gpu : gpus) {
      const bool computes = gpu->math[index_of(MathType::bf16)] || run.precision != std::string_view("bf16");
      times.push_back(computes ? predict({.model = run.model,
                                          .framework = "pytorch",
                                          .gpu = gpu->name,
                                          .batch = run.batch,
                                          .precision = run.precision},
                                         specs)
                                     .iteration_time()
                               : Seconds(0));
    }
    for (std::size_t a = 0; a < gpus.size(); ++a) {
      for (std::size_t b = 0; b < gpus.size(); ++b) {
        if (a == b || times[b] == Seconds(0) || profiles[a] != profiles[b] || !has_all_of(*gpus[a], *gpus[b]))
          continue;
        EXPECT_LE(times[a].si(), 1.001 * times[b].si())
            << gpus[a]->name << " and " << gpus[b]->name << ", " << run.model << " in " << run.precision;
      }
    }
  }
}

// Boards with one chip that nobody timed, or only on another board: the better one is no slower.
TEST(GpuOrder, OfBoardsWithOneChip) {
  SpecCache specs = test::source_specs();
  const auto time = [&](const char* gpu, const char* model) {
    return predict({.model = model, .framework = "pytorch", .gpu = gpu, .batch = 16}, specs)
        .iteration_time()
        .si();
  };
  for (const char* model : {"resnet50", "vgg16", "unet3d"}) {
    EXPECT_LT(time("a100_sxm_40gb", model), time("a100_pcie_40gb", model)) << model;
    EXPECT_LE(time("a800_sxm_80gb", model), 1.03 * time("a100_sxm_80gb", model)) << model;
    EXPECT_LE(time("v100_sxm2_32gb", model), 1.001 * time("v100_sxm2_16gb", model)) << model;
    EXPECT_LT(time("v100_sxm2_32gb", model), time("v100_pcie_16gb", model)) << model;
  }
}

}  // namespace
}  // namespace tbdsim
