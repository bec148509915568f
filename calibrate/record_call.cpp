#include "calibrate/record_call.h"

#include <algorithm>

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
  call.output_bytes = std::max(element_bytes, 2.0);  // sums of fp8 products are stored as bf16
  return call;
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
  if (record.op == "gemm" || record.op == "batched_gemm") return gemm_of(record, element_bytes);
  if (record.op == "conv") return conv_of(record, *phase, element_bytes);
  return std::nullopt;
}

}  // namespace tbdsim
