// Operators that go over each element once: arithmetic, fills, copies, casts, reductions, and views, which
// move nothing.
#include <algorithm>

#include "graphs/captured/operators/operators.h"
#include "graphs/captured/tensor_access.h"

namespace tbdsim {
namespace {

// Updates of parameters are timed as such.
KernelKind kind_of(const OperatorSite& site) {
  return site.phase == Phase::update ? KernelKind::update : KernelKind::elementwise;
}

const CapturedTensor* largest(const std::vector<const CapturedTensor*>& tensors) {
  const auto at_batch = [](const CapturedTensor* tensor) { return tensor->elements.at(2); };
  const auto found = std::max_element(
      tensors.begin(), tensors.end(),
      [&](const CapturedTensor* a, const CapturedTensor* b) { return at_batch(a) < at_batch(b); });
  return found == tensors.end() ? nullptr : *found;
}

bool is_float(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16; }

// How the kernel of an element-wise operator reaches its numbers: vectors where all tensors lie alike and
// have one type (aten/native/cuda/CUDALoops.cuh). Single numbers do not count.
Access access_of(const CapturedTensor& result, const std::vector<const CapturedTensor*>& tensors) {
  Access slowest = Access::vectors;
  for (const CapturedTensor* tensor : tensors) {
    if (tensor->elements == fixed_size(1)) continue;
    const bool converts = is_float(tensor->dtype) && is_float(result.dtype) && tensor->dtype != result.dtype;
    const Access access = converts ? Access::elements : Access::vectors;
    const bool whole = tensor->elements == result.elements;
    slowest = std::max({slowest, access, whole ? access_along(*tensor, result) : Access::elements});
  }
  return slowest;
}

// Numbers of the result where neighbors of the operand belong to different ones, as in a sum over the rows of
// a matrix; 0 for another reduction, or where they grow with the batch.
std::int64_t summed_columns(const OperatorSite& site, const CapturedTensor& from) {
  if (site.entry.name != "sum" && site.entry.name != "mean") return 0;
  if (site.op.arguments.size() < 2) return 0;
  if (!std::holds_alternative<std::vector<Argument>>(site.op.arguments[1].value)) return 0;
  const std::vector<std::size_t> order = order_of(from);
  if (order.empty()) return 0;
  const auto rank = static_cast<std::int64_t>(from.shape.size());
  for (const std::int64_t dimension : site.wholes(1)) {
    if ((dimension + rank) % rank == static_cast<std::int64_t>(order.back())) return 0;
  }
  const Size& results = site.output(0).elements;
  return results.per_sample == 0 ? results.fixed : 0;
}

// A copy over the bus. One to the host waits.
Kernel bus_copy(const OperatorSite& site, const CapturedTensor& from, const CapturedTensor& to) {
  const bool to_host = site.is_on_host(to);
  return bytes_kernel(KernelKind::transfer, site.phase, to_host ? kDeviceToHost : kHostToDevice, to.elements,
                      0, to_host ? bytes_of(from) : Size{}, to_host ? Size{} : bytes_of(to),
                      bytes_of(to.dtype));
}

}  // namespace

void lower_elementwise(OperatorSite& site) {
  const auto outputs = site.all_outputs();
  const CapturedTensor* widest = largest(outputs);
  if (widest == nullptr) return;
  Kernel kernel = bytes_kernel(kind_of(site), site.phase, site.entry.name, widest->elements, site.entry.flops,
                               bytes_of(site.all_tensors()), bytes_of(outputs), bytes_of(widest->dtype));
  kernel.access = access_of(*widest, site.all_tensors());
  site.emit_for_parameter_of(*widest, std::move(kernel));
}

void lower_fill(OperatorSite& site) {
  for (const CapturedTensor* output : site.all_outputs()) {
    site.emit_for_parameter_of(
        *output, bytes_kernel(KernelKind::elementwise, site.phase, site.entry.name, output->elements,
                              site.entry.flops, {}, bytes_of(*output), bytes_of(output->dtype)));
  }
}

// Where source and destination differ in which elements are neighbors, one of them is read or written across
// its rows. Of conversions PyTorch has kernels with vectors for those from fp32 alone
// (aten/native/cuda/Copy.cu, float16_copy_kernel_cuda).
void lower_copy(OperatorSite& site) {
  const CapturedTensor& to = site.output(0);
  const bool into_first = name_in_table(site.op.name) == "copy";
  const CapturedTensor& from = site.tensor(into_first ? 1 : 0);
  Access access = from.elements == to.elements ? access_along(from, to) : Access::elements;
  const bool transposes = access == Access::across;
  const bool casts = from.dtype != to.dtype;
  if (site.is_on_host(from) != site.is_on_host(to)) return site.emit(bus_copy(site, from, to));
  const std::string_view op = transposes ? "transpose" : casts ? "cast" : "copy";
  if (casts && from.dtype != Dtype::f32) access = std::max(access, Access::elements);
  Kernel kernel = bytes_kernel(transposes ? KernelKind::transpose : KernelKind::elementwise, site.phase, op,
                               to.elements, casts ? 1 : 0, bytes_of(from), bytes_of(to),
                               std::max<std::int64_t>(1, (bytes_of(from.dtype) + bytes_of(to.dtype)) / 2));
  kernel.access = access;
  site.emit_for_parameter_of(from, std::move(kernel));
}

// (self, dimensions, ...)
void lower_reduction(OperatorSite& site) {
  const CapturedTensor& from = site.tensor(0);
  Kernel kernel =
      bytes_kernel(KernelKind::reduction, site.phase, site.entry.name, from.elements, site.entry.flops,
                   bytes_of(site.all_tensors()), bytes_of(site.all_outputs()), bytes_of(from.dtype));
  if (const std::int64_t columns = summed_columns(site, from); columns > 1) {
    kernel.shape = MatrixShape{{from.elements.fixed / columns, from.elements.per_sample / columns}, columns};
    kernel.access = Access::columns;
  }
  site.emit_for_parameter_of(from, std::move(kernel));
}

void lower_view(OperatorSite&) {}

// The host waits for the number.
void lower_host_read(OperatorSite& site) {
  const CapturedTensor& from = site.tensor(0);
  site.emit(bytes_kernel(KernelKind::transfer, site.phase, kDeviceToHost, from.elements, 0, bytes_of(from),
                         {}, bytes_of(from.dtype)));
}

// A copy of nothing to the host, which waits.
void lower_synchronization(OperatorSite& site) {
  site.emit(bytes_kernel(KernelKind::transfer, site.phase, kDeviceToHost, {}, 0, {}, {}, 1));
}

void lower_unknown(OperatorSite& site, std::string_view name) {
  const auto inputs = site.all_tensors();
  const auto outputs = site.all_outputs();
  const CapturedTensor* widest = largest(outputs.empty() ? inputs : outputs);
  if (widest == nullptr) return;
  Kernel kernel = bytes_kernel(KernelKind::elementwise, site.phase, name, widest->elements, 1,
                               bytes_of(inputs), bytes_of(outputs), bytes_of(widest->dtype));
  kernel.unknown = true;
  site.emit(std::move(kernel));
}

}  // namespace tbdsim
