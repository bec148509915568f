#include "simulate/analysis/allocator_replay.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "simulate/analysis/memory_breakdown.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostPieces = 10'000;  // of a tensor; more are simulated as so many larger ones

// Addresses of the blocks' segments that are for small blocks.
std::vector<std::uint64_t> small_segments(const std::vector<AllocatorBlock>& blocks,
                                          const CachingAllocator& allocator) {
  std::set<std::uint64_t> small;
  for (const AllocatorBlock& block : blocks) {
    if (allocator.is_small(block.segment)) small.insert(block.segment);
  }
  return {small.begin(), small.end()};
}

}  // namespace

IterationReplay::IterationReplay(const Iteration& iteration, CachingAllocator& allocator)
    : iteration_(iteration), allocator_(allocator), addresses_(iteration.step->tensors.size()) {
  const std::vector<Tensor>& tensors = iteration_.step->tensors;
  const std::size_t kernels = iteration_.step->kernels.size();
  born_.resize(kernels);
  dies_.resize(kernels);
  for (const MemoryMoment& moment : memory_over_time(iteration_))
    scratch_.push_back(static_cast<std::uint64_t>(moment.use[MemoryCategory::workspace].si()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].bytes == Size{}) continue;
    if (tensors[i].first_use == 0 && tensors[i].last_use == static_cast<int>(kernels) - 1) {
      lasting_.push_back(i);
    } else {
      born_[static_cast<std::size_t>(tensors[i].first_use)].push_back(i);
      dies_[static_cast<std::size_t>(tensors[i].last_use)].push_back(i);
    }
  }
}

void IterationReplay::allocate_lasting() {
  for (const std::size_t tensor : lasting_) allocate(tensor);
}

void IterationReplay::allocate(std::size_t tensor) {
  const Tensor& of = iteration_.step->tensors[tensor];
  const double all = of.bytes.at(static_cast<double>(iteration_.batch));
  const std::int64_t pieces = std::min(of.pieces, kMostPieces);
  const auto each = static_cast<std::uint64_t>(all / static_cast<double>(pieces));
  for (std::int64_t i = 0; i < pieces; ++i)
    addresses_[tensor].push_back(allocator_.allocate(each, static_cast<int>(tensor)));
}

std::vector<std::size_t> IterationReplay::run(const std::function<void(std::size_t)>& taken) {
  std::vector<std::size_t> ends;
  for (std::size_t k = 0; k < born_.size(); ++k) {
    for (const std::size_t tensor : born_[k]) allocate(tensor);
    const std::uint64_t address =
        scratch_[k] > 0 ? allocator_.allocate(scratch_[k], -1 - static_cast<int>(k)) : 0;
    taken(k);
    if (scratch_[k] > 0) allocator_.free(address);
    for (const std::size_t tensor : dies_[k]) {
      for (const std::uint64_t piece : addresses_[tensor]) allocator_.free(piece);
      addresses_[tensor].clear();
    }
    ends.push_back(allocator_.events().size());
  }
  return ends;
}

AllocatorReplay replay(const Prediction& p) {
  CachingAllocator allocator(p.framework->allocator.policy);
  IterationReplay iterations(largest_iteration(p), allocator);
  AllocatorReplay result;
  iterations.allocate_lasting();
  result.first = allocator.events().size();
  std::uint64_t most = 0;
  std::size_t peak = 0;
  iterations.run([&](std::size_t k) {
    if (allocator.allocated() <= most) return;
    most = allocator.allocated();
    peak = k;
  });
  const std::size_t second = allocator.events().size();
  const std::vector<std::size_t> ends = iterations.run([&](std::size_t k) {
    if (k == peak) result.at_peak = allocator.blocks();
  });
  result.use = allocator.use();
  const auto events = allocator.events().begin();
  const auto lasting_end = events + static_cast<std::ptrdiff_t>(result.first);
  const auto second_begin = events + static_cast<std::ptrdiff_t>(second);
  result.events.assign(events, lasting_end);
  result.events.insert(result.events.end(), second_begin, allocator.events().end());
  result.kernels.assign(result.first, 0);
  for (std::size_t k = 0; k < ends.size(); ++k) result.kernels.resize(ends[k] - second + result.first, k);
  result.small_segments = small_segments(result.at_peak, allocator);
  return result;
}

}  // namespace tbdsim
