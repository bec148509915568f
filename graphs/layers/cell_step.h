// The kernels of one step of an unrolled recurrent cell. Every tensor of a step is a vector for each row; it
// is named by its width here.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "graphs/layer.h"

namespace tbdsim {

class CellStep {
 public:
  CellStep(const Size& rows, const LoweringContext& how, std::vector<Kernel>& kernels)
      : rows_(rows), how_(how), kernels_(kernels) {}

  [[nodiscard]] const Lowering& lowering() const { return how_.lowering; }
  [[nodiscard]] bool fused_pointwise() const { return how_.lowering.cell_pointwise == Composition::fused; }

  // y = W * x + b forward, and its gradients. The gradients of W and b accumulate over the steps: in the GEMM
  // itself, or by kernels of their own.
  void product(std::int64_t in, std::int64_t out);
  void bias(std::int64_t out);
  void data_gradient(std::int64_t in, std::int64_t out);
  void weight_gradient(std::int64_t in, std::int64_t out);
  void bias_gradient(std::int64_t out, std::int64_t biases = 1);  // several of one gradient

  // One pass over vectors of this width, `reads` and `writes` of them.
  void pointwise(std::string_view op, Phase phase, std::int64_t width, std::int64_t flops, std::int64_t reads,
                 std::int64_t writes);
  void add(std::int64_t width) { pointwise("add", Phase::forward, width, 1, 2, 1); }
  void multiply(std::int64_t width) { pointwise("multiply", Phase::forward, width, 1, 2, 1); }
  void multiply_gradients(std::int64_t width);  // of both factors
  void sum_gradients(std::int64_t width, std::int64_t terms) {
    pointwise("add", Phase::backward_data, width, terms - 1, terms, 1);
  }
  void activation(std::string_view op, std::int64_t width);
  void activation_gradient(std::string_view op, std::int64_t width);

  void join(std::string_view op, Phase phase, std::initializer_list<std::int64_t> widths);
  void split(std::string_view op, Phase phase, std::initializer_list<std::int64_t> widths);
  void slices(std::string_view op, Phase phase, std::initializer_list<std::int64_t> widths);

 private:
  [[nodiscard]] std::vector<Size> sizes(std::initializer_list<std::int64_t> widths) const;
  void accumulate(std::int64_t elements);

  Size rows_;
  const LoweringContext& how_;
  std::vector<Kernel>& kernels_;
};

}  // namespace tbdsim
