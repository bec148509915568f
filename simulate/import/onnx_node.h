// Attributes of an ONNX node as a layer needs them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulate/import/network.h"
#include "simulate/import/network_files.h"

namespace tbdsim {

// A whole number, or `otherwise` where the node has none of that name; a list of them, empty where it has
// none.
[[nodiscard]] std::int64_t whole_number_of(const OnnxNode& node, const std::string& name,
                                           std::int64_t otherwise);
[[nodiscard]] std::vector<std::int64_t> whole_numbers(const OnnxNode& node, const std::string& name);

// The name of a layer: the node's, or that of its output.
[[nodiscard]] std::string name_of_layer(const OnnxNode& node);

// The window of a convolution or a pooling over an input of that shape, along height and width; none for
// other inputs than images. Throws std::invalid_argument for one that cannot be.
[[nodiscard]] std::optional<std::pair<WindowSide, WindowSide>> window_of(
    const OnnxNode& node, const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& kernel);

}  // namespace tbdsim
