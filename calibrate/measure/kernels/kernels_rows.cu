// Kernels over rows x cols: bias, its gradient, layer normalisation.
#include "calibrate/measure/kernels/kernel_types.cuh"

namespace tbdsim::measure {
namespace {
constexpr float kEpsilon = 1e-5f;

template <class T>
__global__ void bias_kernel(const T* x, const T* bias, T* y, std::int64_t n, std::int64_t cols) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) from_float(to_float(x[i]) + to_float(bias[i % cols]), y[i]);
}

// Column sums: a block of 32 columns x 8 rows walks down its share of the rows, then adds to the result.
constexpr int kTileCols = 32;
constexpr int kTileRows = 8;

template <class Value>
__device__ void sum_columns(Value value, float* out, std::int64_t rows, std::int64_t cols) {
  __shared__ float partial[kTileRows][kTileCols];
  const std::int64_t col = static_cast<std::int64_t>(blockIdx.x) * kTileCols + threadIdx.x;
  float sum = 0;
  if (col < cols) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * kTileRows;
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * kTileRows + threadIdx.y; row < rows;
         row += stride) {
      sum += value(row, col);
    }
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && col < cols) {
    for (int i = 1; i < kTileRows; ++i) sum += partial[i][threadIdx.x];
    atomicAdd(out + col, sum);
  }
  __syncthreads();  // `partial` is used again by the next call in the same kernel
}

template <class T>
__global__ void bias_backward_kernel(const T* dy, float* sums, std::int64_t rows, std::int64_t cols) {
  sum_columns([=](std::int64_t row, std::int64_t col) { return to_float(dy[row * cols + col]); }, sums, rows,
              cols);
}

// Sum of two values over the block; every thread gets both.
__device__ float2 block_sum(float a, float b) {
  __shared__ float2 warps[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) {
    a += __shfl_xor_sync(0xffffffffu, a, offset);
    b += __shfl_xor_sync(0xffffffffu, b, offset);
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = make_float2(a, b);
  __syncthreads();
  float2 sum = make_float2(0, 0);
  for (int i = 0; i < kThreads / 32; ++i) {
    sum.x += warps[i].x;
    sum.y += warps[i].y;
  }
  __syncthreads();
  return sum;
}

// One block per row.
template <class T>
__global__ void layer_norm_kernel(const T* x, const float* scale, const float* shift, T* y, float* stats,
                                  std::int64_t cols) {
  const std::int64_t row = blockIdx.x;
  const T* in = x + row * cols;
  float sum = 0;
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const float value = to_float(in[i]);
    sum += value;
    squares += value * value;
  }
  const float2 total = block_sum(sum, squares);
  const float mean = total.x / static_cast<float>(cols);
  const float inv_std = rsqrtf(fmaxf(total.y / static_cast<float>(cols) - mean * mean, 0.0f) + kEpsilon);
  for (std::int64_t i = threadIdx.x; i < cols; i += kThreads) {
    from_float((to_float(in[i]) - mean) * inv_std * scale[i] + shift[i], y[row * cols + i]);
  }
  if (threadIdx.x == 0) {
    stats[2 * row] = mean;
    stats[2 * row + 1] = inv_std;
  }
}

// dx = inv_std * (g - mean(g) - xhat * mean(g * xhat)), g = dy * scale.
template <class T>
__global__ void layer_norm_backward_kernel(const T* x, const T* dy, const float* scale, const float* stats,
                                           T* dx, std::int64_t cols) {
  const std::int64_t row = blockIdx.x;
  const float mean = stats[2 * row];
  const float inv_std = stats[2 * row + 1];
  float sum_g = 0;
  float sum_gx = 0;
  for (std::int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const float g = to_float(dy[row * cols + i]) * scale[i];
    sum_g += g;
    sum_gx += g * (to_float(x[row * cols + i]) - mean) * inv_std;
  }
  const float2 total = block_sum(sum_g, sum_gx);
  const float n = static_cast<float>(cols);
  for (std::int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const float g = to_float(dy[row * cols + i]) * scale[i];
    const float xhat = (to_float(x[row * cols + i]) - mean) * inv_std;
    from_float(inv_std * (g - total.x / n - xhat * total.y / n), dx[row * cols + i]);
  }
}

