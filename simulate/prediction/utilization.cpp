#include "simulate/prediction/utilization.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "costmodel/families/convolution_geometry.h"
#include "costmodel/hardware.h"

namespace tbdsim {
namespace {

// Multiply-adds of an algorithm over those of the direct form (costmodel/families/convolution.h).
double part_of_direct(const ConvShape& shape, Algorithm algorithm) {
  if (algorithm == Algorithm::winograd) return 16.0 / 36;
  if (algorithm == Algorithm::winograd_nonfused) return shape.kernel_height == 3 ? 36.0 / 144 : 64.0 / 400;
  if (algorithm != Algorithm::fft_tiling) return 1;
  const auto tiles = [](double results, double taps) { return std::ceil(results / (kFftTile + 1 - taps)); };
  const auto height = static_cast<double>(shape.out_height);
  const auto width = static_cast<double>(shape.out_width);
  const auto rows = static_cast<double>(shape.kernel_height);
  const auto columns = static_cast<double>(shape.kernel_width);
  const double direct = height * width * rows * columns;
  const double transformed = 4 * kFftBins * tiles(height, rows) * tiles(width, columns);
  return transformed / direct;
}

bool is_product(const Kernel& kernel) {
  return kernel.kind == KernelKind::convolution || kernel.kind == KernelKind::gemm ||
         kernel.kind == KernelKind::recurrent;
}

// True if the GPU has units for the type; false if it computes it in another one.
bool is_native(const GpuSpec& gpu, MathType math) { return gpu.math[index_of(math)].has_value(); }

// By MathType.
std::array<bool, kMathTypeCount> on_tensor_cores(const GpuSpec& gpu) {
  std::array<bool, kMathTypeCount> types{};
  for (std::size_t m = 0; m < types.size(); ++m) {
    const auto math = static_cast<MathType>(m);
    types[m] = is_native(gpu, math) && has_tensor_cores(gpu, math);
  }
  return types;
}

}  // namespace

Flops executed_flops(const Kernel& kernel, const KernelCost& cost, double batch) {
  const auto* shape = std::get_if<ConvShape>(&kernel.shape);
  const double part = shape == nullptr ? 1 : part_of_direct(*shape, cost.algorithm);
  return Flops(kernel.flops.at(batch) * part);
}

Flops fp32_flops(const Kernel& kernel, const KernelCost& cost, double batch, const GpuSpec& gpu) {
  const bool packed = is_product(kernel) && cost.math != MathType::fp32 && is_native(gpu, cost.math);
  return packed ? Flops(0) : executed_flops(kernel, cost, batch);
}

double nvprof_fp32_level(const Kernel& kernel, const KernelCost& cost, double batch, const GpuSpec& gpu) {
  if (kernel.kind == KernelKind::batch_norm) return 0.43;
  if (kernel.op == "relu") return 0.10;
  if (kernel.op == "bias_add") return 0.40;
  if (kernel.kind == KernelKind::elementwise || kernel.kind == KernelKind::update) return 0.23;
  constexpr double kProducts = 1.7;
  const Flops at_peak = rate_of(gpu, MathType::fp32).peak * cost.total;
  const double own = fp32_flops(kernel, cost, batch, gpu) / at_peak;
  return std::min(1.0, is_product(kernel) ? kProducts * own : own);
}

bool has_tensor_cores(const GpuSpec& gpu) {
  return is_native(gpu, MathType::fp16) && has_tensor_cores(gpu, MathType::fp16);
}

Activity times_of(const Prediction& p) {
  Activity mean;
  for (const Iteration& i : p.iterations) {
    mean.time += i.time() * i.share;
    mean.gpu += i.timeline.gpu_busy * i.share;
    mean.cpu += (i.timeline.cpu_busy + i.decode) * i.share;
  }
  return mean;
}

Activity activity_of(const Prediction& p) {
  Activity mean = times_of(p);
  const std::array<bool, kMathTypeCount> tensor_cores = on_tensor_cores(*p.gpu);
  for (const Iteration& i : p.iterations) {
    const auto batch = static_cast<double>(i.batch);
    for (const KernelRuns& runs : i.runs) {
      const Kernel& kernel = i.step->kernels[runs.kernel];
      const KernelCost& cost = i.costs[runs.kernel];
      if (kernel.kind == KernelKind::transfer || !cost.runs()) continue;
      const double times = static_cast<double>(runs.times) * i.share;
      mean.fp32 += fp32_flops(kernel, cost, batch, *p.gpu) * times;
      const Bytes moved(kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch));
      mean.moved += moved * times;
      if (!is_product(kernel) || !tensor_cores[index_of(cost.math)]) continue;
      const Flops flops(kernel.flops.at(batch));
      mean.tensor += flops * times / rate_of(*p.gpu, cost.math).peak;
    }
  }
  return mean;
}

Seconds nvprof_time(const Prediction& p) {
  Seconds mean;
  for (const Iteration& i : p.iterations) {
    const auto batch = static_cast<double>(i.batch);
    for (std::size_t k = 0; k < i.costs.size(); ++k) {
      const Kernel& kernel = i.step->kernels[k];
      const KernelCost& cost = i.costs[k];
      if (kernel.kind == KernelKind::transfer || !cost.runs()) continue;
      const double times = static_cast<double>(kernel.repeat) * i.share;
      const double level = nvprof_fp32_level(kernel, cost, batch, *p.gpu);
      mean += cost.total * (level * times);
    }
  }
  return mean;
}

double gpu_utilization(const Activity& activity) { return activity.gpu / activity.time; }

std::optional<double> fp32_utilization(const Activity& activity, const GpuSpec& gpu) {
  if (activity.gpu == Seconds(0)) return std::nullopt;
  return activity.fp32 / (rate_of(gpu, MathType::fp32).peak * activity.gpu);
}

double cpu_utilization(const Activity& activity) {
  return activity.cpu / (activity.time * static_cast<double>(kHostCores));
}

std::optional<double> tensor_core_utilization(const Activity& activity, const GpuSpec& gpu) {
  if (activity.gpu == Seconds(0) || !has_tensor_cores(gpu)) return std::nullopt;
  return activity.tensor / activity.gpu;
}

}  // namespace tbdsim
