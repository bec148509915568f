// A layer: its output shape, its parameters, its kernels in each phase and the tensors that its backward pass
// reads. One file for each type in graphs/layers/.
#pragma once

#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/kernel.h"
#include "graphs/lowering.h"
#include "graphs/precision.h"
#include "graphs/shape.h"

namespace tbdsim {

inline constexpr std::int64_t kIndexBytes = 4;  // of the index of a row or a class
// For each element: maximum (1), difference and exponential (2), sum (1), division (1).
inline constexpr std::int64_t kSoftmaxFlops = 5;

// Thrown by Layer::output_shape: "what; what was expected". LayerGraph adds layer, file and line.
class ShapeMismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown by Layer::double_backward.
class NoSecondOrder : public std::exception {};

struct ParameterTensor {
  std::string_view name;  // "weight", "bias", "gamma", "beta", "moving_statistics": a literal
  std::int64_t elements = 0;
  bool trained = true;   // false: kept up to date by the forward pass (moving statistics)
  bool cast = false;     // has a low-precision copy under mixed precision (weights of matrix products)
  Size gradient_rows{};  // elements of its gradient where only rows looked up have one; 0: all elements
  // Whatever the framework's way: its gradient is that of the rows looked up, and only these are updated.
  bool sparse = false;
  std::int64_t row = 0;  // elements of a row of a table; 0: it is no table
};

// The place of a layer in its graph: the shapes around it and the gradients it has to compute.
struct LayerContext {
  std::span<const Shape> inputs;
  const Shape& output;
  bool input_gradient = false;   // something upstream is trained, so the input's gradient is needed
  bool weight_gradient = false;  // this layer's own parameters are trained
  // True in a gradient penalty, where backward() is itself differentiated: only kernels that have a gradient
  // of their own can be used.
  bool differentiated = false;
};

// The lowering and the precision under which layers become kernels.
struct LoweringContext {
  const Lowering& lowering;
  const Precision& precision;
};

// Tensors of the forward pass that the backward pass reads, parameters excepted.
struct BackwardNeeds {
  bool inputs = false;
  bool output = false;
  Size extra_bytes{};             // masks, indices
  std::int64_t extra_pieces = 1;  // number of equal allocations that hold extra_bytes
  bool library_state = false;     // extra_bytes are a library's state for this layer
};

class Layer {
 public:
  virtual ~Layer() = default;

  [[nodiscard]] virtual Shape output_shape(std::span<const Shape> inputs) const = 0;
  [[nodiscard]] virtual std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const {
    (void)inputs;
    return {};
  }
  // Appends its kernels in the order they run. backward() is called only where a gradient is needed.
  virtual void forward(const LayerContext& site, const LoweringContext& how,
                       std::vector<Kernel>& kernels) const = 0;
  virtual void backward(const LayerContext& site, const LoweringContext& how,
                        std::vector<Kernel>& kernels) const = 0;
  [[nodiscard]] virtual BackwardNeeds backward_needs(const LayerContext& site,
                                                     const LoweringContext& how) const = 0;

  // Appends the kernels of the backward pass through the layer's own backward_data: from the gradient of its
  // input's gradient to that of its output's gradient, with its part of the weights' gradients. Throws
  // NoSecondOrder where the layer type has none.
  virtual void double_backward(const LayerContext& site, const LoweringContext& how,
                               std::vector<Kernel>& kernels) const {
    (void)site, (void)how, (void)kernels;
    throw NoSecondOrder();
  }
  // True if a backward pass through the backward pass also yields a gradient of the input: because dX depends
  // on the input's values, or as zeros where it does not and frameworks compute it all the same.
  [[nodiscard]] virtual bool input_gradient_depends_on_input() const { return false; }
  // True if gradients flow from its output to its inputs.
  [[nodiscard]] virtual bool differentiable() const { return true; }
  // True if it may end a graph: its output is a loss or a statistic that no layer reads.
  [[nodiscard]] virtual bool is_loss() const { return false; }

  // True if the gradient of every input is the gradient of the output itself, without a kernel or a tensor of
  // its own.
  [[nodiscard]] virtual bool passes_gradient_through() const { return false; }
  // True if, under this lowering, the gradients of the inputs are the output's gradient or views into it.
  [[nodiscard]] virtual bool gradient_is_view(const Lowering& lowering) const {
    (void)lowering;
    return passes_gradient_through();
  }
  // True if the output is a view of the only input: the same memory under another shape.
  [[nodiscard]] virtual bool is_view(const Lowering& lowering) const {
    (void)lowering;
    return false;
  }
  // Number of equal parts of its input's last dimension, of which it reads one. Gradients of parts are
  // concatenated, not added.
  [[nodiscard]] virtual std::int64_t parts() const { return 1; }
  // Number of equal allocations that hold the output: one for each step where steps are allocated separately.
  [[nodiscard]] virtual std::int64_t output_pieces(const LayerContext& site, const Lowering& lowering) const {
    (void)site, (void)lowering;
    return 1;
  }
  // True if the output may overwrite the only input.
  [[nodiscard]] virtual bool runs_in_place(const Lowering& lowering) const {
    (void)lowering;
    return false;
  }
};

// Throws ShapeMismatch unless there are `count` inputs.
void require_inputs(std::span<const Shape> inputs, std::size_t count);
// Throws ShapeMismatch unless all have as many rows as the first: one sample each, not one and a whole batch.
void require_same_rows(std::span<const Shape> inputs);
// The input {channels, height, width}; throws ShapeMismatch for other ranks.
[[nodiscard]] const Shape& image_input(std::span<const Shape> inputs);

// The only input, a score for each class, of a sample or of each position; throws ShapeMismatch for others.
[[nodiscard]] const Shape& class_scores(std::span<const Shape> inputs);

[[nodiscard]] ImageShape image_shape(const Shape& shape);  // of channels x height x width
// Pixels (or plain rows) by channels: what a bias is added to.
[[nodiscard]] MatrixShape channel_matrix(const Shape& shape);

// The last dimension, on which matrix products, layer norms and embeddings work, and all before it with the
// rows. Throws ShapeMismatch for a shape without dimensions.
[[nodiscard]] std::int64_t last_dimension(const Shape& shape);
[[nodiscard]] Size positions(const Shape& shape);
[[nodiscard]] MatrixShape position_matrix(const Shape& shape);  // positions x last dimension

[[nodiscard]] Size stored_bytes(const Shape& shape, const Precision& precision);

// A memory-bound kernel with `flops_per_element` operations on each element of `shape`. Its kernel shape is a
// vector unless the caller sets another one.
[[nodiscard]] Kernel memory_kernel(KernelKind kind, Phase phase, std::string_view op, const Shape& shape,
                                   std::int64_t flops_per_element, Size read_bytes, Size written_bytes);

// The kernel of a softmax, or of part of one, over the last dimension: it reads `reads` tensors of the shape
// and writes one.
[[nodiscard]] Kernel softmax_kernel(Phase phase, std::string_view op, const Shape& shape,
                                    const Precision& precision, std::int64_t flops_per_element,
                                    std::int64_t reads);

}  // namespace tbdsim
