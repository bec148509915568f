// Operators of ONNX as layers of tbd-sim, one function for each, by families. An operator that no layer
// computes is noted as unsupported.
#pragma once

#include <optional>

#include "simulate/import/onnx_conversion.h"

namespace tbdsim {

// Converts an operator that tbd-sim knows; returns false for any other.
[[nodiscard]] bool convert_operator(OnnxConversion& net, const OnnxNode& node);
// Indices and masks: their sides are followed, no layer computes them.
void convert_indices(OnnxConversion& net, const OnnxNode& node);

// Over windows of an image, a sequence or a volume; `from` is the first input.
void convert_convolution(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_transposed(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_pooling(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_upsample(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);
void convert_depth_to_space(OnnxConversion& net, const OnnxNode& node, const NetworkTensor& from);

// Sums and products: of matrices, of tensors, with numbers.
void convert_pair(OnnxConversion& net, const OnnxNode& node);
void convert_matrix_product(OnnxConversion& net, const OnnxNode& node);
void convert_einsum(OnnxConversion& net, const OnnxNode& node);

// Joins, parts and other sides.
void convert_concat(OnnxConversion& net, const OnnxNode& node);
void convert_split(OnnxConversion& net, const OnnxNode& node);
void convert_sequence_part(OnnxConversion& net, const OnnxNode& node);  // what SequenceAt reads
void convert_slice(OnnxConversion& net, const OnnxNode& node);
void convert_gather(OnnxConversion& net, const OnnxNode& node);
void convert_gather_elements(OnnxConversion& net, const OnnxNode& node);
void convert_expand(OnnxConversion& net, const OnnxNode& node);
void convert_pad(OnnxConversion& net, const OnnxNode& node);
void convert_reduction(OnnxConversion& net, const OnnxNode& node);
void convert_reshape(OnnxConversion& net, const OnnxNode& node);
void convert_transpose(OnnxConversion& net, const OnnxNode& node);

// Inserts or leaves out sides of 1, as Unsqueeze and Squeeze do. Returns false where they do not fit.
[[nodiscard]] bool change_rank(const OnnxConversion& net, const OnnxNode& node, OnnxData& data);

// A layer whose output has the sides that its keys name.
[[nodiscard]] NetworkTensor add_resized(OnnxConversion& net, const std::string& type, const std::string& name,
                                        const NetworkTensor& from, const std::vector<std::int64_t>& shape,
                                        LayerKeys keys = {});
// A constant beside data, as a tensor with rows of its own. `sides`: those that it has there.
[[nodiscard]] NetworkTensor add_trained(OnnxConversion& net, const OnnxNode& node, const OnnxTensor& constant,
                                        const NetworkTensor& beside, const std::vector<std::int64_t>& shape);

}  // namespace tbdsim
