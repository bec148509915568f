// How the rows of a product's matrices lie in memory, and the rate of products whose rows lie badly.
//
// Tensor cores of Hopper and Blackwell take operands that the tensor memory accelerator brings, which needs
// rows that are multiples of 16 bytes in all three matrices. cuBLAS 13 multiplies other products of half
// precision with kernels of Ampere, warp by warp, whose threads copy 4 bytes at a time (cp.async: 4, 8 or
// 16), or with kernels of Turing, which load 2 bytes at a time, where a row has an odd number of elements:
// `align2` and `align1` in the kernels' names. Such a kernel takes a number of clocks for each element that
// does not depend on how fast the SM multiplies, so that the limit is one of operations for each clock and
// SM, on every GPU that has these kernels.
//
// Source: this project's records of an H100 SXM (calibrate/records/h100_sxm): 214 to 263 TFLOP/s where rows
// are multiples of 4 bytes (33,708 columns; 227 to 272 in a Transformer's step), 75 and 119 where they are
// odd (7,709 columns; 86 to 137 in a Seq2Seq's step), beside 600 to 750 of others of their size.
#pragma once

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

// Operations a second that narrow loads feed in a product of half precision on tensor cores; infinity where
// loads of 16 bytes feed them, and before Ampere.
[[nodiscard]] inline double rate_of_narrow_loads(const GemmCall& call, const Hardware& hardware) {
  constexpr double kHalf = 2, kCopied = 4;  // bytes
  constexpr double kAmpere = 80;
  constexpr double kOfCopies = 1'200, kOfLoads = 500;  // operations a clock and SM
  const bool other_kernels = !hardware.tensor_cores || hardware.compute_capability < kAmpere;
  const double bytes = other_kernels || call.element_bytes != kHalf ? kLoadedAtOnce : alignment_of_all(call);
  if (bytes >= kLoadedAtOnce) return std::numeric_limits<double>::infinity();
  return (bytes >= kCopied ? kOfCopies : kOfLoads) * hardware.sm_count * hardware.clock;
}

}  // namespace tbdsim
