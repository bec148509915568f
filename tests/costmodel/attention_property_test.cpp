// Properties of attention by the fitted profiles, residuals included: more of anything is never slower, more
// work never takes less time, a mask never costs time, and nothing is faster than the peak.
#include <array>
#include <cmath>

#include <gmock/gmock.h>

#include "costmodel/estimate.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

constexpr double kRounding = 1 + 1e-9;

// 8 heads of 128 features a sample.
Kernel attention(AttentionKernel library, Phase phase, std::int64_t length, bool causal) {
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.phase = phase;
  kernel.op = "attention";
  kernel.math = MathType::bf16;
  kernel.shape = AttentionShape{.heads = {0, 8},
                                .queries = fixed_size(length),
                                .keys = fixed_size(length),
                                .features = 128,
                                .values = 128,
                                .causal = causal,
                                .kernel = library};
  const std::int64_t tensor = 8 * length * 128 * 2;
  kernel.read_bytes = {0, (phase == Phase::forward ? 3 : 5) * tensor};
  kernel.written_bytes = {0, (phase == Phase::forward ? 1 : 3) * tensor};
  const std::int64_t scores = 8 * length * length / (causal ? 2 : 1);
  kernel.flops = {0, scores * 2 * 128 * (phase == Phase::forward ? 2 : 5)};
  return kernel;
}

GpuSpec faster(GpuSpec gpu, double sms, double clock, double bandwidth) {
  const int before = gpu.sm_count;
  gpu.sm_count = static_cast<int>(std::lround(gpu.sm_count * sms));
  for (auto& rate : gpu.math) {
    if (!rate) continue;
    rate->peak = rate->peak * (clock * gpu.sm_count / before);
    rate->clock = rate->clock * clock;
  }
  gpu.boost_clock = gpu.boost_clock * clock;
  gpu.memory_bandwidth = gpu.memory_bandwidth * bandwidth;
  return gpu;
}

struct Case {
  AttentionKernel library;
  Phase phase;
  bool causal;
};

class AttentionProperties : public testing::TestWithParam<const char*> {
 protected:
  // Calls `check` for the kernels of each library, pass and mask.
  template <class Check>
  void for_each_case(Check check) const {
    for (const AttentionKernel library : {AttentionKernel::flash2, AttentionKernel::flash3,
                                          AttentionKernel::cudnn, AttentionKernel::memory_efficient}) {
      for (const Phase phase : {Phase::forward, Phase::backward_data}) {
        for (const bool causal : {false, true}) check(Case{library, phase, causal});
      }
    }
  }
  [[nodiscard]] double seconds(const Kernel& kernel, double batch, const GpuSpec& gpu) const {
    return estimate(kernel, batch, calibration_of(*profile_, gpu, {{"cudnn", 9}})).total.si();
  }

  SpecCache specs_ = test::source_specs();
  const Named<GpuSpec> gpu_{GetParam(), specs_.gpu(GetParam())};
  std::shared_ptr<const Profile> profile_ = specs_.profile_for(gpu_, "");
};

TEST_P(AttentionProperties, MoreOfAnythingIsNeverSlower) {
  for_each_case([&](const Case& c) {
    for (const std::int64_t length : {512, 4'096}) {
      const Kernel kernel = attention(c.library, c.phase, length, c.causal);
      const double before = seconds(kernel, 2, *gpu_.spec);
      for (const double factor : {1.05, 1.5, 2.0}) {
        EXPECT_LE(seconds(kernel, 2, faster(*gpu_.spec, factor, 1, 1)), before * kRounding);
        EXPECT_LE(seconds(kernel, 2, faster(*gpu_.spec, 1, factor, 1)), before * kRounding);
        EXPECT_LE(seconds(kernel, 2, faster(*gpu_.spec, 1, 1, factor)), before * kRounding);
        GpuSpec stronger = *gpu_.spec;
        stronger.tdp = stronger.tdp * factor;
        EXPECT_LE(seconds(kernel, 2, stronger), before * kRounding) << "watts";
      }
    }
  });
}

// ViT's 197 patches of one image leave most SMs idle, whose power no tensor core draws in fp32.
TEST_P(AttentionProperties, MoreSmsNeverSlowAFewBlocksInFp32) {
  for (const Phase phase : {Phase::forward, Phase::backward_data}) {
    Kernel kernel = attention(AttentionKernel::memory_efficient, phase, 197, false);
    kernel.math = MathType::fp32;
    const double before = seconds(kernel, 1, *gpu_.spec);
    for (const double factor : {1.1, 1.5, 2.0})
      EXPECT_LE(seconds(kernel, 1, faster(*gpu_.spec, factor, 1, 1)), before * kRounding);
  }
}

TEST_P(AttentionProperties, MoreWorkNeverTakesLess) {
  for_each_case([&](const Case& c) {
    double before = 0;
    for (const std::int64_t length : {128, 256, 512, 1'024, 2'048, 4'096, 8'192, 16'384}) {
      const double now = seconds(attention(c.library, c.phase, length, c.causal), 2, *gpu_.spec);
      EXPECT_GE(now * kRounding, before) << length;
      before = now;
    }
    before = 0;
    for (const double batch : {1, 2, 4, 8, 16, 32}) {
      const double now = seconds(attention(c.library, c.phase, 2'048, c.causal), batch, *gpu_.spec);
      EXPECT_GE(now * kRounding, before) << batch;
      before = now;
    }
  });
}

TEST_P(AttentionProperties, AMaskCostsNoTimeAndNothingExceedsThePeak) {
  const double peak = rate_of(*gpu_.spec, MathType::bf16).peak.si();
  for_each_case([&](const Case& c) {
    for (const std::int64_t length : {128, 1'000, 4'096, 16'384}) {
      const Kernel masked = attention(c.library, c.phase, length, true);
      const double with_mask = seconds(masked, 4, *gpu_.spec);
      EXPECT_LE(with_mask, seconds(attention(c.library, c.phase, length, false), 4, *gpu_.spec) * kRounding);
      EXPECT_GE(with_mask * peak, masked.flops.at(4));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, AttentionProperties,
                         testing::Values("a100_pcie_80gb", "h100_sxm", "h200", "b200", "gb300", "l40s",
                                         "rtx4090"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tbdsim
