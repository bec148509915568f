// Operators that go over each element once: arithmetic, fills, copies, casts, reductions, and views, which
// move nothing.
#include <algorithm>

#include "graphs/captured/operators/operators.h"

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

// The dimensions of more than one element that are no repetition, ordered from the widest stride to the
// narrowest.
std::vector<std::size_t> order_of(const CapturedTensor& tensor) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] != fixed_size(1) && tensor.strides[i] != Size{}) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensor.strides[a].at(2) > tensor.strides[b].at(2);
  });
  return order;
}

// True if neighbors in the one tensor are neighbors in the other.
bool same_neighbors(const CapturedTensor& a, const CapturedTensor& b) {
  if (a.shape.size() != b.shape.size()) return true;
  const std::vector<std::size_t> order_a = order_of(a), order_b = order_of(b);
  return order_a.empty() || order_b.empty() || order_a.back() == order_b.back();
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
  site.emit_for_parameter_of(
      *widest, bytes_kernel(kind_of(site), site.phase, site.entry.name, widest->elements, site.entry.flops,
                            bytes_of(site.all_tensors()), bytes_of(outputs), bytes_of(widest->dtype)));
}

void lower_fill(OperatorSite& site) {
  for (const CapturedTensor* output : site.all_outputs()) {
    site.emit_for_parameter_of(
        *output, bytes_kernel(KernelKind::elementwise, site.phase, site.entry.name, output->elements,
                              site.entry.flops, {}, bytes_of(*output), bytes_of(output->dtype)));
  }
}

// Where source and destination differ in which elements are neighbors, one of them is read or written across
// its rows.
void lower_copy(OperatorSite& site) {
  const CapturedTensor& to = site.output(0);
  const bool into_first = name_in_table(site.op.name) == "copy";
  const CapturedTensor& from = site.tensor(into_first ? 1 : 0);
  const bool transposes = !same_neighbors(from, to);
  const bool casts = from.dtype != to.dtype;
  if (site.is_on_host(from) != site.is_on_host(to)) return site.emit(bus_copy(site, from, to));
  const std::string_view op = transposes ? "transpose" : casts ? "cast" : "copy";
  const KernelKind kind = transposes ? KernelKind::transpose : KernelKind::elementwise;
  site.emit_for_parameter_of(
      from, bytes_kernel(kind, site.phase, op, to.elements, casts ? 1 : 0, bytes_of(from), bytes_of(to),
                         std::max<std::int64_t>(1, (bytes_of(from.dtype) + bytes_of(to.dtype)) / 2)));
}

void lower_reduction(OperatorSite& site) {
  const CapturedTensor& from = site.tensor(0);
  site.emit_for_parameter_of(
      from, bytes_kernel(KernelKind::reduction, site.phase, site.entry.name, from.elements, site.entry.flops,
                         bytes_of(site.all_tensors()), bytes_of(site.all_outputs()), bytes_of(from.dtype)));
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
