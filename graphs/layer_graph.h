// Layers and how they are connected: a directed acyclic graph in an order in which it can run.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/layer.h"
#include "hwspecs/base/error.h"

namespace tbdsim {

// How GPUs may share a layer's weights (Shoeybi et al., arXiv 1909.08053): by the product's outputs, whose
// parts stay apart; by its inputs, with partial results to add up; by words of a table or of scores; by heads
// of an attention; by experts of a mixture. none: each has all of it. first_rank: one GPU computes the layer
// for the samples of all.
enum class Sharding { none, columns, rows, vocabulary, heads, experts, first_rank };
inline constexpr std::array<std::string_view, 7> kShardingNames = {
    "none", "columns", "rows", "vocabulary", "heads", "experts", "first_rank"};

// A layer as a model file describes it, before its shapes are known.
struct LayerSpec {
  std::string name;  // unique in its graph
  std::string type;
  std::shared_ptr<const Layer> layer;
  std::vector<std::string> from;     // names of layers or graph inputs
  bool frozen = false;               // its parameters are not trained
  bool fp32 = false;                 // in single precision where others are in half
  bool per_step = false;             // runs step by step over the first dimension of its inputs
  std::vector<std::string> whole{};  // of `from`: read whole at every step
  std::string tied_to{};             // its weight is the first parameter of that layer
  Mark mark;
  Sharding shard = Sharding::none;
  std::string adapts{};  // layer whose frozen product it belongs to, of a low-rank adapter (fine_tuning.h)
  int repetition = -1;   // of the outermost repeated block around it, counted from 0; -1: there is none
};

struct GraphInput {
  std::string name;
  Shape shape;
  Mark mark;
};

// A layer in place. `inputs` index into LayerGraph::layers, or are -1 - i for graph input i.
struct GraphLayer {
  LayerSpec spec;
  std::vector<int> inputs;
  std::vector<Shape> input_shapes;  // of one step where it runs step by step
  Shape output;                     // of all steps
  Shape step_output;                // of one step; else the output
  std::int64_t steps = 1;
  std::vector<ParameterTensor> parameters;
  std::vector<bool> whole;  // which inputs every step reads whole
  int tied_to = -1;         // index of the layer whose weight it shares; it has no parameters then
  bool input_gradient = false;
  bool weight_gradient = false;

  [[nodiscard]] LayerContext site() const {
    return {input_shapes, step_output, input_gradient, weight_gradient};
  }
};

struct LayerGraph {
  std::vector<GraphInput> inputs;
  std::vector<GraphLayer> layers;    // every layer after its inputs; the file's order where that is possible
  std::vector<std::string> outputs;  // layers whose output is the graph's, for other graphs to read
};

// Connects, orders and shapes the layers, and finds which gradients are needed: a layer's input gradient only
// where something upstream is trained, weight gradients only for layers that are not frozen. Throws
// ModelError `file:line:column: layer 'x': ...` for an unknown or duplicate name, a cycle (named in full),
// shapes that do not match, sizes beyond 64 bits, and an unread output of a layer that is neither a loss nor
// among `outputs`.
[[nodiscard]] LayerGraph build_layer_graph(std::vector<GraphInput> inputs, std::vector<LayerSpec> layers,
                                           std::vector<std::string> outputs = {});

// The same graph on inputs of other shapes, in the same order. Throws as above.
[[nodiscard]] LayerGraph reshaped(const LayerGraph& graph, std::vector<GraphInput> inputs);

}  // namespace tbdsim
