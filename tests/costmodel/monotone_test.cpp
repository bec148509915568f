// Properties of calibrated kernel times: a GPU with more of anything is never slower, a larger batch never
// takes less time, and nothing is faster than the data sheet allows.
#include <cmath>
#include <functional>

#include <gmock/gmock.h>

#include "costmodel/estimate.h"
#include "costmodel/families/physical_limit.h"
#include "costmodel/families/thread_blocks.h"
#include "simulate/workload/precision_choice.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

constexpr double kRounding = 1 + 1e-9;

struct Case {
  const char* model;
  const char* framework;
  const char* precision;
};
// Convolutions with and without Winograd and tensor cores, of groups by the library and depthwise by the
// framework, squeeze-and-excitation, thin GEMMs, recurrent layers, attention.
constexpr Case kCases[] = {{"resnext50_32x4d", "pytorch", "amp"}, {"resnext50_32x4d", "pytorch", "fp32"},
                           {"efficientnet_b0", "pytorch", "amp"}, {"mobilenet_v2", "pytorch", "fp32"},
                           {"inception_v3", "pytorch", "amp"},    {"resnet50", "mxnet", "fp32"},
                           {"resnet50", "pytorch", "tf32"},       {"seq2seq", "mxnet", "fp32"},
                           {"deep_speech2", "mxnet", "fp32"},     {"gnmt", "pytorch", "amp"},
                           {"transformer", "pytorch", "fp32"}};

using NamedGpu = Named<GpuSpec>;

// Calls `check` for the longest step of each case on each GPU that computes in its precision.
void for_every_case(const std::function<void(const TrainingStep&, const GpuSpec&, const Profile&)>& check) {
  SpecCache specs = test::source_specs();
  for (const Case& c : kCases) {
    const Variant& variant = find_variant(*specs.model(c.model), "", c.framework);
    const Precision& precision = find_precision(c.precision);
    for (const char* name : {"titanxp", "t4", "v100_sxm2_16gb", "a100_pcie_40gb", "h100_sxm"}) {
      const NamedGpu gpu{name, specs.gpu(name)};
      if (!gpu.spec->math[index_of(precision.math)]) continue;
      const auto workload = specs.workload(c.model, variant, {c.framework, specs.framework(c.framework)},
                                           precision, variant.dataset);
      check(workload->back().step, *gpu.spec, *specs.profile_for(gpu, ""));
    }
  }
}

using Costs = std::vector<KernelCost>;
Costs costs(const TrainingStep& step, double batch, const GpuSpec& gpu, const Profile& profile) {
  return estimate(step, batch, calibration_of(profile, gpu));
}

// Norms and softmax read rows again from L2, which rows of more SMs share: these kernels alone may take
// longer there (docs/model/kernel_times.md, Limits).
bool reads_rows_again(const Kernel& kernel) {
  return kernel.kind == KernelKind::layer_norm || kernel.kind == KernelKind::softmax;
}

// Expects no kernel and the sum of all to take longer in `after`. In TF32 a kernel may take over the time of
// the copies that it makes unnecessary, so that kernels are compared one by one elsewhere only.
void expect_no_slower(const TrainingStep& step, const Costs& before, const Costs& after,
                      const std::string& what) {
  double sum_before = 0;
  double sum_after = 0;
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (what == "SMs" && reads_rows_again(step.kernels[k])) continue;
    sum_before += before[k].total.si();
    sum_after += after[k].total.si();
    if (step.kernels[k].math == MathType::tf32) continue;
    ASSERT_LE(after[k].total.si(), before[k].total.si() * kRounding)
        << what << ": " << step.kernels[k].op << " " << name_of(before[k].algorithm) << " "
        << name_of(after[k].algorithm);
  }
  EXPECT_LE(sum_after, sum_before * kRounding) << what;
}

GpuSpec with_sms(GpuSpec gpu, double factor) {
  const int sms = static_cast<int>(std::lround(gpu.sm_count * factor));
  for (auto& rate : gpu.math) {
    if (rate) rate->peak = rate->peak * (static_cast<double>(sms) / gpu.sm_count);
  }
  gpu.sm_count = sms;
  return gpu;
}

GpuSpec with_clock(GpuSpec gpu, double factor) {
  gpu.boost_clock = gpu.boost_clock * factor;
  for (auto& rate : gpu.math) {
    if (!rate) continue;
    rate->peak = rate->peak * factor;
    rate->clock = rate->clock * factor;
  }
  return gpu;
}

TEST(Monotone, AGpuWithMoreOfAnythingIsNeverSlower) {
  for_every_case([](const TrainingStep& step, const GpuSpec& gpu, const Profile& profile) {
    for (const double batch : {1.0, 16.0}) {
      const Costs before = costs(step, batch, gpu, profile);
      for (const double factor : {1.02, 1.1, 1.25, 1.5, 2.0}) {
        expect_no_slower(step, before, costs(step, batch, with_sms(gpu, factor), profile), "SMs");
        expect_no_slower(step, before, costs(step, batch, with_clock(gpu, factor), profile), "clock");
        GpuSpec other = gpu;
        other.memory_bandwidth = gpu.memory_bandwidth * factor;
        expect_no_slower(step, before, costs(step, batch, other, profile), "bandwidth");
        other = gpu;
        other.l2_size = gpu.l2_size * factor;
        expect_no_slower(step, before, costs(step, batch, other, profile), "L2");
      }
    }
  });
}

