// Operators of ONNX as layers of tbd-sim, one function for each, by families. `from` is the operator's first
// input. An operator that no layer computes is noted as unsupported.
#pragma once

#include "simulate/import/onnx_conversion.h"

namespace tbdsim {

// Converts an operator that tbd-sim knows; returns false for any other.
[[nodiscard]] bool convert_operator(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);

// Over windows of an image.
void convert_convolution(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_transposed(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_pooling(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_mean(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_pad(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);

// Sums and products: of matrices, of tensors, with numbers.
void convert_sum(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_product(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_scale(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_matrix_product(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);

// Joins and other sides.
void convert_concat(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_reshape(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_transpose(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_upsample(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_depth_to_space(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_flatten(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);

}  // namespace tbdsim
