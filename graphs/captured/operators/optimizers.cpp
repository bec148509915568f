// Optimizers: operators over lists of tensors (`foreach`), each in launches of the framework's multi-tensor
// kernels (graphs/multi_tensor.h), or, where the framework loops over its parameters, in a kernel for each
// tensor; and optimizers that are one operator.
#include <algorithm>

#include "graphs/captured/operators/operators.h"
#include "graphs/multi_tensor.h"

namespace tbdsim {
namespace {

// A multi-tensor kernel, or a kernel for each tensor, as the framework's lowering says.
bool loops(const OperatorSite& site) {
  return site.how.lowering.update == UpdateKernels::for_loop ||
         site.how.lowering.update == UpdateKernels::per_tensor;
}

KernelKind kind_of(const OperatorSite& site) {
  return site.phase == Phase::update ? KernelKind::update : KernelKind::elementwise;
}

// The lists among the arguments, those of tensors only.
std::vector<std::vector<const CapturedTensor*>> lists_of(const OperatorSite& site) {
  std::vector<std::vector<const CapturedTensor*>> lists;
  for (std::size_t i = 0; i < site.op.arguments.size(); ++i) {
    if (!std::holds_alternative<std::vector<Argument>>(site.op.arguments[i].value)) continue;
    auto list = site.tensors(i);
    if (!list.empty()) lists.push_back(std::move(list));
  }
  return lists;
}

// Emits the kernels as launches over all of their tensors.
void emit_together(OperatorSite& site, const std::vector<Kernel>& kernels, std::int64_t lists) {
  for (Kernel& launch : multi_tensor_kernels(kernels, lists)) site.emit_for_all(std::move(launch));
}

// Kernels that read the tensors of all lists and write those of `written`, of which tensor i is of kernel i.
void over_lists(OperatorSite& site, KernelKind kind, std::string_view op,
                const std::vector<const CapturedTensor*>& written) {
  const auto lists = lists_of(site);
  if (lists.empty()) site.fail(0, "a list of tensors");
  std::vector<Kernel> together;
  for (std::size_t i = 0; i < lists[0].size(); ++i) {
    const CapturedTensor& first = *lists[0][i];
    Size read;
    for (const auto& list : lists) {
      if (i < list.size()) read += bytes_of(*list[i]);
    }
    Kernel each = bytes_kernel(kind, site.phase, op, first.elements, site.entry.flops, read,
                               i < written.size() ? bytes_of(*written[i]) : Size{}, bytes_of(first.dtype));
    if (loops(site)) {
      site.emit_for_parameter_of(first, std::move(each));
      continue;
    }
    together.push_back(std::move(each));
  }
  const bool elsewhere = !written.empty() && !is_in_place(site.op.name);
  emit_together(site, together, static_cast<std::int64_t>(lists.size()) + (elsewhere ? 1 : 0));
}

std::vector<const CapturedTensor*> outputs_in_order(const OperatorSite& site) {
  std::vector<const CapturedTensor*> outputs;
  for (std::size_t i = 0; i < site.op.outputs.size(); ++i) {
    if (const CapturedTensor* output = site.find_output(i)) outputs.push_back(output);
  }
  return outputs;
}

}  // namespace

// Operators in place write their first list, others their outputs.
void lower_foreach(OperatorSite& site) {
  auto outputs = outputs_in_order(site);
  if (outputs.empty() || is_in_place(site.op.name)) outputs = site.tensors(0);
  over_lists(site, kind_of(site), site.entry.name, outputs);
}

void lower_foreach_norm(OperatorSite& site) { over_lists(site, KernelKind::reduction, site.entry.name, {}); }

// (self, grads, state ..., learning rate, ...): kernels over all parameters, which read the lists and write
// all but the gradients.
void lower_fused_optimizer(OperatorSite& site) {
  const auto lists = lists_of(site);
  if (lists.empty()) site.fail(0, "a list of tensors");
  std::vector<Kernel> together;
  for (std::size_t p = 0; p < lists[0].size(); ++p) {
    Kernel kernel = bytes_kernel(KernelKind::update, site.phase, site.entry.name, lists[0][p]->elements,
                                 site.entry.flops, {}, {}, kFp32Bytes);
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (p >= lists[i].size()) continue;
      const Size bytes = bytes_of(*lists[i][p]);
      kernel.read_bytes += bytes;
      if (i != 1) kernel.written_bytes += bytes;
    }
    together.push_back(std::move(kernel));
  }
  emit_together(site, together, static_cast<std::int64_t>(lists.size()));
}

// (self, found_inf, inverse scale): gradients, divided by the loss's scale and looked through for overflow,
// in multi-tensor kernels in every version.
void lower_unscale(OperatorSite& site) {
  std::vector<Kernel> together;
  for (const CapturedTensor* gradient : site.tensors(0)) {
    const Size bytes = bytes_of(*gradient);
    together.push_back(bytes_kernel(KernelKind::elementwise, site.phase, "unscale", gradient->elements, 2,
                                    bytes, bytes, kFp32Bytes));
  }
  emit_together(site, together, 1);
}

}  // namespace tbdsim
