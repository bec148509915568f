// Operators of a captured step as TorchInductor decomposes them: element-wise parts, reductions, and calls of
// libraries, which no other part joins.
#pragma once

#include <cstddef>
#include <vector>

#include "graphs/captured/captured_step.h"

namespace tbdsim {

enum class PartKind {
  view,       // moves nothing
  call,       // kernels of its own
  pointwise,  // a loop over the elements
  rows,       // a reduction whose rows stay on chip, so that the same kernel can go over them again
  columns     // a reduction whose results are known only once all of the elements have been read
};

struct CompiledPart {
  PartKind kind = PartKind::call;
  std::size_t op = 0;        // index of the operator
  bool reads_above = false;  // it reads what the part before it reduces, which is no tensor of the step
  Size elements{};           // over which it loops
  Size results{};            // of a reduction
  Size flops{};
  std::vector<int> reads{}, writes{};  // tensors
};

struct CompiledParts {
  std::vector<CapturedOperator> operators;  // the step's; without the bias that a pointwise part adds
  std::vector<CompiledPart> parts;          // in the order of their operators
};

[[nodiscard]] CompiledParts compiled_parts(const CapturedStep& step);

}  // namespace tbdsim
