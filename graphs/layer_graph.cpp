#include "graphs/layer_graph.h"

#include <algorithm>
#include <map>
#include <set>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/depth_first_search.hpp>

#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

using Dependencies = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
using Vertex = boost::graph_traits<Dependencies>::vertex_descriptor;
using Edge = boost::graph_traits<Dependencies>::edge_descriptor;

[[noreturn]] void fail(const LayerSpec& layer, const std::string& what) {
  throw ModelError(layer.mark, "layer " + in_quotes(layer.name) + ": " + what);
}

// Names of graph inputs (as -1 - i) and layers (as their index).
std::map<std::string, int> index_names(const std::vector<GraphInput>& inputs,
                                       const std::vector<LayerSpec>& layers) {
  std::map<std::string, int> index;
  for (const GraphInput& input : inputs) index[input.name] = -1 - static_cast<int>(index.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!index.emplace(layers[i].name, static_cast<int>(i)).second) {
      fail(layers[i], "the name appears twice; expected unique names");
    }
  }
  return index;
}

// From each layer an edge to every layer it reads.
Dependencies connect(const std::vector<LayerSpec>& layers, const std::map<std::string, int>& index) {
  Dependencies graph(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const std::string& name : layers[i].from) {
      const auto found = index.find(name);
      if (found == index.end()) {
        std::vector<std::string> known;
        for (const auto& [known_name, unused] : index) known.push_back(known_name);
        fail(layers[i],
             "reads " + in_quotes(name) + ", which is no layer or input" + did_you_mean(name, known));
      }
      if (found->second >= 0) boost::add_edge(i, static_cast<Vertex>(found->second), graph);
    }
  }
  return graph;
}

// A depth-first search along the dependencies finishes every layer after what it reads, and, started from the
// layers in the file's order, keeps that order where it is possible. An edge back to an unfinished layer
// closes a cycle.
class RunOrder : public boost::dfs_visitor<> {
 public:
  RunOrder(const std::vector<LayerSpec>& layers, std::vector<Vertex>& order, std::vector<Vertex>& path)
      : layers_(layers), order_(order), path_(path) {}

  void discover_vertex(Vertex vertex, const Dependencies&) { path_.push_back(vertex); }
  void finish_vertex(Vertex vertex, const Dependencies&) {
    path_.pop_back();
    order_.push_back(vertex);
  }
  void back_edge(const Edge& edge, const Dependencies& graph) {
    const Vertex start = boost::target(edge, graph);
    std::string cycle = layers_[start].name;
    constexpr std::size_t kMostNamed = 8;
    std::size_t named = 0;
    // The path runs against the data flow: read it backwards.
    for (auto at = path_.rbegin(); at != path_.rend() && *at != start; ++at) {
      if (++named <= kMostNamed) cycle += " -> " + layers_[*at].name;
    }
    if (named > kMostNamed) cycle += " -> ... (" + std::to_string(named - kMostNamed) + " more)";
    fail(layers_[start],
         "is part of a cycle: " + cycle + " -> " + layers_[start].name + "; expected a graph without");
  }

 private:
  const std::vector<LayerSpec>& layers_;
  std::vector<Vertex>& order_;
  std::vector<Vertex>& path_;
};

std::vector<Vertex> run_order(const std::vector<LayerSpec>& layers, const Dependencies& graph) {
  std::vector<Vertex> order;
  std::vector<Vertex> path;
  boost::depth_first_search(graph, boost::visitor(RunOrder(layers, order, path)));
  return order;
}

