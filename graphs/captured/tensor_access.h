// How kernels reach the numbers of captured tensors, by their strides.
#pragma once

#include <cstddef>
#include <vector>

#include "graphs/captured/captured_step.h"
#include "graphs/kernel.h"

namespace tbdsim {

// Returns the dimensions of more than one element that are no repetition, ordered from the widest stride to
// the narrowest.
[[nodiscard]] std::vector<std::size_t> order_of(const CapturedTensor& tensor);

// Returns how a kernel over both tensors reaches the numbers of the first where it goes along the second, of
// as many elements: TensorIterator joins dimensions that lie in the same order in both.
[[nodiscard]] Access access_along(const CapturedTensor& a, const CapturedTensor& b);

// True for a tensor whose elements lie in the order of its dimensions without a gap: PyTorch's contiguous().
[[nodiscard]] bool is_contiguous(const CapturedTensor& tensor);

// Returns how contiguous() reaches the numbers of a tensor that is not: across where neighbors in memory do
// not lie along the last dimension.
[[nodiscard]] Access access_of_contiguous_copy(const CapturedTensor& tensor);

}  // namespace tbdsim
