// Layers of an ONNX graph that make images larger. None is returned where tbd-sim has no such layer.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "simulate/import/network.h"
#include "simulate/import/network_files.h"

namespace tbdsim {

[[nodiscard]] std::optional<NetworkTensor> add_transposed(NetworkBuilder& builder, const OnnxNode& node,
                                                          const NetworkTensor& from, std::int64_t filters,
                                                          const std::pair<WindowSide, WindowSide>& window);
// `scales`: of the batch, the channels, height and width.
[[nodiscard]] std::optional<NetworkTensor> add_upsample(NetworkBuilder& builder, const OnnxNode& node,
                                                        const NetworkTensor& from,
                                                        const std::vector<std::int64_t>& image);
[[nodiscard]] std::optional<NetworkTensor> add_depth_to_space(NetworkBuilder& builder, const OnnxNode& node,
                                                              const NetworkTensor& from);

}  // namespace tbdsim
