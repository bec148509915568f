#include "graphs/training_step.h"

#include <algorithm>

namespace tbdsim {
namespace {

// The kernels and tensors of one graph in one pass. Kernel indices are the clock of tensor lifetimes.
class PassExpansion {
 public:
  PassExpansion(const LayerGraph& graph, const TrainingPass& pass, const Expansion& how, int first_layer,
                TrainingStep& step)
      : graph_(graph), pass_(pass), how_(how), first_layer_(first_layer), step_(step), consumers_(graph.layers.size()) {
    for (int i = 0; i < count(); ++i) {
      for (const int input : layer(i).inputs) {
        if (input >= 0) consumers_[static_cast<std::size_t>(input)].push_back(i);
      }
    }
    forward_.resize(graph.layers.size());
    backward_.resize(graph.layers.size());
    gradient_sum_.assign(graph.layers.size(), -1);
  }

  void forward() {
    for (int i = 0; i < count(); ++i) {
      forward_[static_cast<std::size_t>(i)] =
          emit(i, [&](std::vector<Kernel>& out) { layer(i).spec.layer->forward(layer(i).site(), how_, out); });
    }
  }

  void backward() {
    for (int i = count() - 1; i >= 0; --i) {
      const bool needed = needs_gradient(i);
      backward_[static_cast<std::size_t>(i)] = emit(i, [&](std::vector<Kernel>& out) {
        if (!needed) return;
        if (consumers(i).size() > 1) sum_gradients(i, out);
        layer(i).spec.layer->backward(layer(i).site(), how_, out);
      });
      if (needed && consumers(i).size() > 1) gradient_sum_[static_cast<std::size_t>(i)] = backward_of(i).first;
    }
  }

  void feature_maps() {
    const std::vector<int> last_use = output_last_uses();
    for (int i = 0; i < count(); ++i) {
      if (written_in_place(i)) continue;
      add_tensor(TensorRole::feature_map, i, stored_bytes(layer(i).output, how_.precision), forward_of(i).first,
                 last_use[static_cast<std::size_t>(i)]);
      const Size extra = needs(i).extra_bytes;
      if (pass_.backward && extra != Size{}) {
        add_tensor(TensorRole::feature_map, i, extra, forward_of(i).first, backward_of(i).last);
      }
    }
    for (std::size_t k = 0; k < graph_.inputs.size(); ++k) graph_input(static_cast<int>(k));
  }

  // Each reader of a tensor contributes a gradient, which lives from that reader's backward kernels until the sum;
  // the sum is made in one of them and lives until the backward kernels of the layer that made the tensor.
  void gradient_maps() {
    const std::vector<int> last_use = gradient_last_uses();
    for (int i = 0; i < count(); ++i) {
      if (!needs_gradient(i)) continue;
      const Size bytes = stored_bytes(layer(i).output, how_.precision);
      const int sum = gradient_sum_[static_cast<std::size_t>(i)];
      bool have_sum = sum < 0;
      for (const int reader : consumers(i)) {
        if (layer(reader).spec.layer->passes_gradient_through()) continue;  // the reader's own gradient serves
        const bool until_the_end = sum < 0 || !have_sum;
        add_tensor(TensorRole::gradient_map, i, bytes, backward_of(reader).first,
                   until_the_end ? last_use[static_cast<std::size_t>(i)] : sum);
        have_sum = true;
      }
      if (!have_sum) add_tensor(TensorRole::gradient_map, i, bytes, sum, last_use[static_cast<std::size_t>(i)]);
    }
  }

  // The first kernel that writes weight gradients of layer i.
  [[nodiscard]] int weight_gradient_birth(int i) const { return backward_of(i).first; }

 private:
  struct Span {
    int first = 0;
    int last = 0;
  };

