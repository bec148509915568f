#include "costmodel/call.h"

#include <algorithm>
#include <cmath>

namespace tbdsim {
namespace {

double size(std::int64_t n) { return static_cast<double>(n); }

// The pass of a convolution that a pass of its transpose computes.
Phase transposed(Phase phase) {
  if (phase == Phase::forward) return Phase::backward_data;
  return phase == Phase::backward_data ? Phase::forward : phase;
}

double element_bytes(MathType math) {
  constexpr double kHalfByte = 0.5;
  if (math == MathType::fp4) return kHalfByte;
  if (math == MathType::fp8) return 1;
  return math == MathType::fp16 || math == MathType::bf16 ? 2 : 4;
}

// The products of images by the same weights as one product of all their rows, which is as aligned as an
// image's rows are: a few rows more, so that their number leaves the same remainder by 8.
GemmCall of_all_images(GemmCall call) {
  constexpr double kAligned = 8;  // elements of 16 bytes
  const double all = call.m * call.batch;
  const double image = std::fmod(call.m, kAligned);
  call.m = all - std::fmod(all, kAligned) + image;
  call.batch = 1;
  return call;
}

// Threads of a pool: one for each output, or of its gradient for each input.
double pool_threads(const Kernel& kernel, const PoolShape& pool, double batch) {
  const ImageShape& in = pool.input;
  if (kernel.phase != Phase::forward) return in.images.at(batch) * size(in.channels * in.height * in.width);
  return kernel.flops.at(batch) / size(pool.kernel_height * pool.kernel_width);
}

// How its threads reach numbers, and what they share: a batch norm's channels, a pool's threads.
void set_access(StreamCall& call, const Kernel& kernel, double batch) {
  call.access = kernel.access;
  const bool of_channels = kernel.channel_blocks || kernel.access == Access::pixels;
  const auto* image = of_channels ? std::get_if<ImageShape>(&kernel.shape) : nullptr;
  if (image != nullptr) call.channels = size(image->channels);
  const auto* pool = kernel.access == Access::elements ? std::get_if<PoolShape>(&kernel.shape) : nullptr;
  if (pool != nullptr) call.columns = pool_threads(kernel, *pool, batch);
}

}  // namespace

// A GEMM with beta != 0 reads C: its bytes read exceed those of A and B.
GemmCall gemm_call(const Kernel& kernel, const GemmShape& s, double batch) {
  GemmCall call;
  call.m = s.m.at(batch);
  call.n = s.n.at(batch);
  call.k = s.k.at(batch);
  call.batch = s.batch.at(batch);
  call.transpose_a = s.transpose_a;
  call.transpose_b = s.transpose_b;
  call.grouped = s.grouped;
  call.element_bytes = element_bytes(kernel.math);
  const double written = kernel.written_bytes.at(batch);
  const double results = call.m * call.n * call.batch;
  call.output_bytes = written > 0 ? written / results : call.element_bytes;
  const double operands = call.element_bytes * call.batch * call.k * (call.m + call.n);
  call.reads_c = kernel.read_bytes.at(batch) >= operands + call.output_bytes * results;
  return kernel.op == "conv_1x1" && call.batch > 1 ? of_all_images(call) : call;
}

ConvCall conv_call(const Kernel& kernel, const ConvShape& s, double batch) {
  return {.phase = s.transposed ? transposed(kernel.phase) : kernel.phase,
          .images = s.images.at(batch),
          .channels = size(s.channels),
          .height = size(s.height),
          .width = size(s.width),
          .filters = size(s.filters),
          .out_height = size(s.out_height),
          .out_width = size(s.out_width),
          .kernel_height = size(s.kernel_height),
          .kernel_width = size(s.kernel_width),
          .stride_height = size(s.stride_height),
          .stride_width = size(s.stride_width),
          .pad_height = size(s.pad_height),
          .pad_width = size(s.pad_width),
          .element_bytes = element_bytes(kernel.math),
          .limits = {},
          .groups = size(s.groups),
          .dilation_height = size(s.dilation_height),
          .dilation_width = size(s.dilation_width),
          .channels_last = s.channels_last,
          .framework_kernel = s.framework_kernel};
}

RecurrentCall recurrent_call(const Kernel& kernel, const RecurrentShape& s, double batch) {
  return {.phase = kernel.phase,
          .batch = s.batch.at(batch),
          .steps = size(s.steps),
          .inputs = size(s.inputs),
          .hidden = size(s.hidden),
          .gates = size(s.gates),
          .element_bytes = element_bytes(kernel.math),
          .alone = s.alone};
}

AttentionCall attention_call(const Kernel& kernel, const AttentionShape& s, double batch) {
  return {.phase = kernel.phase,
          .heads = s.heads.at(batch),
          .queries = s.queries.at(batch),
          .keys = s.keys.at(batch),
          .features = size(s.features),
          .values = size(s.values),
          .causal = s.causal,
          .bytes = kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch),
          .window = size(s.window),
          .queries_per_key = size(s.queries_per_key),
          .deterministic = s.deterministic,
          .drops = s.drops,
          .kernel = s.kernel,
          .element_bytes = element_bytes(kernel.math)};
}

StreamCall stream_call(const Kernel& kernel, double batch) {
  StreamCall call;
  call.kind = kernel.timed_as.value_or(kernel.kind);
  call.phase = kernel.phase;
  if (const auto* matrix = std::get_if<MatrixShape>(&kernel.shape)) {
    call.rows = matrix->rows.at(batch);
    call.columns = size(matrix->columns);
  } else if (const auto* vector = std::get_if<VectorShape>(&kernel.shape)) {
    call.columns = std::max(vector->elements.at(batch), 1.0);
  }
  call.read_bytes = kernel.read_bytes.at(batch);
  call.written_bytes = kernel.written_bytes.at(batch);
  call.flops = kernel.flops.at(batch);
  call.element_bytes = static_cast<double>(kernel.element_bytes);
  if (kernel.thread_per_row) call.serial = call.rows;
  call.holds_rows = kernel.holds_rows;
  if (kernel.channel_blocks || kernel.access != Access::vectors) set_access(call, kernel, batch);
  return call;
}

Call call_of(const Kernel& kernel, double batch) {
  return with_call(kernel, batch, [](const auto& call) { return Call(call); });
}

}  // namespace tbdsim
