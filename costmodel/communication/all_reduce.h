// The time of an all-reduce: S bytes on each of p ranks are summed and each rank gets the sum. Libraries
// choose among several algorithms; the fastest is taken. Formulas: Thakur, Rabenseifner and Gropp,
// "Optimization of Collective Communication Operations in MPICH" (2005), for rings, trees and recursive
// halving and doubling; Sanders, Speck and Traeff (2009) for NCCL's pairs of trees. Errors against NCCL's
// measured curves are in docs/model/communication.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hwspecs/link_spec.h"

namespace tbdsim {

enum class AllReduceAlgorithm { ring, tree, halving_doubling, hierarchical, in_switch };
inline constexpr std::array<std::string_view, 5> kAllReduceAlgorithmNames = {
    "ring", "tree", "halving_doubling", "hierarchical", "in_switch"};

// Ranks joined by equal links. `bandwidth`: bytes a second that each sends to its neighbor in a ring while
// all do.
struct RankGroup {
  std::int64_t ranks = 1;
  BytesPerSecond bandwidth;   // of plain copies; 0 where there is one rank
  BytesPerSecond per_rank{};  // into a switch that reduces; 0: there is none
  CollectiveCost cost;
};

// `inner.ranks` ranks in each of `outer.ranks` groups. `outer.bandwidth` is that of a whole group to the
// next.
struct AllReduceRanks {
  RankGroup inner;
  RankGroup outer;

  [[nodiscard]] std::int64_t count() const { return inner.ranks * outer.ranks; }
};

// Seconds of one algorithm; infinite where it does not apply.
//
//   algorithm         time                                                  applies
//   ring              launch + 2 * (p - 1) * a + 2 * (p - 1) / p * W + R    always, over the narrower group
//   tree              launch + 4 * log2(p) * a + 2 * W + R                  the same
//   halving_doubling  launch + 2 * log2(p) * a + 2 * (p - 1) / p * W + R    one rank a group, p a power of two
//   hierarchical      ring within the groups, then a ring of each rank's    several groups of several ranks
//                     S / inner.ranks between them, all at the same time
//   in_switch         launch + 2 * (inner.ranks - 1) * a                    five ranks and more in a group
//                     + S / (in_switch * per_rank) + R, then a ring
//                     between the groups
//
//   W = S / (efficiency * bandwidth) in seconds, a = step in seconds, R = root * sqrt(S / 1 MiB) in seconds;
//   launch, step, efficiency, root, in_switch: the link's CollectiveCost
//
// Links with two protocols take the faster one: steps a and half of the bandwidth (flags in the data), or
// steps of `simple_step` and all of it.
[[nodiscard]] Seconds all_reduce_time(AllReduceAlgorithm algorithm, const AllReduceRanks& ranks, Bytes bytes);

// Seconds in which the data of a ring cross the narrower links, without launch, steps and the root term.
[[nodiscard]] Seconds transfer_time(const AllReduceRanks& ranks, Bytes bytes);

// The fastest; nothing for one rank.
[[nodiscard]] Seconds all_reduce_time(const AllReduceRanks& ranks, Bytes bytes);
[[nodiscard]] AllReduceAlgorithm fastest_all_reduce(const AllReduceRanks& ranks, Bytes bytes);

}  // namespace tbdsim
