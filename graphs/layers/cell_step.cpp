#include "graphs/layers/cell_step.h"

#include "graphs/layers/joins.h"
#include "graphs/layers/linear_product.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kActivationFlops = 1;  // as activation.cpp
constexpr std::int64_t kActivationGradientFlops = 3;

}  // namespace

void CellStep::product(std::int64_t in, std::int64_t out) {
  kernels_.push_back(linear_product(Phase::forward, rows_, in, out, how_.precision));
}

void CellStep::bias(std::int64_t out) {
  pointwise("bias_add", Phase::forward, out, 1, 1, 1);
  kernels_.back().shape = MatrixShape{rows_, out};
}

void CellStep::data_gradient(std::int64_t in, std::int64_t out) {
  kernels_.push_back(linear_product(Phase::backward_data, rows_, in, out, how_.precision));
}

void CellStep::weight_gradient(std::int64_t in, std::int64_t out) {
  kernels_.push_back(linear_product(Phase::backward_weights, rows_, in, out, how_.precision));
  if (how_.lowering.step_gradients == GradientAccumulation::in_place) {
    kernels_.back().read_bytes += kernels_.back().written_bytes;
  } else {
    accumulate(checked_multiply(in, out));
  }
}

void CellStep::bias_gradient(std::int64_t out, std::int64_t biases) {
  const std::int64_t written = out * how_.precision.storage_bytes;
  kernels_.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, "bias_gradient",
                                   {rows_, {out}}, 1, rows_ * written, fixed_size(written)));
  kernels_.back().shape = MatrixShape{rows_, out};
  if (how_.lowering.step_gradients == GradientAccumulation::in_place) return;
  for (std::int64_t i = 0; i < biases; ++i) accumulate(out);
}

void CellStep::pointwise(std::string_view op, Phase phase, std::int64_t width, std::int64_t flops,
                         std::int64_t reads, std::int64_t writes) {
  const Size bytes = rows_ * checked_multiply(width, how_.precision.storage_bytes);
  kernels_.push_back(memory_kernel(KernelKind::elementwise, phase, op, {rows_, {width}}, flops, bytes * reads,
                                   bytes * writes));
}

void CellStep::multiply_gradients(std::int64_t width) {
  for (int factor = 0; factor < 2; ++factor) pointwise("multiply", Phase::backward_data, width, 1, 2, 1);
}

void CellStep::activation(std::string_view op, std::int64_t width) {
  pointwise(op, Phase::forward, width, kActivationFlops, 1, 1);
}

void CellStep::activation_gradient(std::string_view op, std::int64_t width) {
  const std::int64_t reads = how_.lowering.relu_keeps == ReluKeeps::input_and_output ? 3 : 2;
  pointwise(op, Phase::backward_data, width, kActivationGradientFlops, reads, 1);
}

void CellStep::join(std::string_view op, Phase phase, std::initializer_list<std::int64_t> widths) {
  append_join(op, phase, sizes(widths), how_, kernels_);
}

void CellStep::split(std::string_view op, Phase phase, std::initializer_list<std::int64_t> widths) {
  append_split(op, phase, sizes(widths), how_, kernels_);
}

void CellStep::slices(std::string_view op, Phase phase, std::initializer_list<std::int64_t> widths) {
  append_slices(op, phase, sizes(widths), how_, kernels_);
}

std::vector<Size> CellStep::sizes(std::initializer_list<std::int64_t> widths) const {
  std::vector<Size> sizes;
  for (const std::int64_t width : widths) sizes.push_back(rows_ * width);
  return sizes;
}

void CellStep::accumulate(std::int64_t elements) {
  const Size bytes = fixed_size(checked_multiply(elements, how_.precision.storage_bytes));
  kernels_.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_weights, "accumulate",
                                   {fixed_size(elements), {}}, 1, bytes * 2, bytes));
}

}  // namespace tbdsim
