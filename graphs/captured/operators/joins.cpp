// Operators that put tensors beside each other or into larger ones.
#include <algorithm>

#include "graphs/captured/operators/operators.h"
#include "graphs/captured/tensor_access.h"

namespace tbdsim {
namespace {

Kernel copy_of(const OperatorSite& site, const CapturedTensor& part) {
  return bytes_kernel(KernelKind::elementwise, site.phase, "copy", part.elements, 0, bytes_of(part),
                      part.elements * bytes_of(part.dtype), bytes_of(part.dtype));
}

Kernel fill_of(const OperatorSite& site, const CapturedTensor& whole) {
  return bytes_kernel(KernelKind::elementwise, site.phase, "fill", whole.elements, 0, {}, bytes_of(whole),
                      bytes_of(whole.dtype));
}

}  // namespace

// aten/native/cuda/Shape.cu: one kernel copies up to 128 parts (CAT_ARRAY_BATCH_SIZE); it is charged as one.
// It loads vectors where all parts are contiguous (CatArrayBatchedCopy_alignedK_contig).
void lower_join(OperatorSite& site) {
  const CapturedTensor& whole = site.output(0);
  const auto parts = site.all_tensors();
  const auto all_are = [&](const auto& what) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const CapturedTensor* part) { return what(*part) && part->dtype == whole.dtype; });
  };
  Kernel kernel = bytes_kernel(KernelKind::elementwise, site.phase, site.entry.name, whole.elements, 0,
                               bytes_of(parts), bytes_of(whole), bytes_of(whole.dtype));
  kernel.access = all_are(is_contiguous)      ? Access::vectors
                  : all_are(is_channels_last) ? Access::pixels
                                              : Access::elements;
  if (kernel.access == Access::elements) kernel.timed_as = KernelKind::transpose;
  site.emit(std::move(kernel));
}

// aten/native/PadNd.cpp: the result is filled, then the input copied into a part of it.
void lower_pad(OperatorSite& site) {
  site.emit(fill_of(site, site.output(0)));
  site.emit(copy_of(site, site.tensor(0)));
}

// aten/native/TensorShape.cpp, slice_backward and select_backward: zeros, then a copy into a part of them.
void lower_slice_backward(OperatorSite& site) { lower_pad(site); }

}  // namespace tbdsim
