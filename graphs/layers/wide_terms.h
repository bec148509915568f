// A composite operation of which some tensors are fp32 whatever the storage type, as programs write norms and
// losses: x.float(), operations in fp32, and back. Where storage is fp32 the conversions do not exist.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graphs/layer.h"

namespace tbdsim {

// Tensors of the layer's size that a kernel reads and writes: stored ones and such in fp32. One without reads
// or without writes reads or writes statistics instead.
struct WideTerm {
  std::string_view op;
  std::int64_t stored_reads = 0, wide_reads = 0;
  std::int64_t stored_writes = 0, wide_writes = 0;
  bool conversion = false;  // between the two; no kernel where both are fp32
  std::int64_t times = 1;
};

struct WideSizes {
  Size elements;
  Size statistics;           // fp32
  std::int64_t scratch = 0;  // fp32 tensors of the layer's size alive at once that nothing keeps
};

[[nodiscard]] inline bool is_wide(const Precision& precision) {
  return precision.storage_bytes == kFp32Bytes;
}

// Appends one kernel for each term, one operation on each element of it.
void append_wide_terms(std::span<const WideTerm> terms, const WideSizes& sizes, Phase phase,
                       const Precision& precision, std::vector<Kernel>& kernels);

}  // namespace tbdsim
