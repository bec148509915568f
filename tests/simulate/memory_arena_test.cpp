#include <gtest/gtest.h>

#include "simulate/memory/caching_allocator.h"

namespace tbdsim {
namespace {

constexpr std::uint64_t kKiB = 1U << 10U, kMiB = 1U << 20U;

// PyTorch: 1000 B are rounded to 1024 B and cut from a small segment of 2 MiB.
TEST(CachingArena, SmallRequestsShareASegment) {
  CachingAllocator arena(AllocatorPolicy::caching);
  const std::uint64_t first = arena.take(1000, 0);
  EXPECT_EQ(arena.take(1000, 1), first + 1024);
  EXPECT_EQ(arena.use().requested.si(), 2000);
  EXPECT_EQ(arena.use().allocated.si(), 2048);
  EXPECT_EQ(arena.use().reserved.si(), 2.0 * kMiB);
}

// 5 MiB: a segment of 20 MiB; 30 MiB + 1 B: one of its own, 32 MiB, whose rest of 1 MiB or so stays uncut.
TEST(CachingArena, SegmentsOfLargerRequests) {
  CachingAllocator arena(AllocatorPolicy::caching);
  (void)arena.take(5 * kMiB, 0);
  EXPECT_EQ(arena.use().reserved.si(), 20.0 * kMiB);
  (void)arena.take(31 * kMiB + 1, 0);
  EXPECT_EQ(arena.use().reserved.si(), 52.0 * kMiB);
  EXPECT_EQ(arena.use().allocated.si(), 37.0 * kMiB);
}

TEST(CachingArena, FreeNeighboursJoin) {
  CachingAllocator arena(AllocatorPolicy::caching);
  const std::uint64_t a = arena.take(8 * kMiB, 0);
  const std::uint64_t b = arena.take(8 * kMiB, 1);
  EXPECT_EQ(arena.use().reserved.si(), 20.0 * kMiB);
  arena.give_back(a);
  arena.give_back(b);
  EXPECT_EQ(arena.take(18 * kMiB, 2), a);  // 8 + 8 + 4 MiB again
  EXPECT_EQ(arena.use().reserved.si(), 20.0 * kMiB);
}

// Free blocks between used ones are of no use to what is larger.
TEST(CachingArena, Fragments) {
  CachingAllocator arena(AllocatorPolicy::caching);
  const std::uint64_t a = arena.take(8 * kMiB, 0);
  (void)arena.take(8 * kMiB, 1);
  arena.give_back(a);
  (void)arena.take(9 * kMiB, 2);
  EXPECT_EQ(arena.use().reserved.si(), 40.0 * kMiB);
  EXPECT_EQ(arena.use().allocated.si(), 17.0 * kMiB);
}

// PyTorch 1.0: 1.1 MiB become 1.125 MiB, a segment of that size; what is small comes from segments of 1 MiB.
TEST(ExactCachingArena, SegmentsAreAsLargeAsAskedFor) {
  CachingAllocator arena(AllocatorPolicy::caching_exact);
  (void)arena.take(kMiB + kMiB / 10, 0);
  EXPECT_EQ(arena.allocated(), kMiB + kMiB / 8);
  EXPECT_EQ(arena.reserved(), kMiB + kMiB / 8);
  (void)arena.take(1000, 1);
  EXPECT_EQ(arena.allocated(), kMiB + kMiB / 8 + kKiB);
  EXPECT_EQ(arena.reserved(), 2 * kMiB + kMiB / 8);
}

// A rest of more than 1 MiB is cut off and serves the next.
TEST(ExactCachingArena, LargeRestsAreCutOff) {
  CachingAllocator arena(AllocatorPolicy::caching_exact);
  arena.give_back(arena.take(10 * kMiB, 0));
  (void)arena.take(6 * kMiB, 1);
  (void)arena.take(4 * kMiB, 2);
  EXPECT_EQ(arena.reserved(), 10 * kMiB);
  arena.give_back(arena.take(8 * kMiB, 3));
  (void)arena.take(7 * kMiB, 4);
  EXPECT_EQ(arena.allocated(), (10 + 8) * kMiB);
}

// A card of 30 MiB: 20 of the first two segments go back for the third, those in use stay.
TEST(ExactCachingArena, AFullCardTakesFreeSegmentsBack) {
  CachingAllocator arena(AllocatorPolicy::caching_exact, 30 * kMiB);
  (void)arena.take(5 * kMiB, 0);
  arena.give_back(arena.take(20 * kMiB, 1));
  (void)arena.take(24 * kMiB, 2);
  EXPECT_EQ(arena.reserved(), 29 * kMiB);
  EXPECT_EQ(arena.use().reserved.si(), 29.0 * kMiB);
}

// Of 300 MiB free, 200 MiB are asked for: TensorFlow cuts where 128 MiB would be wasted, not at 100 MiB.
TEST(BfcArena, CutsTwiceAsLargeOrMuchLarger) {
  CachingAllocator arena(AllocatorPolicy::bfc);
  arena.give_back(arena.take(512 * kMiB, 0));
  const std::uint64_t a = arena.take(400 * kMiB, 0);
  EXPECT_EQ(arena.allocated(), 512 * kMiB);
  arena.give_back(a);
  (void)arena.take(384 * kMiB, 0);
  EXPECT_EQ(arena.allocated(), 384 * kMiB);
  EXPECT_EQ(arena.use().reserved.si(), 512.0 * kMiB);
}

// Regions of 1, 2 and 4 MiB; for 9 MiB one of 16, after which the next is of 16, too.
TEST(BfcArena, RegionsDouble) {
  CachingAllocator arena(AllocatorPolicy::bfc);
  for (const std::uint64_t reserved : {1U, 3U, 3U, 7U}) {
    (void)arena.take(kMiB, 0);
    EXPECT_EQ(arena.use().reserved.si(), static_cast<double>(reserved * kMiB));
  }
  for (const std::uint64_t reserved : {23U, 39U}) {
    (void)arena.take(9 * kMiB, 0);
    EXPECT_EQ(arena.use().reserved.si(), static_cast<double>(reserved * kMiB));
  }
}

TEST(BfcArena, Rounds) {
  CachingAllocator arena(AllocatorPolicy::bfc);
  (void)arena.take(1, 0);
  EXPECT_EQ(arena.allocated(), 256u);
}

TEST(ExactPool, OnlyItsOwnSizeIsTakenAgain) {
  CachingAllocator arena(AllocatorPolicy::none);
  arena.give_back(arena.take(10 * kKiB, 0));
  (void)arena.take(9 * kKiB, 0);
  EXPECT_EQ(arena.use().reserved.si(), 19.0 * kKiB);
  (void)arena.take(10 * kKiB, 0);
  EXPECT_EQ(arena.use().reserved.si(), 19.0 * kKiB);
}

}  // namespace
}  // namespace tbdsim
