#include "calibrate/measure/plan/work.h"

#include <algorithm>

#include "calibrate/measure/statistics/statistics.h"
#include "calibrate/records/stream_ops.h"

namespace tbdsim::measure {
namespace {
// Estimates for planning, corrected by the times of the first points (TimeBox).
constexpr double kComputeShare = 0.5;    // of peak
constexpr double kBandwidthShare = 0.6;  // of peak
constexpr double kCallSeconds = 10e-6;   // launch floor
constexpr double kSetupSeconds = 0.03;   // allocation and random inputs
constexpr double kFindSeconds = 0.3;     // cuDNN's search over algorithms
constexpr double kConvAlgorithms = 5;    // timed per convolution
constexpr double kStepSeconds = 40e-6;   // one step of a fused RNN
constexpr double kFlushedL2s = 4;
constexpr double kCopySeconds_per_byte = 1.0 / 10e9;  // host link

double element_bytes(const std::string& precision) {
  return precision == "fp16" || precision == "bf16" ? 2 : 4;
}

double product(auto... sizes) { return (1.0 * ... * static_cast<double>(std::max<std::int64_t>(sizes, 1))); }

Work gemm_work(const RecordShape& s, double element) {
  const double operands = product(s.batch) * (product(s.m, s.k) + product(s.k, s.n) + product(s.m, s.n));
  return {2 * product(s.batch, s.m, s.n, s.k), element * operands, element * operands};
}

Work conv_work(const RecordShape& s, double element) {
  const double outputs = product(s.batch, s.filters, output_height(s), output_width(s));
  const double weights = product(s.filters, s.channels, s.filter_h, s.filter_w) / product(s.groups);
  const double operands = product(s.batch, s.channels, s.height, s.width) + outputs + weights;
  return {2 * outputs * product(s.channels, s.filter_h, s.filter_w) / product(s.groups), element * operands,
          element * operands};
}

Work rnn_work(const RecordShape& s, double element, double gates) {
  const double matrix = gates * product(s.hidden) * (product(s.hidden) + product(s.input_size));
  const double cells = product(s.layers, s.directions, s.steps);
  const double states =
      product(s.steps, s.batch) * (product(s.input_size) + 4 * gates * product(s.layers, s.hidden));
  return {2 * matrix * product(s.batch) * cells, element * (cells * matrix + states),
          element * 4 * (matrix + states)};
}

// Reads and writes of the main tensor per call, in times its size. Pooling reads its input and writes its
// output; its gradient reads both and the output's gradient, and writes the input's.
double passes(const PlanPoint& point, double element) {
  if (const StreamOp* op = find_stream_op(point.op, point.phase))
    return op->reads + op->writes + op->mask_bytes / element;
  const RecordShape& s = point.shape;
  if (s.filter_h == 0) return 1;
  const double output = product(output_height(s), output_width(s)) / product(s.height, s.width);
  return point.phase == "forward" ? 1 + output : 2 + 2 * output;
}

Work streamed(const PlanPoint& point, double elements, double element) {
  constexpr double kMostTensors = 4;  // of this size are allocated at once
  return {elements, elements * element * passes(point, element), elements * element * kMostTensors};
}
}  // namespace

Work work_of(const PlanPoint& point) {
  const RecordShape& s = point.shape;
  const double element = element_bytes(point.precision);
  if (point.op == "gemm" || point.op == "batched_gemm") return gemm_work(s, element);
  if (point.op == "conv") return conv_work(s, element);
  if (point.op == "lstm") return rnn_work(s, element, 4);
  if (point.op == "gru") return rnn_work(s, element, 3);
  if (s.bytes > 0) {
    const double bytes = static_cast<double>(s.bytes);
    return {0, point.op == "copy_d2d" ? 2 * bytes : bytes, 2 * bytes};
  }
  if (s.elements > 0) return streamed(point, static_cast<double>(s.elements), element);
  if (s.rows > 0) return streamed(point, product(s.rows, s.cols), element);
  if (s.channels > 0) return streamed(point, product(s.batch, s.channels, s.height, s.width), element);
  return {};
}

double guess_seconds(const PlanPoint& point, const GpuRates& gpu) {
  const Work work = work_of(point);
  const StoppingRule rule;
  double call = kCallSeconds + std::max(work.flops / (kComputeShare * gpu.fp32_flop_per_s),
                                        work.bytes / (kBandwidthShare * gpu.bytes_per_s));
  if (point.op == "copy_h2d" || point.op == "copy_d2h") call += work.bytes * kCopySeconds_per_byte;
  call +=
      kStepSeconds * static_cast<double>(point.shape.steps * std::max<std::int64_t>(point.shape.layers, 1));
  if (point.cache == "cold") call += kFlushedL2s * gpu.l2_bytes / (kBandwidthShare * gpu.bytes_per_s);
  const double calls = rule.warm_up + rule.first_burst;
  const double repeated = std::min(calls * call, rule.most_seconds + rule.fewest_samples * call);
  if (point.op == "conv") return kSetupSeconds + kFindSeconds + kConvAlgorithms * repeated;
  return kSetupSeconds + repeated;
}

}  // namespace tbdsim::measure
