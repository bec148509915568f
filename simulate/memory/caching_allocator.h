// A simulated allocator: bytes requested, allocated and reserved on the device while blocks are allocated and
// freed. It reserves segments, splits them into blocks, allocates the smallest free block that is large
// enough and merges free neighbors of a segment again. The policies:
//
//   caching        PyTorch (c10/cuda/CUDACachingAllocator.cpp)
//                  sizes     multiples of 512 B
//                  segments  2 MiB for blocks up to 1 MiB; 20 MiB for blocks below 10 MiB; larger blocks have
//                            segments of their own, in multiples of 2 MiB
//                  splits    a rest of 512 B and more, in blocks above 1 MiB a rest above 1 MiB
//   caching_exact  PyTorch up to 1.0 (THC/THCCachingAllocator.cpp)
//                  sizes     multiples of 512 B below 1 MiB, of 128 KiB above
//                  segments  1 MiB for blocks up to 1 MiB; larger blocks have segments of exactly their size
//                  splits    as caching
//   bfc            TensorFlow, best fit with coalescing (common_runtime/bfc_allocator.cc, allow_growth)
//                  sizes     multiples of 256 B
//                  segments  regions of 1, 2, 4, ... MiB, each when none before has room
//                  splits    where the block is at least twice the request or 128 MiB larger
//   none           a pool of exact sizes: a free block serves requests of its size only
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "hwspecs/base/quantity.h"
#include "simulate/framework/framework_spec.h"

namespace tbdsim {

// High-water marks.
struct AllocatorUse {
  Bytes requested;
  Bytes allocated;  // sizes of the blocks: rounded, with rests that were not split off
  Bytes reserved;   // segments
};

struct AllocatorEvent {
  enum class Action { segment_alloc, alloc, free } action = Action::alloc;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // requested; for a segment its size
  int owner = 0;            // as passed to allocate
};

struct AllocatorBlock {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t segment = 0;    // its address
  std::uint64_t requested = 0;  // 0: free
  int owner = 0;
  bool small = false;  // its segment is for small blocks
};

class CachingAllocator {
 public:
  // `capacity`: bytes of the device. Where a segment would exceed it, PyTorch's policies first return
  // segments that are free as a whole to the device; a segment that still exceeds it is reserved all the
  // same. `log`: takes every event; none are kept without it.
  explicit CachingAllocator(AllocatorPolicy policy, std::uint64_t capacity = UINT64_MAX,
                            std::vector<AllocatorEvent>* log = nullptr)
      : policy_(policy), capacity_(capacity), log_(log) {}
  CachingAllocator(const CachingAllocator&) = delete;  // free_ refers to blocks_
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // Returns the address of a block of at least `size` bytes. `owner` is noted in the event and the block.
  std::uint64_t allocate(std::uint64_t size, int owner);
  void free(std::uint64_t address);

  [[nodiscard]] std::uint64_t allocated() const { return allocated_; }
  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }
  [[nodiscard]] const AllocatorUse& use() const { return use_; }
  [[nodiscard]] std::vector<AllocatorBlock> blocks() const;  // by address

 private:
  using Blocks = std::map<std::uint64_t, AllocatorBlock>;
  struct Free {
    bool small = false;
    std::uint64_t size = 0;
    std::uint64_t address = 0;
    Blocks::iterator block;
    friend bool operator<(const Free& a, const Free& b) {
      return std::tie(a.small, a.size, a.address) < std::tie(b.small, b.size, b.address);
    }
  };
  using FreeBlocks = std::set<Free>;
  static Free free_block(Blocks::iterator block);

  [[nodiscard]] std::uint64_t rounded(std::uint64_t size) const;
  [[nodiscard]] bool is_pytorch() const;
  [[nodiscard]] bool from_small_segment(std::uint64_t size) const;
  std::uint64_t segment_for(std::uint64_t size);
  std::uint64_t next_region_for(std::uint64_t size);
  [[nodiscard]] bool splits(std::uint64_t block, std::uint64_t size) const;
  void release_free_segments();
  FreeBlocks::iterator add_segment(std::uint64_t size, bool small, int owner);
  Blocks::iterator merge_with_free_neighbors(Blocks::iterator block, FreeBlocks::node_type& neighbor);

  AllocatorPolicy policy_;
  std::uint64_t capacity_;
  std::vector<AllocatorEvent>* log_;
  Blocks blocks_;
  FreeBlocks free_;
  std::uint64_t next_ = std::uint64_t{1} << 36U;    // address of the next segment
  std::uint64_t region_ = std::uint64_t{1} << 20U;  // size of the next one (bfc)
  std::uint64_t requested_ = 0, allocated_ = 0, reserved_ = 0;
  AllocatorUse use_;
};

}  // namespace tbdsim
