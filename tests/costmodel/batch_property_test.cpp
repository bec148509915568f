// Every further sequence of a recurrent layer and every further column of a GEMM takes at least as long, by
// the fitted profiles with their residuals, on GPUs of seven generations and with every version of the
// libraries that somebody timed.
#include <array>

#include <gmock/gmock.h>

#include "costmodel/estimate.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

constexpr double kRounding = 1 + 1e-9;

class Batches : public testing::TestWithParam<const char*> {
 protected:
  // Expects the kernel's time to rise with the batch in each arithmetic that the GPU has.
  void expect_rising(Kernel kernel, const LibraryVersions& libraries, int most_samples) {
    for (const MathType math : {MathType::fp32, MathType::tf32, MathType::fp16, MathType::bf16}) {
      if (!gpu_.spec->math[index_of(math)]) continue;
      kernel.math = math;
      kernel.element_bytes = math == MathType::fp32 || math == MathType::tf32 ? 4 : 2;
      const Calibration calibration = calibration_of(*profile_, *gpu_.spec, libraries);
      double before = 0;
      for (int batch = 1; batch <= most_samples; ++batch) {
        const double now = estimate(kernel, batch, calibration).total.si();
        ASSERT_GE(now * kRounding, before) << name_of(math) << ", " << batch << " samples";
        before = now;
      }
    }
  }

  SpecCache specs_ = test::source_specs();
  const Named<GpuSpec> gpu_{GetParam(), specs_.gpu(GetParam())};
  std::shared_ptr<const Profile> profile_ = specs_.profile_for(gpu_, "");
};

// Layers of GNMT and Deep Speech 2, and a vanilla one of DeepBench.
constexpr std::array kLayers{RecurrentShape{{0, 1}, 30, 2'048, 1'024, 4},
                             RecurrentShape{{0, 1}, 735, 672, 1'760, 3},
                             RecurrentShape{{0, 1}, 50, 0, 1'760, 1}};

TEST_P(Batches, RecurrentLayersOfMoreSequencesTakeNoLess) {
  for (const int cudnn : {6, 7, 9}) {
    for (const RecurrentShape& shape : kLayers) {
      for (const Phase phase : {Phase::forward, Phase::backward_data, Phase::backward_weights}) {
        SCOPED_TRACE(testing::Message() << "cuDNN " << cudnn << ", " << shape.gates << " gates of "
                                        << shape.hidden << ", " << name_of(phase));
        Kernel kernel;
        kernel.kind = KernelKind::recurrent;
        kernel.phase = phase;
        kernel.shape = shape;
        expect_rising(kernel, {{"cudnn", cudnn}}, 64);
      }
    }
  }
}

// Steps of layers that a framework unrolls: 16 columns were measured, 17 were not.
TEST_P(Batches, ProductsOfMoreColumnsTakeNoLess) {
  for (const int cublas : {8, 10, 12}) {
    for (const std::int64_t hidden : {512, 1'760}) {
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(testing::Message() << "cuBLAS " << cublas << ", " << hidden << " units");
        Kernel kernel;
        kernel.kind = KernelKind::gemm;
        kernel.shape = GemmShape{
            .m = fixed_size(hidden), .n = {0, 1}, .k = fixed_size(hidden), .transpose_a = transposed};
        expect_rising(kernel, {{"cublas", cublas}}, 128);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, Batches,
                         testing::Values("titanxp", "t4", "v100_sxm2_16gb", "a100_sxm_80gb", "h100_sxm",
                                         "b200"),
                         [](const auto& gpu) { return std::string(gpu.param); });

// A discriminator's last layer, one filter over the whole image: TF32 would multiply four, so that an H100,
// whose fp32 has a seventh of that peak, runs it in fp32. Eight filters stay in TF32.
TEST(Tf32, IsNotTakenWhereItMultipliesPadding) {
  SpecCache specs = test::source_specs();
  const Named<GpuSpec> gpu{"h100_sxm", specs.gpu("h100_sxm")};
  const std::shared_ptr<const Profile> profile = specs.profile_for(gpu, "");
  const Calibration calibration = calibration_of(*profile, *gpu.spec, {});
  const auto math_of = [&](std::int64_t filters) {
    Kernel kernel;
    kernel.kind = KernelKind::convolution;
    kernel.math = MathType::tf32;
    kernel.shape = ConvShape{.images = {0, 1},
                             .channels = 512,
                             .height = 4,
                             .width = 4,
                             .filters = filters,
                             .out_height = 1,
                             .out_width = 1,
                             .kernel_height = 4,
                             .kernel_width = 4};
    return estimate(kernel, 32, calibration).math;
  };
  EXPECT_EQ(math_of(1), MathType::fp32);
  EXPECT_EQ(math_of(8), MathType::tf32);
}

}  // namespace
}  // namespace tbdsim
