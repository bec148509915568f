#include "graphs/layers/joins.h"

namespace tbdsim {
namespace {

void append_copy(std::string_view op, Phase phase, const Size& elements, const LoweringContext& how,
                 std::vector<Kernel>& kernels) {
  const Size bytes = elements * how.precision.storage_bytes;
  kernels.push_back(memory_kernel(KernelKind::elementwise, phase, op, {elements, {}}, 0, bytes, bytes));
}

void append_one(std::string_view op, Phase phase, std::span<const Size> parts, const LoweringContext& how,
                std::vector<Kernel>& kernels) {
  Size all;
  for (const Size& part : parts) all += part;
  append_copy(op, phase, all, how, kernels);
}

void append_each(std::string_view op, Phase phase, std::span<const Size> parts, const LoweringContext& how,
                 std::vector<Kernel>& kernels) {
  for (const Size& part : parts) append_copy(op, phase, part, how, kernels);
}

}  // namespace

void append_join(std::string_view op, Phase phase, std::span<const Size> parts, const LoweringContext& how,
                 std::vector<Kernel>& kernels) {
  const bool by_part = how.lowering.joins == ConcatLowering::parts;
  (by_part ? append_each : append_one)(op, phase, parts, how, kernels);
}

void append_split(std::string_view op, Phase phase, std::span<const Size> parts, const LoweringContext& how,
                  std::vector<Kernel>& kernels) {
  if (how.lowering.joins == ConcatLowering::views) return;
  append_join(op, phase, parts, how, kernels);
}

void append_slices(std::string_view op, Phase phase, std::span<const Size> parts, const LoweringContext& how,
                   std::vector<Kernel>& kernels) {
  if (how.lowering.joins != ConcatLowering::views) append_each(op, phase, parts, how, kernels);
}

}  // namespace tbdsim
