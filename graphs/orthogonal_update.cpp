#include "graphs/orthogonal_update.h"

#include <algorithm>
#include <string_view>

#include "graphs/layer.h"

namespace tbdsim {
namespace {

constexpr int kSteps = 5;
constexpr std::int64_t kHalfBytes = 2;  // of a number in bf16

// C[m x n] = A[m x k] B[k x n] for each matrix, with `adds` matrices of C's size added in the product.
Kernel product(std::string_view op, const Matrices& x, std::int64_t m, std::int64_t n, std::int64_t k,
               std::int64_t adds) {
  const auto bytes = [&](std::int64_t rows, std::int64_t columns) {
    return fixed_size(checked_multiply(checked_multiply(rows, columns), x.count * kHalfBytes));
  };
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.phase = Phase::update;
  kernel.op = op;
  kernel.math = MathType::bf16;
  kernel.element_bytes = kHalfBytes;
  kernel.flops = fixed_size(checked_multiply(checked_multiply(m, n), checked_multiply(k, x.count))) * 2;
  kernel.read_bytes = bytes(m, k) + bytes(k, n) + bytes(m, n) * adds;
  kernel.written_bytes = bytes(m, n);
  kernel.shape =
      GemmShape{.m = fixed_size(m), .n = fixed_size(n), .k = fixed_size(k), .batch = fixed_size(x.count)};
  return kernel;
}

}  // namespace

std::optional<Matrices> matrices_of(const GraphLayer& layer, const ParameterTensor& tensor) {
  const bool product = layer.spec.type == "fully_connected" || layer.spec.type == "expert_products";
  if (!product || tensor.name != "weight" || layer.spec.shard == Sharding::vocabulary) return std::nullopt;
  const std::int64_t outputs = layer.output.dims.back();
  const bool experts = layer.spec.type == "expert_products";
  const std::int64_t inputs = experts ? last_dimension(layer.input_shapes[0]) : tensor.elements / outputs;
  return Matrices{.count = tensor.elements / (inputs * outputs),
                  .rows = std::min(inputs, outputs),
                  .columns = std::max(inputs, outputs)};
}

const Optimizer& rule_by_element(const Optimizer& optimizer) {
  if (!optimizer.orthogonal) return optimizer;
  return *std::ranges::find(kOptimizers, "adamw", &Optimizer::name);
}

const Optimizer& rule_of(const Optimizer& optimizer, const GraphLayer& layer, const ParameterTensor& tensor) {
  return optimizer.orthogonal && matrices_of(layer, tensor) ? optimizer : rule_by_element(optimizer);
}

std::vector<Kernel> orthogonal_update(const Matrices& x, const Optimizer& optimizer,
                                      const Precision& precision) {
  const Size words = fixed_size(checked_multiply(checked_multiply(x.rows, x.columns), x.count));
  const std::int64_t state = state_bytes(optimizer, precision.state_bytes);
  const std::int64_t weight = precision.fp32_copy ? kFp32Bytes : precision.weight_bytes;
  const std::int64_t stored = precision.fp32_copy ? precision.weight_bytes : 0;
  const auto over = [&](KernelKind kind, std::string_view op, std::int64_t flops, std::int64_t reads,
                        std::int64_t writes) {
    return memory_kernel(kind, Phase::update, op, {words, {}}, flops, words * reads, words * writes);
  };
  std::vector<Kernel> kernels;
  kernels.push_back(
      over(KernelKind::update, "momentum", 4, precision.gradient_bytes + state, state + kHalfBytes));
  kernels.push_back(over(KernelKind::reduction, "norm", 2, kHalfBytes, 0));
  kernels.push_back(over(KernelKind::elementwise, "normalise", 1, kHalfBytes, kHalfBytes));
  for (int step = 0; step < kSteps; ++step) {
    kernels.push_back(product("newton_schulz", x, x.rows, x.rows, x.columns, 0));
    kernels.push_back(product("newton_schulz", x, x.rows, x.rows, x.rows, 1));
    kernels.push_back(product("newton_schulz", x, x.rows, x.columns, x.rows, 1));
  }
  kernels.push_back(over(KernelKind::update, optimizer.name, 2, kHalfBytes + weight, weight + stored));
  return kernels;
}

}  // namespace tbdsim
