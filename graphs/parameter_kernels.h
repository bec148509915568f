// Kernels over parameters and their gradients that belong to no layer type: casts, clipping, updates.
#pragma once

#include <span>

#include "graphs/training_step.h"

namespace tbdsim {

// Number of elements of a parameter's gradient: of all rows, or of the rows that a batch looked up.
[[nodiscard]] Size gradient_elements(const ParameterTensor& tensor, const Lowering& lowering);

// Number of elements that an update reads and writes: all, or those of the rows looked up.
[[nodiscard]] Size updated_elements(const ParameterTensor& tensor);

// Calls `visit(layer, tensor)` for every parameter of the graph that gets a gradient.
template <class Visit>
void each_trained(const LayerGraph& graph, Visit visit) {
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    if (!graph.layers[i].weight_gradient) continue;
    for (const ParameterTensor& tensor : graph.layers[i].parameters) {
      if (tensor.trained) visit(static_cast<int>(i), tensor);
    }
  }
}

// Bytes of optimizer state of so many of a tensor's parameters where a word has `word_bytes` unless the
// optimizer says otherwise.
[[nodiscard]] Size state_of(const Optimizer& optimizer, const ParameterTensor& tensor, const Size& parameters,
                            std::int64_t word_bytes);

// Appends kernels to `step`, whose layers from `first_layer` on are the graph's; each runs `repeat` times.
// Where the framework's updates are fused or foreach, kernels go over all parameters, in the launches of
// multi_tensor.h; else there is one for each.
class ParameterKernels {
 public:
  ParameterKernels(const LayerGraph& graph, int first_layer, const LoweringContext& how, std::int64_t repeat,
                   TrainingStep& step)
      : graph_(graph), first_layer_(first_layer), how_(how), repeat_(repeat), step_(step) {}

  void casts();           // weights of GEMMs and convolutions to low precision
  void gradient_casts();  // their gradients back to fp32
  void fill_gradients();  // zeros, to which new gradients are added
  void unscale();         // divides gradients by the loss scale and checks them for overflow
  void clip(Clip clip);   // gradients by their norm, whose factor an update may take, or by value
  void graph_decay();     // the sum of squares of each weight, and its gradient added to the weight's
  void average();         // a running average of every parameter and statistic
  void update(const Optimizer& optimizer);
  void fetch_updated();  // copies trained weights that the host has updated to the GPU, in one transfer
  void fetch();          // copies weights that live on the host to the GPU, in one transfer
  // Copies all gradients to the host in one transfer; the host clips and updates, bound by its memory
  // bandwidth.
  void update_on_host(const Optimizer& optimizer, Clip clip);
  void copy();  // updated weights to each further copy that the framework keeps

 private:
  // Calls `visit(layer, tensor)` for every trained parameter that an optimizer updates element by element.
  template <class Visit>
  void each_by_element(const Optimizer& optimizer, Visit visit) const;
  // An update whose operators are kernels of their own.
  void update_by_operators(const Optimizer& optimizer);
  void scale_rows();                                     // of sparse gradients
  void update_orthogonally(const Optimizer& optimizer);  // matrices, by products
  // A kernel over the gradient of every trained parameter, fused where updates are.
  void over_gradients(Phase phase, std::string_view op, KernelKind kind, std::int64_t flops, bool writes);
  void copy_back();  // updated fp32 copies to the variables
  // Bytes of what an update changes: of a variable, or of its fp32 copy.
  [[nodiscard]] std::int64_t updated_bytes() const {
    return how_.precision.fp32_copy ? kFp32Bytes : how_.precision.weight_bytes;
  }
  // Clips one gradient by its own norm, with operators of the program.
  void clip_one(int layer, const ParameterTensor& tensor);
  void append(Kernel kernel, int layer);
  void append_for_all(Kernel kernel);  // of no layer in particular
  // Appends kernels over one parameter each, whose `layer` is the graph's: one by one, or where updates fuse
  // together. `lists`: tensors that each reads or writes.
  void append_together(std::span<const Kernel> kernels, std::int64_t lists);
  // Adds the kernel's work to the one at `fused`, where that is there.
  void append_or_add(const Kernel& kernel, int layer, std::size_t fused);
  [[nodiscard]] bool fuses() const {
    return how_.lowering.update == UpdateKernels::fused || how_.lowering.update == UpdateKernels::foreach;
  }
  [[nodiscard]] bool by_operators() const {
    return how_.lowering.update == UpdateKernels::for_loop || how_.lowering.update == UpdateKernels::foreach;
  }

  const LayerGraph& graph_;
  int first_layer_;
  const LoweringContext& how_;
  std::int64_t repeat_;
  TrainingStep& step_;
};

}  // namespace tbdsim
