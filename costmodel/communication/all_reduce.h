// The sum of S bytes over p ranks, left with each. A library takes the fastest of several ways; so does this.
// Formulas: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH"
// (2005), for rings, trees and recursive halving and doubling; Sanders, Speck and Traeff (2009) for NCCL's
// pairs of trees. Errors against NCCL's measured curves are in the README.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hwspecs/link_spec.h"

namespace tbdsim {

enum class AllReduceAlgorithm { ring, tree, halving_doubling, hierarchical, in_switch };
inline constexpr std::array<std::string_view, 5> kAllReduceAlgorithmNames = {
    "ring", "tree", "halving_doubling", "hierarchical", "in_switch"};

// Ranks that reach one another at a rate: what each sends to its neighbour in a ring while all do.
struct RankGroup {
  std::int64_t ranks = 1;
  BytesPerSecond bandwidth;   // of a plain copy; 0 where there is one rank
  BytesPerSecond per_rank{};  // into a switch that reduces; 0: none does
  CollectiveCost cost;
};

// `inner` ranks in each of `outer.ranks` groups. `outer.bandwidth` is what a whole group exchanges with the
// next.
struct AllReduceRanks {
  RankGroup inner;
  RankGroup outer;

  [[nodiscard]] std::int64_t count() const { return inner.ranks * outer.ranks; }
};

// Seconds of one algorithm; with W = S / (efficiency x bandwidth), a = step, R = root sqrt(S / 1 MiB):
//
//   ring              launch + 2 (p - 1) a + 2 (p - 1) / p W + R     over the narrower of both groups
//   tree              launch + 4 log2(p) a + 2 W + R                 the same
//   halving_doubling  launch + 2 log2(p) a + 2 (p - 1) / p W + R     in a network of its own (one rank a
//   group) hierarchical      ring within, of S / inner ranks between at the same time, ring within in_switch
//   launch + 2 (inner - 1) a + S / (in_switch x per_rank) + R     within, more than four ranks
//
// Where a link tells two protocols apart the faster counts: steps a and half of the bandwidth, or steps of
// `simple_step` and all of it.
//
// Infinite where the algorithm does not apply.
[[nodiscard]] Seconds all_reduce_time(AllReduceAlgorithm algorithm, const AllReduceRanks& ranks, Bytes bytes);

// The fastest; nothing for one rank.
[[nodiscard]] Seconds all_reduce_time(const AllReduceRanks& ranks, Bytes bytes);
[[nodiscard]] AllReduceAlgorithm fastest_all_reduce(const AllReduceRanks& ranks, Bytes bytes);

}  // namespace tbdsim
