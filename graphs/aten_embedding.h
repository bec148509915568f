// Kernels of PyTorch's gradient of a table of which many rows were looked up (aten/native/cuda/Embedding.cu
// and EmbeddingBackwardKernel.cu, from 3,073 indices on): the indices are sorted, and the gradients of a row
// added up in parts of ten before the parts are. The table's zeros are the caller's.
#pragma once

#include <vector>

#include "graphs/kernel.h"

namespace tbdsim {

struct AtenEmbedding {
  Phase phase = Phase::backward_weights;
  std::string_view op;  // of the kernel that adds rows up
  Size indices;         // of 8 bytes
  Size elements;        // of the gradients of the rows that were looked up
  Size read, written;   // bytes of the kernel that adds them up
  std::int64_t element_bytes = 4;
};

[[nodiscard]] std::vector<Kernel> gradient_kernels(const AtenEmbedding& embedding);

}  // namespace tbdsim