  [[nodiscard]] int count() const { return static_cast<int>(graph_.layers.size()); }
  [[nodiscard]] const GraphLayer& layer(int i) const { return graph_.layers[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const std::vector<int>& consumers(int i) const { return consumers_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const Span& forward_of(int i) const { return forward_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const Span& backward_of(int i) const { return backward_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] bool needs_gradient(int i) const { return layer(i).input_gradient || layer(i).weight_gradient; }
  [[nodiscard]] BackwardNeeds needs(int i) const {
    return layer(i).spec.layer->backward_needs(layer(i).site(), how_);
  }

  template <class Emit>
  Span emit(int i, Emit append) {
    const std::size_t before = step_.kernels.size();
    append(step_.kernels);
    for (std::size_t k = before; k < step_.kernels.size(); ++k) {
      step_.kernels[k].layer = first_layer_ + i;
      step_.kernels[k].repeat = pass_.repeat;
    }
    const int first = static_cast<int>(before);
    return {first, std::max(first, static_cast<int>(step_.kernels.size()) - 1)};
  }

  void sum_gradients(int i, std::vector<Kernel>& out) const {
    const Shape& shape = layer(i).output;
    const auto terms = static_cast<std::int64_t>(consumers(i).size());
    const Size bytes = stored_bytes(shape, how_.precision);
    out.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "gradient_sum", shape, terms - 1,
                                bytes * terms, bytes));
  }

  // Layer i overwrites its input's buffer: it may, and nobody else reads that buffer later.
  [[nodiscard]] bool written_in_place(int i) const {
    if (!layer(i).spec.layer->runs_in_place(how_.lowering) || layer(i).inputs.size() != 1) return false;
    const int source = layer(i).inputs[0];
    return source >= 0 && consumers(source).size() == 1 && !(pass_.backward && needs(source).output);
  }

  // For every layer the last kernel that needs its output, also under the name of a reader that overwrites it.
  [[nodiscard]] std::vector<int> output_last_uses() const {
    std::vector<int> last_use(graph_.layers.size());
    for (int i = count() - 1; i >= 0; --i) {  // readers stand behind what they read
      int last = forward_of(i).last;
      if (reads_again(i) && needs(i).output) last = std::max(last, backward_of(i).last);
      for (const int reader : consumers(i)) {
        last = std::max(last, forward_of(reader).last);
        if (reads_again(reader) && needs(reader).inputs) last = std::max(last, backward_of(reader).last);
        if (written_in_place(reader)) last = std::max(last, last_use[static_cast<std::size_t>(reader)]);
      }
      last_use[static_cast<std::size_t>(i)] = last;
    }
    return last_use;
  }

  // For every layer the last kernel that needs its output's gradient. A layer that passes its gradient through
  // hands the same tensor on to the layers it reads.
  [[nodiscard]] std::vector<int> gradient_last_uses() const {
    std::vector<int> last_use(graph_.layers.size());
    for (int i = 0; i < count(); ++i) {
      int last = backward_of(i).last;
      for (const int input : layer(i).inputs) {
        if (!layer(i).spec.layer->passes_gradient_through() || input < 0 || !needs_gradient(input)) continue;
        const int sum = gradient_sum_[static_cast<std::size_t>(input)];
        last = std::max(last, sum >= 0 ? sum : last_use[static_cast<std::size_t>(input)]);
      }
      last_use[static_cast<std::size_t>(i)] = last;
    }
    return last_use;
  }

  // Its backward pass runs and may read what the forward pass left.
  [[nodiscard]] bool reads_again(int i) const { return pass_.backward && needs_gradient(i); }

  void graph_input(int k) {
    int last = static_cast<int>(step_.kernels.size());
    int first = last;
    last = 0;
    for (int i = 0; i < count(); ++i) {
      for (const int input : layer(i).inputs) {
        if (input != -1 - k) continue;
        first = std::min(first, forward_of(i).first);
        last = std::max(last, forward_of(i).last);
        if (reads_again(i) && needs(i).inputs) last = std::max(last, backward_of(i).last);
      }
    }
    const Shape& shape = graph_.inputs[static_cast<std::size_t>(k)].shape;
    add_tensor(TensorRole::feature_map, -1 - first_layer_, stored_bytes(shape, how_.precision), std::min(first, last),
               last);
  }

  void add_tensor(TensorRole role, int i, Size bytes, int first, int last) {
    step_.tensors.push_back({role, first_layer_ + i, bytes, first, last});
  }

  const LayerGraph& graph_;
  const TrainingPass& pass_;
  const Expansion& how_;
  int first_layer_;
  TrainingStep& step_;
  std::vector<std::vector<int>> consumers_;
  std::vector<Span> forward_;
  std::vector<Span> backward_;
  std::vector<int> gradient_sum_;  // index of the kernel that sums a tensor's gradients, or -1
};

// Storage of a parameter's gradient: cast parameters have gradients of the low precision.
std::int64_t gradient_bytes(const ParameterTensor& tensor, const Precision& precision) {
  return tensor.cast ? precision.storage_bytes : kFp32Bytes;
}

void append_casts(const LayerGraph& graph, int first_layer, const Precision& precision, TrainingStep& step) {
  if (!precision.master_weights) return;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      if (!tensor.cast) continue;
      Kernel cast = memory_kernel(KernelKind::elementwise, Phase::forward, "cast", {fixed_size(tensor.elements), {}},
                                  1, fixed_size(tensor.elements) * kFp32Bytes,
                                  fixed_size(tensor.elements) * precision.storage_bytes);
      cast.layer = first_layer + static_cast<int>(i);
      step.kernels.push_back(cast);
    }
  }
}

void append_updates(const LayerGraph& graph, int first_layer, const Optimizer& optimizer, const Expansion& how,
                    std::int64_t repeat, TrainingStep& step) {
  if (optimizer.name == "none") return;
  const std::size_t before = step.kernels.size();
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    if (!graph.layers[i].weight_gradient) continue;
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      if (!tensor.trained) continue;
      const Size words = fixed_size(tensor.elements);
      const std::int64_t kept = (1 + optimizer.state_words) * kFp32Bytes;  // the weight and the optimizer's state
      Kernel update = memory_kernel(KernelKind::update, Phase::update, optimizer.name, {words, {}}, optimizer.flops,
                                    words * (kept + gradient_bytes(tensor, how.precision)), words * kept);
      update.layer = first_layer + static_cast<int>(i);
      update.repeat = repeat;
      const bool fuse = how.lowering.update == UpdateKernels::fused && step.kernels.size() > before;
      if (!fuse) {
        step.kernels.push_back(update);
        continue;
      }
      Kernel& all = step.kernels.back();
      all.layer = -1;
      all.flops += update.flops;
      all.read_bytes += update.read_bytes;
      all.written_bytes += update.written_bytes;
    }
  }
}

