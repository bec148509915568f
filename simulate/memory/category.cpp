#include "simulate/memory/category.h"

#include <algorithm>

namespace tbdsim {

MemoryCategory category_of(TensorRole role) {
  switch (role) {
    case TensorRole::weights:
      return MemoryCategory::weights;
    case TensorRole::weight_gradients:
      return MemoryCategory::weight_gradients;
    case TensorRole::feature_map:
    case TensorRole::gradient_map:
      return MemoryCategory::feature_maps;
    case TensorRole::dynamic:
      return MemoryCategory::dynamic;
  }
  return MemoryCategory::dynamic;
}

MemoryUse memory_at(const ByCategory<Size>& sizes, double batch) {
  MemoryUse use;
  for (std::size_t c = 0; c < use.amounts.size(); ++c) use.amounts[c] = Bytes(sizes.amounts[c].at(batch));
  return use;
}

// Sums up, kernel by kernel, the bytes allocated before a kernel less those freed after the one before.
std::vector<ByCategory<Size>> tensors_alive(const TrainingStep& step) {
  if (step.kernels.empty()) return {};
  const std::size_t last = step.kernels.size() - 1;
  std::vector<ByCategory<Size>> alive(last + 2);
  for (const Tensor& tensor : step.tensors) {
    const MemoryCategory category = category_of(tensor.role);
    const std::size_t allocated = std::min(static_cast<std::size_t>(tensor.first_use), last);
    const std::size_t freed = std::min(static_cast<std::size_t>(tensor.last_use), last) + 1;
    alive[allocated][category] += tensor.bytes;
    alive[freed][category] += tensor.bytes * -1;
  }
  alive.pop_back();
  for (std::size_t k = 1; k < alive.size(); ++k) {
    for (std::size_t c = 0; c < alive[k].amounts.size(); ++c) alive[k].amounts[c] += alive[k - 1].amounts[c];
  }
  return alive;
}

}  // namespace tbdsim
