// Nodes of an ONNX graph that compute with constants and shapes alone.
#pragma once

#include "simulate/import/onnx_conversion.h"

namespace tbdsim {

// Sets the constants that a node makes of constants and of shapes of tensors, with values where they are few
// and known. Returns false for an operator, or sides, that it cannot follow.
[[nodiscard]] bool fold_constants(OnnxConversion& net, const OnnxNode& node);

// Returns the dimensions that a slice, or a reduction, leaves; `axes` may be negative. Empty where they do
// not fit.
[[nodiscard]] std::vector<std::int64_t> sliced_dims(const OnnxConversion& net, const OnnxNode& node,
                                                    const std::vector<std::int64_t>& dims);
[[nodiscard]] std::vector<std::int64_t> axes_of(const OnnxConversion& net, const OnnxNode& node,
                                                std::size_t input, std::size_t rank);

}  // namespace tbdsim
