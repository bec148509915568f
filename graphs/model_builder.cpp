#include <algorithm>
#include <cmath>
#include <set>

#include "graphs/blocks.h"
#include "graphs/model.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostRepeats = 1'000'000;
constexpr std::size_t kMostEnds = 1'000;  // inputs of a graph; outputs
constexpr std::size_t kMostRuns = 1'000;  // of a pass; passes of the training
constexpr double kRounding = 1e-9;        // 0.7 x 30 is 21

SpecTree scalar_tree(const std::string& text) {
  return {.kind = SpecTree::Kind::scalar, .text = text, .items = {}, .entries = {}, .mark = {}};
}

// The length of a source follows that of the target.
void set_source_length(Model& model) {
  const auto source = model.sizes.find(std::string(kSourceLengthSize));
  const auto target = model.sizes.find(std::string(kLengthSize));
  if (source == model.sizes.end() || target == model.sizes.end()) return;
  const auto length = static_cast<double>(parse_whole_number(target->second.text).value_or(1));
  source->second = scalar_tree(std::to_string(
      std::max<std::int64_t>(1, std::llround(std::floor(length * model.variant.source_share + kRounding)))));
}

Shape read_shape(const SpecNode& node) {
  Shape shape{{0, 1}, {}};
  for (const SpecNode& dim : node.list()) shape.dims.push_back(dim.count(1, kLargestDimension));
  if (shape.dims.empty() || shape.dims.size() > kMostDimensions) {
    node.fail("has " + std::to_string(shape.dims.size()) + " dimensions; expected 1 to 8, without the batch");
  }
  return shape;
}

std::vector<GraphInput> read_inputs(const SpecNode& node, const Parameters& visible) {
  std::vector<GraphInput> inputs;
  const SpecTree tree = substitute(node.tree(), visible);
  SpecNode(tree, node.path()).map([&](SpecMap& i) {
    for (const auto& [name, mark, shape] : i.all()) inputs.push_back({name, read_shape(shape), mark});
  });
  if (inputs.size() > kMostEnds) node.fail("names more than 1000 inputs");
  if (inputs.empty()) node.fail("names no input; expected 'data: [channels, height, width]'");
  return inputs;
}

// The inputs with their parameters put in, sizes still by name.
SpecTree inputs_by_size(const SpecTree& tree, const Parameters& parameters, const Parameters& sizes) {
  Parameters visible = parameters;
  for (const auto& [name, unused] : sizes) visible[name] = scalar_tree("$" + name);
  return substitute(tree, visible);
}

struct BuiltGraph {
  LayerGraph graph;
  SpecTree inputs;               // before sizes are put in
  std::set<std::string> blocks;  // that it uses
};

void require_layers(const std::vector<std::string>& outputs, const std::vector<LayerSpec>& layers,
                    const SpecNode& node) {
  std::set<std::string> names;
  for (const LayerSpec& layer : layers) names.insert(layer.name);
  for (const std::string& output : outputs) {
    if (!names.contains(output)) node.fail("names " + in_quotes(output) + ", which is no layer of the graph");
  }
}

void require_no_layer_named_as_input(const std::vector<LayerSpec>& layers,
                                     const std::vector<GraphInput>& inputs) {
  std::set<std::string> names;
  for (const GraphInput& input : inputs) names.insert(input.name);
  for (const LayerSpec& layer : layers) {
    if (names.contains(layer.name))
      throw ModelError(layer.mark, "layer " + in_quotes(layer.name) + ": has the name of a graph input");
  }
}

