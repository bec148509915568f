// Launchers of the program's own kernels. Read by nvcc in C++17 and by the host compiler in C++20. Each
// returns the launch's status; buffers are device memory, sizes count elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace tbdsim::measure {

enum class Type { f32, f16, bf16 };

// Tools of the timing loop.
cudaError_t launch_empty(cudaStream_t stream);
cudaError_t launch_begin_mark(cudaStream_t stream);
cudaError_t launch_end_mark(cudaStream_t stream);
// Occupies the stream, so that launches queue up.
cudaError_t launch_spin(cudaStream_t stream, long long clock_cycles);
// Writes the whole buffer; `bytes` is a multiple of 16.
cudaError_t launch_flush(cudaStream_t stream, void* buffer, std::size_t bytes);
// Normal random numbers of the given deviation, a function of the seed and the element's number.
cudaError_t launch_fill(cudaStream_t stream, Type type, void* out, std::int64_t n, float deviation,
                        std::uint64_t seed);

// Element-wise.
cudaError_t launch_add(cudaStream_t stream, Type type, const void* a, const void* b, void* c, std::int64_t n);
cudaError_t launch_relu(cudaStream_t stream, Type type, const void* x, void* y, std::int64_t n);
cudaError_t launch_relu_backward(cudaStream_t stream, Type type, const void* y, const void* dy, void* dx,
                                 std::int64_t n);
// mask: one byte per element. An element is kept with probability 0.9, and then divided by it.
cudaError_t launch_dropout(cudaStream_t stream, Type type, const void* x, void* y, unsigned char* mask,
                           std::int64_t n, std::uint64_t seed);
cudaError_t launch_dropout_backward(cudaStream_t stream, Type type, const void* dy, const unsigned char* mask,
                                    void* dx, std::int64_t n);

// Over rows x cols.
cudaError_t launch_bias(cudaStream_t stream, Type type, const void* x, const void* bias, void* y,
                        std::int64_t rows, std::int64_t cols);
// sums[cols] (float) = sum over rows; cleared first.
cudaError_t launch_bias_backward(cudaStream_t stream, Type type, const void* dy, float* sums,
                                 std::int64_t rows, std::int64_t cols);
// y = (x - mean) * inv_std * scale + shift over each row; stats[2 * rows] receives mean and 1 / sqrt(var +
// 1e-5).
cudaError_t launch_layer_norm(cudaStream_t stream, Type type, const void* x, const float* scale,
                              const float* shift, void* y, float* stats, std::int64_t rows,
                              std::int64_t cols);
cudaError_t launch_layer_norm_backward(cudaStream_t stream, Type type, const void* x, const void* dy,
                                       const float* scale, const float* stats, void* dx, std::int64_t rows,
                                       std::int64_t cols);
// sums[cols] = gradient of scale, sums[cols .. 2 cols) = gradient of shift; cleared first.
cudaError_t launch_layer_norm_weights(cudaStream_t stream, Type type, const void* x, const void* dy,
                                      const float* stats, float* sums, std::int64_t rows, std::int64_t cols);

// Optimizers over one flat fp32 tensor.
cudaError_t launch_sgd_momentum(cudaStream_t stream, float* weights, const float* gradients, float* momentum,
                                std::int64_t n);
cudaError_t launch_adam(cudaStream_t stream, float* weights, const float* gradients, float* first,
                        float* second, std::int64_t n);

}  // namespace tbdsim::measure
