#include "simulate/memory/static_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace tbdsim {
namespace {

constexpr double kPlannedAt = 32;  // samples

// Blocks of one size: with their bytes at the batch of the plan.
using Key = std::pair<double, Size>;

class Pool {
 public:
  using Held = std::vector<PoolBlocks>;

  Held take(Size bytes, std::int64_t pieces) {
    const double wanted = bytes.at(kPlannedAt);
    Held held;
    while (pieces > 0) {
      auto block = free_.lower_bound({wanted, Size{}});
      bool grows = false;
      if (block == free_.end() || block->first.first > wanted * kMatchRange) {
        grows = block != free_.begin() && std::prev(block)->first.first >= wanted / kMatchRange;
        if (!grows) {
          held.push_back({bytes, pieces});
          return held;
        }
        --block;
      }
      const std::int64_t taken = std::min(pieces, block->second);
      held.push_back({grows ? bytes : block->first.second, taken});
      pieces -= taken;
      block->second -= taken;
      if (block->second == 0) free_.erase(block);
    }
    return held;
  }

  void give_back(const Held& held) {
    for (const PoolBlocks& blocks : held) free_[{blocks.bytes.at(kPlannedAt), blocks.bytes}] += blocks.count;
  }

  // When all were given back.
  [[nodiscard]] std::vector<PoolBlocks> blocks() const {
    std::vector<PoolBlocks> all;
    for (const auto& [key, count] : free_) all.push_back({key.second, count});
    return all;
  }

 private:
  std::map<Key, std::int64_t> free_;
};

bool is_shared(const Tensor& tensor) {
  const bool map = tensor.role == TensorRole::feature_map || tensor.role == TensorRole::gradient_map;
  return map && !tensor.library_state && tensor.bytes != Size{};
}

Size piece_of(const Tensor& tensor) {
  const auto part = [&](std::int64_t bytes) {
    return bytes / tensor.pieces + (bytes % tensor.pieces > 0 ? 1 : 0);
  };
  return {part(tensor.bytes.fixed), part(tensor.bytes.per_sample)};
}

// Indices of tensors by the kernel of their first or last use.
std::vector<std::vector<int>> by_kernel(const TrainingStep& step, int Tensor::*use) {
  std::vector<std::vector<int>> tensors(step.kernels.size());
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    if (is_shared(step.tensors[i]))
      tensors[static_cast<std::size_t>(step.tensors[i].*use)].push_back(static_cast<int>(i));
  }
  return tensors;
}

bool writes_in_place(const Kernel& kernel) {
  return kernel.kind == KernelKind::elementwise && kernel.phase == Phase::backward_data;
}

}  // namespace

std::vector<PoolBlocks> planned_pool(const TrainingStep& step) {
  const auto born = by_kernel(step, &Tensor::first_use);
  const auto dies = by_kernel(step, &Tensor::last_use);
  std::vector<Pool::Held> held(step.tensors.size());
  Pool pool;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const auto leaves_early = [&](const Tensor& tensor) {
      return writes_in_place(step.kernels[k]) && tensor.role == TensorRole::gradient_map &&
             tensor.first_use < tensor.last_use;
    };
    const auto leave = [&](bool early) {
      for (const int i : dies[k]) {
        const auto at = static_cast<std::size_t>(i);
        if (leaves_early(step.tensors[at]) == early) pool.give_back(held[at]);
      }
    };
    leave(true);
    for (const int i : born[k]) {
      const Tensor& tensor = step.tensors[static_cast<std::size_t>(i)];
      held[static_cast<std::size_t>(i)] = pool.take(piece_of(tensor), tensor.pieces);
    }
    if (step.kernels[k].scratch_bytes != Size{}) pool.give_back(pool.take(step.kernels[k].scratch_bytes, 1));
    leave(false);
  }
  return pool.blocks();
}

}  // namespace tbdsim
