// The sizes of one kernel call, shared by records, plans and importers: one named column each in every CSV.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tbdsim {

// 0 means "does not apply" (an empty field), except for the padding, where 0 is a size. The fields of each op
// are in calibrate/measure/plan/op_table.cpp; the conventions are:
//
//   gemm            C[m x n] = op(A)[m x k] * op(B)[k x n], column-major as in cuBLAS; output_bytes: of an element
//                   of C, where it is not the operands' type
//   batched_gemm    `batch` such products
//   grouped_gemm    the same in one call for the experts of a mixture
//   attention       `batch` sequences of `heads` heads, queries x head_dim against keys x head_dim and keys x value_dim
//                   of kv_heads heads; window: keys that a query sees at most
//   conv            input batch x channels x height x width, `filters` outputs of filter_h x filter_w
//   pooling         the same without `filters`
//   batch_norm      batch x channels x height x width
//   softmax, ...    rows x cols, reduced over cols
//   element-wise    elements
//   copies          bytes
//   all_reduce      bytes, ranks
//   lstm, gru, rnn  steps x batch sequences of input_size, `layers` of `hidden`, directions 1 or 2; input_size 0:
//                   the input is added without a matrix product (CUDNN_SKIP_INPUT)
struct RecordShape {
  std::int64_t batch = 0;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t channels = 0, height = 0, width = 0, filters = 0;
  std::int64_t filter_h = 0, filter_w = 0;
  std::int64_t stride_h = 0, stride_w = 0;
  std::int64_t pad_h = 0, pad_w = 0;
  std::int64_t dilation_h = 0, dilation_w = 0;
  std::int64_t groups = 0;
  std::int64_t rows = 0, cols = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0, ranks = 0;
  std::int64_t input_size = 0, hidden = 0, layers = 0, directions = 0, steps = 0;
  std::int64_t output_bytes = 0;
  std::int64_t heads = 0, kv_heads = 0, queries = 0, keys = 0, head_dim = 0, value_dim = 0, window = 0;

  bool operator==(const RecordShape&) const = default;
};

struct ShapeColumn {
  std::string_view name;
  std::int64_t RecordShape::*size;
};

// Every size with its column name, in the order of the CSV.
[[nodiscard]] std::span<const ShapeColumn> shape_columns();

// Whether 0 is a size rather than "does not apply": the padding of a call that has a filter.
[[nodiscard]] bool zero_is_a_size(const RecordShape& shape, std::int64_t RecordShape::*size);

// "m=1760 n=16 k=1760": the sizes that apply, for messages and as part of a key.
[[nodiscard]] std::string to_text(const RecordShape& shape);

// Output size of a convolution or pooling along one axis, rounded down; 0 when the filter does not fit.
[[nodiscard]] std::int64_t output_size(std::int64_t in, std::int64_t filter, std::int64_t pad,
                                       std::int64_t stride, std::int64_t dilation);
[[nodiscard]] std::int64_t output_height(const RecordShape& shape);
[[nodiscard]] std::int64_t output_width(const RecordShape& shape);

}  // namespace tbdsim
