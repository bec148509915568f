// How a framework allocates device memory: the `allocator` part of a framework file.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hwspecs/base/quantity.h"

namespace tbdsim {

class SpecNode;

// How an allocator cuts device memory into blocks (caching_allocator.h has the rules): a pool of exact sizes,
// PyTorch's caching allocator, that of PyTorch up to 1.0, TensorFlow's best fit with coalescing.
enum class AllocatorPolicy { none, caching, caching_exact, bfc };
inline constexpr std::array<std::string_view, 4> kAllocatorPolicyNames = {"none", "caching", "caching_exact",
                                                                          "bfc"};

// How a framework allocates memory for tensors. The comment at each member names its key in the file.
struct Allocator {
  AllocatorPolicy policy = AllocatorPolicy::none;  // `arena`
  bool static_plan = false;  // `planned`: blocks are shared by a plan made before the run (static_plan.h)
  bool autotunes = false;    // `tries_algorithms`: the first iteration times every algorithm of a convolution
  Bytes block;               // `block`: sizes are multiples of this; 0: any size
  Bytes large_block;         // `large_block`: sizes above this are multiples of this; 0: of `block`
  // `scratch_as_fits`: a convolution takes the fastest algorithm whose scratch memory fits what is left.
  bool scratch_as_fits = false;
  // `cublas_workspaces`: handles of cuBLAS whose workspaces come from the allocator and stay.
  std::int64_t cublas_workspaces = 0;
  double left_free = 0;  // `left_free`: share of the memory free at the start that its pool never takes

  [[nodiscard]] Bytes rounded_up(Bytes size) const;
};

// `allocator` with the values of the keys that `node` has. Throws SpecError.
[[nodiscard]] Allocator override_allocator(const SpecNode& node, Allocator allocator);

}  // namespace tbdsim
