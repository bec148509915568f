// Pooling and resampling of images. Pooling operators have (self, kernel, stride, padding, ...), adaptive
// ones (self, output size); their backward passes (grad, self, ...).
#include <algorithm>

#include "graphs/captured/operators/operators.h"

namespace tbdsim {
namespace {

// Pixels of the input for each pixel of the output, at least 1: the window of a mean or a maximum.
std::int64_t window_of(const CapturedTensor& x, const CapturedTensor& y) {
  const double y_pixels = std::max(1.0, y.elements.at(2));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(x.elements.at(2) / y_pixels));
}

// The window as the operator gives it; of adaptive ones as the sizes say.
std::int64_t window_area(const OperatorSite& site, const CapturedTensor& x, const CapturedTensor& y,
                         std::size_t argument) {
  if (site.entry.name.find("adaptive") != std::string_view::npos) return window_of(x, y);
  std::int64_t area = 1;
  for (const std::int64_t side : site.wholes(argument)) area = checked_multiply(area, side);
  if (area < 1) site.fail(argument, "a window of at least one pixel");
  const bool one_for_all =
      site.wholes(argument).size() == 1 && site.entry.name.find("2d") != std::string_view::npos;
  return one_for_all ? checked_multiply(area, area) : area;
}

// `threads`: a number for each thread of PyTorch's own kernels, of the result.
Kernel pool_kernel(const OperatorSite& site, const CapturedTensor& y, std::int64_t window, const Size& read,
                   const Size& written, const CapturedTensor& threads) {
  Kernel kernel = bytes_kernel(KernelKind::pooling, site.phase, site.entry.name, y.elements, window, read,
                               written, bytes_of(y.dtype));
  kernel.shape = VectorShape{threads.elements};
  if (site.how.lowering.aten_kernels)
    kernel.access = is_channels_last(threads) ? Access::pixels : Access::elements;
  return kernel;
}

// The window of a backward operator, which has the arguments of the forward one after the gradient.
std::int64_t window_behind(const OperatorSite& site, const CapturedTensor& x, const CapturedTensor& dy) {
  return window_area(site, x, dy, 2);
}

}  // namespace

void lower_pool(OperatorSite& site) {
  const CapturedTensor& x = site.tensor(0);
  const CapturedTensor& y = site.output(0);
  site.emit(pool_kernel(site, y, window_area(site, x, y, 1), bytes_of(x), bytes_of(site.all_outputs()), y));
}

// The places of the maxima say where the gradient goes: the input is not read.
void lower_max_pool_backward(OperatorSite& site) {
  const CapturedTensor& dy = site.tensor(0);
  const CapturedTensor& x = site.tensor(1);
  Size read;
  for (const CapturedTensor* tensor : site.all_tensors()) {
    if (tensor != &x) read += bytes_of(*tensor);
  }
  site.emit(pool_kernel(site, dy, window_behind(site, x, dy), read, bytes_of(site.output(0)), x));
}

// Each number of dy is divided by its window's size wherever it is added.
void lower_mean_pool_backward(OperatorSite& site) {
  const CapturedTensor& dy = site.tensor(0);
  const CapturedTensor& x = site.tensor(1);
  Kernel kernel = pool_kernel(site, dy, checked_multiply(2, window_behind(site, x, dy)), bytes_of(dy),
                              bytes_of(site.output(0)), x);
  if (kernel.access == Access::pixels) kernel.access = Access::elements;  // own_kernel_time.h
  site.emit(std::move(kernel));
}

namespace {

// Operations of a result of torchvision's roi_align, which is the mean of sampling x sampling points of four
// numbers each: of a pool, for its thread's time to be that on an H100 with 2 x 2 points
// (calibrate/records/h100_sxm, step_kernels: 2,000 regions of 7 x 7 pixels take 6 clocks of a multiprocessor
// for each result, its gradient, which is added by atomic operations, 20 to 23). Where the number of points
// follows the region's size, 2 x 2 are assumed.
std::int64_t operations_of_points(const OperatorSite& site, std::size_t sampling,
                                  std::int64_t of_four_points) {
  const std::int64_t side = site.whole(sampling) > 0 ? site.whole(sampling) : 2;
  return std::max<std::int64_t>(1, checked_multiply(checked_multiply(side, side), of_four_points) / 4);
}

}  // namespace

// (input, regions, scale, height, width, sampling, aligned)
void lower_roi_align(OperatorSite& site) {
  const CapturedTensor& y = site.output(0);
  site.emit(
      pool_kernel(site, y, operations_of_points(site, 5, 21), bytes_of(site.all_tensors()), bytes_of(y), y));
}

// (grad, regions, scale, height, width, images, channels, height, width, sampling, aligned): added to zeros.
void lower_roi_align_backward(OperatorSite& site) {
  const CapturedTensor& dy = site.tensor(0);
  const CapturedTensor& dx = site.output(0);
  site.emit(bytes_kernel(KernelKind::elementwise, site.phase, "fill", dx.elements, 0, {}, bytes_of(dx),
                         bytes_of(dx.dtype)));
  site.emit(pool_kernel(site, dy, operations_of_points(site, 9, 58), bytes_of(site.all_tensors()),
                        bytes_of(dx), dy));
}

// Nearest, bilinear, bicubic, windows to columns and grids: each output is made of a few inputs.
void lower_resampling(OperatorSite& site) {
  const CapturedTensor& y = site.output(0);
  site.emit(bytes_kernel(KernelKind::elementwise, site.phase, site.entry.name, y.elements, site.entry.flops,
                         bytes_of(site.all_tensors()), bytes_of(y), bytes_of(y.dtype)));
}

// aten/native/cuda/UpSample*.cu: gradients are added to zeros, one for each output. Of a grid alone (an image
// that needs no gradient) none is added, the grid's is written.
void lower_resampling_backward(OperatorSite& site) {
  const CapturedTensor& dy = site.tensor(0);
  const bool of_image = site.op.outputs.size() < 2 || site.op.outputs[0] >= 0;
  const CapturedTensor& dx = site.output(of_image ? 0 : 1);
  if (of_image)
    site.emit(bytes_kernel(KernelKind::elementwise, site.phase, "fill", dx.elements, 0, {}, bytes_of(dx),
                           bytes_of(dx.dtype)));
  site.emit(bytes_kernel(KernelKind::elementwise, site.phase, site.entry.name, dy.elements, site.entry.flops,
                         bytes_of(site.all_tensors()), bytes_of(dx), bytes_of(dx.dtype)));
}

}  // namespace tbdsim
