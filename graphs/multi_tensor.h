// Launches of multi-tensor kernels, which go over lists of tensors: PyTorch's foreach and fused optimizers
// (ATen/native/cuda/MultiTensorApply.cuh) and those of Apex (csrc/multi_tensor_apply.cuh), with the same
// limits. Blocks take chunks of a tensor; a launch holds as many blocks and tensors as its arguments have
// room for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graphs/kernel.h"

namespace tbdsim {

// A part of a tensor that one launch goes over.
struct TensorShare {
  std::size_t tensor = 0;
  std::int64_t elements = 0;
};

// For each launch its parts of tensors, which have so many elements. `lists`: tensors that each of them is
// read or written with, itself included.
[[nodiscard]] std::vector<std::vector<TensorShare>> multi_tensor_launches(
    std::span<const std::int64_t> elements, std::int64_t lists);

// `kernels` go over one tensor each; the result are launches over all of them, with the layer of the only
// tensor, or none. What a kernel has as scratch memory each launch has for all.
[[nodiscard]] std::vector<Kernel> multi_tensor_kernels(std::span<const Kernel> kernels, std::int64_t lists);

}  // namespace tbdsim
