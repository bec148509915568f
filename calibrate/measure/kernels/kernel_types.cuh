// Element types of the own kernels and 16-byte accesses. C++17, no intrinsics newer than sm_52: bfloat16 is
// converted by hand because cuda_bf16.h guards its functions by architecture.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

#include "calibrate/measure/kernels/kernels.h"

namespace tbdsim::measure {

struct Bf16 {
  std::uint16_t bits;
};

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline float to_float(Bf16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

__device__ inline void from_float(float value, float& out) { out = value; }
__device__ inline void from_float(float value, __half& out) { out = __float2half(value); }
__device__ inline void from_float(float value, Bf16& out) {
  const unsigned bits = __float_as_uint(value);
  out.bits =
      static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);  // to nearest, ties to even
}

// Elements that are read or written by one access of 16 bytes.
template <class T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T value[kSize];
};

inline constexpr int kThreads = 256;

// Enough blocks for all elements, at most what keeps the launch valid everywhere.
inline unsigned blocks_for(std::int64_t items) {
  constexpr std::int64_t kMostBlocks = 1 << 30;
  const std::int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : blocks);
}

// Calls work(T{}) with the element type.
template <class Work>
cudaError_t with_type(Type type, Work work) {
  switch (type) {
    case Type::f16:
      work(__half{});
      break;
    case Type::bf16:
      work(Bf16{});
      break;
    default:
      work(float{});
      break;
  }
  return cudaGetLastError();
}

}  // namespace tbdsim::measure
