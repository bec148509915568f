// Copies of tensors side by side into one, and apart again, as the framework does it (Lowering::joins).
// `parts` are numbers of elements.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graphs/layer.h"

namespace tbdsim {

// Parts into one tensor, in either phase: the operation itself, or the gradient of a split.
void append_join(std::string_view op, Phase phase, std::span<const Size> parts, const LoweringContext& how,
                 std::vector<Kernel>& kernels);

// One tensor into parts, as an operation of its own.
void append_split(std::string_view op, Phase phase, std::span<const Size> parts, const LoweringContext& how,
                  std::vector<Kernel>& kernels);

// The gradient of a join: one kernel for each part.
void append_slices(std::string_view op, Phase phase, std::span<const Size> parts, const LoweringContext& how,
                   std::vector<Kernel>& kernels);

}  // namespace tbdsim