// Removes the dimension of steps from the input shapes of a layer that runs step by step.
void take_steps(GraphLayer& layer) {
  bool first = true;
  const std::set<std::string> whole(layer.spec.whole.begin(), layer.spec.whole.end());
  for (std::size_t i = 0; i < layer.input_shapes.size(); ++i) {
    layer.whole.push_back(whole.contains(layer.spec.from[i]));
    if (layer.whole.back()) continue;
    std::vector<std::int64_t>& dims = layer.input_shapes[i].dims;
    if (dims.size() < 2 || (!first && dims[0] != layer.steps)) {
      fail(layer.spec, "input " + in_quotes(layer.spec.from[i]) + " has shape " +
                           to_text(layer.input_shapes[i]) +
                           "; expected steps x ..., the same for all inputs");
    }
    layer.steps = dims[0];
    dims.erase(dims.begin());
    first = false;
  }
  if (first) fail(layer.spec, "reads every input whole; expected one to go through step by step");
}

void require_dimensions_in_range(const Shape& shape) {
  for (const std::int64_t dim : shape.dims) {
    if (dim < 1 || dim > kLargestDimension) {
      throw ShapeMismatch("output has shape " + to_text(shape) + "; expected dimensions from 1 to " +
                          std::to_string(kLargestDimension));
    }
  }
}

void infer_shape(GraphLayer& layer) {
  try {
    if (layer.spec.per_step) take_steps(layer);
    layer.step_output = layer.spec.layer->output_shape(layer.input_shapes);
    require_dimensions_in_range(layer.step_output);
    layer.parameters = layer.spec.layer->parameters(layer.input_shapes);
    layer.output = layer.step_output;
    if (layer.spec.per_step) {
      layer.output.dims.insert(layer.output.dims.begin(), layer.steps);
      for (ParameterTensor& tensor : layer.parameters) {  // statistics are kept for each step apart
        if (!tensor.trained) tensor.elements = checked_multiply(tensor.elements, layer.steps);
      }
    }
    (void)elements(layer.output);
  } catch (const ShapeMismatch& mismatch) {
    fail(layer.spec, mismatch.what());
  } catch (const std::overflow_error& overflow) {
    fail(layer.spec, std::string(overflow.what()) + "; expected a smaller layer");
  }
}

// `upstream_trained[i]`: layer i or something before it is trained.
void find_gradients(GraphLayer& layer, std::vector<bool>& upstream_trained) {
  if (!layer.spec.layer->differentiable()) {
    upstream_trained.push_back(false);
    return;
  }
  const auto trained = [](const ParameterTensor& tensor) { return tensor.trained; };
  layer.weight_gradient =
      !layer.spec.frozen && std::any_of(layer.parameters.begin(), layer.parameters.end(), trained);
  for (const int input : layer.inputs) {
    if (input >= 0 && upstream_trained[static_cast<std::size_t>(input)]) layer.input_gradient = true;
  }
  upstream_trained.push_back(layer.weight_gradient || layer.input_gradient);
}

std::string sizes_of(const std::vector<ParameterTensor>& parameters) {
  std::string text;
  for (const ParameterTensor& tensor : parameters) {
    text += (text.empty() ? "" : ", ") + std::to_string(tensor.elements);
  }
  return text.empty() ? "no" : text;
}

bool same_sizes(std::span<const ParameterTensor> own, std::span<const ParameterTensor> shared) {
  const auto same = [](const ParameterTensor& a, const ParameterTensor& b) {
    return a.elements == b.elements;
  };
  return !own.empty() && own.size() <= shared.size() &&
         std::equal(own.begin(), own.end(), shared.begin(), same);
}

