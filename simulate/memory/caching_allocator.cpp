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
  switch (policy_) {
    case AllocatorPolicy::caching:
      return multiple_of(kKiB / 2, size);
    case AllocatorPolicy::caching_exact:
      return multiple_of(size < kMiB ? kKiB / 2 : 128 * kKiB, size);
    case AllocatorPolicy::bfc:
      return multiple_of(kKiB / 4, size);
    case AllocatorPolicy::none:
      break;
  }
  return multiple_of(1, size);
}

bool CachingAllocator::is_pytorch() const {
  return policy_ == AllocatorPolicy::caching || policy_ == AllocatorPolicy::caching_exact;
}

bool CachingAllocator::from_small_segment(std::uint64_t size) const { return is_pytorch() && size <= kMiB; }

// The next region's size, which doubles with each region, or until this request fits.
std::uint64_t CachingAllocator::next_region_for(std::uint64_t size) {
  if (size <= region_) return std::exchange(region_, 2 * region_);
  while (size > region_) region_ *= 2;
  return region_;
}

// Size of the segment that is requested from the device for a block of `size`.
std::uint64_t CachingAllocator::segment_for(std::uint64_t size) {
  switch (policy_) {
    case AllocatorPolicy::none:
      return size;
    case AllocatorPolicy::bfc:
      return next_region_for(size);
    case AllocatorPolicy::caching_exact:
      return from_small_segment(size) ? kMiB : size;
    case AllocatorPolicy::caching:
      break;
  }
  if (from_small_segment(size)) return 2 * kMiB;
  return size < 10 * kMiB ? 20 * kMiB : multiple_of(2 * kMiB, size);
}

// Whether what a block of `block` bytes has beyond `size` becomes a free block of its own.
bool CachingAllocator::splits(std::uint64_t block, std::uint64_t size) const {
  const std::uint64_t rest = block - size;
  if (is_pytorch()) return from_small_segment(size) ? rest >= kKiB / 2 : rest > kMiB;
  return policy_ == AllocatorPolicy::bfc && rest > 0 && (block >= 2 * size || rest >= 128 * kMiB);
}

// The entry of a block in the list of free ones.
CachingAllocator::Free CachingAllocator::free_block(Blocks::iterator block) {
  return {block->second.small, block->second.size, block->first, block};
}

void CachingAllocator::release_free_segments() {
  for (auto free = free_.begin(); free != free_.end();) {
    const auto block = free->block;
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

CachingAllocator::FreeBlocks::iterator CachingAllocator::add_segment(std::uint64_t size, bool small,
                                                                     int owner) {
  if (is_pytorch() && reserved_ + size > capacity_) release_free_segments();
  const std::uint64_t address = next_;
  next_ += multiple_of(2 * kMiB, size) + 2 * kMiB;  // no two segments touch
  reserved_ += size;
  use_.reserved = std::max(use_.reserved, to_bytes(reserved_));
  const auto block =
      blocks_.emplace_hint(blocks_.end(), address, AllocatorBlock{address, size, address, 0, owner, small});
  if (log_ != nullptr) log_->push_back({AllocatorEvent::Action::segment_alloc, address, size, owner});
  return free_.insert(free_block(block)).first;
}

std::uint64_t CachingAllocator::allocate(std::uint64_t size, int owner) {
  const std::uint64_t wanted = rounded(size);
  const bool from_small = from_small_segment(wanted);
  auto found = free_.lower_bound({from_small, wanted, 0, {}});
  const bool fits = found != free_.end() && found->small == from_small &&
                    (policy_ != AllocatorPolicy::none || found->size == wanted);
  if (!fits) found = add_segment(segment_for(wanted), from_small, owner);
  const auto at = found->block;
  const std::uint64_t address = at->first;
  AllocatorBlock& block = at->second;
  if (splits(block.size, wanted)) {
    const std::uint64_t behind = address + wanted;
    const auto rest = blocks_.emplace_hint(
        std::next(at), behind,
        AllocatorBlock{behind, block.size - wanted, block.segment, 0, owner, from_small});
    block.size = wanted;
    auto entry = free_.extract(found);
    entry.value() = free_block(rest);
    free_.insert(std::move(entry));
  } else {
    free_.erase(found);
  }
  block.requested = std::max<std::uint64_t>(size, 1);
  block.owner = owner;
  if (log_ != nullptr) log_->push_back({AllocatorEvent::Action::alloc, address, block.requested, owner});
  requested_ += block.requested;
  allocated_ += block.size;
  use_.requested = std::max(use_.requested, to_bytes(requested_));
  use_.allocated = std::max(use_.allocated, to_bytes(allocated_));
  return address;
}

void CachingAllocator::free(std::uint64_t address) {
  auto block = blocks_.find(address);
  if (log_ != nullptr)
    log_->push_back({AllocatorEvent::Action::free, address, block->second.requested, block->second.owner});
  requested_ -= block->second.requested;
  allocated_ -= block->second.size;
  block->second.requested = 0;
  FreeBlocks::node_type neighbor;  // its entry is used again
  if (policy_ != AllocatorPolicy::none) block = merge_with_free_neighbors(block, neighbor);
  if (neighbor.empty()) {
    free_.insert(free_block(block));
  } else {
    neighbor.value() = free_block(block);
    free_.insert(std::move(neighbor));
  }
}

// Returns the block that this one and the free ones beside it become; `neighbor`: the entry of one of these,
// taken out of the list.
CachingAllocator::Blocks::iterator CachingAllocator::merge_with_free_neighbors(
    Blocks::iterator block, FreeBlocks::node_type& neighbor) {
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
    neighbor = free_.extract(free_block(before));
    block = absorb(before, block);
  }
  const auto after = std::next(block);
  if (after != blocks_.end() && joins(after)) {
    neighbor = free_.extract(free_block(after));
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
