#include "simulate/framework/allocator_spec.h"

#include <cmath>

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

Bytes multiple_of(Bytes unit, Bytes size) { return unit * std::ceil(size / unit); }

}  // namespace

Bytes Allocator::rounded_up(Bytes size) const {
  if (large_block > Bytes() && size > large_block) return multiple_of(large_block, size);
  return block > Bytes() ? multiple_of(block, size) : size;
}

Allocator override_allocator(const SpecNode& node, Allocator allocator) {
  node.map([&](SpecMap& m) {
    if (const auto arena = m.find("arena"))
      allocator.policy = static_cast<AllocatorPolicy>(arena->one_of(kAllocatorPolicyNames));
    if (const auto planned = m.find("planned")) allocator.static_plan = planned->flag();
    if (const auto tries = m.find("tries_algorithms")) allocator.autotunes = tries->flag();
    if (const auto block = m.find("block")) allocator.block = block->quantity<Bytes>();
    if (const auto block = m.find("large_block")) allocator.large_block = block->quantity<Bytes>();
    if (const auto fits = m.find("scratch_as_fits")) allocator.scratch_as_fits = fits->flag();
    if (const auto handles = m.find("cublas_workspaces")) allocator.cublas_workspaces = handles->count(0, 64);
    if (const auto share = m.find("left_free")) allocator.left_free = share->number(0, 1);
  });
  return allocator;
}

}  // namespace tbdsim
