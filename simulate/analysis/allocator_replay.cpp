#include "simulate/analysis/allocator_replay.h"

#include <cstddef>
#include <set>

#include "simulate/analysis/memory_breakdown.h"
#include "simulate/memory/iteration_replay.h"

namespace tbdsim {
namespace {

// Addresses of the blocks' segments that are for small blocks.
std::vector<std::uint64_t> small_segments(const std::vector<AllocatorBlock>& blocks) {
  std::set<std::uint64_t> small;
  for (const AllocatorBlock& block : blocks) {
    if (block.small) small.insert(block.segment);
  }
  return {small.begin(), small.end()};
}

}  // namespace

AllocatorReplay replay(const Prediction& p) {
  AllocatorReplay result;
  CachingAllocator allocator(p.framework->allocator.policy, UINT64_MAX, &result.events);
  const Iteration& largest = largest_iteration(p);
  IterationReplay iterations(*largest.step, largest.costs, static_cast<double>(largest.batch), allocator);
  iterations.allocate_lasting(p.memory.kept_workspaces);
  result.first = result.events.size();
  std::uint64_t most = 0;
  std::size_t peak = 0;
  iterations.run([&](std::size_t k) {
    if (allocator.allocated() <= most) return;
    most = allocator.allocated();
    peak = k;
  });
  result.events.resize(result.first);
  result.kernels.assign(result.first, 0);
  iterations.run(
      [&](std::size_t k) {
        if (k == peak) result.at_peak = allocator.blocks();
      },
      [&](std::size_t k) { result.kernels.resize(result.events.size(), k); });
  result.use = allocator.use();
  result.small_segments = small_segments(result.at_peak);
  return result;
}

}  // namespace tbdsim
