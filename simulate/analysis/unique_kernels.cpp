#include "simulate/analysis/unique_kernels.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tbdsim {
namespace {

// GEMMs, convolutions and recurrent kernels: the type they compute in; others: the type their operands are
// stored in.
std::string_view operand_precision(const Kernel& kernel, const Precision& precision) {
  const bool product = kernel.kind == KernelKind::convolution || kernel.kind == KernelKind::gemm ||
                       kernel.kind == KernelKind::recurrent;
  if (product) return name_of(kernel.math);
  const bool wide = kernel.kind == KernelKind::update || precision.storage_bytes == kFp32Bytes;
  return name_of(wide ? MathType::fp32 : precision.math);
}

bool are_images_channels_last(const Lowering& lowering, const Precision& precision) {
  const bool half = precision.storage_bytes < kFp32Bytes;
  return (half ? lowering.half_layout.value_or(lowering.layout) : lowering.layout) == Layout::nhwc;
}

}  // namespace

std::vector<UniqueKernel> unique_kernels(std::span<const Prediction> predictions) {
  using Key = std::tuple<std::string_view, Phase, std::string_view, std::string, double, bool>;
  std::map<Key, UniqueKernel> distinct;
  for (const Prediction& p : predictions) {
    const Iteration& iteration = p.typical();
    const auto batch = static_cast<double>(iteration.batch);
    const bool channels_last = are_images_channels_last(p.framework->lowering, *p.precision);
    for (std::size_t k = 0; k < iteration.step->kernels.size(); ++k) {
      const Kernel& kernel = iteration.step->kernels[k];
      const KernelCost& cost = iteration.costs[k];
      if (!cost.runs()) continue;
      const std::string shape = shape_text(kernel, batch);
      const std::string_view operands = operand_precision(kernel, *p.precision);
      const double bytes = kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch);
      UniqueKernel& entry = distinct[{kernel.op, kernel.phase, operands, shape, bytes, channels_last}];
      if (entry.count == 0) entry = {kernel, batch, shape, operands, 0, {}, cost.bound, channels_last};
      const auto repeat = static_cast<double>(kernel.repeat);
      entry.count += repeat;
      entry.total += cost.total * repeat;
    }
  }
  std::vector<UniqueKernel> kernels;
  for (auto& [key, entry] : distinct) kernels.push_back(std::move(entry));
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const UniqueKernel& a, const UniqueKernel& b) { return a.total > b.total; });
  return kernels;
}

}  // namespace tbdsim
