#include "graphs/layers/row_norm.h"

namespace tbdsim {
namespace {

// Thread blocks of a joined kernel, each of which sums gradients of weights over its rows: one or two for
// each multiprocessor (transformer_engine/common/normalization/rmsnorm/rmsnorm_bwd_semi_cuda_kernel.cu).
constexpr std::int64_t kBlocks = 256;

Kernel kernel_of(const RowNorm& norm, const LoweringContext& how, Phase phase, std::int64_t flops,
                 std::int64_t reads, std::int64_t writes) {
  const Size x = stored_bytes(norm.x, how.precision);
  Kernel kernel = memory_kernel(KernelKind::layer_norm, phase, norm.op, norm.x, flops, x * reads, x * writes);
  kernel.shape = norm.rows;
  kernel.holds_rows = how.lowering.norm_kernels != NormKernels::rows && phase != Phase::backward_weights;
  return kernel;
}

// Sums over the rows of each block, which a second kernel adds up.
void append_joined(const RowNorm& norm, const LayerContext& site, const LoweringContext& how,
                   std::vector<Kernel>& kernels) {
  kernels.push_back(kernel_of(norm, how, Phase::backward_data, norm.data_flops + norm.weight_flops, 2,
                              site.input_gradient ? 1 : 0));
  const Size weights = fixed_size(checked_multiply(norm.rows.columns, norm.parameters));
  const Size partial = weights * (kBlocks * kFp32Bytes);
  kernels.back().written_bytes += partial;
  kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, norm.op,
                                  {weights * kBlocks, {}}, 1, partial,
                                  weights * how.precision.storage_bytes));
}

}  // namespace

void append_forward(const RowNorm& norm, const LoweringContext& how, std::vector<Kernel>& kernels) {
  kernels.push_back(kernel_of(norm, how, Phase::forward, norm.forward_flops, 1, 1));
}

void append_backward(const RowNorm& norm, const LayerContext& site, const LoweringContext& how,
                     std::vector<Kernel>& kernels) {
  if (how.lowering.norm_kernels == NormKernels::joined && site.weight_gradient) {
    append_joined(norm, site, how, kernels);
    return;
  }
  if (site.input_gradient)
    kernels.push_back(kernel_of(norm, how, Phase::backward_data, norm.data_flops, 2, 1));
  if (site.weight_gradient)
    kernels.push_back(kernel_of(norm, how, Phase::backward_weights, norm.weight_flops, 2, 0));
}

}  // namespace tbdsim
