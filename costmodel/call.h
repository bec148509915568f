// Arguments of the time formulas: the sizes of one kernel call as numbers, from a Kernel at a batch (call_of)
// or from a measured record (calibrate/samples/call_of_record.h).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>
#include <variant>

#include "graphs/kernel.h"
#include "hwspecs/base/math_type.h"

namespace tbdsim {

// C[m x n] += A[m x k] * B[k x n], column-major as in cuBLAS, `batch` times.
struct GemmCall {
  double m = 1, n = 1, k = 1, batch = 1;
  bool transpose_a = false, transpose_b = false;
  bool reads_c = false;      // beta != 0
  double element_bytes = 4;  // of A and B
  double output_bytes = 4;   // of an element of C
  bool hot = false;          // measured in a loop with the same operands: the L2 cache may hold them
  bool grouped = false;      // as in GemmShape

  friend auto operator<=>(const GemmCall&, const GemmCall&) = default;
};

// Calls whose channels are padded to multiples of 8, so that tensor cores take them at full rate.
enum class PadsChannels : std::uint8_t { never, half, always };  // half: those of elements of 2 bytes
inline constexpr std::array<std::string_view, 3> kPadsChannelsNames = {"never", "half", "always"};

// Limits of a framework, and of the GPU's arithmetic, on the convolution algorithms that it uses.
struct ConvLimits {
  double workspace = 0;  // bytes; 0: any
  bool nonfused_winograd = true;
  PadsChannels pads_channels = PadsChannels::never;
  bool wide_transforms = false;  // 4 bytes an element, of half precision that is computed in fp32

  friend auto operator<=>(const ConvLimits&, const ConvLimits&) = default;
};

// Sizes are those of the forward pass in every phase; channels and filters those of all groups together.
struct ConvCall {
  Phase phase = Phase::forward;
  double images = 1, channels = 1, height = 1, width = 1;
  double filters = 1, out_height = 1, out_width = 1;
  double kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  double pad_height = 0, pad_width = 0;
  double element_bytes = 4;
  ConvLimits limits;
  double groups = 1, dilation_height = 1, dilation_width = 1;
  bool channels_last = false, framework_kernel = false;  // as in ConvShape

  friend auto operator<=>(const ConvCall&, const ConvCall&) = default;
};

// One recurrent layer in one direction over all its steps, in one library call.
struct RecurrentCall {
  Phase phase = Phase::forward;
  double batch = 1, steps = 1, inputs = 0, hidden = 1;  // inputs 0: the input product is skipped
  double gates = 4;                                     // 4: LSTM, 3: GRU, 1: vanilla
  double element_bytes = 4;
  bool alone = true;  // as in RecurrentShape

  friend auto operator<=>(const RecurrentCall&, const RecurrentCall&) = default;
};

// Attention in one kernel, forward or backward.
struct AttentionCall {
  Phase phase = Phase::forward;
  double heads = 1, queries = 1, keys = 1, features = 1, values = 1;
  bool causal = false;
  double bytes = 0;                        // read and written
  double window = 0, queries_per_key = 1;  // as in AttentionShape
  bool deterministic = false;
  bool drops = false;
  AttentionKernel kernel = AttentionKernel::flash2;
  double element_bytes = 2;

  friend auto operator<=>(const AttentionCall&, const AttentionCall&) = default;
};

// A kernel that is bound by the bytes it moves.
struct StreamCall {
  KernelKind kind = KernelKind::elementwise;
  Phase phase = Phase::forward;
  double rows = 1, columns = 1;  // of softmax and norms; a vector is one row
  double read_bytes = 0, written_bytes = 0;
  double flops = 0;
  double element_bytes = 4;
  double serial = 0;        // numbers that one thread processes one after another
  bool holds_rows = false;  // as in Kernel
  Access access = Access::vectors;
  double channels =
      0;  // of a batch norm that takes each in one thread block, or by `pixels`; 0: of no such kernel

  friend auto operator<=>(const StreamCall&, const StreamCall&) = default;
};

using Call = std::variant<GemmCall, ConvCall, RecurrentCall, StreamCall, AttentionCall>;

[[nodiscard]] GemmCall gemm_call(const Kernel& kernel, const GemmShape& shape, double batch);
[[nodiscard]] ConvCall conv_call(const Kernel& kernel, const ConvShape& shape, double batch);
[[nodiscard]] RecurrentCall recurrent_call(const Kernel& kernel, const RecurrentShape& shape, double batch);
[[nodiscard]] AttentionCall attention_call(const Kernel& kernel, const AttentionShape& shape, double batch);
[[nodiscard]] StreamCall stream_call(const Kernel& kernel, double batch);

// Returns use(call), where call is a GemmCall, ConvCall, RecurrentCall, AttentionCall or StreamCall.
template <class Use>
auto with_call(const Kernel& kernel, double batch, Use use) {
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.shape)) return use(gemm_call(kernel, *gemm, batch));
  if (const auto* conv = std::get_if<ConvShape>(&kernel.shape)) return use(conv_call(kernel, *conv, batch));
  if (const auto* recurrent = std::get_if<RecurrentShape>(&kernel.shape))
    return use(recurrent_call(kernel, *recurrent, batch));
  if (const auto* attention = std::get_if<AttentionShape>(&kernel.shape))
    return use(attention_call(kernel, *attention, batch));
  return use(stream_call(kernel, batch));
}

[[nodiscard]] Call call_of(const Kernel& kernel, double batch);

}  // namespace tbdsim
