// Where the memory of a predicted iteration goes: by layer at the moment when most is alive, and over time.
// Of the length that needs most memory.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

enum class MemoryView { category, layer, time };
inline constexpr std::array<std::string_view, 3> kMemoryViewNames = {"category", "layer", "time"};

// Bytes by the paper's categories.
struct MemoryUse {
  Bytes weights, weight_gradients, feature_maps, workspace, dynamic;

  [[nodiscard]] Bytes total() const {
    return weights + weight_gradients + feature_maps + workspace + dynamic;
  }
  void add(TensorRole role, Bytes bytes);
};

struct LayerMemory {
  std::string layer;  // "(inputs)": of the graph
  std::string type;
  MemoryUse use;
};

// Layers with tensors alive at the peak, most first. Where memory is planned ahead, "(planned for others)" is
// what the blocks hold beside them, and the workspace kept is of no layer.
[[nodiscard]] std::vector<LayerMemory> memory_by_layer(const Prediction& prediction);

struct MemoryMoment {
  std::size_t kernel = 0;
  Seconds start, end;  // on the GPU
  MemoryUse use;       // of tensors alive, with the workspace of this kernel
};

// One for each kernel in the order they run.
[[nodiscard]] std::vector<MemoryMoment> memory_over_time(const Iteration& iteration);

// The iteration that needs most memory.
[[nodiscard]] const Iteration& largest_iteration(const Prediction& prediction);

// Its kernel at which most is alive, as "conv4_3, backward_data".
[[nodiscard]] std::string peak_place(const Prediction& prediction);

}  // namespace tbdsim
