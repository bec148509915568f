#include "graphs/linear_loss.h"

#include <bit>
#include <variant>

namespace tbdsim {
namespace {

using Role = LossPart::Role;

Size minus(Size a, Size b) { return {a.fixed - b.fixed, a.per_sample - b.per_sample}; }

// The part of a size that grows with the batch, divided; what weights take stays.
void divide(Size& size, std::int64_t parts) { size.per_sample = (size.per_sample + parts - 1) / parts; }

void divide_shape(KernelShape& shape, std::int64_t parts) {
  if (auto* gemm = std::get_if<GemmShape>(&shape)) {
    for (Size* size : {&gemm->m, &gemm->n, &gemm->k}) divide(*size, parts);
  } else if (auto* matrix = std::get_if<MatrixShape>(&shape)) {
    divide(matrix->rows, parts);
  } else if (auto* vector = std::get_if<VectorShape>(&shape)) {
    divide(vector->elements, parts);
  }
}

// The kernel on one part of the positions, as often as there are parts.
void run_by_parts(Kernel& kernel, std::int64_t parts) {
  if (kernel.read_bytes.per_sample == 0) return;  // of weights alone
  for (Size* size :
       {&kernel.flops, &kernel.macs, &kernel.read_bytes, &kernel.written_bytes, &kernel.scratch_bytes})
    divide(*size, parts);
  divide_shape(kernel.shape, parts);
  kernel.repeat = checked_multiply(kernel.repeat, parts);
}

bool makes_weight_gradient(const Kernel& kernel) {
  return kernel.kind == KernelKind::gemm && kernel.phase == Phase::backward_weights;
}

// Liger: grad_weight += torch.mm(...).float(): a copy in fp32, which a kernel adds.
void append_sum_of_parts(const GraphLayer& layer, const LoweringContext& how, std::int64_t parts,
                         std::vector<Kernel>& kernels) {
  const std::int64_t stored = how.precision.product_gradient_bytes();
  const Size weights =
      fixed_size(checked_multiply(last_dimension(layer.output), last_dimension(layer.input_shapes[0])));
  const auto add = [&](std::string_view op, std::int64_t read, std::int64_t written) {
    Kernel& kernel = kernels.emplace_back(memory_kernel(KernelKind::elementwise, Phase::backward_weights, op,
                                                        {weights, {}}, 1, weights * read, weights * written));
    kernel.scratch_bytes = weights * (stored + kFp32Bytes);
    kernel.repeat = parts;
  };
  if (stored < kFp32Bytes) add("cast", stored, kFp32Bytes);
  add("accumulate", stored + kFp32Bytes, stored);
}

void join_fused_linear(const LossPart& part, const GraphLayer& layer, const LoweringContext& how,
                       std::size_t first, std::vector<Kernel>& kernels) {
  const bool in_place = how.lowering.step_gradients == GradientAccumulation::in_place;
  bool sums = false;
  for (std::size_t k = first; k < kernels.size(); ++k) {
    run_by_parts(kernels[k], part.parts);
    if (!makes_weight_gradient(kernels[k])) continue;
    if (in_place) kernels[k].read_bytes += kernels[k].written_bytes;
    sums = !in_place;
  }
  if (sums && part.parts > 1) append_sum_of_parts(layer, how, part.parts, kernels);
}

Size statistics(const GraphLayer& layer) { return positions(layer.output) * kFp32Bytes; }

// The logarithm of the sum of exponentials of each position instead of its scores.
void cut_scores(const GraphLayer& layer, std::size_t first, std::vector<Kernel>& kernels) {
  for (std::size_t k = first; k < kernels.size(); ++k) {
    if (kernels[k].kind == KernelKind::gemm) kernels[k].written_bytes = statistics(layer);
  }
}

// The score of each label: the dot product of its weights with the position.
void cut_labels(const LossPart& part, const GraphLayer& layer, const LoweringContext& how, std::size_t first,
                std::vector<Kernel>& kernels) {
  const Shape features{positions(layer.input_shapes[0]), {part.features}};
  kernels.resize(first);
  kernels.push_back(memory_kernel(KernelKind::gather, Phase::forward, "indexed_dot", features, 2,
                                  stored_bytes(features, how.precision) * 2,
                                  positions(layer.input_shapes[0]) * kFp32Bytes));
  kernels.back().shape = position_matrix(features);
}

// Tiles of scores again, then gradients that read no scores.
void cut_gradients(const GraphLayer& layer, const LoweringContext& how, std::size_t first,
                   std::vector<Kernel>& kernels) {
  const Size scores = stored_bytes(layer.output, how.precision);
  for (std::size_t k = first; k < kernels.size(); ++k) {
    if (kernels[k].kind == KernelKind::gemm) kernels[k].read_bytes = minus(kernels[k].read_bytes, scores);
  }
  std::vector<Kernel> again;
  layer.spec.layer->forward(layer.site(), how, again);
  for (Kernel& kernel : again) kernel.phase = Phase::backward_data;
  cut_scores(layer, 0, again);
  kernels.insert(kernels.begin() + static_cast<std::ptrdiff_t>(first), again.begin(), again.end());
}

}  // namespace

std::vector<LossPart> loss_parts(const LayerGraph& graph, const Lowering& lowering) {
  std::vector<LossPart> all(graph.layers.size());
  const bool by_parts = lowering.loss == LossKernels::fused_linear;
  if (!by_parts && lowering.loss != LossKernels::cut) return all;
  std::vector<int> readers(graph.layers.size());
  for (const GraphLayer& layer : graph.layers) {
    for (const int input : layer.inputs) {
      if (input >= 0) ++readers[static_cast<std::size_t>(input)];
    }
  }
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    const GraphLayer& loss = graph.layers[i];
    if (loss.spec.type != "cross_entropy" || loss.inputs[0] < 0) continue;
    const auto at = static_cast<std::size_t>(loss.inputs[0]);
    const GraphLayer& product = graph.layers[at];
    if (product.spec.type != "fully_connected" || readers[at] != 1) continue;
    const std::int64_t features = last_dimension(product.input_shapes[0]);
    const std::int64_t words = last_dimension(product.output);
    // Positions are a power of two for the most part: then so is the number of parts.
    const auto ratio = static_cast<std::uint64_t>((words + features - 1) / features);
    const std::int64_t parts = by_parts ? static_cast<std::int64_t>(std::bit_floor(ratio)) : 1;
    all[at] = {Role::scores, parts, features};
    all[i] = {Role::loss, parts, features};
  }
  return all;
}

void join_forward(const LossPart& part, const GraphLayer& layer, const LoweringContext& how,
                  std::size_t first, std::vector<Kernel>& kernels) {
  if (part.role == Role::none) return;
  if (how.lowering.loss == LossKernels::fused_linear)
    join_fused_linear(part, layer, how, first, kernels);
  else if (part.role == Role::scores)
    cut_scores(layer, first, kernels);
  else
    cut_labels(part, layer, how, first, kernels);
}

void join_backward(const LossPart& part, const GraphLayer& layer, const LoweringContext& how,
                   std::size_t first, std::vector<Kernel>& kernels) {
  if (part.role != Role::scores) return;  // the loss has no kernel of its own going back
  if (how.lowering.loss == LossKernels::fused_linear)
    join_fused_linear(part, layer, how, first, kernels);
  else
    cut_gradients(layer, how, first, kernels);
}

Size held_at_once(const LossPart& part, const GraphLayer& layer, const Lowering& lowering, Size bytes) {
  if (part.role != Role::scores) return bytes;
  if (lowering.loss == LossKernels::cut) return statistics(layer);
  divide(bytes, part.parts);
  return bytes;
}

}  // namespace tbdsim