Kernel gradient_by_weights(std::int64_t channels, std::int64_t images, std::int64_t size) {
  Kernel kernel;
  kernel.kind = KernelKind::convolution;
  kernel.phase = Phase::backward_weights;
  ConvShape conv;
  conv.images = Size{images, 0};
  conv.channels = conv.filters = channels;
  conv.height = conv.width = conv.out_height = conv.out_width = size;
  conv.kernel_height = conv.kernel_width = 3;
  conv.pad_height = conv.pad_width = 1;
  kernel.shape = conv;
  return kernel;
}

// An A100 has more SMs, bandwidth, L2 and operations a second than a V100: gradients by the weights of few
// channels, whose depth is split, take no longer but for what the kernels of another cuDNN may take, half.
TEST(Monotone, FewChannelsAreAtMostHalfSlowerOnALaterGpu) {
  SpecCache specs = test::source_specs();
  const auto seconds = [&](const Kernel& kernel, const char* name) {
    const NamedGpu gpu{name, specs.gpu(name)};
    const auto profile = specs.profile_for(gpu, "");
    return estimate(kernel, 1, calibration_of(*profile, *gpu.spec)).total.si();
  };
  for (const std::int64_t channels : {16, 32, 64}) {
    for (const std::int64_t images : {64, 256, 1024}) {
      for (const std::int64_t size : {32, 64, 128}) {
        const Kernel kernel = gradient_by_weights(channels, images, size);
        EXPECT_LE(seconds(kernel, "a100_sxm_80gb"), 1.5 * seconds(kernel, "v100_sxm2_16gb"))
            << channels << " channels, " << images << " images of " << size;
      }
    }
  }
}

// Residuals of a call and of the same with another batch come from other measured calls, so that single
// kernels fall by some per cent here and there; a step never does.
TEST(Monotone, ALargerBatchNeverTakesLess) {
  for_every_case([](const TrainingStep& step, const GpuSpec& gpu, const Profile& profile) {
    double before = 0;
    for (const double batch : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0}) {
      double sum = 0;
      for (const KernelCost& cost : costs(step, batch, gpu, profile)) sum += cost.total.si();
      EXPECT_GE(sum * kRounding, before) << gpu.name << " " << batch;
      before = sum;
    }
  });
}

// Nothing is computed faster than the peak, but for Winograd's and Fourier's algorithms, which multiply less;
// and bytes beyond four times the L2 pass the memory bus.
TEST(Monotone, NoKernelIsFasterThanTheDataSheet) {
  for_every_case([](const TrainingStep& step, const GpuSpec& gpu, const Profile& profile) {
    for (const double batch : {4.0, 64.0}) {
      const Costs all = costs(step, batch, gpu, profile);
      for (std::size_t k = 0; k < all.size(); ++k) {
        const Kernel& kernel = step.kernels[k];
        const KernelCost& cost = all[k];
        if (!cost.runs() || kernel.kind == KernelKind::transfer) continue;
        const bool multiplies_less = cost.algorithm == Algorithm::winograd ||
                                     cost.algorithm == Algorithm::winograd_nonfused ||
                                     cost.algorithm == Algorithm::fft_tiling;
        if (!multiplies_less) {
          ASSERT_GE(cost.total.si() * kRounding * rate_of(gpu, cost.math).peak.si(), kernel.flops.at(batch))
              << kernel.op;
        }
        const double bytes = kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch);
        if (bytes > 4 * gpu.l2_size.si() && cost.algorithm != Algorithm::recurrent) {
          ASSERT_GE(cost.total.si() * kRounding * gpu.memory_bandwidth.si(), bytes) << kernel.op;
        }
      }
    }
  });
}

// 1 MB of L2, 100 GB/s, 1 TFLOP/s.
TEST(PhysicalLimit, TheLongerOfArithmeticAndMemory) {
  const Hardware card{.peak = 1e12, .bandwidth = 100e9, .l2_bytes = 1e6};
  EXPECT_DOUBLE_EQ(physical_limit(2e9, 0, card), 2e-3);
  EXPECT_DOUBLE_EQ(physical_limit(0, 4e6, card), 40e-6) << "four times the L2: all of it";
  EXPECT_DOUBLE_EQ(physical_limit(0, 2.5e6, card), 20e-6) << "4/3 * 1.5 MB";
  EXPECT_EQ(physical_limit(0, 1e6, card), 0) << "all of it may be in L2";
}

// Power leaves a fully busy card half of its clock. A quarter of the SMs busy take the whole clock: half the
// time; three quarters share the power: three quarters of the time.
TEST(PowerRelief, IdleSmsLeaveTheirPowerToTheOthers) {
  const PowerLimit power{.clock_share = 0.5, .exponent = 1};
  const BlockRates<double> rates{.small_tile = 1, .latency = 0, .prologue = 0};
  const GridWork<double> limited(100, rates, power);
  const GridWork<double> unlimited(100, rates);
  for (const auto& [blocks, relief] : {std::pair{25.0, 0.5}, {75.0, 0.75}, {100.0, 1.0}, {150.0, 0.75}}) {
    const BlockGrid grid{.blocks = blocks, .area = kMaxTileArea, .depth = 10};
    // Two blocks fit an SM; without latency to hide, one alone runs at the rate of two.
    EXPECT_DOUBLE_EQ(limited.operations(grid), relief * unlimited.operations(grid)) << blocks;
  }
}

}  // namespace
}  // namespace tbdsim
