#include "graphs/layers/linear_product.h"

#include "graphs/layers/narrow_operands.h"

namespace tbdsim {

// Vectors are the columns of column-major matrices: Y = W' * X, dX = W * dY, dW = X * dY'.
Kernel linear_product(Phase phase, Size rows, std::int64_t in, std::int64_t out, const Precision& precision) {
  const std::int64_t weights = checked_multiply(in, out);
  const Size x = operand_bytes(rows * in, precision);
  const Size y = operand_bytes(rows * out, precision);
  const Size w = operand_bytes(fixed_size(weights), precision);
  const Size m_in = fixed_size(in);
  const Size m_out = fixed_size(out);
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.phase = phase;
  kernel.op = "matmul";
  kernel.math = precision.weight_product_math();
  kernel.macs = rows * weights;
  kernel.flops = kernel.macs * 2;
  if (phase == Phase::forward) {
    kernel.read_bytes = x + w;
    kernel.written_bytes = rows * checked_multiply(out, precision.storage_bytes);
    kernel.shape = GemmShape{.m = m_out, .n = rows, .k = m_in, .transpose_a = true};
  } else if (phase == Phase::backward_data) {
    kernel.read_bytes = y + w;
    kernel.written_bytes = rows * checked_multiply(in, precision.storage_bytes);
    kernel.shape = GemmShape{.m = m_in, .n = rows, .k = m_out};
  } else {
    kernel.read_bytes = x + y;
    kernel.written_bytes = fixed_size(checked_multiply(weights, precision.product_gradient_bytes()));
    kernel.shape = GemmShape{.m = m_in, .n = m_out, .k = rows, .transpose_b = true};
  }
  return kernel;
}

}  // namespace tbdsim
