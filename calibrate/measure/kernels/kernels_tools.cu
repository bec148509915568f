// Marks, spin, cache flush and random inputs.
#include "calibrate/measure/kernels/kernel_types.cuh"

// Plain C names, so that the tracer's records can be recognised (spans.h).
extern "C" __global__ void tbd_begin_kernel() {}
extern "C" __global__ void tbd_end_kernel() {}
extern "C" __global__ void tbd_empty_kernel() {}

extern "C" __global__ void tbd_spin_kernel(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

extern "C" __global__ void tbd_flush_kernel(int4* buffer, std::size_t count, int value) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    buffer[i] = make_int4(value, value, value, value);
  }
}

namespace tbdsim::measure {
namespace {
__device__ std::uint64_t mixed(std::uint64_t x) {  // splitmix64 (Steele, Lea, Flood 2014)
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

template <class T>
__global__ void fill_kernel(T* out, std::int64_t n, float deviation, std::uint64_t seed) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    const std::uint64_t random = mixed(seed ^ mixed(static_cast<std::uint64_t>(i)));
    // Box-Muller on two 24-bit uniforms in (0, 1].
    constexpr float kUnit = 1.0f / 16777216.0f;
    const float u = static_cast<float>((random & 0xffffffu) + 1u) * kUnit;
    const float v = static_cast<float>(((random >> 32) & 0xffffffu) + 1u) * kUnit;
    from_float(deviation * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v), out[i]);
  }
}

// These kernels walk in grid strides: a few thousand blocks fill any GPU.
unsigned most(unsigned blocks, unsigned limit) { return blocks < limit ? blocks : limit; }
}  // namespace

cudaError_t launch_empty(cudaStream_t stream) {
  tbd_empty_kernel<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t launch_begin_mark(cudaStream_t stream) {
  tbd_begin_kernel<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t launch_end_mark(cudaStream_t stream) {
  tbd_end_kernel<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t launch_spin(cudaStream_t stream, long long clock_cycles) {
  tbd_spin_kernel<<<1, 1, 0, stream>>>(clock_cycles);
  return cudaGetLastError();
}

cudaError_t launch_flush(cudaStream_t stream, void* buffer, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(int4);
  const unsigned blocks = most(blocks_for(static_cast<std::int64_t>(count)), 4096);
  tbd_flush_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<int4*>(buffer), count, 1);
  return cudaGetLastError();
}

cudaError_t launch_fill(cudaStream_t stream, Type type, void* out, std::int64_t n, float deviation,
                        std::uint64_t seed) {
  const unsigned blocks = most(blocks_for(n), 16384);
  return with_type(type, [&](auto element) {
    using T = decltype(element);
    fill_kernel<T><<<blocks, kThreads, 0, stream>>>(static_cast<T*>(out), n, deviation, seed);
  });
}

}  // namespace tbdsim::measure
