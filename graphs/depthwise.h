// Convolutions of one channel a group (depthwise) that a framework computes by kernels of its own.
#pragma once

#include "graphs/kernel.h"
#include "graphs/lowering.h"

namespace tbdsim {

// True if each group has one channel.
[[nodiscard]] inline bool is_depthwise(const ConvShape& shape) {
  return shape.groups > 1 && shape.groups == shape.channels;
}

// True if the framework's own kernel computes the convolution: `layout` is that of its images.
[[nodiscard]] bool has_framework_kernel(const ConvShape& shape, MathType math, Layout layout,
                                        DepthwiseKernels kernels);

}  // namespace tbdsim
