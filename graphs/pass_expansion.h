// One run of a graph within a pass of the training program: its kernels in order, and how long its tensors
// live. Indices into TrainingStep::kernels are the clock of lifetimes.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "graphs/training_step.h"

namespace tbdsim {

// Appends to `step`, whose layers from `first_layer` on are the graph's. Call forward(), then backward()
// where the run has one, then what appends tensors. What a gradient penalty adds is in gradient_penalty.cpp,
// what runs in no order in pass_chains.cpp.
class PassExpansion {
 public:
  PassExpansion(const LayerGraph& graph, Backward backward, std::int64_t repeat, const LoweringContext& how,
                int first_layer, TrainingStep& step);

  void forward();
  // `additions` of the `repeat` runs add their gradients of weights to gradients that are there already.
  void backward(std::int64_t additions = 0);
  void feature_maps();
  // Gradients of the graph's inputs live until `end`, the last backward kernel of the pass: earlier runs read
  // them.
  void gradient_maps(int end);

  // For every layer of the graph the first kernel that may write a gradient of its weights.
  [[nodiscard]] std::vector<int> weight_gradient_births() const;

 private:
  struct Span {  // of kernels; where a layer has none, the next one
    int first = 0;
    int last = 0;
  };

  struct Uses {  // of a layer's output: kernels
    int last = 0;
    int last_forward = 0;
    int first_again = -1;  // of the backward pass; -1: none
    void again_from(int kernel) { first_again = first_again < 0 ? kernel : std::min(first_again, kernel); }
  };

  struct Gradient {          // one of a layer's output
    int born = 0;            // the kernel that writes it
    bool map = true;         // a tensor of its own, and not another one passed through
    std::int64_t parts = 1;  // it is one of so many parts
  };

  [[nodiscard]] int count() const { return static_cast<int>(graph_.layers.size()); }
  [[nodiscard]] const GraphLayer& layer(int i) const { return graph_.layers[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const std::vector<int>& consumers(int i) const {
    return consumers_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] const Span& forward_of(int i) const { return forward_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const Span& backward_of(int i) const { return backward_spans_[static_cast<std::size_t>(i)]; }
  // The layer as the first backward pass sees it: on the way to the graph's inputs every layer passes a
  // gradient on, and no weight gets one.
  [[nodiscard]] LayerContext site(int i) const;
  [[nodiscard]] bool needs_gradient(int i) const {
    const LayerContext at = site(i);
    return at.input_gradient || at.weight_gradient;
  }
  // Its backward pass runs and may read what the forward pass left.
  [[nodiscard]] bool reads_again(int i) const { return backward_ != Backward::none && needs_gradient(i); }
  // Readers of its output that hand a gradient back.
  [[nodiscard]] std::vector<int> gradient_readers(int i) const;
  // The same of graph input k, where the pass goes back to it.
  [[nodiscard]] std::vector<int> input_gradient_readers(std::size_t k) const;
  [[nodiscard]] std::vector<Gradient> gradients_from(const std::vector<int>& readers) const;
  // There are several, or parts: a kernel puts them together.
  [[nodiscard]] static bool gathers(const std::vector<Gradient>& gradients);
  [[nodiscard]] Size part_bytes(Shape shape, std::int64_t parts) const;
  // The last kernel that reads what the forward pass left.
  [[nodiscard]] int last_reading_again(int i) const;
  [[nodiscard]] BackwardNeeds needs(int i) const;
  [[nodiscard]] bool written_in_place(int i) const;

  // Does `work` for layer i. Sizes beyond 64 bits are told with its place.
  void at_layer(int i, const std::function<void()>& work) const;
  // Appends what `append` does as kernels of layer i, in each of its steps or, of whole tensors, once.
  Span emit(int i, const std::function<void(std::vector<Kernel>&)>& append) {
    return emit(i, layer(i).steps, append);
  }
  Span emit(int i, std::int64_t steps, const std::function<void(std::vector<Kernel>&)>& append);
  // `adds`: to gradients of weights that are there already.
  void backward_of_layer(int i, const LayerContext& at, bool adds, std::vector<Kernel>& out) const;
  // What of these kernels makes gradients of weights adds to them in place, where the lowering has it so.
  void add_in_place(std::size_t first, std::vector<Kernel>& kernels) const;
  void add_step_gradients(int i, const LayerContext& at, std::vector<Kernel>& out) const;
  // Appends kernels that add gradients of the layer's weights, all or the first, to what is there.
  void add_to_gradients(int i, bool all, std::int64_t times, Span& span);
  [[nodiscard]] Kernel sum_of_gradients(const Shape& shape, const std::vector<Gradient>& gradients) const;
  void sum_gradients_of_inputs();
  [[nodiscard]] std::vector<Uses> output_uses() const;
  // `inputs_end`: the last kernel that needs gradients of the graph's inputs; -1 where they have none.
  [[nodiscard]] std::vector<int> gradient_last_uses(const std::vector<Span>& spans,
                                                    const std::vector<int>& sums, int inputs_end) const;
  void feature_map(int i, const Uses& uses);
  void gradients_of(int i, const Shape& shape, const std::vector<Gradient>& gradients, int sum, int end);
  void graph_input(int k);

  void double_backward();
  void slopes();
  void along_the_graph();
  void back_from_curved();
  void forward_chains();
  void backward_chains();
  [[nodiscard]] std::vector<Gradient> gradients_on_the_way_back(int i) const;
  void second_order_maps();
  [[nodiscard]] std::int64_t output_pieces(int i) const;
  // Of layer i, or of graph input -1 - i.
  void add_tensor(TensorRole role, int i, Size bytes, int first, int last);

  const LayerGraph& graph_;
  Backward backward_;
  std::int64_t repeat_;
  const LoweringContext& how_;
  int first_layer_;
  TrainingStep& step_;
  std::vector<std::vector<int>> consumers_;  // of each layer, in order
  std::vector<std::vector<int>> readers_;    // of each graph input, in order
  std::vector<Span> forward_;
  std::vector<Span> backward_spans_;
  std::vector<int> gradient_sum_;  // the kernel that sums the gradients of a layer's output, or -1
  std::vector<int> input_sum_;     // the same of a graph input
  std::int64_t additions_ = 0;
  std::vector<IndependentChains> chains_;  // of the graph's layers

  // Of a gradient penalty: along the graph, then back from its input_gradient_depends_on_input layers.
  std::vector<Span> along_;
  std::vector<Span> back_;
  std::vector<int> back_sum_;    // as gradient_sum_
  std::vector<bool> goes_back_;  // whether the layer's backward pass runs again
};

}  // namespace tbdsim
