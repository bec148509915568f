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

LayerGraph read_graph(const SpecNode& node, const SpecTree& blocks, const Parameters& parameters,
                      const Parameters& sizes, SpecTree& input_tree) {
  std::vector<GraphInput> inputs;
  std::vector<LayerSpec> layers;
  std::vector<std::string> outputs;
  node.map([&](SpecMap& m) {
    const SpecNode input_node = m.at("inputs");
    input_tree = inputs_by_size(input_node.tree(), parameters, sizes);
    inputs = read_inputs(SpecNode(input_tree, input_node.path()), sizes);
    outputs = m.texts("outputs");
    if (outputs.size() > kMostEnds) m.at("outputs").fail("names more than 1000 layers");
    layers = expand_layers(m.at("layers"), blocks, parameters, inputs[0].name);
    std::set<std::string> names;
    for (const LayerSpec& layer : layers) names.insert(layer.name);
    for (const std::string& output : outputs) {
      if (!names.contains(output)) {
        m.at("outputs").fail("names " + in_quotes(output) + ", which is no layer of the graph");
      }
    }
  });
  std::set<std::string> input_names;
  for (const GraphInput& input : inputs) input_names.insert(input.name);
  for (const LayerSpec& layer : layers) {
    if (input_names.contains(layer.name))
      throw ModelError(layer.mark, "layer " + in_quotes(layer.name) + ": has the name of a graph input");
  }
  return build_layer_graph(std::move(inputs), std::move(layers), std::move(outputs));
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

}  // namespace

Model build_model(const ModelFile& file, const Variant& variant, const Sizes& sizes) {
  Model model{.name = file.name,
              .title = file.title,
              .sample = file.sample,
              .variant = variant,
              .sizes = file.sizes,
              .inputs = {},
              .graphs = {},
              .training = {}};
  Parameters parameters = file.parameters;
  const auto set = [&](const std::string& name, const SpecTree& value) {
    (model.sizes.contains(name) ? model.sizes : parameters)[name] = value;
  };
  for (const auto& [name, value] : variant.parameters) set(name, value);
  for (const auto& [name, value] : sizes) {
    if (!has_size(file, name)) {
      std::vector<std::string> known;
      for (const Parameters* of : {&file.sizes, &file.parameters}) {
        for (const auto& [key, unused] : *of) known.push_back(key);
      }
      throw UsageError(file.name + " has no " + name + "; it has " +
                       (known.empty() ? "no sizes" : joined(known)));
    }
    set(name, scalar_tree(std::to_string(value)));
  }
  if (sizes.contains(std::string(kLengthSize))) set_source_length(model);
  std::map<std::string, Mark> marks;
  SpecNode(file.graphs, "graphs").map([&](SpecMap& m) {
    for (const auto& [name, mark, node] : m.all()) {
      marks[name] = mark;
      model.graphs.emplace(name, read_graph(node, file.blocks, parameters, model.sizes, model.inputs[name]));
    }
  });
  const SpecTree training = substitute(file.training, parameters);
  const SpecNode passes(training, "training");
  if (passes.list().size() > kMostRuns) passes.fail("has more than 1000 passes");
  for (const SpecNode& pass : passes.list()) model.training.push_back(read_pass(pass, model.graphs));
  if (model.training.empty()) passes.fail("has no pass; expected at least one");
  for (const auto& [name, mark] : marks) require_use(name, mark, model.training);
  return model;
}

Model resized(const Model& model, const Sizes& sizes) {
  Model other{.name = model.name,
              .title = model.title,
              .sample = model.sample,
              .variant = model.variant,
              .sizes = model.sizes,
              .inputs = model.inputs,
              .graphs = {},
              .training = model.training};
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
