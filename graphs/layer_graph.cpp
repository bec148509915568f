#include "graphs/layer_graph.h"

#include <algorithm>
#include <map>

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

void infer_shape(GraphLayer& layer) {
  try {
    layer.output = layer.spec.layer->output_shape(layer.input_shapes);
    layer.parameters = layer.spec.layer->parameters(layer.input_shapes);
    (void)elements(layer.output);
  } catch (const ShapeMismatch& mismatch) {
    fail(layer.spec, mismatch.what());
  } catch (const std::overflow_error& overflow) {
    fail(layer.spec, std::string(overflow.what()) + "; expected a smaller layer");
  }
}

// `upstream_trained[i]`: layer i or something before it is trained.
void find_gradients(GraphLayer& layer, std::vector<bool>& upstream_trained) {
  const auto trained = [](const ParameterTensor& tensor) { return tensor.trained; };
  layer.weight_gradient =
      !layer.spec.frozen && std::any_of(layer.parameters.begin(), layer.parameters.end(), trained);
  for (const int input : layer.inputs) {
    if (input >= 0 && upstream_trained[static_cast<std::size_t>(input)]) layer.input_gradient = true;
  }
  upstream_trained.push_back(layer.weight_gradient || layer.input_gradient);
}

}  // namespace

LayerGraph build_layer_graph(std::vector<GraphInput> inputs, std::vector<LayerSpec> specs) {
  const auto index = index_names(inputs, specs);
  const std::vector<Vertex> order = run_order(specs, connect(specs, index));
  std::vector<int> position(specs.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);

  LayerGraph graph;
  graph.inputs = std::move(inputs);
  graph.layers.reserve(specs.size());
  std::vector<bool> upstream_trained;
  for (const Vertex vertex : order) {
    GraphLayer layer;
    layer.spec = std::move(specs[vertex]);
    for (const std::string& name : layer.spec.from) {
      const int source = index.at(name);
      layer.inputs.push_back(source < 0 ? source : position[static_cast<std::size_t>(source)]);
      layer.input_shapes.push_back(source < 0
                                       ? graph.inputs[static_cast<std::size_t>(-1 - source)].shape
                                       : graph.layers[static_cast<std::size_t>(layer.inputs.back())].output);
    }
    infer_shape(layer);
    find_gradients(layer, upstream_trained);
    graph.layers.push_back(std::move(layer));
  }
  return graph;
}

}  // namespace tbdsim
