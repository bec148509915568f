// Masks of attention in an ONNX graph.
#pragma once

#include <string>

#include "simulate/import/onnx_conversion.h"

namespace tbdsim {

// Whether a mask hides from each query the keys behind it: a lower triangle, known or made by Trilu, or the
// comparison of one position for each query with one for each key, both from the same number on. Comparisons
// of both directions, as for a window around each query, make no such mask.
[[nodiscard]] bool is_causal_mask(const OnnxConversion& net, const std::string& mask);

}  // namespace tbdsim