BuiltGraph read_graph(const SpecNode& node, const SpecTree& blocks, const Parameters& parameters,
                      const Parameters& sizes) {
  BuiltGraph built;
  std::vector<GraphInput> inputs;
  ExpandedLayers expanded;
  std::vector<std::string> outputs;
  node.map([&](SpecMap& m) {
    const SpecNode input_node = m.at("inputs");
    built.inputs = inputs_by_size(input_node.tree(), parameters, sizes);
    inputs = read_inputs(SpecNode(built.inputs, input_node.path()), sizes);
    outputs = m.texts("outputs");
    if (outputs.size() > kMostEnds) m.at("outputs").fail("names more than 1000 layers");
    expanded = expand_layers(m.at("layers"), blocks, parameters, inputs[0].name);
    if (!outputs.empty()) require_layers(outputs, expanded.layers, m.at("outputs"));
  });
  require_no_layer_named_as_input(expanded.layers, inputs);
  built.blocks = std::move(expanded.blocks);
  built.graph = build_layer_graph(std::move(inputs), std::move(expanded.layers), std::move(outputs));
  return built;
}

GraphRun read_run(SpecMap& m, const std::map<std::string, LayerGraph>& graphs) {
  GraphRun run;
  const SpecNode graph = m.at("graph");
  run.graph = graph.text();
  if (!graphs.contains(run.graph)) {
    std::vector<std::string> known;
    for (const auto& [name, unused] : graphs) known.push_back(name);
    graph.fail("unknown graph " + in_quotes(run.graph) + did_you_mean(run.graph, known));
  }
  if (const auto backward = m.find("backward")) {
    run.backward = static_cast<Backward>(backward->one_of(kBackwardNames));
  }
  return run;
}

// {graph: main, ...} or {runs: [{graph: generator, ...}, ...], ...}
TrainingPass read_pass(const SpecNode& node, const std::map<std::string, LayerGraph>& graphs) {
  TrainingPass pass;
  node.map([&](SpecMap& m) {
    if (const auto runs = m.find("runs")) {
      if (runs->list().size() > kMostRuns) runs->fail("has more than 1000 runs");
      for (const SpecNode& run : runs->list())
        run.map([&](SpecMap& r) { pass.runs.push_back(read_run(r, graphs)); });
      if (pass.runs.empty()) runs->fail("has no run; expected at least one");
    } else {
      pass.runs.push_back(read_run(m, graphs));
    }
    const bool trains = std::any_of(pass.runs.begin(), pass.runs.end(), [](const GraphRun& run) {
      return run.backward == Backward::weights || run.backward == Backward::penalty;
    });
    if (const auto repeat = m.find("repeat")) pass.repeat = repeat->count(1, kMostRepeats);
    pass.update = trains;
    if (const auto update = m.find("update")) pass.update = update->flag();
    if (pass.update && !trains) node.fail("updates without gradients of weights; expected 'update: false'");
  });
  return pass;
}

void require_use(const std::string& graph, const Mark& mark, const std::vector<TrainingPass>& training) {
  for (const TrainingPass& pass : training) {
    for (const GraphRun& run : pass.runs) {
      if (run.graph == graph) return;
    }
  }
  throw ModelError(mark,
                   "graph " + in_quotes(graph) + " is in no pass of the training; expected one to run it");
}

// A table of which only rows are updated needs an optimizer that can do so.
void require_sparse_form(const Model& model) {
  const auto has_form = [&](const std::optional<Optimizer>& optimizer) {
    return !optimizer || optimizer->sparse_form;
  };
  if (has_form(model.variant.optimizer) && has_form(model.variant.mixed_optimizer)) return;
  for (const auto& [name, graph] : model.graphs) {
    for (const GraphLayer& layer : graph.layers) {
      const bool sparse = std::any_of(layer.parameters.begin(), layer.parameters.end(),
                                      [](const ParameterTensor& tensor) { return tensor.sparse; });
      if (!sparse || layer.spec.frozen) continue;
      std::vector<std::string> known;
      for (const Optimizer& optimizer : kOptimizers) {
        if (optimizer.sparse_form) known.emplace_back(optimizer.name);
      }
      throw ModelError(layer.spec.mark, "layer " + in_quotes(layer.spec.name) +
                                            ": its gradient is sparse, but the optimizer " +
                                            in_quotes(std::string(model.variant.optimizer.name)) +
                                            " of variant " + in_quotes(model.variant.name) +
                                            " updates all rows; expected one of " + joined(known));
    }
  }
}