// Weights, their gradients and what the optimizer keeps; they live as long as the model.
void append_parameter_tensors(const LayerGraph& graph, int first_layer, const Model& model, const Expansion& how,
                              TrainingStep& step) {
  const int last = std::max(0, static_cast<int>(step.kernels.size()) - 1);
  const std::int64_t kept_bytes = (model.variant.optimizer.state_words + how.lowering.parameter_copies) * kFp32Bytes;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      const Size words = fixed_size(tensor.elements);
      const int at = first_layer + static_cast<int>(i);
      const std::int64_t cast = tensor.cast && how.precision.master_weights ? how.precision.storage_bytes : 0;
      step.tensors.push_back({TensorRole::weights, at, words * (kFp32Bytes + cast), 0, last});
      const bool trained = tensor.trained && graph.layers[i].weight_gradient;
      if (trained && kept_bytes > 0) step.tensors.push_back({TensorRole::dynamic, at, words * kept_bytes, 0, last});
    }
  }
}

void append_weight_gradients(const LayerGraph& graph, int first_layer, const PassExpansion& pass,
                             const Expansion& how, TrainingStep& step) {
  const int last = std::max(0, static_cast<int>(step.kernels.size()) - 1);
  const bool persistent = how.lowering.weight_gradients == GradientStorage::persistent;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    if (!graph.layers[i].weight_gradient) continue;
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      if (!tensor.trained) continue;
      step.tensors.push_back({TensorRole::weight_gradients, first_layer + static_cast<int>(i),
                              fixed_size(tensor.elements) * gradient_bytes(tensor, how.precision),
                              persistent ? 0 : pass.weight_gradient_birth(static_cast<int>(i)), last});
    }
  }
}

LayerSummary summarise(const GraphLayer& layer) {
  LayerSummary summary{.name = layer.spec.name, .type = layer.spec.type, .output = layer.output, .forward_macs = {},
                       .training_macs = {}};
  for (const ParameterTensor& tensor : layer.parameters) {
    std::int64_t& sum = !tensor.trained        ? summary.statistics
                        : layer.spec.frozen ? summary.frozen_parameters
                                               : summary.trained_parameters;
    sum = checked_add(sum, tensor.elements);
  }
  return summary;
}

void count_macs(TrainingStep& step) {
  for (const Kernel& kernel : step.kernels) {
    if (kernel.layer < 0) continue;
    LayerSummary& layer = step.layers[static_cast<std::size_t>(kernel.layer)];
    if (kernel.phase == Phase::forward) layer.forward_macs += kernel.macs * kernel.repeat;
    layer.training_macs += kernel.macs * kernel.repeat;
  }
}

TrainingStep expand(const Model& model, const Expansion& how) {
  TrainingStep step;
  step.sample = model.sample;
  std::map<std::string, int> first_layers;
  for (const auto& [name, graph] : model.graphs) {
    first_layers[name] = static_cast<int>(step.layers.size());
    for (const GraphLayer& layer : graph.layers) step.layers.push_back(summarise(layer));
    append_casts(graph, first_layers[name], how.precision, step);
  }
  for (const TrainingPass& pass : model.training) {
    const LayerGraph& graph = model.graphs.at(pass.graph);
    const int first_layer = first_layers[pass.graph];
    PassExpansion expansion(graph, pass, how, first_layer, step);
    expansion.forward();
    if (pass.backward) expansion.backward();
    if (pass.update) append_updates(graph, first_layer, model.variant.optimizer, how, pass.repeat, step);
    expansion.feature_maps();
    if (pass.backward) {
      expansion.gradient_maps();
      append_weight_gradients(graph, first_layer, expansion, how, step);
    }
  }
  for (const auto& [name, graph] : model.graphs) append_parameter_tensors(graph, first_layers[name], model, how, step);
  count_macs(step);
  return step;
}

}  // namespace

TrainingStep expand_training_step(const Model& model, const Lowering& lowering, const Precision& precision) {
  try {
    return expand(model, {lowering, precision});
  } catch (const std::overflow_error& overflow) {
    throw ModelError("model " + model.name + ": " + overflow.what() + "; expected smaller layers");
  }
}

}  // namespace tbdsim
