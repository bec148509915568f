#include "simulate/memory/caching_allocator.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tbdsim {
namespace {

constexpr std::uint64_t kKiB = 1U << 10U, kMiB = 1U << 20U;

std::uint64_t multiple_of(std::uint64_t unit, std::uint64_t size) {
  return (std::max<std::uint64_t>(size, 1) + unit - 1) / unit * unit;
}

Bytes to_bytes(std::uint64_t count) { return Bytes(static_cast<double>(count)); }

}  // namespace

std::uint64_t CachingAllocator::rounded(std::uint64_t size) const {
  if (rules_ == AllocatorPolicy::caching) return multiple_of(kKiB / 2, size);
  if (rules_ == AllocatorPolicy::caching_exact) return multiple_of(size < kMiB ? kKiB / 2 : 128 * kKiB, size);
  return multiple_of(rules_ == AllocatorPolicy::bfc ? kKiB / 4 : 1, size);
}

bool CachingAllocator::caches() const {
  return rules_ == AllocatorPolicy::caching || rules_ == AllocatorPolicy::caching_exact;
}

bool CachingAllocator::small(std::uint64_t size) const { return caches() && size <= kMiB; }

// Doubles for the next request, or until this one fits.
std::uint64_t CachingAllocator::next_region_for(std::uint64_t size) {
  if (size <= region_) return std::exchange(region_, 2 * region_);
  while (size > region_) region_ *= 2;
  return region_;
}

std::uint64_t CachingAllocator::segment_for(std::uint64_t size) {
  if (rules_ == AllocatorPolicy::bfc) return next_region_for(size);
  if (rules_ == AllocatorPolicy::none) return size;
  if (rules_ == AllocatorPolicy::caching_exact) return small(size) ? kMiB : size;
  if (small(size)) return 2 * kMiB;
  return size < 10 * kMiB ? 20 * kMiB : multiple_of(2 * kMiB, size);
}

bool CachingAllocator::cuts(std::uint64_t block, std::uint64_t size) const {
  const std::uint64_t rest = block - size;
  if (caches()) return small(size) ? rest >= kKiB / 2 : rest > kMiB;
  return rules_ == AllocatorPolicy::bfc && rest > 0 && (block >= 2 * size || rest >= 128 * kMiB);
}

void CachingAllocator::release_free_segments() {
  for (auto free = free_.begin(); free != free_.end();) {
    const auto block = blocks_.find(free->address);
    const auto next = std::next(block);
    const bool whole = block->second.segment == block->first &&
                       (next == blocks_.end() || next->second.segment != block->first);
    if (whole) {
      reserved_ -= free->size;
      blocks_.erase(block);
    }
    free = whole ? free_.erase(free) : std::next(free);
  }
}

std::set<CachingAllocator::Free>::iterator CachingAllocator::add_segment(std::uint64_t size, bool small,
                                                                         int owner) {
  if (caches() && reserved_ + size > capacity_) release_free_segments();
  const std::uint64_t address = next_;
  next_ += multiple_of(2 * kMiB, size) + 2 * kMiB;  // no two segments touch
  reserved_ += size;
  use_.reserved = std::max(use_.reserved, to_bytes(reserved_));
  small_[address] = small;
  blocks_[address] = {address, size, address, 0, owner};
  events_.push_back({AllocatorEvent::Action::segment_alloc, address, size, owner});
  return free_.insert({small, size, address}).first;
}

std::uint64_t CachingAllocator::take(std::uint64_t size, int owner) {
  const std::uint64_t wanted = rounded(size);
  const bool from_small = small(wanted);
  auto found = free_.lower_bound({from_small, wanted, 0});
  const bool fits = found != free_.end() && found->small == from_small &&
                    (rules_ != AllocatorPolicy::none || found->size == wanted);
  if (!fits) found = add_segment(segment_for(wanted), from_small, owner);
  const std::uint64_t address = found->address;
  free_.erase(found);
  AllocatorBlock& block = blocks_.at(address);
  if (cuts(block.size, wanted)) {
    const std::uint64_t rest = block.size - wanted;
    blocks_[address + wanted] = {address + wanted, rest, block.segment, 0, owner};
    free_.insert({from_small, rest, address + wanted});
    block.size = wanted;
  }
  block.requested = std::max<std::uint64_t>(size, 1);
  block.owner = owner;
  events_.push_back({AllocatorEvent::Action::alloc, address, block.requested, owner});
  requested_ += block.requested;
  allocated_ += block.size;
  use_.requested = std::max(use_.requested, to_bytes(requested_));
  use_.allocated = std::max(use_.allocated, to_bytes(allocated_));
  return address;
}

void CachingAllocator::give_back(std::uint64_t address) {
  auto block = blocks_.find(address);
  events_.push_back({AllocatorEvent::Action::free, address, block->second.requested, block->second.owner});
  requested_ -= block->second.requested;
  allocated_ -= block->second.size;
  block->second.requested = 0;
  if (rules_ != AllocatorPolicy::none) block = join_with_free_neighbours(block);
  free_.insert({small_.at(block->second.segment), block->second.size, block->first});
}

CachingAllocator::Blocks::iterator CachingAllocator::join_with_free_neighbours(Blocks::iterator block) {
  const bool small = small_.at(block->second.segment);
  const auto joins = [&](Blocks::iterator other) {
    return other->second.requested == 0 && other->second.segment == block->second.segment;
  };
  const auto absorb = [&](Blocks::iterator first, Blocks::iterator second) {
    first->second.size += second->second.size;
    blocks_.erase(second);
    return first;
  };
  if (block != blocks_.begin() && joins(std::prev(block))) {
    const auto before = std::prev(block);
    free_.erase({small, before->second.size, before->first});
    block = absorb(before, block);
  }
  const auto after = std::next(block);
  if (after != blocks_.end() && joins(after)) {
    free_.erase({small, after->second.size, after->first});
    block = absorb(block, after);
  }
  return block;
}

std::vector<AllocatorBlock> CachingAllocator::blocks() const {
  std::vector<AllocatorBlock> all;
  for (const auto& [address, block] : blocks_) all.push_back(block);
  return all;
}

}  // namespace tbdsim
