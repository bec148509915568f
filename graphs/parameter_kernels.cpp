#include "graphs/parameter_kernels.h"

#include <algorithm>
#include <span>

#include "graphs/multi_tensor.h"
#include "graphs/optimizer_operators.h"
#include "graphs/orthogonal_update.h"

namespace tbdsim {
namespace {

// A kernel over so many words.
Kernel over_words(KernelKind kind, Phase phase, std::string_view op, Size words, std::int64_t flops,
                  std::int64_t read_bytes, std::int64_t written_bytes) {
  return memory_kernel(kind, phase, op, {words, {}}, flops, words * read_bytes, words * written_bytes);
}

Size part(const Size& size, std::int64_t parts) { return {size.fixed / parts, size.per_sample / parts}; }

// Memory bandwidth of all cores of a host, in bytes per second: half of the 77 GB/s of four channels of
// DDR4-2400 (the TBD paper's Xeon E5-2680 v4). An estimate.
constexpr std::int64_t kHostBytesPerNanosecond = 40;

// A transfer of `words` words that belongs to no single layer.
Kernel bus_copy(Phase phase, std::string_view op, const Size& words, std::int64_t word_bytes = kFp32Bytes) {
  const bool to_host = op == kDeviceToHost;
  const Size bytes = words * word_bytes;
  return memory_kernel(KernelKind::transfer, phase, op, {words, {}}, 0, to_host ? bytes : Size{},
                       to_host ? Size{} : bytes);
}

}  // namespace

Size gradient_elements(const ParameterTensor& tensor, const Lowering& lowering) {
  const bool rows = tensor.sparse || lowering.embedding_gradient == TableGradient::sparse;
  return rows && tensor.gradient_rows != Size{} ? tensor.gradient_rows : fixed_size(tensor.elements);
}

Size updated_elements(const ParameterTensor& tensor) {
  return tensor.sparse ? tensor.gradient_rows : fixed_size(tensor.elements);
}

Size state_of(const Optimizer& optimizer, const ParameterTensor& tensor, const Size& parameters,
              std::int64_t word_bytes) {
  const bool by_rows = optimizer.row_state && tensor.row > 0;
  return (by_rows ? part(parameters, tensor.row) : parameters) * state_bytes(optimizer, word_bytes);
}

void ParameterKernels::append(Kernel kernel, int layer) {
  kernel.layer = first_layer_ + layer;
  kernel.repeat = repeat_;
  step_.kernels.push_back(std::move(kernel));
}

void ParameterKernels::append_for_all(Kernel kernel) {
  append(std::move(kernel), 0);
  step_.kernels.back().layer = -1;
}

void ParameterKernels::append_together(std::span<const Kernel> kernels, std::int64_t lists) {
  if (!fuses()) {
    for (const Kernel& kernel : kernels) append(kernel, kernel.layer);
    return;
  }
  for (const Kernel& launch : multi_tensor_kernels(kernels, lists)) {
    append(launch, std::max(0, launch.layer));
    if (launch.layer < 0) step_.kernels.back().layer = -1;
  }
}

void ParameterKernels::append_or_add(const Kernel& kernel, int layer, std::size_t fused) {
  if (step_.kernels.size() <= fused) {
    append(kernel, layer);
    return;
  }
  Kernel& all = step_.kernels[fused];
  all.layer = -1;
  std::get<VectorShape>(all.shape).elements += std::get<VectorShape>(kernel.shape).elements;
  all.flops += kernel.flops;
  all.read_bytes += kernel.read_bytes;
  all.written_bytes += kernel.written_bytes;
  all.scratch_bytes += kernel.scratch_bytes;
}

void ParameterKernels::over_gradients(Phase phase, std::string_view op, KernelKind kind, std::int64_t flops,
                                      bool writes) {
  const std::int64_t bytes = how_.precision.gradient_bytes;
  std::vector<Kernel> kernels;
  each_trained(graph_, [&](int layer, const ParameterTensor& tensor) {
    const Size words = gradient_elements(tensor, how_.lowering);
    kernels.push_back(over_words(kind, phase, op, words, flops, bytes, writes ? bytes : 0));
    kernels.back().layer = layer;
  });
  append_together(kernels, 1);
}

void ParameterKernels::casts() {
  if (!how_.precision.master_weights) return;
  for (std::size_t i = 0; i < graph_.layers.size(); ++i) {
    for (const ParameterTensor& tensor : graph_.layers[i].parameters) {
      if (!tensor.cast) continue;
      append(over_words(KernelKind::elementwise, Phase::forward, "cast", fixed_size(tensor.elements), 1,
                        kFp32Bytes, how_.precision.storage_bytes),
             static_cast<int>(i));
    }
  }
}

void ParameterKernels::gradient_casts() {
  if (!how_.precision.master_weights) return;
  each_trained(graph_, [&](int layer, const ParameterTensor& tensor) {
    if (!tensor.cast) return;
    append(over_words(KernelKind::elementwise, Phase::backward_weights, "cast",
                      gradient_elements(tensor, how_.lowering), 1, how_.precision.storage_bytes, kFp32Bytes),
           layer);
  });
}

void ParameterKernels::fill_gradients() {
  each_trained(graph_, [&](int layer, const ParameterTensor& tensor) {
    if (tensor.sparse) return;  // it has no rows yet
    append(over_words(KernelKind::elementwise, Phase::backward_weights, "fill",
                      gradient_elements(tensor, how_.lowering), 0, 0, how_.precision.gradient_bytes),
           layer);
  });
}

void ParameterKernels::unscale() {
  if (how_.precision.loss_scaling && !how_.lowering.scale_in_update)
    over_gradients(Phase::backward_weights, "unscale", KernelKind::elementwise, 2, true);
}

// Part of the update: of gradients that all GPUs have added up. clip_grad_value_ over lists of tensors limits
// them from below, then from above (torch/nn/utils/clip_grad.py from PyTorch 2.1 on).
void ParameterKernels::clip(Clip clip) {
  if (clip == Clip::norm) {
    over_gradients(Phase::update, "gradient_norm", KernelKind::reduction, 2, false);
    if (!how_.lowering.scale_in_update)
      over_gradients(Phase::update, "clip", KernelKind::elementwise, 1, true);
  } else if (clip == Clip::value) {
    const bool by_lists = how_.lowering.update == UpdateKernels::foreach;
    for (int side = 0; side < (by_lists ? 2 : 1); ++side)
      over_gradients(Phase::update, "clip", KernelKind::elementwise, by_lists ? 1 : 2, true);
  }
}

// TensorFlow programs write it so: l2_loss of every weight in the forward graph; back, the weight times the
// decay, and a sum with the gradient of the other losses.
void ParameterKernels::graph_decay() {
  each_trained(graph_, [&](int layer, const ParameterTensor& tensor) {
    if (!tensor.cast || tensor.name == "bias") return;
    const Size words = fixed_size(tensor.elements);
    append(over_words(KernelKind::reduction, Phase::backward_weights, "l2_loss", words, 2, kFp32Bytes, 0),
           layer);
    append(over_words(KernelKind::elementwise, Phase::backward_weights, "l2_gradient", words, 1, kFp32Bytes,
                      kFp32Bytes),
           layer);
    append(over_words(KernelKind::elementwise, Phase::backward_weights, "l2_sum", words, 1, 2 * kFp32Bytes,
                      kFp32Bytes),
           layer);
  });
}

// a.mul_(mu), (1 - mu) * w, a.add_(): three operators for every tensor of the state, in a loop of the program
// (NVIDIA/DeepLearningExamples@729963dd, PyTorch/Classification/ConvNets, models/common.py, EMA).
void ParameterKernels::average() {
  for (std::size_t i = 0; i < graph_.layers.size(); ++i) {
    for (const ParameterTensor& tensor : graph_.layers[i].parameters) {
      const Size words = fixed_size(tensor.elements);
      for (const std::int64_t reads : {1, 1, 2})
        append(over_words(KernelKind::elementwise, Phase::update, "average", words, 1, reads * kFp32Bytes,
                          kFp32Bytes),
               static_cast<int>(i));
    }
  }
}

// torch.nn.utils.clip_grad_norm_ of one tensor: its norm, stacked, the norm of that, + 1e-6, max /. Then the
// host reads whether the factor is below 1 (up to PyTorch 1.9; mostly it is not, and no gradient is scaled),
// or all gradients are multiplied by a factor of at most 1.
void ParameterKernels::clip_one(int layer, const ParameterTensor& tensor) {
  constexpr int kScalarOperators = 4;
  const std::int64_t bytes = how_.precision.gradient_bytes;
  const Size words = gradient_elements(tensor, how_.lowering);
  append(over_words(KernelKind::reduction, Phase::update, "gradient_norm", words, 2, bytes, 0), layer);
  append(over_words(KernelKind::elementwise, Phase::update, "clip_factor", fixed_size(1), 1, kFp32Bytes,
                    kFp32Bytes),
         layer);
  step_.kernels.back().repeat *= kScalarOperators;
  if (how_.lowering.clip_decision == ClipDecision::host) {
    append(bus_copy(Phase::update, kDeviceToHost, fixed_size(1)), layer);
  } else {
    append(over_words(KernelKind::elementwise, Phase::update, "clip", words, 1, bytes, bytes), layer);
  }
}

template <class Visit>
void ParameterKernels::each_by_element(const Optimizer& optimizer, Visit visit) const {
  each_trained(graph_, [&](int layer, const ParameterTensor& tensor) {
    const GraphLayer& owner = graph_.layers[static_cast<std::size_t>(layer)];
    if (!optimizer.orthogonal || !matrices_of(owner, tensor)) visit(layer, tensor);
  });
}

void ParameterKernels::update_orthogonally(const Optimizer& optimizer) {
  each_trained(graph_, [&](int layer, const ParameterTensor& tensor) {
    const auto matrices = matrices_of(graph_.layers[static_cast<std::size_t>(layer)], tensor);
    if (!matrices) return;
    for (Kernel& kernel : orthogonal_update(*matrices, optimizer, how_.precision))
      append(std::move(kernel), layer);
  });
}

// PyTorch multiplies the rows of a sparse gradient by -lr, in a tensor of their own, before they are added to
// the table (aten/src/ATen/native/sparse/cuda/SparseCUDATensorMath.cu, add_out_dense_sparse_cuda; from
// memory).
void ParameterKernels::scale_rows() {
  each_trained(graph_, [&](int layer, const ParameterTensor& tensor) {
    if (!tensor.sparse) return;
    append(over_words(KernelKind::elementwise, Phase::update, "mul", gradient_elements(tensor, how_.lowering),
                      1, updated_bytes(), updated_bytes()),
           layer);
  });
}

// Tensor by tensor, or operator by operator over all tensors. New tensors live until the last operator of an
// update, so that every operator has them as temporaries.
void ParameterKernels::update_by_operators(const Optimizer& updated_by) {
  const std::span<const OptimizerOperator> operators = operators_of(rule_by_element(updated_by));
  const bool makes_tensors = std::ranges::any_of(operators, &OptimizerOperator::new_tensor);
  const auto kernel_of = [&](const OptimizerOperator& term, const ParameterTensor& tensor) {
    const Size words = updated_elements(tensor);
    const Size gradient = term.reads_gradient ? gradient_elements(tensor, how_.lowering) : Size{};
    const Size reads = words * (term.reads - (term.reads_gradient ? 1 : 0)) + gradient;
    const Size writes = words * term.writes;
    Kernel kernel = memory_kernel(KernelKind::update, Phase::update, term.name, {words, {}}, term.flops,
                                  reads * updated_bytes(), writes * updated_bytes());
    if (makes_tensors) kernel.scratch_bytes = words * updated_bytes();
    return kernel;
  };
  if (!fuses()) {
    each_by_element(updated_by, [&](int layer, const ParameterTensor& tensor) {
      for (const OptimizerOperator& term : operators) append(kernel_of(term, tensor), layer);
    });
    return;
  }
  std::vector<Kernel> kernels;
  for (const OptimizerOperator& term : operators) {
    kernels.clear();
    each_by_element(updated_by, [&](int layer, const ParameterTensor& tensor) {
      kernels.push_back(kernel_of(term, tensor));
      kernels.back().layer = layer;
    });
    append_together(kernels, term.reads + (term.new_tensor ? 1 : 0));
  }
}

void ParameterKernels::update(const Optimizer& updated_by) {
  if (updated_by.name == "none") return;
  if (updated_by.orthogonal) update_orthogonally(updated_by);
  const Optimizer& optimizer = rule_by_element(updated_by);
  if (by_operators() && !operators_of(optimizer).empty()) {
    scale_rows();
    update_by_operators(updated_by);
    if (how_.precision.fp32_copy) copy_back();
    return;
  }
  const std::size_t first = step_.kernels.size();
  std::vector<Kernel> together;
  each_by_element(updated_by, [&](int layer, const ParameterTensor& tensor) {
    const Size words = updated_elements(tensor);
    // The weight and the optimizer's state; the gradient.
    const Size kept =
        words * updated_bytes() + state_of(optimizer, tensor, words, how_.precision.state_bytes);
    const Size gradient = gradient_elements(tensor, how_.lowering) * how_.precision.gradient_bytes;
    const Size reads = kept + gradient + words * (optimizer.further_reads * updated_bytes());
    const Size stored = words * (how_.precision.fp32_copy ? how_.precision.weight_bytes : 0);
    const Size writes = kept + stored + words * (optimizer.further_writes * updated_bytes());
    if (optimizer.own_operators == 0) {
      together.push_back(memory_kernel(KernelKind::update, Phase::update, optimizer.name, {words, {}},
                                       optimizer.flops, reads, writes));
      together.back().layer = layer;
      return;
    }
    const std::int64_t operators = optimizer.own_operators;
    if (operators > 1) clip_one(layer, tensor);
    Kernel each = memory_kernel(KernelKind::elementwise, Phase::update, optimizer.name, {words, {}},
                                optimizer.flops, part(reads, operators), part(writes, operators));
    each.flops = part(each.flops, operators);
    if (operators == 1) {
      append_or_add(each, layer, first);
      return;
    }
    append(each, layer);
    step_.kernels.back().repeat *= operators;
  });
  append_together(together, 2 + optimizer.state_words);  // the weight, its gradient, its state
}

void ParameterKernels::copy_back() {
  std::vector<Kernel> kernels;
  each_trained(graph_, [&](int layer, const ParameterTensor& tensor) {
    kernels.push_back(over_words(KernelKind::elementwise, Phase::update, "cast", fixed_size(tensor.elements),
                                 0, kFp32Bytes, how_.precision.weight_bytes));
    kernels.back().layer = layer;
  });
  append_together(kernels, 2);
}

void ParameterKernels::fetch() {
  Size words;
  for (const GraphLayer& layer : graph_.layers) {
    for (const ParameterTensor& tensor : layer.parameters) words += fixed_size(tensor.elements);
  }
  append_for_all(bus_copy(Phase::forward, kHostToDevice, words));
}

void ParameterKernels::fetch_updated() {
  Size words;
  each_trained(graph_, [&](int, const ParameterTensor& tensor) { words += fixed_size(tensor.elements); });
  append_for_all(bus_copy(Phase::update, kHostToDevice, words, how_.precision.weight_bytes));
}

void ParameterKernels::update_on_host(const Optimizer& optimizer, Clip clip) {
  if (optimizer.name == "none") return;
  const std::int64_t clipped = clip == Clip::norm ? 3 : clip == Clip::value ? 2 : 0;  // passes over gradients
  Size gradients;
  Size bytes;
  each_trained(graph_, [&](int, const ParameterTensor& tensor) {
    const Size words = fixed_size(tensor.elements);
    const Size gradient = gradient_elements(tensor, how_.lowering);
    gradients += gradient;
    const std::int64_t passes =
        2 * (1 + optimizer.state_words) + optimizer.further_reads + optimizer.further_writes;
    bytes += words * (passes * kFp32Bytes) + gradient * ((1 + clipped) * kFp32Bytes);
  });
  Kernel copy = bus_copy(Phase::update, kDeviceToHost, gradients, how_.precision.gradient_bytes);
  copy.host_nanoseconds = {bytes.fixed / kHostBytesPerNanosecond, bytes.per_sample / kHostBytesPerNanosecond};
  append_for_all(std::move(copy));
}

void ParameterKernels::copy() {
  for (int copies = 0; copies < how_.lowering.parameter_copies; ++copies) {
    each_trained(graph_, [&](int layer, const ParameterTensor& tensor) {
      append(over_words(KernelKind::elementwise, Phase::update, "copy", fixed_size(tensor.elements), 0,
                        kFp32Bytes, kFp32Bytes),
             layer);
    });
  }
}

}  // namespace tbdsim
