// GPU memory by the five categories of the TBD paper (section III-D).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "graphs/training_step.h"
#include "hwspecs/base/quantity.h"

namespace tbdsim {

enum class MemoryCategory : std::size_t {
  weights,  // parameters and moving statistics, with low-precision copies
  weight_gradients,
  feature_maps,  // activations kept for the backward pass and gradient maps, as the paper counts them
  workspace,     // scratch memory: temporary tensors and what the chosen algorithms need
  dynamic,       // optimizer state and the framework's further copies of the parameters
};

// The category of a tensor; none is workspace.
[[nodiscard]] MemoryCategory category_of(TensorRole role);

// One amount for each category: `Bytes`, or `Size` (bytes as a function of the batch).
template <class Amount>
struct ByCategory {
  std::array<Amount, 5> amounts{};

  [[nodiscard]] Amount& operator[](MemoryCategory category) {
    return amounts[static_cast<std::size_t>(category)];
  }
  [[nodiscard]] const Amount& operator[](MemoryCategory category) const {
    return amounts[static_cast<std::size_t>(category)];
  }
  [[nodiscard]] Amount total() const {
    Amount sum{};
    for (const Amount& amount : amounts) sum += amount;
    return sum;
  }
};

using MemoryUse = ByCategory<Bytes>;

[[nodiscard]] MemoryUse memory_at(const ByCategory<Size>& sizes, double batch);

// Bytes of the tensors alive at each kernel of a step; workspaces are none.
[[nodiscard]] std::vector<ByCategory<Size>> tensors_alive(const TrainingStep& step);

}  // namespace tbdsim
