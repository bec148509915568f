#include "graphs/layer.h"

namespace tbdsim {

void require_inputs(std::span<const Shape> inputs, std::size_t count) {
  if (inputs.size() == count) return;
  throw ShapeMismatch("has " + std::to_string(inputs.size()) + " inputs; expected " + std::to_string(count));
}

void require_same_rows(std::span<const Shape> inputs) {
  const auto text = [](const Size& rows) {
    return std::to_string(rows.fixed) + " + " + std::to_string(rows.per_sample) + " x batch";
  };
  for (const Shape& shape : inputs) {
    if (shape.rows == inputs[0].rows) continue;
    throw ShapeMismatch("inputs have " + text(inputs[0].rows) + " and " + text(shape.rows) +
                        " rows; expected as many of all");
  }
}

const Shape& image_input(std::span<const Shape> inputs) {
  require_inputs(inputs, 1);
  if (inputs[0].dims.size() != 3) {
    throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected channels x height x width");
  }
  return inputs[0];
}

const Shape& class_scores(std::span<const Shape> inputs) {
  require_inputs(inputs, 1);
  if (inputs[0].dims.empty() || inputs[0].dims.size() > 2) {
    throw ShapeMismatch("input has shape " + to_text(inputs[0]) +
                        "; expected one score for each class, of a sample or of each position");
  }
  return inputs[0];
}

ImageShape image_shape(const Shape& shape) {
  return {shape.rows, shape.dims[0], shape.dims[1], shape.dims[2]};
}

MatrixShape channel_matrix(const Shape& shape) {
  const std::int64_t channels = shape.dims[0];
  return {shape.rows * (elements_per_row(shape) / channels), channels};
}

std::int64_t last_dimension(const Shape& shape) {
  if (shape.dims.empty()) throw ShapeMismatch("input has no dimensions; expected at least one");
  return shape.dims.back();
}

Size positions(const Shape& shape) { return shape.rows * (elements_per_row(shape) / last_dimension(shape)); }

MatrixShape position_matrix(const Shape& shape) { return {positions(shape), last_dimension(shape)}; }

Size stored_bytes(const Shape& shape, const Precision& precision) {
  return elements(shape) * precision.storage_bytes;
}

Kernel memory_kernel(KernelKind kind, Phase phase, std::string_view op, const Shape& shape,
                     std::int64_t flops_per_element, Size read_bytes, Size written_bytes) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.phase = phase;
  kernel.op = op;
  kernel.flops = elements(shape) * flops_per_element;
  kernel.read_bytes = read_bytes;
  kernel.written_bytes = written_bytes;
  kernel.shape = VectorShape{elements(shape)};
  return kernel;
}

Kernel softmax_kernel(Phase phase, std::string_view op, const Shape& shape, const Precision& precision,
                      std::int64_t flops_per_element, std::int64_t reads) {
  const Size x = stored_bytes(shape, precision);
  Kernel kernel = memory_kernel(KernelKind::softmax, phase, op, shape, flops_per_element, x * reads, x);
  kernel.shape = position_matrix(shape);
  return kernel;
}

}  // namespace tbdsim
