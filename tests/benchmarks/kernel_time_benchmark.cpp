// How fast one kernel's time is. Run build/release/tests/benchmarks/kernel_time_benchmark; items are kernel
// times.
#include <array>

#include <benchmark/benchmark.h>

#include "costmodel/estimate.h"
#include "costmodel/families/families.h"
#include "costmodel/hardware.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

// A 3x3 convolution of ResNet-50, whose batch changes every time: every algorithm is tried.
ConvCall convolution(double images, Phase phase) {
  ConvCall call;
  call.phase = phase;
  call.images = images;
  call.channels = call.filters = 128;
  call.height = call.width = call.out_height = call.out_width = 28;
  call.kernel_height = call.kernel_width = 3;
  call.pad_height = call.pad_width = 1;
  return call;
}

template <class Family>
std::array<double, kParameterCount<Family>> starts() {
  std::array<double, kParameterCount<Family>> p{};
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = Family::parameters[i].start;
  return p;
}

void convolution_with_all_algorithms(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  const Hardware hardware = hardware_of(*specs.gpu("titanxp"), MathType::fp32);
  const auto p = starts<ConvFamily>();
  const auto phase = static_cast<Phase>(state.range(0));
  double images = 1;
  for (auto step : state) {
    images = images < 128 ? images + 1 : 1;
    benchmark::DoNotOptimize(
        kernel_time<ConvFamily>(convolution(images, phase), hardware, {0.9, 1}, p).parts.total);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(convolution_with_all_algorithms)->Arg(0)->Arg(1)->Arg(2)->ArgName("phase");

void product_with_all_tiles(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  const Hardware hardware = hardware_of(*specs.gpu("titanxp"), MathType::fp32);
  const auto p = starts<GemmFamily>();
  double n = 1;
  for (auto step : state) {
    n = n < 128 ? n + 1 : 1;
    const GemmCall call{.m = 2048, .n = n, .k = 2048};
    benchmark::DoNotOptimize(kernel_time<GemmFamily>(call, hardware, {0.9, 1}, p).parts.total);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(product_with_all_tiles);

// The algorithm that was chosen, under other rates.
void convolution_when_only_rates_change(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  Hardware hardware = hardware_of(*specs.gpu("titanxp"), MathType::fp32);
  const auto p = starts<ConvFamily>();
  const ConvCall call = convolution(64, Phase::forward);
  const Choice choice = kernel_time<ConvFamily>(call, hardware, {0.9, 1}, p).choice;
  for (auto step : state) {
    hardware.bandwidth *= 1.0000001;
    benchmark::DoNotOptimize(ConvFamily::time<double>(call, choice, hardware, {0.9, 1}, p).total);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(convolution_when_only_rates_change);

// From a kernel of a graph to its cost: formula, residuals of the calls nearby, interval.
void estimate_with_residuals(benchmark::State& state) {
  SpecCache specs = test::source_specs();
  const GpuSpec& gpu = *specs.gpu("titanxp");
  const Calibration calibration =
      calibration_of(*specs.profile("titanxp"), gpu, {{"cudnn", 6}, {"cublas", 8}});
  const Variant& variant = find_variant(*specs.model("resnet50"), "", "mxnet");
  const auto& kernels =
      specs.workload("resnet50", variant, {"mxnet", specs.framework("mxnet")}, kPrecisions[0])
          ->front()
          .step.kernels;
  std::size_t k = 0;
  for (auto step : state) {
    k = (k + 1) % kernels.size();
    benchmark::DoNotOptimize(estimate(kernels[k], 64, calibration).total);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(estimate_with_residuals);

}  // namespace
}  // namespace tbdsim
