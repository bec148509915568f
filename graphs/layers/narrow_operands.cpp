#include "graphs/layers/narrow_operands.h"

#include <string_view>

#include "graphs/layer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kBlockOfFp8 = 32;  // numbers with one scale of a byte
constexpr std::int64_t kBlockOfFp4 = 16;
constexpr std::int64_t kCastFlops = 2;  // times the scale, clamped

Size over(const Size& size, std::int64_t divisor) {
  return {size.fixed / divisor, size.per_sample / divisor};
}

// A tensor of 16-bit numbers and the kernels that make it narrow.
class Operand {
 public:
  Operand(Phase phase, Size numbers, const Precision& precision, std::vector<Kernel>& kernels)
      : phase_(phase), numbers_(numbers), precision_(precision), kernels_(kernels) {}

  void amax() const { add(KernelKind::reduction, "amax", 1, wide(), {}); }
  void cast() const { add(KernelKind::elementwise, "cast", kCastFlops, wide(), narrow()); }
  void transpose() const { add(KernelKind::transpose, "transpose", 0, narrow(), narrow()); }
  // Along rows and along columns, for both products that read it.
  void quantize() const {
    add(KernelKind::elementwise, "quantize", 2 * kCastFlops, wide(), block_bytes(numbers_, precision_) * 2);
  }

 private:
  [[nodiscard]] Size wide() const { return numbers_ * precision_.storage_bytes; }
  [[nodiscard]] Size narrow() const { return operand_bytes(numbers_, precision_); }
  void add(KernelKind kind, std::string_view op, std::int64_t flops, const Size& read,
           const Size& written) const {
    kernels_.push_back(memory_kernel(kind, phase_, op, {numbers_, {}}, flops, read, written));
  }

  Phase phase_;
  Size numbers_;
  const Precision& precision_;
  std::vector<Kernel>& kernels_;
};

void cast_by_amax(const Operand& operand) {
  operand.amax();
  operand.cast();
}

void cast_by_blocks(const Operand& operand, const Precision& precision) {
  if (precision.weight_product_math() == MathType::fp4) operand.amax();
  operand.quantize();
}

Size weights(const LinearSize& size) {
  return fixed_size(checked_multiply(checked_multiply(size.inputs, size.outputs), size.matrices));
}

}  // namespace

Size operand_bytes(const Size& numbers, const Precision& precision) {
  if (!precision.linear_math) return numbers * precision.storage_bytes;
  return precision.weight_product_math() == MathType::fp4 ? over(numbers, 2) : numbers;
}

Size block_bytes(const Size& numbers, const Precision& precision) {
  const bool fp4 = precision.weight_product_math() == MathType::fp4;
  return operand_bytes(numbers, precision) + over(numbers, fp4 ? kBlockOfFp4 : kBlockOfFp8);
}

void narrow_forward(const LinearSize& size, const Precision& precision, std::vector<Kernel>& kernels) {
  const Operand x(Phase::forward, size.rows * size.inputs, precision, kernels);
  const Operand w(Phase::forward, weights(size), precision, kernels);
  switch (precision.scaling) {
    case Scaling::none:
      return;
    case Scaling::tensors:
    case Scaling::rows:
      cast_by_amax(x);
      cast_by_amax(w);
      return;
    case Scaling::blocks:
      cast_by_blocks(x, precision);
      cast_by_blocks(w, precision);
      return;
  }
}

void narrow_backward(const LinearSize& size, const LayerContext& site, const Precision& precision,
                     std::vector<Kernel>& kernels) {
  const bool data = site.input_gradient;
  const bool own = site.weight_gradient;
  if (precision.scaling == Scaling::none || (!data && !own)) return;
  const Phase first = data ? Phase::backward_data : Phase::backward_weights;
  const Operand dy(first, size.rows * size.outputs, precision, kernels);
  if (precision.scaling == Scaling::blocks) return cast_by_blocks(dy, precision);
  cast_by_amax(dy);
  if (data) cast_by_amax(Operand(Phase::backward_data, weights(size), precision, kernels));
  if (!own) return;
  const Operand columns(Phase::backward_weights, size.rows * size.outputs, precision, kernels);
  if (data && precision.scaling == Scaling::rows) cast_by_amax(columns);
  if (data && precision.scaling == Scaling::tensors) columns.transpose();
  cast_by_amax(Operand(Phase::backward_weights, size.rows * size.inputs, precision, kernels));
}

}  // namespace tbdsim
