// A composite operation: one kernel for each of its terms, for operations of which a framework has no fused
// kernel. Every term passes over memory again.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graphs/layer.h"

namespace tbdsim {

// Number of tensors of the layer's size that the kernel reads and writes. A kernel with no reads or no writes
// of that size reads or writes statistics instead: a sum reads a tensor and writes a statistic, (0, 0) is a
// kernel over statistics only.
struct Term {
  std::string_view op;
  std::int64_t reads = 0;
  std::int64_t writes = 0;
  std::int64_t times = 1;  // so many like it, one after another
};

struct TermSizes {
  Size elements;    // of the layer's tensor
  Size statistics;  // values kept for a row, or for each channel of it; may be none
  Size scratch;     // elements of intermediate results alive at once that nothing keeps
};

// Sizes of a layer with a statistic for each position, and so many intermediate results of its size.
[[nodiscard]] TermSizes position_sizes(const Shape& shape, std::int64_t scratch);

// One operation on each element of every term.
void append_terms(std::span<const Term> terms, const TermSizes& sizes, Phase phase,
                  const Precision& precision, std::vector<Kernel>& kernels);

}  // namespace tbdsim
