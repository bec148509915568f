// Softmax over one dimension, and losses of one class among many.
#include <algorithm>

#include "graphs/captured/operators/operators.h"
#include "graphs/ctc_recursion.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kBackwardFlops = 4;  // y * dy and its sum (2), difference and product (2)

// Rows x the size of the dimension; a vector where that grows with the batch.
KernelShape shape_of(const OperatorSite& site, const CapturedTensor& x, std::size_t argument) {
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  if (rank == 0) return VectorShape{x.elements};
  std::int64_t dimension = site.whole(argument);
  if (dimension < 0) dimension += rank;
  if (dimension < 0 || dimension >= rank) site.fail(argument, "a dimension of the tensor");
  const Size& columns = x.shape[static_cast<std::size_t>(dimension)];
  if (columns.per_sample != 0 || columns.fixed < 1) return VectorShape{x.elements};
  return MatrixShape{{x.elements.fixed / columns.fixed, x.elements.per_sample / columns.fixed},
                     columns.fixed};
}

// Makes a kernel of the backward pass of a log softmax one that goes through its tensors once, but where
// registers hold no row, of more than 1,024 columns, through dy twice (aten/native/cuda/SoftMax.cu,
// cunn_SoftMaxBackward). That of a softmax multiplies y by dy first, in a kernel of its own: together they
// have half of the bandwidth.
void as_stream(Kernel& kernel, const Size& dy) {
  constexpr std::int64_t kMostInRegisters = 1'024;
  kernel.timed_as = KernelKind::elementwise;
  const auto* rows = std::get_if<MatrixShape>(&kernel.shape);
  if (rows != nullptr && rows->columns > kMostInRegisters) kernel.read_bytes += dy;
}

}  // namespace

// (self, dim, half_to_float)
void lower_softmax(OperatorSite& site) {
  const CapturedTensor& x = site.tensor(0);
  const CapturedTensor& y = site.output(0);
  Kernel kernel = bytes_kernel(KernelKind::softmax, site.phase, site.entry.name, x.elements, kSoftmaxFlops,
                               bytes_of(x), bytes_of(y), bytes_of(x.dtype));
  kernel.shape = shape_of(site, x, 1);
  site.emit(std::move(kernel));
}

// (grad, output, dim, input_dtype)
void lower_softmax_backward(OperatorSite& site) {
  const CapturedTensor& dy = site.tensor(0);
  const CapturedTensor& y = site.tensor(1);
  const CapturedTensor& dx = site.output(0);
  Kernel kernel = bytes_kernel(KernelKind::softmax, site.phase, site.entry.name, y.elements, kBackwardFlops,
                               bytes_of(dy) + bytes_of(y), bytes_of(dx), bytes_of(y.dtype));
  kernel.shape = shape_of(site, y, 2);
  if (name_in_table(site.op.name) == "_log_softmax_backward_data") as_stream(kernel, bytes_of(dy));
  site.emit(std::move(kernel));
}

// (self, target, weight, reduction, ignore_index): of each row it reads the number of its class.
void lower_class_loss(OperatorSite& site) {
  const CapturedTensor& x = site.tensor(0);
  const CapturedTensor& target = site.tensor(1);
  site.emit(bytes_kernel(KernelKind::reduction, site.phase, site.entry.name, target.elements, 1,
                         bytes_of(target) + target.elements * bytes_of(x.dtype), bytes_of(site.all_outputs()),
                         bytes_of(x.dtype)));
}

// (log_probs, ...), or (grad, log_probs, ...): the logarithms of alpha are the forward pass's second result,
// and the backward pass's argument of this place.
void lower_ctc_loss(OperatorSite& site) {
  constexpr std::size_t kAlpha = 6;
  const bool forward = site.phase == Phase::forward;
  const CapturedTensor& alpha = forward ? site.output(1) : site.tensor(kAlpha);
  if (alpha.shape.size() != 3) site.fail("expected alpha of three dimensions: samples, steps, states");
  const Size scores = bytes_of(forward ? site.tensor(0) : site.tensor(1));
  site.emit(ctc_kernel({.phase = site.phase,
                        .op = site.entry.name,
                        .positions = site.product(alpha.shape[0], alpha.shape[1]),
                        .states = site.fixed(alpha.shape[2]),
                        .read = forward ? bytes_of(alpha) : bytes_of(alpha) + scores,
                        .written = forward ? bytes_of(alpha) : scores}));
}

// (grad, self, target, ...): zeros, then a number in each row.
void lower_class_loss_backward(OperatorSite& site) {
  const CapturedTensor& target = site.tensor(2);
  const CapturedTensor& dx = site.output(0);
  const std::int64_t number = bytes_of(dx.dtype);
  site.emit(
      bytes_kernel(KernelKind::elementwise, site.phase, "fill", dx.elements, 0, {}, bytes_of(dx), number));
  site.emit(bytes_kernel(KernelKind::elementwise, site.phase, site.entry.name, target.elements, 1,
                         bytes_of(target), target.elements * number, number));
}

}  // namespace tbdsim
