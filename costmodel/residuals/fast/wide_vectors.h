// For functions that go through arrays: compiled a second time for processors with vectors of four doubles,
// which the program finds out when it starts. Results are the same bits, for multiplications and additions
// stay apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define TBDSIM_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define TBDSIM_WIDE_VECTORS
#endif

namespace tbdsim {

// Operators work on each of the numbers; where the processor has no such vectors, on two at a time.
inline constexpr std::size_t kLanes = 4;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
using Integers = std::int64_t __attribute__((vector_size(kLanes * sizeof(std::int64_t))));

[[gnu::always_inline]] inline double least_of(const Doubles& x) {
  return std::min(std::min(x[0], x[1]), std::min(x[2], x[3]));
}

}  // namespace tbdsim
