// Where the memory of the predicted iteration that needs most goes: by layer at the moment when most is
// alive, and over time.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/memory/category.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

enum class MemoryView { category, layer, time };
inline constexpr std::array<std::string_view, 3> kMemoryViewNames = {"category", "layer", "time"};

struct LayerMemory {
  std::string layer;  // "(inputs)": the inputs of the graph
  std::string type;
  MemoryUse use;
};

// Layers with tensors alive at the peak, largest first. Where memory is planned before the run, "(planned for
// others)" has what the plan's blocks hold beyond these tensors, and the workspace; "(workspaces of cuBLAS)"
// those that stay.
[[nodiscard]] std::vector<LayerMemory> memory_by_layer(const Prediction& prediction);

struct MemoryMoment {
  std::size_t kernel = 0;
  Seconds start, end;  // on the GPU
  MemoryUse use;       // tensors alive, and the workspace of this kernel
};

// One for each kernel, in the order in which they run, but for asynchronous updates: their parameters are
// alive all the time. `kept_workspaces`: of the prediction's memory plan.
[[nodiscard]] std::vector<MemoryMoment> memory_over_time(const Iteration& iteration, Bytes kept_workspaces);

// The iteration that needs most memory.
[[nodiscard]] const Iteration& largest_iteration(const Prediction& prediction);

// Its kernel at which most is alive, as "conv4_3, backward_data".
[[nodiscard]] std::string peak_place(const Prediction& prediction);

}  // namespace tbdsim
