// One GPU kernel of a training iteration: what it computes and moves, not how long that takes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "graphs/size.h"
#include "hwspecs/base/math_type.h"

namespace tbdsim {

// The computation of a layer that a kernel is part of: forward, gradient of the input, gradient of the
// weights, optimizer update.
enum class Phase { forward, backward_data, backward_weights, update };
inline constexpr std::array<std::string_view, 4> kPhaseNames = {"forward", "backward_data",
                                                                "backward_weights", "update"};

// Kinds of kernels for which the cost model has formulas.
enum class KernelKind {
  convolution,
  gemm,
  recurrent,  // a whole recurrent layer in one library call
  batch_norm,
  layer_norm,
  elementwise,
  pooling,
  softmax,
  reduction,
  transpose,
  gather,    // rows of a table, and sums into them
  transfer,  // between host and device
  update
};
inline constexpr std::size_t kKernelKindCount = 13;
inline constexpr std::array<std::string_view, kKernelKindCount> kKernelKindNames = {
    "convolution", "gemm",      "recurrent", "batch_norm", "layer_norm", "elementwise", "pooling",
    "softmax",     "reduction", "transpose", "gather",     "transfer",   "update"};

[[nodiscard]] constexpr std::size_t index_of(KernelKind kind) { return static_cast<std::size_t>(kind); }
[[nodiscard]] constexpr std::string_view name_of(KernelKind kind) { return kKernelKindNames[index_of(kind)]; }
[[nodiscard]] constexpr std::string_view name_of(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}

// A convolution, with the sizes of its forward pass in every phase. Channels and filters are those of all
// groups together; each group of filters reads its own group of channels.
struct ConvShape {
  Size images;
  std::int64_t channels = 0, height = 0, width = 0;         // input
  std::int64_t filters = 0, out_height = 0, out_width = 0;  // output
  std::int64_t kernel_height = 0, kernel_width = 0;
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t pad_height = 0, pad_width = 0;  // before the first row and column
  std::int64_t groups = 1;
  std::int64_t dilation_height = 1, dilation_width = 1;  // distance between the filter's rows, columns
  // True for a transposed convolution: the sizes are those of the convolution whose data pass is this one's
  // forward pass, and whose forward pass is this one's data pass.
  bool transposed = false;
  // Kernels of groups differ by both; those of one group by copies that pad channels of NHWC images.
  bool channels_last = false;     // images are NHWC
  bool framework_kernel = false;  // the framework's own kernel, not its library's; of groups alone

  friend auto operator<=>(const ConvShape&, const ConvShape&) = default;
};

// C[m x n] += A[m x k] * B[k x n], column-major as in cuBLAS, `batch` times.
struct GemmShape {
  Size m, n, k;
  Size batch{1, 0};
  bool transpose_a = false;
  bool transpose_b = false;
  // True for the products of a mixture's experts, which one call computes: `batch` experts, sizes those of
  // the mean expert.
  bool grouped = false;

  friend auto operator<=>(const GemmShape&, const GemmShape&) = default;
};

// Batch normalisation.
struct ImageShape {
  Size images;
  std::int64_t channels = 0, height = 0, width = 0;

  friend auto operator<=>(const ImageShape&, const ImageShape&) = default;
};

// Pooling: the input and its window.
struct PoolShape {
  ImageShape input;
  std::int64_t kernel_height = 0, kernel_width = 0;
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t pad_height = 0, pad_width = 0;

  friend auto operator<=>(const PoolShape&, const PoolShape&) = default;
};

// Softmax and layer normalisation over the columns; a bias for each column; rows of a table.
struct MatrixShape {
  Size rows;
  std::int64_t columns = 0;

  friend auto operator<=>(const MatrixShape&, const MatrixShape&) = default;
};

// Everything element-wise.
struct VectorShape {
  Size elements;

  friend auto operator<=>(const VectorShape&, const VectorShape&) = default;
};

// One recurrent layer in one direction over all its steps.
struct RecurrentShape {
  Size batch;
  std::int64_t steps = 0, inputs = 0, hidden = 0;
  std::int64_t gates = 0;  // 4: LSTM, 3: GRU
  // False for a layer that shares its call with other layers or the other direction, and for one of packed
  // sequences.
  bool alone = true;