// The file's values, replaced by the variant's and by the given sizes.
struct Values {
  Parameters parameters;
  Parameters sizes;

  void set(const std::string& name, const SpecTree& value) {
    (sizes.contains(name) ? sizes : parameters)[name] = value;
  }
};

void require_size(const ModelFile& file, const std::string& name) {
  if (has_size(file, name)) return;
  std::vector<std::string> known;
  for (const Parameters* of : {&file.sizes, &file.parameters}) {
    for (const auto& [key, unused] : *of) known.push_back(key);
  }
  throw UsageError(file.name + " has no " + name + "; it has " +
                   (known.empty() ? "no sizes" : joined(known)));
}

Values values_of(const ModelFile& file, const Variant& variant, const Sizes& sizes) {
  Values values{file.parameters, file.sizes};
  for (const auto& [name, value] : variant.parameters) values.set(name, value);
  for (const auto& [name, value] : sizes) {
    require_size(file, name);
    values.set(name, scalar_tree(std::to_string(value)));
  }
  return values;
}

// Reads the graphs into the model; returns where each stands in the file.
std::map<std::string, Mark> read_graphs(const ModelFile& file, const Parameters& parameters, Model& model) {
  std::map<std::string, Mark> marks;
  SpecNode(file.graphs, "graphs").map([&](SpecMap& m) {
    for (const auto& [name, mark, node] : m.all()) {
      BuiltGraph built = read_graph(node, file.blocks, parameters, model.sizes);
      marks[name] = mark;
      model.graphs.emplace(name, std::move(built.graph));
      model.inputs.emplace(name, std::move(built.inputs));
      model.blocks.merge(built.blocks);
    }
  });
  return marks;
}

std::vector<TrainingPass> read_training(const SpecTree& tree,
                                        const std::map<std::string, LayerGraph>& graphs) {
  std::vector<TrainingPass> training;
  const SpecNode passes(tree, "training");
  const std::vector<SpecNode> list = passes.list();
  if (list.size() > kMostRuns) passes.fail("has more than 1000 passes");
  for (const SpecNode& pass : list) training.push_back(read_pass(pass, graphs));
  if (training.empty()) passes.fail("has no pass; expected at least one");
  return training;
}

}  // namespace

Model build_model(const ModelFile& file, const Variant& variant, const Sizes& sizes) {
  Values values = values_of(file, variant, sizes);
  Model model;
  model.name = file.name;
  model.title = file.title;
  model.sample = file.sample;
  model.variant = variant;
  model.sizes = std::move(values.sizes);
  if (sizes.contains(std::string(kLengthSize))) set_source_length(model);
  const auto marks = read_graphs(file, values.parameters, model);
  model.training = read_training(substitute(file.training, values.parameters), model.graphs);
  for (const auto& [name, mark] : marks) require_use(name, mark, model.training);
  require_sparse_form(model);
  return model;
}

Model resized(const Model& model, const Sizes& sizes) {
  Model other;
  other.name = model.name;
  other.title = model.title;
  other.sample = model.sample;
  other.variant = model.variant;
  other.sizes = model.sizes;
  other.inputs = model.inputs;
  other.blocks = model.blocks;
  other.training = model.training;
  for (const auto& [name, value] : sizes) {
    if (!other.sizes.contains(name)) throw UsageError(model.name + " has no size " + name);
    other.sizes[name] = scalar_tree(std::to_string(value));
  }
  set_source_length(other);
  for (const auto& [name, graph] : model.graphs) {
    const SpecNode inputs(model.inputs.at(name), "inputs");
    other.graphs.emplace(name, reshaped(graph, read_inputs(inputs, other.sizes)));
  }
  return other;
}

}  // namespace tbdsim
