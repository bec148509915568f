// Layers and how they are connected: a directed acyclic graph in an order in which it can run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graphs/layer.h"
#include "hwspecs/base/error.h"

namespace tbdsim {

// A layer as a model file describes it, before its shapes are known.
struct LayerSpec {
  std::string name;  // unique in its graph
  std::string type;
  std::shared_ptr<const Layer> layer;
  std::vector<std::string> from;  // names of layers or graph inputs
  bool frozen = false;            // its parameters are not trained
  Mark mark;
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
  std::vector<Shape> input_shapes;
  Shape output;
  std::vector<ParameterTensor> parameters;
  bool input_gradient = false;
  bool weight_gradient = false;

  [[nodiscard]] LayerSite site() const { return {input_shapes, output, input_gradient, weight_gradient}; }
};

struct LayerGraph {
  std::vector<GraphInput> inputs;
  std::vector<GraphLayer> layers;  // every layer after its inputs; the file's order where that is possible
};

// Connects, orders and shapes the layers, and finds which gradients are needed: a layer's input gradient only
// where something upstream is trained, weight gradients only for layers that are not frozen. Throws
// ModelError `file:line:column: layer 'x': ...` for an unknown or duplicate name, a cycle (named in full),
// shapes that do not match and sizes beyond 64 bits.
[[nodiscard]] LayerGraph build_layer_graph(std::vector<GraphInput> inputs, std::vector<LayerSpec> layers);

}  // namespace tbdsim
