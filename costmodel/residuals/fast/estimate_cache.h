// The neighbor sets of recent residual estimates. In a sweep the same kernels come again at other batch sizes
// and on other GPUs: most estimates then need no search and no factorisation. Estimates do not depend on what
// the cache holds.
//
// Memory: at most kMaxSets sets of 768 bytes (12.6 MB) and kMaxKernels kernels of 150 bytes with up to 64
// intervals of 32 bytes (72 MB if each had that many). One thread at a time may use it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "costmodel/residuals/fast/batch_intervals.h"
#include "costmodel/residuals/residual_index.h"

namespace tbdsim {

struct CachedNeighbors {
  NeighborSet<float> set;
  NeighborRows rows{};
  std::uint64_t fingerprint = 0;  // of the group
  std::uint64_t generation = 0;   // no other set that the cache held or holds has it
};

class EstimateCache {
 public:
  static constexpr int kSetBits = 12, kKernelBits = 15;
  static constexpr std::size_t kWays = 4;    // sets with the same hash
  static constexpr std::size_t kProbes = 4;  // places where a kernel may be
  static constexpr std::size_t kMaxSets = kWays << kSetBits;
  static constexpr std::size_t kMaxKernels = (std::size_t{1} << kKernelBits) + kProbes;

  EstimateCache();
  EstimateCache(const EstimateCache&) = delete;
  EstimateCache& operator=(const EstimateCache&) = delete;

  // The same as ResidualIndex::estimate. `kernel`: the kernel's number in its training step; calls of one
  // kernel differ in batch size alone.
  [[nodiscard]] ResidualEstimate estimate(const ResidualIndex& index, const ResidualIndex::Group& group,
                                          const Features& at, std::size_t kernel);

 private:
  // Calls of one kernel. Kernels of a step follow one another again and again: while one is estimated, the
  // data of the next is prefetched.
  struct KernelCalls {
    std::uint64_t key = 0;
    BatchIntervals intervals;
    KernelCalls* next = nullptr;
    const CachedNeighbors* last = nullptr;

    void prefetch() const;
  };
  using Ways = std::array<std::unique_ptr<CachedNeighbors>, kWays>;  // most recently used first

  [[nodiscard]] KernelCalls& calls_of(std::uint64_t key);
  [[nodiscard]] const CachedNeighbors& search(const ResidualIndex& index, const ResidualIndex::Group& group,
                                              const Features& at, double coordinate,
                                              BatchIntervals& intervals);
  [[nodiscard]] const CachedNeighbors& cached(const ResidualIndex& index, const ResidualIndex::Group& group,
                                              const NeighborRows& rows);

  std::vector<std::unique_ptr<KernelCalls>> kernels_;  // by key, open addressing
  std::vector<Ways> sets_;                             // by hash of group and rows
  std::uint64_t generations_ = 0;
  KernelCalls* previous_ = nullptr;
};

}  // namespace tbdsim