template <class T>
__global__ void layer_norm_weights_kernel(const T* x, const T* dy, const float* stats, float* sums,
                                          std::int64_t rows, std::int64_t cols) {
  const auto gradient = [=](std::int64_t row, std::int64_t col) { return to_float(dy[row * cols + col]); };
  const auto normalised = [=](std::int64_t row, std::int64_t col) {
    return (to_float(x[row * cols + col]) - stats[2 * row]) * stats[2 * row + 1];
  };
  sum_columns([=](std::int64_t row, std::int64_t col) { return gradient(row, col) * normalised(row, col); },
              sums, rows, cols);
  sum_columns(gradient, sums + cols, rows, cols);
}

dim3 column_grid(std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kRowsPerBlock = 256;
  constexpr std::int64_t kMostRowBlocks = 64;
  const std::int64_t down = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  return {static_cast<unsigned>((cols + kTileCols - 1) / kTileCols),
          static_cast<unsigned>(down < kMostRowBlocks ? down : kMostRowBlocks), 1};
}
}  // namespace

cudaError_t launch_bias(cudaStream_t stream, Type type, const void* x, const void* bias, void* y,
                        std::int64_t rows, std::int64_t cols) {
  return with_type(type, [&](auto element) {
    using T = decltype(element);
    bias_kernel<T><<<blocks_for(rows * cols), kThreads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(bias), static_cast<T*>(y), rows * cols, cols);
  });
}

cudaError_t launch_bias_backward(cudaStream_t stream, Type type, const void* dy, float* sums,
                                 std::int64_t rows, std::int64_t cols) {
  const cudaError_t cleared =
      cudaMemsetAsync(sums, 0, static_cast<std::size_t>(cols) * sizeof(float), stream);
  if (cleared != cudaSuccess) return cleared;
  return with_type(type, [&](auto element) {
    using T = decltype(element);
    bias_backward_kernel<T><<<column_grid(rows, cols), dim3(kTileCols, kTileRows), 0, stream>>>(
        static_cast<const T*>(dy), sums, rows, cols);
  });
}

cudaError_t launch_layer_norm(cudaStream_t stream, Type type, const void* x, const float* scale,
                              const float* shift, void* y, float* stats, std::int64_t rows,
                              std::int64_t cols) {
  return with_type(type, [&](auto element) {
    using T = decltype(element);
    layer_norm_kernel<T><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
        static_cast<const T*>(x), scale, shift, static_cast<T*>(y), stats, cols);
  });
}

cudaError_t launch_layer_norm_backward(cudaStream_t stream, Type type, const void* x, const void* dy,
                                       const float* scale, const float* stats, void* dx, std::int64_t rows,
                                       std::int64_t cols) {
  return with_type(type, [&](auto element) {
    using T = decltype(element);
    layer_norm_backward_kernel<T><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(dy), scale, stats, static_cast<T*>(dx), cols);
  });
}

cudaError_t launch_layer_norm_weights(cudaStream_t stream, Type type, const void* x, const void* dy,
                                      const float* stats, float* sums, std::int64_t rows, std::int64_t cols) {
  const cudaError_t cleared =
      cudaMemsetAsync(sums, 0, static_cast<std::size_t>(2 * cols) * sizeof(float), stream);
  if (cleared != cudaSuccess) return cleared;
  return with_type(type, [&](auto element) {
    using T = decltype(element);
    layer_norm_weights_kernel<T><<<column_grid(rows, cols), dim3(kTileCols, kTileRows), 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(dy), stats, sums, rows, cols);
  });
}

}  // namespace tbdsim::measure