// A layer tied to another one has that one's weight, and bias if it has one, and no parameters of its own.
// Under mixed precision a table that a product reads has a copy of low precision, and the gradient that a
// product adds is of all of its rows.
void share_weight(GraphLayer& layer, std::vector<GraphLayer>& layers,
                  const std::map<std::string, int>& before) {
  const auto place = before.find(layer.spec.tied_to);
  if (place == before.end()) {
    fail(layer.spec,
         "is tied to " + in_quotes(layer.spec.tied_to) + "; expected a layer that runs before it");
  }
  GraphLayer* found = &layers[static_cast<std::size_t>(place->second)];
  if (!same_sizes(layer.parameters, found->parameters)) {
    fail(layer.spec, "has parameters of " + sizes_of(layer.parameters) + " elements and is tied to such of " +
                         sizes_of(found->parameters) + "; expected the same sizes, or the first of them");
  }
  layer.tied_to = place->second;
  if (layer.parameters[0].cast) found->parameters[0].cast = true;
  layer.spec.frozen = layer.spec.frozen || found->spec.frozen;
  if (layer.spec.frozen) return;
  const Size rows = layer.parameters[0].gradient_rows;
  Size& all_rows = found->parameters[0].gradient_rows;
  try {
    all_rows = rows == Size{} || all_rows == Size{} ? Size{} : all_rows + rows;
  } catch (const std::overflow_error& overflow) {
    fail(layer.spec, std::string(overflow.what()) + "; expected a smaller layer");
  }
}

// Shapes, parameters and gradients of every layer, each after what it reads.
void shape_layers(LayerGraph& graph) {
  std::vector<bool> upstream_trained;
  std::map<std::string, int> shaped;  // index of each name
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    GraphLayer& layer = graph.layers[i];
    for (const int source : layer.inputs) {
      layer.input_shapes.push_back(source < 0 ? graph.inputs[static_cast<std::size_t>(-1 - source)].shape
                                              : graph.layers[static_cast<std::size_t>(source)].output);
    }
    infer_shape(layer);
    if (!layer.spec.tied_to.empty()) share_weight(layer, graph.layers, shaped);
    find_gradients(layer, upstream_trained);
    if (layer.tied_to >= 0) layer.parameters.clear();
    shaped.emplace(layer.spec.name, static_cast<int>(i));
  }
}

// A layer without a reader is an error: its time would be counted although its result is unused.
void require_readers(const LayerGraph& graph) {
  std::vector<bool> read(graph.layers.size(), false);
  for (const GraphLayer& layer : graph.layers) {
    for (const int input : layer.inputs) {
      if (input >= 0) read[static_cast<std::size_t>(input)] = true;
    }
  }
  const std::set<std::string> outputs(graph.outputs.begin(), graph.outputs.end());
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    const LayerSpec& spec = graph.layers[i].spec;
    if (!read[i] && !outputs.contains(spec.name) && !spec.layer->is_loss()) {
      fail(spec,
           "nobody reads its output; expected a layer that does, a loss, or its name among the graph's "
           "outputs");
    }
  }
}

}  // namespace

LayerGraph build_layer_graph(std::vector<GraphInput> inputs, std::vector<LayerSpec> specs,
                             std::vector<std::string> outputs) {
  const auto index = index_names(inputs, specs);
  const std::vector<Vertex> order = run_order(specs, connect(specs, index));
  std::vector<int> position(specs.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);

  LayerGraph graph;
  graph.inputs = std::move(inputs);
  graph.outputs = std::move(outputs);
  graph.layers.reserve(specs.size());
  for (const Vertex vertex : order) {
    GraphLayer layer;
    layer.spec = std::move(specs[vertex]);
    for (const std::string& name : layer.spec.from) {
      const int source = index.at(name);
      layer.inputs.push_back(source < 0 ? source : position[static_cast<std::size_t>(source)]);
    }
    graph.layers.push_back(std::move(layer));
  }
  shape_layers(graph);
  require_readers(graph);
  return graph;
}

LayerGraph reshaped(const LayerGraph& graph, std::vector<GraphInput> inputs) {
  LayerGraph other;
  other.inputs = std::move(inputs);
  other.outputs = graph.outputs;
  other.layers.reserve(graph.layers.size());
  for (const GraphLayer& layer : graph.layers) {
    GraphLayer& same = other.layers.emplace_back();
    same.spec = layer.spec;
    same.inputs = layer.inputs;
  }
  shape_layers(other);
  return other;
}

}  // namespace tbdsim
