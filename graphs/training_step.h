// One training iteration as kernels in the order they run and tensors with their lifetimes. Sizes are affine
// in the batch, so that a step is expanded once and evaluated for every batch and GPU.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/independent_chains.h"
#include "graphs/kernel.h"
#include "graphs/lowering.h"
#include "graphs/model.h"
#include "graphs/precision.h"

namespace tbdsim {

// Memory category of a tensor. The TBD paper's memory profiler counts gradient maps as feature maps.
enum class TensorRole { weights, weight_gradients, feature_map, gradient_map, dynamic };

struct Tensor {
  TensorRole role = TensorRole::feature_map;
  int layer = -1;  // index into TrainingStep::layers; -1 for graph inputs
  Size bytes;
  int first_use = 0;  // index of the first and the last kernel that need it, inclusive
  int last_use = 0;
  // For activations that the backward pass reads: the last kernel of the forward pass and the first of the
  // backward pass that read it; -1 for other tensors.
  int last_forward = -1;
  int first_again = -1;
  std::int64_t pieces = 1;  // equal allocations it consists of: one for each step of an unrolled recurrence
  bool library_state = false;  // state that a library keeps for one layer: cuDNN's reserve space
};

// The gradient of a trained parameter, as ranks that train together exchange it: once its layer's last
// backward kernel has run, before the update.
struct ParameterGradient {
  int layer = -1;           // index into TrainingStep::layers
  Size elements;            // of the rows looked up only where a table's gradient is sparse
  int ready = 0;            // index of the kernel
  std::int64_t repeat = 1;  // how often in one iteration
};

// A kernel that updates a layer's parameters, and the kernel after which it can run; both are indices.
struct ParameterUpdate {
  int kernel = 0;
  int after = 0;
};

// A layer as tables show it.
struct LayerSummary {
  std::string name;
  std::string type;
  Shape output;
  std::int64_t trained_parameters = 0;
  std::int64_t frozen_parameters = 0;
  std::int64_t statistics = 0;  // moving statistics of norms
  Size forward_macs;            // of one forward pass
  Size training_macs;           // of all passes of an iteration
  Sharding shard = Sharding::none;
  int repetition = -1;  // of the outermost repeated block around it; -1: there is none
};

struct TrainingStep {
  std::string sample;  // what a batch counts
  std::vector<LayerSummary> layers;
  std::vector<Kernel> kernels;
  std::vector<Tensor> tensors;
  std::vector<ParameterGradient> gradients;  // in the order in which they are ready
  std::vector<ParameterUpdate> updates;      // likewise; see parameter_updates.h
  std::vector<IndependentChains> chains;     // of kernels, in order
  std::int64_t batches =
      1;  // in an iteration, whose gradients an update adds up; kernels' repeats count them
  bool synced_norms = false;  // batch norms take their statistics over all ranks
  // Names of kernels that a file gives; null: all are literals. Copies of the step share them.
  std::shared_ptr<const std::set<std::string, std::less<>>> names;
  std::vector<std::string> warnings;  // what a user has to know of the step
};

// The lowering of a model in this precision: the framework's, with the values that the model's variant
// overrides, and with `half_layout` and `half_gelu` in half precision.
[[nodiscard]] Lowering lowering_of(const Model& model, const Lowering& framework, const Precision& precision);

// Runs the model's training program once: for every pass the forward kernels, the backward kernels in reverse
// order with sums where a tensor's gradient arrives from several layers, then the updates; under a precision
// with master weights, casts of the weights before them and of their gradients after. Throws ModelError for
// sizes beyond 64 bits and for a model without kernels or with more than memory holds.
[[nodiscard]] TrainingStep expand_training_step(const Model& model, const Lowering& framework,
                                                const Precision& precision);

}  // namespace tbdsim
