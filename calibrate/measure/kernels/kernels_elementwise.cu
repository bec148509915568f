// Element-wise kernels: 16 bytes per thread and access, the rest element by element.
#include "calibrate/measure/kernels/kernel_types.cuh"

namespace tbdsim::measure {
namespace {
constexpr float kKeep = 0.9f;

// out[i] = f(a[i], b[i]); a unary function ignores b, and then b is not read.
template <class T, bool kBinary, class Function>
__global__ void map_kernel(const T* a, const T* b, T* out, std::int64_t n, Function f) {
  using Pack16 = Pack<T>;
  const std::int64_t packs = n / Pack16::kSize;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < packs) {
    const Pack16 x = reinterpret_cast<const Pack16*>(a)[i];
    Pack16 y = x;
    if (kBinary) y = reinterpret_cast<const Pack16*>(b)[i];
    Pack16 z;
#pragma unroll
    for (int j = 0; j < Pack16::kSize; ++j)
      from_float(f(to_float(x.value[j]), to_float(y.value[j])), z.value[j]);
    reinterpret_cast<Pack16*>(out)[i] = z;
  } else if (packs * Pack16::kSize + (i - packs) < n) {
    const std::int64_t at = packs * Pack16::kSize + (i - packs);
    from_float(f(to_float(a[at]), kBinary ? to_float(b[at]) : 0.0f), out[at]);
  }
}

template <bool kBinary, class Function>
cudaError_t map(cudaStream_t stream, Type type, const void* a, const void* b, void* out, std::int64_t n,
                Function f) {
  return with_type(type, [&](auto element) {
    using T = decltype(element);
    const std::int64_t threads = n / Pack<T>::kSize + n % Pack<T>::kSize;
    map_kernel<T, kBinary><<<blocks_for(threads), kThreads, 0, stream>>>(
        static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out), n, f);
  });
}

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Relu {
  __device__ float operator()(float x, float) const { return x > 0 ? x : 0.0f; }
};
struct ReluBackward {
  __device__ float operator()(float y, float dy) const { return y > 0 ? dy : 0.0f; }
};

// A cheap integer hash is enough: the time of dropout is what matters, not its randomness.
__device__ bool kept(std::int64_t i, std::uint64_t seed) {
  std::uint32_t h = static_cast<std::uint32_t>(i) ^ static_cast<std::uint32_t>(seed);
  h = (h ^ (h >> 16)) * 0x7feb352du;
  h = (h ^ (h >> 15)) * 0x846ca68bu;
  return static_cast<float>((h ^ (h >> 16)) >> 8) < kKeep * 16777216.0f;
}

// The mask of one pack of elements, written and read as one access.
template <class T>
struct alignas(16 / sizeof(T)) Mask {
  unsigned char value[16 / sizeof(T)];
};

template <class T, bool kForward>
__global__ void dropout_kernel(const T* in, T* out, unsigned char* mask, std::int64_t n, std::uint64_t seed) {
  constexpr int kSize = Pack<T>::kSize;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i * kSize >= n) return;
  if ((i + 1) * kSize <= n) {
    Pack<T> x = reinterpret_cast<const Pack<T>*>(in)[i];
    Mask<T> m;
    if (!kForward) m = reinterpret_cast<const Mask<T>*>(mask)[i];
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      if (kForward) m.value[j] = kept(i * kSize + j, seed) ? 1 : 0;
      from_float(m.value[j] ? to_float(x.value[j]) / kKeep : 0.0f, x.value[j]);
    }
    if (kForward) reinterpret_cast<Mask<T>*>(mask)[i] = m;
    reinterpret_cast<Pack<T>*>(out)[i] = x;
    return;
  }
  for (std::int64_t at = i * kSize; at < n; ++at) {
    if (kForward) mask[at] = kept(at, seed) ? 1 : 0;
    from_float(mask[at] ? to_float(in[at]) / kKeep : 0.0f, out[at]);
  }
}

template <bool kForward>
cudaError_t dropout(cudaStream_t stream, Type type, const void* in, void* out, unsigned char* mask,
                    std::int64_t n, std::uint64_t seed) {
  return with_type(type, [&](auto element) {
    using T = decltype(element);
    const std::int64_t threads = (n + Pack<T>::kSize - 1) / Pack<T>::kSize;
    dropout_kernel<T, kForward><<<blocks_for(threads), kThreads, 0, stream>>>(
        static_cast<const T*>(in), static_cast<T*>(out), mask, n, seed);
  });
}

__global__ void sgd_momentum_kernel(float* w, const float* g, float* v, std::int64_t n) {
  constexpr float kRate = 1e-6f, kMomentum = 0.9f, kDecay = 1e-4f;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float velocity = kMomentum * v[i] + g[i] + kDecay * w[i];
  v[i] = velocity;
  w[i] -= kRate * velocity;
}

__global__ void adam_kernel(float* w, const float* g, float* m, float* s, std::int64_t n) {
  constexpr float kRate = 1e-6f, kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float first = kBeta1 * m[i] + (1 - kBeta1) * g[i];
  const float second = kBeta2 * s[i] + (1 - kBeta2) * g[i] * g[i];
  m[i] = first;
  s[i] = second;
  w[i] -= kRate * first / (sqrtf(second) + kEpsilon);
}
}  // namespace

cudaError_t launch_add(cudaStream_t stream, Type type, const void* a, const void* b, void* c,
                       std::int64_t n) {
  return map<true>(stream, type, a, b, c, n, Add{});
}

cudaError_t launch_relu(cudaStream_t stream, Type type, const void* x, void* y, std::int64_t n) {
  return map<false>(stream, type, x, nullptr, y, n, Relu{});
}

cudaError_t launch_relu_backward(cudaStream_t stream, Type type, const void* y, const void* dy, void* dx,
                                 std::int64_t n) {
  return map<true>(stream, type, y, dy, dx, n, ReluBackward{});
}

cudaError_t launch_dropout(cudaStream_t stream, Type type, const void* x, void* y, unsigned char* mask,
                           std::int64_t n, std::uint64_t seed) {
  return dropout<true>(stream, type, x, y, mask, n, seed);
}

cudaError_t launch_dropout_backward(cudaStream_t stream, Type type, const void* dy, const unsigned char* mask,
                                    void* dx, std::int64_t n) {
  // The backward kernel only reads the mask.
  return dropout<false>(stream, type, dy, dx, const_cast<unsigned char*>(mask), n, 0);
}

cudaError_t launch_sgd_momentum(cudaStream_t stream, float* weights, const float* gradients, float* momentum,
                                std::int64_t n) {
  sgd_momentum_kernel<<<blocks_for(n), kThreads, 0, stream>>>(weights, gradients, momentum, n);
  return cudaGetLastError();
}

cudaError_t launch_adam(cudaStream_t stream, float* weights, const float* gradients, float* first,
                        float* second, std::int64_t n) {
  adam_kernel<<<blocks_for(n), kThreads, 0, stream>>>(weights, gradients, first, second, n);
  return cudaGetLastError();
}

}  // namespace tbdsim::measure
