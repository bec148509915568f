// One run of a graph within a pass of the training program: its kernels in order, and how long its tensors
// live. Indices into TrainingStep::kernels are the clock of lifetimes.
#pragma once

#include <vector>

#include "graphs/training_step.h"

namespace tbdsim {

// Appends to `step`, whose layers from `first_layer` on are the graph's. Call forward(), then backward()
// where the run has one, then what appends tensors.
class PassExpansion {
 public:
  PassExpansion(const LayerGraph& graph, Backward backward, std::int64_t repeat, const Expansion& how,
                int first_layer, TrainingStep& step);

  void forward();
  void backward();
  void feature_maps();
  void gradient_maps();

  // For every layer of the graph the first kernel of its backward pass.
  [[nodiscard]] std::vector<int> weight_gradient_births() const;

 private:
  struct Span {  // of kernels; where a layer has none, the next one
    int first = 0;
    int last = 0;
  };

  [[nodiscard]] int count() const { return static_cast<int>(graph_.layers.size()); }
  [[nodiscard]] const GraphLayer& layer(int i) const { return graph_.layers[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const std::vector<int>& consumers(int i) const {
    return consumers_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] const Span& forward_of(int i) const { return forward_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const Span& backward_of(int i) const { return backward_spans_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int gradient_sum(int i) const { return gradient_sum_[static_cast<std::size_t>(i)]; }
  // The layer as the first backward pass sees it: on the way to the graph's inputs every layer passes a
  // gradient on, and no weight gets one.
  [[nodiscard]] LayerSite site(int i) const;
  [[nodiscard]] bool needs_gradient(int i) const {
    const LayerSite at = site(i);
    return at.input_gradient || at.weight_gradient;
  }
  // Its backward pass runs and may read what the forward pass left.
  [[nodiscard]] bool reads_again(int i) const { return backward_ != Backward::none && needs_gradient(i); }
  // Readers of its output that hand a gradient back.
  [[nodiscard]] std::vector<int> gradient_readers(int i) const;
  // Its output's gradient comes from several readers, or from readers of parts.
  [[nodiscard]] bool gathers_gradients(int i) const;
  [[nodiscard]] std::int64_t parts_read(int reader) const { return layer(reader).spec.layer->parts(); }
  [[nodiscard]] Size part_bytes(Shape shape, std::int64_t parts) const;
  [[nodiscard]] BackwardNeeds needs(int i) const;
  [[nodiscard]] bool written_in_place(int i) const;

  template <class Emit>
  Span emit(int i, Emit append);
  void backward_of_layer(int i, const LayerSite& at, std::vector<Kernel>& out) const;
  void add_step_gradients(int i, const LayerSite& at, std::vector<Kernel>& out) const;
  void double_backward();
  [[nodiscard]] std::vector<bool> before_curved() const;
  [[nodiscard]] Kernel sum_of_gradients(int i) const;
  [[nodiscard]] std::vector<int> output_last_uses() const;
  [[nodiscard]] std::vector<int> gradient_last_uses() const;
  void second_order_maps();
  void graph_input(int k);
  void add_tensor(TensorRole role, int i, Size bytes, int first, int last);

  const LayerGraph& graph_;
  Backward backward_;
  std::int64_t repeat_;
  const Expansion& how_;
  int first_layer_;
  TrainingStep& step_;
  std::vector<std::vector<int>> consumers_;  // of each layer, in order
  std::vector<Span> forward_;
  std::vector<Span> backward_spans_;
  std::vector<Span> double_backward_spans_;  // of a gradient penalty
  std::vector<int> gradient_sum_;            // the kernel that sums the gradients of a layer's output, or -1
};

}  // namespace tbdsim
