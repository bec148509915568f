#include "simulate/memory/caching_allocator.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

constexpr std::uint64_t kKiB = 1U << 10U, kMiB = 1U << 20U;

// PyTorch: 1000 B are rounded to 1024 B and cut from a small segment of 2 MiB.
TEST(CachingAllocator, SmallRequestsShareASegment) {
  CachingAllocator allocator(AllocatorPolicy::caching);
  const std::uint64_t first = allocator.allocate(1000, 0);
  EXPECT_EQ(allocator.allocate(1000, 1), first + 1024);
  EXPECT_EQ(allocator.use().requested.si(), 2000);
  EXPECT_EQ(allocator.use().allocated.si(), 2048);
  EXPECT_EQ(allocator.use().reserved.si(), 2.0 * kMiB);
}

// 5 MiB: a segment of 20 MiB; 30 MiB + 1 B: one of its own, 32 MiB, whose rest of 1 MiB or so stays uncut.
TEST(CachingAllocator, SegmentsOfLargerRequests) {
  CachingAllocator allocator(AllocatorPolicy::caching);
  (void)allocator.allocate(5 * kMiB, 0);
  EXPECT_EQ(allocator.use().reserved.si(), 20.0 * kMiB);
  (void)allocator.allocate(31 * kMiB + 1, 0);
  EXPECT_EQ(allocator.use().reserved.si(), 52.0 * kMiB);
  EXPECT_EQ(allocator.use().allocated.si(), 37.0 * kMiB);
}

TEST(CachingAllocator, FreeNeighboursJoin) {
  CachingAllocator allocator(AllocatorPolicy::caching);
  const std::uint64_t a = allocator.allocate(8 * kMiB, 0);
  const std::uint64_t b = allocator.allocate(8 * kMiB, 1);
  EXPECT_EQ(allocator.use().reserved.si(), 20.0 * kMiB);
  allocator.free(a);
  allocator.free(b);
  EXPECT_EQ(allocator.allocate(18 * kMiB, 2), a);  // 8 + 8 + 4 MiB again
  EXPECT_EQ(allocator.use().reserved.si(), 20.0 * kMiB);
}

// Free blocks between used ones are of no use to what is larger.
TEST(CachingAllocator, Fragments) {
  CachingAllocator allocator(AllocatorPolicy::caching);
  const std::uint64_t a = allocator.allocate(8 * kMiB, 0);
  (void)allocator.allocate(8 * kMiB, 1);
  allocator.free(a);
  (void)allocator.allocate(9 * kMiB, 2);
  EXPECT_EQ(allocator.use().reserved.si(), 40.0 * kMiB);
  EXPECT_EQ(allocator.use().allocated.si(), 17.0 * kMiB);
}

// PyTorch 1.0: 1.1 MiB become 1.125 MiB, a segment of that size; what is small comes from segments of 1 MiB.
TEST(ExactCachingAllocator, SegmentsAreAsLargeAsAskedFor) {
  CachingAllocator allocator(AllocatorPolicy::caching_exact);
  (void)allocator.allocate(kMiB + kMiB / 10, 0);
  EXPECT_EQ(allocator.allocated(), kMiB + kMiB / 8);
  EXPECT_EQ(allocator.reserved(), kMiB + kMiB / 8);
  (void)allocator.allocate(1000, 1);
  EXPECT_EQ(allocator.allocated(), kMiB + kMiB / 8 + kKiB);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB + kMiB / 8);
}

// A rest of more than 1 MiB is cut off and serves the next.
TEST(ExactCachingAllocator, LargeRestsAreCutOff) {
  CachingAllocator allocator(AllocatorPolicy::caching_exact);
  allocator.free(allocator.allocate(10 * kMiB, 0));
  (void)allocator.allocate(6 * kMiB, 1);
  (void)allocator.allocate(4 * kMiB, 2);
  EXPECT_EQ(allocator.reserved(), 10 * kMiB);
  allocator.free(allocator.allocate(8 * kMiB, 3));
  (void)allocator.allocate(7 * kMiB, 4);
  EXPECT_EQ(allocator.allocated(), (10 + 8) * kMiB);
}

// A card of 30 MiB: 20 of the first two segments go back for the third, those in use stay.
TEST(ExactCachingAllocator, AFullCardTakesFreeSegmentsBack) {
  CachingAllocator allocator(AllocatorPolicy::caching_exact, 30 * kMiB);
  (void)allocator.allocate(5 * kMiB, 0);
  allocator.free(allocator.allocate(20 * kMiB, 1));
  (void)allocator.allocate(24 * kMiB, 2);
  EXPECT_EQ(allocator.reserved(), 29 * kMiB);
  EXPECT_EQ(allocator.use().reserved.si(), 29.0 * kMiB);
}

// 200 MiB are requested where 300 MiB are free: TensorFlow cuts where 128 MiB would be wasted, not at 100
// MiB.
TEST(BfcAllocator, CutsTwiceAsLargeOrMuchLarger) {
  CachingAllocator allocator(AllocatorPolicy::bfc);
  allocator.free(allocator.allocate(512 * kMiB, 0));
  const std::uint64_t a = allocator.allocate(400 * kMiB, 0);
  EXPECT_EQ(allocator.allocated(), 512 * kMiB);
  allocator.free(a);
  (void)allocator.allocate(384 * kMiB, 0);
  EXPECT_EQ(allocator.allocated(), 384 * kMiB);
  EXPECT_EQ(allocator.use().reserved.si(), 512.0 * kMiB);
}

// Regions of 1, 2 and 4 MiB; for 9 MiB one of 16, after which the next is of 16, too.
TEST(BfcAllocator, RegionsDouble) {
  CachingAllocator allocator(AllocatorPolicy::bfc);
  for (const std::uint64_t reserved : {1U, 3U, 3U, 7U}) {
    (void)allocator.allocate(kMiB, 0);
    EXPECT_EQ(allocator.use().reserved.si(), static_cast<double>(reserved * kMiB));
  }
  for (const std::uint64_t reserved : {23U, 39U}) {
    (void)allocator.allocate(9 * kMiB, 0);
    EXPECT_EQ(allocator.use().reserved.si(), static_cast<double>(reserved * kMiB));
  }
}

TEST(BfcAllocator, Rounds) {
  CachingAllocator allocator(AllocatorPolicy::bfc);
  (void)allocator.allocate(1, 0);
  EXPECT_EQ(allocator.allocated(), 256u);
}

TEST(ExactPool, OnlyItsOwnSizeIsTakenAgain) {
  CachingAllocator allocator(AllocatorPolicy::none);
  allocator.free(allocator.allocate(10 * kKiB, 0));
  (void)allocator.allocate(9 * kKiB, 0);
  EXPECT_EQ(allocator.use().reserved.si(), 19.0 * kKiB);
  (void)allocator.allocate(10 * kKiB, 0);
  EXPECT_EQ(allocator.use().reserved.si(), 19.0 * kKiB);
}

}  // namespace
}  // namespace tbdsim
