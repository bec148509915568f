// What an allocator makes of requests as they come and go: bytes asked for, handed out and taken from the
// device. It takes segments, cuts them into blocks, gives out the smallest free block that is large enough
// and joins free neighbours of a segment again.
//
//   caching  PyTorch: sizes rounded up to 512 B; up to 1 MiB from segments of 2 MiB, below 10 MiB from
//            segments of 20 MiB, others from segments of their own, rounded up to 2 MiB; a rest is cut off
//            from 512 B on, of blocks above 1 MiB from 1 MiB on (c10/cuda/CUDACachingAllocator.cpp)
//   caching_exact  PyTorch up to 1.0: 512 B below 1 MiB, 128 KiB from there on; up to 1 MiB from segments of
//            1 MiB, others from segments of exactly their size; rests as above (THC/THCCachingAllocator.cpp)
//   bfc      TensorFlow: rounded up to 256 B; regions of 1, 2, 4, ... MiB, each when none before has room; a
//            rest is cut off where the block is twice as large as asked for or 128 MiB larger
//            (common_runtime/bfc_allocator.cc, with allow_growth)
//   none     a pool of exact sizes: what is free serves requests of its size only
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "hwspecs/base/quantity.h"
#include "simulate/framework/framework_spec.h"

namespace tbdsim {

struct AllocatorUse {  // the most at any time
  Bytes requested;
  Bytes allocated;  // rounded, with rests that were not cut off
  Bytes reserved;
};

struct AllocatorEvent {
  enum class Action { segment_alloc, alloc, free } action = Action::alloc;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // asked for; of a segment its size
  int owner = 0;            // as given
};

struct AllocatorBlock {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t segment = 0;    // its address
  std::uint64_t requested = 0;  // 0: free
  int owner = 0;
};

class CachingAllocator {
 public:
  // `capacity`: what the card has for it. Where a segment would exceed that, segments of which nothing is in
  // use go back to the card first (PyTorch's rules); what still exceeds it is taken all the same.
  explicit CachingAllocator(AllocatorPolicy rules, std::uint64_t capacity = UINT64_MAX)
      : rules_(rules), capacity_(capacity) {}

  // The address of a block of at least `size` bytes. `owner` is noted in the event and the block.
  std::uint64_t take(std::uint64_t size, int owner);
  void give_back(std::uint64_t address);

  [[nodiscard]] std::uint64_t allocated() const { return allocated_; }
  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }
  [[nodiscard]] const AllocatorUse& use() const { return use_; }
  [[nodiscard]] const std::vector<AllocatorEvent>& events() const { return events_; }
  [[nodiscard]] std::vector<AllocatorBlock> blocks() const;  // ascending addresses
  [[nodiscard]] bool is_small(std::uint64_t segment) const { return small_.at(segment); }

 private:
  struct Free {
    bool small = false;
    std::uint64_t size = 0;
    std::uint64_t address = 0;
    friend auto operator<=>(const Free&, const Free&) = default;
  };
  using Blocks = std::map<std::uint64_t, AllocatorBlock>;

  [[nodiscard]] std::uint64_t rounded(std::uint64_t size) const;
  [[nodiscard]] bool caches() const;  // PyTorch's
  [[nodiscard]] bool small(std::uint64_t size) const;
  std::uint64_t segment_for(std::uint64_t size);
  std::uint64_t next_region_for(std::uint64_t size);
  [[nodiscard]] bool cuts(std::uint64_t block, std::uint64_t size) const;
  void release_free_segments();
  std::set<Free>::iterator add_segment(std::uint64_t size, bool small, int owner);
  Blocks::iterator join_with_free_neighbours(Blocks::iterator block);

  AllocatorPolicy rules_;
  std::uint64_t capacity_;
  Blocks blocks_;
  std::set<Free> free_;
  std::map<std::uint64_t, bool> small_;             // segments by their address, those that went back, too
  std::uint64_t next_ = std::uint64_t{1} << 36U;    // address of the next segment
  std::uint64_t region_ = std::uint64_t{1} << 20U;  // size of the next one (bfc)
  std::uint64_t requested_ = 0, allocated_ = 0, reserved_ = 0;
  AllocatorUse use_;
  std::vector<AllocatorEvent> events_;
};

}  // namespace tbdsim
