// How the rows of a product's matrices lie in memory, and the rate of products whose rows lie badly.
//
// Tensor cores of Hopper and Blackwell take operands that the tensor memory accelerator brings, which needs
// rows that are multiples of 16 bytes in all three matrices. cuBLAS 13 multiplies other products with kernels
// of Ampere, warp by warp, whose threads copy 4 bytes at a time (cp.async: 4, 8 or 16): two numbers of half
// precision or one of TF32; or, where a row of half precision has an odd number of elements, with kernels of
// Turing, which load and store 2 bytes at a time: `align2` and `align1` in the kernels' names. Such a kernel
// takes a number of clocks for each element that does not depend on how fast the SM multiplies, so that the
// limit is one of operations for each clock and SM, on every GPU that has these kernels. Each element of an
// operand is multiplied by as many others as the tile of the result has on the other side: small products,
// whose tiles are small, have a lower limit.
//
// Source: this project's records of an H100 SXM (calibrate/records/h100_sxm): in half precision 220 to 270
// TFLOP/s where rows are multiples of 4 bytes (30,522 and 33,708 columns), 138 to 150 where those of an
// operand are odd (50,257), 85 to 103 where those of the result are, beside 600 to 750 of others of their
// size; in TF32 115 to 135 where they are multiples of 4 or 8 bytes, beside 300 to 400. Swin's products of 49
// x 49 and 49 x 32 (steps, cutlass_75_wmma_tensorop_f16_s161616gemm_f16_32x32 in their names) take as long as
// the lower limit says within 10 %.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "costmodel/call.h"
#include "costmodel/families/kernel_time.h"

namespace tbdsim {

inline constexpr double kLoadedAtOnce = 16;  // bytes, by a thread

// True if `bytes` is a whole multiple of `whole`, found without the loop of std::fmod.
[[nodiscard]] inline bool is_multiple(double bytes, double whole) {
  const double parts = bytes / whole;
  return static_cast<double>(static_cast<std::int64_t>(parts)) == parts;
}

// True if the rows of both operands begin at multiples of 16 bytes.
[[nodiscard]] inline bool rows_aligned(const GemmCall& call) {
  const auto fits = [&](double row) { return is_multiple(row * call.element_bytes, kLoadedAtOnce); };
  return fits(call.transpose_a ? call.k : call.m) && fits(call.transpose_b ? call.n : call.k);
}

// Bytes, at most 16, that the rows of all three matrices are multiples of; results count as of the operands'
// type. A vector is one row.
[[nodiscard]] inline double alignment_of_all(const GemmCall& call) {
  double bytes = kLoadedAtOnce;
  for (const double row : {call.m, call.transpose_a ? call.k : 1, call.transpose_b ? call.n : call.k}) {
    while (row > 1 && bytes > 1 && !is_multiple(row * call.element_bytes, bytes)) bytes /= 2;
  }
  return bytes;
}

// Rate of narrow loads in square tiles as wide as the smaller side of the result allows over that of large
// products. Products of 96 x 96 results and more reach it; tiles have 32, 64 or 128.
[[nodiscard]] inline double reuse_of_operands(const GemmCall& call) {
  constexpr double kLeast = 32, kMost = 128, kEnough = 96;
  const auto smaller = static_cast<std::uint64_t>(std::clamp(std::min(call.m, call.n), kLeast, kMost));
  return std::min(1.0, static_cast<double>(std::bit_ceil(smaller)) / kEnough);
}

// Operations a second that narrow loads feed in a product of half precision or TF32 on tensor cores; infinity
// where loads of 16 bytes feed them, and before Ampere.
[[nodiscard]] inline double rate_of_narrow_loads(const GemmCall& call, const Hardware& hardware) {
  constexpr double kHalf = 2, kCopied = 4;  // bytes
  constexpr double kAmpere = 80;
  constexpr double kOfCopies = 1'120, kOfLoads = 620, kOfStores = 400;  // operations a clock and SM, of half
  const bool other_kernels =
      !hardware.tensor_cores || hardware.compute_capability < kAmpere || call.element_bytes < kHalf;
  const double bytes = other_kernels ? kLoadedAtOnce : alignment_of_all(call);
  if (bytes >= kLoadedAtOnce) return std::numeric_limits<double>::infinity();
  const auto is_odd = [&](double row) { return row > 1 && !is_multiple(row * call.element_bytes, kCopied); };
  const bool odd_operand =
      is_odd(call.transpose_a ? call.k : call.m) || is_odd(call.transpose_b ? call.n : call.k);
  const double of_stores = is_odd(call.m) ? kOfStores : kOfLoads;
  const double of_loads = odd_operand ? kOfLoads * reuse_of_operands(call) : kOfLoads;
  const double of_half = bytes >= kCopied ? kOfCopies : std::min(of_stores, of_loads);
  return of_half * (kHalf / call.element_bytes) * hardware.sm_count * hardware.clock;
}

}  // namespace tbdsim
