#include "costmodel/residuals/fast/estimate_cache.h"

#include <algorithm>

#include "costmodel/residuals/nearest_rows.h"

namespace tbdsim {
namespace {

constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio

// The upper bits of a multiplicative hash.
template <int bits>
std::size_t bucket_of(std::uint64_t key) {
  return key * kMultiplier >> (64 - bits);
}

void prefetch_bytes(const void* from, std::size_t bytes) {
  constexpr std::size_t kCacheLine = 64;
  for (std::size_t at = 0; at < bytes; at += kCacheLine)
    __builtin_prefetch(static_cast<const char*>(from) + at);
}

}  // namespace

EstimateCache::EstimateCache() : kernels_(kMaxKernels), sets_(std::size_t{1} << kSetBits) {}

void EstimateCache::KernelCalls::prefetch() const {
  if (next != nullptr) prefetch_bytes(next, sizeof(KernelCalls));
  if (last != nullptr) prefetch_bytes(last, sizeof(CachedNeighbors));
  intervals.prefetch();
}

ResidualEstimate EstimateCache::estimate(const ResidualIndex& index, const ResidualIndex::Group& group,
                                         const Features& at, std::size_t kernel) {
  const std::uint64_t key = group.fingerprint + kernel * kMultiplier;
  const bool expected = previous_ != nullptr && previous_->next != nullptr && previous_->next->key == key;
  KernelCalls& calls = expected ? *previous_->next : calls_of(key);
  if (previous_ != nullptr) previous_->next = &calls;
  previous_ = &calls;
  if (calls.next != nullptr) calls.next->prefetch();
  const double coordinate = calls.intervals.coordinate_of(at, group.fingerprint);
  const CachedNeighbors* known = calls.intervals.find(coordinate);
  calls.last = known != nullptr ? known : &search(index, group, at, coordinate, calls.intervals);
  return calls.last->set.estimate(at, index.covariance());
}

EstimateCache::KernelCalls& EstimateCache::calls_of(std::uint64_t key) {
  auto* const first = &kernels_[bucket_of<kKernelBits>(key)];
  auto* known = std::find_if(first, first + kProbes, [&](const auto& k) { return !k || k->key == key; });
  if (known == first + kProbes) known = first;  // its calls lie on another line: BatchIntervals starts anew
  if (!*known) *known = std::make_unique<KernelCalls>();
  (*known)->key = key;
  return **known;
}

[[gnu::noinline]] const CachedNeighbors& EstimateCache::search(const ResidualIndex& index,
                                                               const ResidualIndex::Group& group,
                                                               const Features& at, double coordinate,
                                                               BatchIntervals& intervals) {
  const NearestRows nearest = nearest_rows(group.rows, at);
  const CachedNeighbors& found = cached(index, group, nearest.rows);
  intervals.add(coordinate, at, found, group.rows, nearest.next_square);
  return found;
}

const CachedNeighbors& EstimateCache::cached(const ResidualIndex& index, const ResidualIndex::Group& group,
                                             const NeighborRows& rows) {
  constexpr std::uint64_t kMaxRows = 2'003;
  std::uint64_t key = group.fingerprint;
  for (const int row : rows) key = key * kMaxRows + static_cast<std::uint64_t>(row);
  Ways& ways = sets_[bucket_of<kSetBits>(key)];
  const auto fits = [&](const auto& known) {
    return !known || (known->fingerprint == group.fingerprint && known->rows == rows);
  };
  const auto found = std::find_if(ways.begin(), ways.end() - 1, fits);
  if (!*found) *found = std::make_unique<CachedNeighbors>();
  if (!fits(*found)) **found = {index.neighbors(group, rows), rows, group.fingerprint, ++generations_};
  std::rotate(ways.begin(), found, found + 1);
  return *ways[0];
}

}  // namespace tbdsim
