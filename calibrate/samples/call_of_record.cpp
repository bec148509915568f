#include "calibrate/samples/call_of_record.h"

#include <algorithm>

#include "calibrate/records/stream_ops.h"

namespace tbdsim {
namespace {

double size(std::int64_t n) { return static_cast<double>(n); }
double at_least_one(std::int64_t n) { return static_cast<double>(std::max<std::int64_t>(n, 1)); }

double bytes_of(MathType math) {
  if (math == MathType::fp8) return 1;
  return math == MathType::fp16 || math == MathType::bf16 ? 2 : 4;
}

std::optional<Phase> phase_of(const Record& record) {
  if (record.phase.empty()) return Phase::forward;
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
    if (record.phase == kPhaseNames[i]) return static_cast<Phase>(i);
  }
  return std::nullopt;
}

GemmCall gemm_of(const Record& record, double element_bytes) {
  const RecordShape& s = record.shape;
  GemmCall call{size(s.m), size(s.n), size(s.k), at_least_one(s.batch)};
  call.transpose_a = !record.layout.empty() && record.layout[0] == 'T';
  call.transpose_b = record.layout.size() > 1 && record.layout[1] == 'T';
  call.element_bytes = element_bytes;
  // Sums of fp8 products are stored as bf16.
  call.output_bytes = s.output_bytes > 0 ? size(s.output_bytes) : std::max(element_bytes, 2.0);
  call.hot = record.cache != "cold";
  call.reads_c = record.layout.ends_with('+');
  call.grouped = record.op == "grouped_gemm";
  return call;
}

// Triton's kernels multiply warp by warp as FlashAttention 2's do; TensorRT-LLM's are NVIDIA's own as
// cuDNN's.
AttentionKernel attention_kernel(std::string_view generation) {
  if (generation == "flash3") return AttentionKernel::flash3;
  const bool warp_by_warp = generation.starts_with("flash") || generation.starts_with("triton");
  return warp_by_warp ? AttentionKernel::flash2 : AttentionKernel::cudnn;
}

// Forward Q, K and V are read and O is written; backward dO too is read, and dQ, dK and dV are written; two
// bytes at least for each gradient. A sum of exponentials for each query is written, and read.
AttentionCall attention_of(const Record& record, Phase phase, double element_bytes) {
  const RecordShape& s = record.shape;
  const double queries = size(s.batch) * size(s.heads) * size(s.queries);
  const double keys = size(s.batch) * size(s.kv_heads) * size(s.keys);
  const double q = queries * size(s.head_dim), o = queries * size(s.value_dim);
  const double kv = keys * (size(s.head_dim) + size(s.value_dim));
  const double forward = element_bytes * (q + kv + o) + 4 * queries;
  const double backward = forward + element_bytes * o + std::max(element_bytes, 2.0) * (q + kv);
  return {.phase = phase,
          .heads = size(s.batch) * size(s.heads),
          .queries = size(s.queries),
          .keys = size(s.keys),
          .features = size(s.head_dim),
          .values = size(s.value_dim),
          .causal = record.layout.starts_with("causal"),
          .bytes = phase == Phase::forward ? forward : backward,
          .window = size(s.window),
          .queries_per_key = size(s.heads) / size(s.kv_heads),
          .deterministic = record.layout.ends_with("ordered"),
          .kernel = attention_kernel(record.generation),
          .element_bytes = element_bytes};
}

ConvCall conv_of(const Record& record, Phase phase, double element_bytes) {
  const RecordShape& s = record.shape;
  ConvCall call;
  call.phase = phase;
  call.images = size(s.batch);
  call.channels = size(s.channels);
  call.height = size(s.height);
  call.width = size(s.width);
  call.filters = size(s.filters);
  call.out_height = size(output_height(s));
  call.out_width = size(output_width(s));
  call.kernel_height = size(s.filter_h);
  call.kernel_width = size(s.filter_w);
  call.stride_height = at_least_one(s.stride_h);
  call.stride_width = at_least_one(s.stride_w);
  call.pad_height = size(s.pad_h);
  call.pad_width = size(s.pad_w);
  call.element_bytes = element_bytes;
  call.groups = at_least_one(s.groups);
  call.dilation_height = at_least_one(s.dilation_h);
  call.dilation_width = at_least_one(s.dilation_w);
  call.channels_last = call.groups > 1 && record.layout == "NHWC";
  return call;
}

// DeepBench skips the input product: no input size.
std::optional<RecurrentCall> recurrent_of(const Record& record, Phase phase, double element_bytes) {
  const RecordShape& s = record.shape;
  const double gates = record.op == "lstm" ? 4 : record.op == "gru" ? 3 : record.op == "rnn" ? 1 : 0;
  if (gates == 0 || s.layers > 1 || s.directions > 1) return std::nullopt;
  return RecurrentCall{.phase = phase,
                       .batch = size(s.batch),
                       .steps = size(s.steps),
                       .inputs = size(s.input_size),
                       .hidden = size(s.hidden),
                       .gates = gates,
                       .element_bytes = element_bytes};
}

KernelKind kind_of(const StreamOp& op) {
  if (op.op == "softmax") return KernelKind::softmax;
  if (op.op == "layer_norm") return KernelKind::layer_norm;
  if (op.op == "batch_norm") return KernelKind::batch_norm;
  if (op.phase == "update") return KernelKind::update;
  if (op.op == "bias" && op.phase == "backward_weights") return KernelKind::reduction;
  return KernelKind::elementwise;
}

// Pooling reads x and writes y; the gradient of a maximum reads x, y and dy, that of a mean dy.
StreamCall pooling_of(const Record& record, Phase phase, double element_bytes) {
  const RecordShape& s = record.shape;
  const double images = size(s.batch) * size(s.channels);
  const double x = images * size(s.height) * size(s.width) * element_bytes;
  const double y = images * size(output_height(s)) * size(output_width(s)) * element_bytes;
  const double backward = record.op == "max_pool" ? x + 2 * y : y;
  return {.kind = KernelKind::pooling,
          .phase = phase,
          .columns = x / element_bytes,
          .read_bytes = phase == Phase::forward ? x : backward,
          .written_bytes = phase == Phase::forward ? y : x,
          .element_bytes = element_bytes};
}

std::optional<StreamCall> stream_of(const Record& record, Phase phase, double element_bytes) {
  if (record.op == "max_pool" || record.op == "avg_pool") return pooling_of(record, phase, element_bytes);
  const RecordShape& s = record.shape;
  const StreamOp* op = find_stream_op(record.op, record.phase);
  if (op == nullptr) return std::nullopt;
  StreamCall call{.kind = kind_of(*op), .phase = phase, .element_bytes = element_bytes};
  if (call.kind == KernelKind::batch_norm && record.layout == "NCHW") call.channels = size(s.channels);
  if (s.rows > 0) {
    call.rows = size(s.rows);
    call.columns = size(s.cols);
  } else if (s.elements > 0) {
    call.columns = size(s.elements);
  } else {
    call.columns = size(s.batch) * size(s.channels) * size(s.height) * size(s.width);
  }
  const double elements = call.rows * call.columns;
  if (elements == 0) return std::nullopt;
  const bool forward = phase == Phase::forward;
  call.read_bytes = elements * (op->reads * element_bytes + (forward ? 0 : op->mask_bytes));
  call.written_bytes = elements * (op->writes * element_bytes + (forward ? op->mask_bytes : 0));
  return call;
}

}  // namespace

std::optional<MathType> math_of(const Record& record) {
  for (std::size_t i = 0; i < kMathTypeCount; ++i) {
    if (record.precision == kMathTypeNames[i]) return static_cast<MathType>(i);
  }
  return std::nullopt;
}

std::optional<Call> call_of(const Record& record) {
  const auto math = math_of(record);
  const auto phase = phase_of(record);
  if (!math || !phase) return std::nullopt;
  const double element_bytes = bytes_of(*math);
  if (record.op == "gemm" || record.op == "batched_gemm" || record.op == "grouped_gemm")
    return gemm_of(record, element_bytes);
  if (record.op == "attention") return attention_of(record, *phase, element_bytes);
  if (record.op == "conv") return conv_of(record, *phase, element_bytes);
  if (const auto call = recurrent_of(record, *phase, element_bytes)) return *call;
  if (const auto call = stream_of(record, *phase, element_bytes)) return *call;
  return std::nullopt;
}

}  // namespace tbdsim
