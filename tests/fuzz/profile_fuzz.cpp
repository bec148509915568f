// A profile that is accepted predicts: kernels of every family take a time that is finite and above zero.
#include <cmath>

#include "costmodel/estimate.h"
#include "costmodel/families/families.h"
#include "costmodel/profile/profile.h"
#include "tests/fuzz/memory_file.h"

namespace {
using namespace tbdsim;

Kernel kernel_of(KernelKind kind, KernelShape shape) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.shape = std::move(shape);
  kernel.flops = {0, 2'000'000};
  kernel.read_bytes = kernel.written_bytes = {0, 40'000};
  return kernel;
}

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = {
      kernel_of(KernelKind::gemm, GemmShape{.m = {512, 0}, .n = {0, 1}, .k = {256, 0}}),
      kernel_of(KernelKind::gemm,
                GemmShape{.m = {64, 0}, .n = {64, 0}, .k = {32, 0}, .batch = {0, 8}, .transpose_b = true}),
      kernel_of(KernelKind::convolution, ConvShape{.images = {0, 1},
                                                   .channels = 64,
                                                   .height = 28,
                                                   .width = 28,
                                                   .filters = 64,
                                                   .out_height = 28,
                                                   .out_width = 28,
                                                   .kernel_height = 3,
                                                   .kernel_width = 3,
                                                   .pad_height = 1,
                                                   .pad_width = 1}),
      kernel_of(KernelKind::recurrent,
                RecurrentShape{.batch = {0, 1}, .steps = 25, .inputs = 512, .hidden = 512, .gates = 4}),
      kernel_of(KernelKind::softmax, MatrixShape{.rows = {0, 1}, .columns = 1000}),
      kernel_of(KernelKind::elementwise, VectorShape{.elements = {0, 10'000}})};
  return all;
}

void check_estimates(const Profile& profile, const GpuSpec& gpu) {
  constexpr double kBatch = 16;
  const Calibration calibration = calibration_of(profile, gpu, {{"cublas", 8}, {"cudnn", 6}});
  for (const Kernel& kernel : kernels()) {
    const KernelCost cost = estimate(kernel, kBatch, calibration);
    fuzz::require(std::isfinite(cost.total.si()) && cost.total.si() > 0);
    fuzz::require(std::isfinite(cost.sd) && cost.sd >= 0);
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  static const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, "titanxp"), catalog);
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const Profile profile = read_profile(file.path(), catalog);
    for (const Efficiency<double>& kind : profile.kinds) {
      fuzz::require(kind.compute > 0 && kind.bandwidth > 0 && kind.overhead_s > 0);
    }
    check_estimates(profile, gpu);
  });
}
