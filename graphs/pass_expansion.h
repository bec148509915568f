// One run of a graph within a pass of the training program: its kernels in order and the lifetimes of its
// tensors, in indices into TrainingStep::kernels.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "graphs/linear_loss.h"
#include "graphs/training_step.h"

namespace tbdsim {

// True for a layer that stays in single precision where others are in half: by its own key, or because the
// framework's mixed precision casts what it reads.
[[nodiscard]] inline bool stays_single(const LayerSpec& spec, const LoweringContext& how) {
  const bool casts = how.lowering.group_norm_in_fp32 && how.precision.master_weights;
  return spec.fp32 || (casts && spec.type == "group_norm");
}

// Appends to `step`, whose layers from `first_layer` on are the graph's. Call forward(), then backward() if
// the run has one, then the functions that append tensors. pass_expansion_penalty.cpp has the second
// order of gradient penalties, pass_expansion_chains.cpp the kernels whose order is free.
class PassExpansion {
 public:
  PassExpansion(const LayerGraph& graph, Backward backward, std::int64_t repeat, const LoweringContext& how,
                int first_layer, TrainingStep& step);

  void forward();
  // `additions` of the `repeat` runs accumulate their weight gradients into existing ones.
  void backward(std::int64_t additions = 0);
  void feature_maps();
  // Gradients of the graph's inputs live until `end`, the last backward kernel of the pass: earlier runs read
  // them.
  void gradient_maps(int end);

  // For every layer of the graph the first kernel that may write a gradient of its weights.
  [[nodiscard]] std::vector<int> weight_gradient_births() const;

 private:
  struct Span {  // first and last kernel of a layer; the next kernel where it has none
    int first = 0;
    int last = 0;
  };

  struct Uses {  // kernels that read a layer's output
    int last = 0;
    int last_forward = 0;
    int first_again = -1;  // first reader in the backward pass; -1: there is none
    void again_from(int kernel) { first_again = first_again < 0 ? kernel : std::min(first_again, kernel); }
  };

  struct Gradient {          // one contribution to the gradient of a layer's output
    int born = 0;            // the kernel that writes it
    bool map = true;         // a tensor of its own, not another gradient passed through
    std::int64_t parts = 1;  // number of parts of which it is one
  };

  [[nodiscard]] int count() const { return static_cast<int>(graph_.layers.size()); }
  [[nodiscard]] const GraphLayer& layer(int i) const { return graph_.layers[static_cast<std::size_t>(i)]; }
  // How layer i is lowered: as the pass, or in single precision.
  [[nodiscard]] LoweringContext how_of(int i) const {
    return in_fp32(i) ? LoweringContext{how_.lowering, kPrecisions[0]} : how_;
  }
  // True if the layer stays in single precision while others are in half.
  [[nodiscard]] bool in_fp32(int i) const {
    return i >= 0 && stays_single(layer(i).spec, how_) && how_.precision.storage_bytes < kFp32Bytes;
  }
  // Appends casts of what layer i reads from layers in single precision, or of its gradients back to it.
  void cast_inputs(int i, Phase phase, std::vector<Kernel>& out) const;
  [[nodiscard]] const LossPart& loss_part(int i) const { return loss_parts_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const std::vector<int>& consumers(int i) const {
    return consumers_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] const Span& forward_of(int i) const { return forward_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const Span& backward_of(int i) const { return backward_spans_[static_cast<std::size_t>(i)]; }
  // The layer's context in the first backward pass. Where that pass goes to the graph's inputs, every layer
  // computes an input gradient and no weight gradient.
  [[nodiscard]] LayerContext site(int i) const;
  [[nodiscard]] bool needs_gradient(int i) const {
    const LayerContext at = site(i);
    return at.input_gradient || at.weight_gradient;
  }
  // True if its backward pass runs and may read tensors of the forward pass.
  [[nodiscard]] bool reads_again(int i) const { return backward_ != Backward::none && needs_gradient(i); }
  // Layers that read its output and compute a gradient of it.
  [[nodiscard]] std::vector<int> gradient_readers(int i) const;
  // The same for graph input k, where the pass goes back to it.
  [[nodiscard]] std::vector<int> input_gradient_readers(std::size_t k) const;
  [[nodiscard]] std::vector<Gradient> gradients_from(const std::vector<int>& readers) const;
  // True if a kernel has to add or concatenate them: there are several, or parts.
  [[nodiscard]] static bool gathers(const std::vector<Gradient>& gradients);
  [[nodiscard]] static Size part_bytes(Shape shape, std::int64_t parts, const Precision& precision);
  // The last kernel of layer i's backward pass that reads tensors of the forward pass.
  [[nodiscard]] int last_reading_again(int i) const;
  [[nodiscard]] BackwardNeeds needs(int i) const;
  [[nodiscard]] bool written_in_place(int i) const;

  // Runs `work` for layer i. Sizes beyond 64 bits are reported with the layer's place in its file.
  void at_layer(int i, const std::function<void()>& work) const;
  // Appends the kernels that `append` makes as those of layer i, once for each of its steps, or `steps`
  // times.
  Span emit(int i, const std::function<void(std::vector<Kernel>&)>& append) {
    return emit(i, layer(i).steps, append);
  }
  Span emit(int i, std::int64_t steps, const std::function<void(std::vector<Kernel>&)>& append);
  // `adds`: weight gradients are accumulated into existing ones.
  void backward_of_layer(int i, const LayerContext& at, bool adds, std::vector<Kernel>& out) const;
  // Makes kernels from `first` on that compute weight gradients accumulate in place, where the lowering does
  // so.
  void add_in_place(std::size_t first, std::vector<Kernel>& kernels) const;
  void add_step_gradients(int i, const LayerContext& at, std::vector<Kernel>& out) const;
  // Appends kernels that add the layer's weight gradients, all or the first only, to existing ones.
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
  // Appends a tensor of layer i, or of graph input -1 - i.
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
  std::vector<int> input_sum_;     // the same for a graph input
  std::int64_t additions_ = 0;
  std::vector<LossPart> loss_parts_;       // of each layer
  std::vector<IndependentChains> chains_;  // of the graph's layers

  // Kernels of a gradient penalty: along the graph, then back from layers whose input gradient depends on
  // their input.
  std::vector<Span> along_;
  std::vector<Span> back_;
  std::vector<int> back_sum_;    // as gradient_sum_
  std::vector<bool> goes_back_;  // by layer: its backward pass runs a second time
};

}  // namespace tbdsim