  friend auto operator<=>(const RecurrentShape&, const RecurrentShape&) = default;
};

// The library whose kernel computes attention without keeping scores: FlashAttention 2 or 3, cuDNN,
// PyTorch's memory-efficient attention (CUTLASS, as in xFormers), the only one that computes in fp32, or the
// one that PyTorch takes on the GPU at hand (costmodel/model_of_kernel.h, attention_on).
enum class AttentionKernel { flash2, flash3, cudnn, memory_efficient, by_gpu };
inline constexpr std::array<std::string_view, 5> kAttentionKernelNames = {"flash2", "flash3", "cudnn",
                                                                          "memory_efficient", "by_gpu"};

// Attention in one kernel, which keeps no scores: softmax(Q K') V of every head, or all gradients of it.
struct AttentionShape {
  Size heads;  // of all samples; of queries
  Size queries, keys;
  std::int64_t features = 0, values = 0;  // of a key, of a value
  bool causal = false;                    // scores of later keys are not computed
  std::int64_t window = 0;                // keys up to its own that a query sees at most; 0: no limit
  std::int64_t queries_per_key = 1;       // heads of queries that share a head of keys and values
  bool deterministic = false;             // gradients are added up in a fixed order
  bool drops = false;                     // probabilities are dropped out
  AttentionKernel kernel = AttentionKernel::flash2;

  friend auto operator<=>(const AttentionShape&, const AttentionShape&) = default;
};

// How threads of a kernel that moves bytes reach its numbers.
//   vectors   several neighbors at a time
//   elements  one at a time: they are converted between types, or lie apart (slices, repetitions), or each result
//             is made of a window
//   across    one at a time, and neighbors of one tensor are far apart in another
//   columns   sums over the rows of a matrix: many blocks share a column, of whose parts one then makes the sum
//   pixels    of norms of NHWC images: several channels of a pixel at a time
enum class Access : std::uint8_t { vectors, elements, across, columns, pixels };

using KernelShape = std::variant<VectorShape, MatrixShape, ImageShape, PoolShape, ConvShape, GemmShape,
                                 RecurrentShape, AttentionShape>;

// The fields that every prediction reads of every kernel come first, so that they share a cache line.
struct Kernel {
  KernelKind kind = KernelKind::elementwise;
  Phase phase = Phase::forward;
  std::string_view op;  // "conv", "relu", "sgd_momentum": a literal, or one of TrainingStep::names
  // Launches in one iteration. Adjacent kernels of one layer with the same repeat run as a pattern, one after
  // another, that often: the steps of an unrolled recurrence.
  std::int64_t repeat = 1;
  // Index of an earlier kernel of the step with the same work at every batch; -1: there is none.
  int duplicate_of = -1;
  MathType math = MathType::fp32;
  Size flops;       // a multiply-add is 2
  Size read_bytes;  // from memory, each operand once per pass over it
  Size written_bytes;
  Size macs;                  // of convolutions and matrix products only, as networks are usually counted
  int layer = -1;             // index into TrainingStep::layers
  bool second_order = false;  // part of a backward pass through a backward pass
  // True for kernels that exist only where the next convolution runs in TF32: an NHWC convolution, or the
  // layout conversion before it.
  bool tf32_only = false;
  bool unknown = false;         // an operator without a lowering of its own, charged by its bytes
  bool thread_per_row = false;  // one thread processes each row, one number after another
  bool holds_rows = false;      // of norms: registers hold a row, which memory sends once
  bool channel_blocks = false;  // of batch norms of NCHW images: a thread block takes a whole channel
  Access access = Access::vectors;
  // The kind whose time formula applies, where the kernel's memory accesses are not typical of its own kind.
  std::optional<KernelKind> timed_as{};
  std::int64_t element_bytes = 4;  // of one number of its operands
  Size scratch_bytes;              // temporary tensors that exist only while it runs
  Size host_nanoseconds;           // work of the host on the data of a copy, after it or before it; in ns
  KernelShape shape;
};

// Values of `Kernel::op` of transfers.
inline constexpr std::string_view kDeviceToHost = "device_to_host";
inline constexpr std::string_view kHostToDevice = "host_to_device";

// True for a copy to the host, after which the host synchronizes.
[[nodiscard]] constexpr bool is_copy_to_host(const Kernel& kernel) {
  return kernel.kind == KernelKind::transfer && kernel.op == kDeviceToHost;
}

// "double_backward" for second-order work, else the phase.
[[nodiscard]] constexpr std::string_view phase_name(const Kernel& kernel) {
  return kernel.second_order ? "double_backward" : name_of(kernel.phase);
}

// At a batch: "64x3x224x224 64x7x7/2 p2 d2 g4" (input, filters, stride unless 1, padding unless it centres
// the window, dilation and groups unless 1, t: transposed), "m512 n32 k1000 NT" (transposes of A and B),
// "64x64x112x112 3x3/2" (input, window), "64x1000" (rows, columns), "802816" (elements), "64x25x512 4x512"
// (samples, steps, inputs, gates x units),
// "96x512x512 64 causal window 128 g4 dropout" (heads, queries, keys, features, queries_per_key).
[[nodiscard]] std::string shape_text(const Kernel& kernel, double batch);

}  // namespace tbdsim
