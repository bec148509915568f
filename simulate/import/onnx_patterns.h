// Layers that exports write as several nodes of ONNX. They are found from their last node back; layers of the
// nodes before, which nothing else reads, are left out of the model.
#pragma once

#include "simulate/import/onnx_conversion.h"

namespace tbdsim {

// Each adds a layer at the last of its nodes, and returns false where they are none.
[[nodiscard]] bool convert_decomposed_norm(OnnxConversion& net, const OnnxNode& node);
[[nodiscard]] bool convert_decomposed_activation(OnnxConversion& net, const OnnxNode& node);
[[nodiscard]] bool convert_attention(OnnxConversion& net, const OnnxNode& node);
// The scale or shift of a norm, the bias of a matrix product: part of the layer before.
[[nodiscard]] bool joins_layer_before(OnnxConversion& net, const OnnxNode& node);

}  // namespace tbdsim
