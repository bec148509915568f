// Rows looked up in a table, and numbers put into places that another tensor names.
#include <algorithm>

#include "graphs/aten_embedding.h"
#include "graphs/captured/operators/operators.h"

namespace tbdsim {
namespace {

Kernel gather_kernel(const OperatorSite& site, const Size& elements, std::int64_t flops, const Size& read,
                     const Size& written, Dtype dtype) {
  return bytes_kernel(KernelKind::gather, site.phase, site.entry.name, elements, flops, read, written,
                      bytes_of(dtype));
}

// Bytes of the arguments but the first, which is a table or the destination.
Size others(const OperatorSite& site) {
  const CapturedTensor* first = site.find_tensor(0);
  Size bytes;
  for (const CapturedTensor* tensor : site.all_tensors()) {
    if (tensor != first) bytes += bytes_of(*tensor);
  }
  return bytes;
}

}  // namespace

// (weight, indices, ...); also index_select, gather, index, take: as many numbers are read as written.
void lower_embedding(OperatorSite& site) { lower_gather(site); }

void lower_gather(OperatorSite& site) {
  const CapturedTensor& y = site.output(0);
  site.emit(gather_kernel(site, y.elements, 0, bytes_of(y) + others(site), bytes_of(y), y.dtype));
}

// (weight, indices, offsets, ...): rows are looked up and those of a bag added up.
void lower_embedding_bag(OperatorSite& site) {
  const CapturedTensor& y = site.output(0);
  const Size looked_up = site.product(site.tensor(1).elements, y.shape.back());
  site.emit(gather_kernel(site, looked_up, 1, looked_up * bytes_of(y.dtype) + others(site),
                          bytes_of(site.all_outputs()), y.dtype));
}

// (grad, indices, ...): zeros, to whose rows the gradient of each row's bag is added.
void lower_embedding_bag_backward(OperatorSite& site) {
  const CapturedTensor& table = site.output(0);
  const Size added = site.product(site.tensor(1).elements, table.shape.back()) * bytes_of(table.dtype);
  site.emit(bytes_kernel(KernelKind::elementwise, site.phase, "fill", table.elements, 0, {}, bytes_of(table),
                         bytes_of(table.dtype)));
  site.emit(gather_kernel(site, site.product(site.tensor(1).elements, table.shape.back()), 1,
                          bytes_of(site.all_tensors()) + added, added, table.dtype));
}

// (grad, indices, ...): the table's gradient is zeros, to whose rows those of grad are added.
void lower_embedding_backward(OperatorSite& site) {
  const CapturedTensor& dy = site.tensor(0);
  const CapturedTensor& table = site.output(0);
  const Size rows = dy.elements * bytes_of(table.dtype);
  site.emit(bytes_kernel(KernelKind::elementwise, site.phase, "fill", table.elements, 0, {}, bytes_of(table),
                         bytes_of(table.dtype)));
  const Size read = bytes_of(site.all_tensors());
  if (!site.how.lowering.aten_kernels)
    return site.emit(gather_kernel(site, dy.elements, 1, read + rows, rows, dy.dtype));
  const AtenEmbedding embedding{.phase = site.phase,
                                .op = site.entry.name,
                                .indices = site.tensor(1).elements,
                                .elements = dy.elements,
                                .read = read,
                                .written = rows,
                                .element_bytes = bytes_of(dy.dtype)};
  for (Kernel& kernel : gradient_kernels(embedding)) site.emit(std::move(kernel));
}

// (self, dim or indices, ..., source): into a copy of self, or in place. Numbers are added to those there.
void lower_scatter(OperatorSite& site) {
  const CapturedTensor& y = site.output(0);
  if (!is_in_place(site.op.name)) {
    const CapturedTensor& x = site.tensor(0);
    site.emit(bytes_kernel(KernelKind::elementwise, site.phase, "copy", x.elements, 0, bytes_of(x),
                           bytes_of(y), bytes_of(x.dtype)));
  }
  Size elements;  // of the widest argument but the first: the source, or the indices of a number
  for (const CapturedTensor* tensor : site.all_tensors()) {
    if (tensor != site.find_tensor(0) && tensor->elements.at(2) > elements.at(2)) elements = tensor->elements;
  }
  const Size numbers = elements * bytes_of(y.dtype);
  site.emit(gather_kernel(site, elements, 1, others(site) + numbers, numbers, y.dtype));
}

// Two passes over the numbers, one that counts and one that writes. The host waits for the count, of which
// the size of the result follows.
void lower_selection(OperatorSite& site) {
  constexpr std::int64_t kCountBytes = 8;
  const CapturedTensor& from = site.tensor(0);
  const Size read = bytes_of(site.all_tensors());
  const std::int64_t flops = site.entry.flops;
  site.emit(bytes_kernel(KernelKind::reduction, site.phase, "count", from.elements, flops, read, {},
                         bytes_of(from.dtype)));
  site.emit(bytes_kernel(KernelKind::transfer, site.phase, kDeviceToHost, fixed_size(1), 0,
                         fixed_size(kCountBytes), {}, kCountBytes));
  site.emit(gather_kernel(site, from.elements, flops, read, bytes_of(site.all_outputs()), from.dtype));
}

// (boxes, scores, threshold), torchvision's: each pair of boxes is compared once, 64 of them make a word of a
// mask; one thread block walks over the boxes from the best down and waits for the mask of each
// (csrc/ops/cuda/nms_kernel.cu, gather_keep_from_mask); those kept are selected.
void lower_nms(OperatorSite& site) {
  constexpr std::int64_t kMaskBits = 64, kMaskBytes = 8;
  const CapturedTensor& boxes = site.tensor(0);
  if (boxes.shape.empty()) site.fail(0, "boxes x 4 borders");
  const Size& count = boxes.shape[0];
  const std::int64_t others = count.per_sample == 0 ? count.fixed : count.per_sample;
  const Size mask = count * checked_multiply((others + kMaskBits - 1) / kMaskBits, kMaskBytes);
  Kernel overlaps = bytes_kernel(KernelKind::elementwise, site.phase, "nms", count, 0, bytes_of(boxes), mask,
                                 bytes_of(boxes.dtype));
  overlaps.flops = count * checked_multiply(others, site.entry.flops);
  overlaps.scratch_bytes = mask;
  site.emit(std::move(overlaps));
  Kernel choice =
      bytes_kernel(KernelKind::reduction, site.phase, "nms_choice", count, 0, mask, count, kMaskBytes);
  choice.shape = MatrixShape{count, others};
  choice.thread_per_row = true;
  site.emit(std::move(choice));
  lower_selection(site);
}

}  // namespace tbdsim
