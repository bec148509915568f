#include "simulate/memory/static_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace tbdsim {
namespace {

constexpr double kPlannedAt = 32;  // batch, samples

// Blocks of one size: their bytes at the batch of the plan, and at any batch.
using BlockSize = std::pair<double, Size>;

class Pool {
 public:
  using Blocks = std::vector<PoolBlocks>;

  // `pieces` blocks for as many equal pieces of a tensor.
  Blocks allocate(Size bytes, std::int64_t pieces) {
    Blocks allocated;
    while (pieces > 0) {
      const auto [block, grows] = find_free(bytes);
      if (block == free_.end()) {
        allocated.push_back({bytes, pieces});
        break;
      }
      const std::int64_t count = std::min(pieces, block->second);
      allocated.push_back({grows ? bytes : block->first.second, count});
      pieces -= count;
      block->second -= count;
      if (block->second == 0) free_.erase(block);
    }
    return allocated;
  }

  void free(const Blocks& blocks) {
    for (const PoolBlocks& each : blocks) free_[{each.bytes.at(kPlannedAt), each.bytes}] += each.count;
  }

  // All blocks, once all are free.
  [[nodiscard]] Blocks blocks() const {
    Blocks all;
    for (const auto& [size, count] : free_) all.push_back({size.second, count});
    return all;
  }

 private:
  using FreeBlocks = std::map<BlockSize, std::int64_t>;

  // The free blocks that a tensor takes, and whether they grow; the end where it takes a new block.
  std::pair<FreeBlocks::iterator, bool> find_free(Size bytes) {
    const double wanted = bytes.at(kPlannedAt);
    const auto larger = free_.lower_bound({wanted, Size{}});
    if (larger != free_.end() && larger->first.first <= wanted * kMatchRange) return {larger, false};
    if (larger == free_.begin()) return {free_.end(), false};
    const auto smaller = std::prev(larger);
    if (smaller->first.first >= wanted / kMatchRange) return {smaller, true};
    return {free_.end(), false};
  }

  FreeBlocks free_;  // how many of each size
};

bool is_shared(const Tensor& tensor) {
  const bool map = tensor.role == TensorRole::feature_map || tensor.role == TensorRole::gradient_map;
  return map && !tensor.library_state && tensor.bytes != Size{};
}

// Bytes of each piece, rounded up.
Size piece_of(const Tensor& tensor) {
  const auto part = [&](std::int64_t bytes) {
    const std::int64_t rest = bytes % tensor.pieces > 0 ? 1 : 0;
    return bytes / tensor.pieces + rest;
  };
  return {part(tensor.bytes.fixed), part(tensor.bytes.per_sample)};
}

// Indices of tensors by the kernel of their first or last use.
std::vector<std::vector<std::size_t>> by_kernel(const TrainingStep& step, int Tensor::*use) {
  std::vector<std::vector<std::size_t>> tensors(step.kernels.size());
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    if (is_shared(step.tensors[i])) tensors[static_cast<std::size_t>(step.tensors[i].*use)].push_back(i);
  }
  return tensors;
}

bool writes_in_place(const Kernel& kernel) {
  return kernel.kind == KernelKind::elementwise && kernel.phase == Phase::backward_data;
}

}  // namespace

std::vector<PoolBlocks> planned_pool(const TrainingStep& step) {
  const auto first_used = by_kernel(step, &Tensor::first_use);
  const auto last_used = by_kernel(step, &Tensor::last_use);
  std::vector<Pool::Blocks> blocks(step.tensors.size());
  Pool pool;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const auto is_overwritten = [&](const Tensor& tensor) {
      return writes_in_place(step.kernels[k]) && tensor.role == TensorRole::gradient_map &&
             tensor.first_use < tensor.last_use;
    };
    const auto free_last_used = [&](bool overwritten) {
      for (const std::size_t i : last_used[k]) {
        if (is_overwritten(step.tensors[i]) == overwritten) pool.free(blocks[i]);
      }
    };
    free_last_used(true);
    for (const std::size_t i : first_used[k])
      blocks[i] = pool.allocate(piece_of(step.tensors[i]), step.tensors[i].pieces);
    const Size scratch = step.kernels[k].scratch_bytes;
    if (scratch != Size{}) pool.free(pool.allocate(scratch, 1));
    free_last_used(false);
  }
  return pool.blocks();
}

}  // namespace tbdsim
