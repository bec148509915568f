#include "costmodel/communication/all_reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tbdsim {
namespace {

constexpr Seconds kNever(std::numeric_limits<double>::infinity());
constexpr std::int64_t kLeastInSwitch = 5;  // NCCL reduces fewer ranks in rings (2.2x logs of H200 and B200)

double rounds(std::int64_t ranks) {  // of a binary tree
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
}

Seconds root_of(const CollectiveCost& cost, Bytes bytes) { return cost.root * std::sqrt(bytes.si() / kMebi); }

Seconds wire(const RankGroup& group, Bytes bytes) {
  return bytes / (group.bandwidth * group.cost.efficiency);
}

// 2 * (p - 1) / p: bytes that each rank of a ring sends, over S.
double ring_share(std::int64_t ranks) { return 2 * (1 - 1 / static_cast<double>(ranks)); }

Seconds ring(const RankGroup& group, Bytes bytes) {
  if (group.ranks == 1) return Seconds(0);
  const Seconds steps = group.cost.step * (2 * static_cast<double>(group.ranks - 1));
  const Seconds transfer = wire(group, bytes) * ring_share(group.ranks);
  return group.cost.launch + steps + transfer + root_of(group.cost, bytes);
}

// The rank group with the narrower links, which limit a flat algorithm, with the ranks of both groups and the
// mean step of a ring through all of them.
RankGroup narrower(const AllReduceRanks& ranks) {
  if (ranks.outer.ranks == 1) return ranks.inner;
  if (ranks.inner.ranks == 1) return ranks.outer;
  const bool outer = ranks.outer.bandwidth * ranks.outer.cost.efficiency <=
                     ranks.inner.bandwidth * ranks.inner.cost.efficiency;
  RankGroup group = outer ? ranks.outer : ranks.inner;
  // One step in each group of a flat ring goes to the next group.
  const auto inner = static_cast<double>(ranks.inner.ranks);
  const Seconds steps_of_group = ranks.inner.cost.step * (inner - 1) + ranks.outer.cost.step;
  group.cost.step = steps_of_group * (1 / inner);
  group.ranks = ranks.count();
  return group;
}

Seconds flat_ring(const AllReduceRanks& ranks, Bytes bytes) { return ring(narrower(ranks), bytes); }

Seconds tree(const AllReduceRanks& ranks, Bytes bytes) {
  const RankGroup group = narrower(ranks);
  const auto inner = static_cast<double>(ranks.inner.ranks);
  const Seconds within = ranks.inner.cost.step * (2 * (inner - 1));
  Seconds between;
  if (ranks.outer.ranks > 1) between = ranks.outer.cost.step * (4 * rounds(ranks.outer.ranks));
  const Seconds transfer = wire(group, bytes) * 2;
  return group.cost.launch + within + between + transfer + root_of(group.cost, bytes);
}

Seconds halving_doubling(const AllReduceRanks& ranks, Bytes bytes) {
  const RankGroup& group = ranks.outer;
  if (ranks.inner.ranks > 1) return kNever;
  if (!std::has_single_bit(static_cast<std::uint64_t>(group.ranks))) return kNever;
  const Seconds steps = group.cost.step * (2 * rounds(group.ranks));
  const Seconds transfer = wire(group, bytes) * ring_share(group.ranks);
  return group.cost.launch + steps + transfer + root_of(group.cost, bytes);
}

Seconds hierarchical(const AllReduceRanks& ranks, Bytes bytes) {
  if (ranks.inner.ranks == 1 || ranks.outer.ranks == 1) return kNever;
  // The parts of all ranks, which are S bytes together, pass between the groups at the same time.
  return ring(ranks.inner, bytes) + ring(ranks.outer, bytes);
}

Seconds in_switch(const AllReduceRanks& ranks, Bytes bytes) {
  const RankGroup& group = ranks.inner;
  if (group.ranks < kLeastInSwitch) return kNever;
  if (group.cost.in_switch <= 0 || group.per_rank.si() <= 0) return kNever;
  const Seconds steps = group.cost.step * (2 * static_cast<double>(group.ranks - 1));
  const Seconds transfer = bytes / (group.per_rank * group.cost.in_switch);
  const Seconds within = group.cost.launch + steps + transfer + root_of(group.cost, bytes);
  return within + ring(ranks.outer, bytes);
}

// NCCL's LL protocol, whose flags take half of the bandwidth; without_flags: Simple, with longer steps.
AllReduceRanks with_flags(AllReduceRanks ranks) {
  for (RankGroup* group : {&ranks.inner, &ranks.outer}) group->bandwidth = group->bandwidth * 0.5;
  return ranks;
}

AllReduceRanks without_flags(AllReduceRanks ranks) {
  for (RankGroup* group : {&ranks.inner, &ranks.outer}) {
    if (group->cost.simple_step > Seconds(0)) group->cost.step = group->cost.simple_step;
  }
  return ranks;
}

Seconds of_one_protocol(AllReduceAlgorithm algorithm, const AllReduceRanks& ranks, Bytes bytes) {
  switch (algorithm) {
    case AllReduceAlgorithm::ring:
      return flat_ring(ranks, bytes);
    case AllReduceAlgorithm::tree:
      return tree(ranks, bytes);
    case AllReduceAlgorithm::halving_doubling:
      return halving_doubling(ranks, bytes);
    case AllReduceAlgorithm::hierarchical:
      return hierarchical(ranks, bytes);
    case AllReduceAlgorithm::in_switch:
      return in_switch(ranks, bytes);
  }
  return kNever;
}

}  // namespace

Seconds all_reduce_time(AllReduceAlgorithm algorithm, const AllReduceRanks& ranks, Bytes bytes) {
  if (ranks.count() == 1) return Seconds(0);
  if (ranks.inner.cost.simple_step <= Seconds(0)) return of_one_protocol(algorithm, ranks, bytes);
  return std::min(of_one_protocol(algorithm, with_flags(ranks), bytes),
                  of_one_protocol(algorithm, without_flags(ranks), bytes));
}

Seconds transfer_time(const AllReduceRanks& ranks, Bytes bytes) {
  if (ranks.count() == 1) return Seconds(0);
  return wire(narrower(ranks), bytes) * ring_share(ranks.count());
}

AllReduceAlgorithm fastest_all_reduce(const AllReduceRanks& ranks, Bytes bytes) {
  AllReduceAlgorithm best = AllReduceAlgorithm::ring;
  for (std::size_t i = 1; i < kAllReduceAlgorithmNames.size(); ++i) {
    const auto algorithm = static_cast<AllReduceAlgorithm>(i);
    if (all_reduce_time(algorithm, ranks, bytes) < all_reduce_time(best, ranks, bytes)) best = algorithm;
  }
  return best;
}

Seconds all_reduce_time(const AllReduceRanks& ranks, Bytes bytes) {
  return all_reduce_time(fastest_all_reduce(ranks, bytes), ranks, bytes);
}

}  // namespace tbdsim
