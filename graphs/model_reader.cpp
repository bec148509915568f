#include <algorithm>

#include "graphs/blocks.h"
#include "graphs/model.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostCounted = 1'000'000'000'000'000;
constexpr std::int64_t kLargestDimension = 1'000'000'000;
constexpr std::int64_t kMostRepeats = 1'000'000;
constexpr std::size_t kMostDimensions = 8;

std::vector<std::string> texts(const std::optional<SpecNode>& node) {
  std::vector<std::string> all;
  if (!node) return all;
  for (const SpecNode& item : node->list()) all.push_back(item.text());
  return all;
}

Parameters read_parameters(const std::optional<SpecNode>& node) {
  Parameters parameters;
  if (!node) return parameters;
  node->map([&](SpecMap& m) {
    for (const auto& [name, mark, value] : m.all()) parameters[name] = value.tree();
  });
  return parameters;
}

ExpectedCounts read_expected(const SpecNode& node) {
  ExpectedCounts counts;
  node.map([&](SpecMap& m) {
    counts.parameters = m.at("parameters").count(0, kMostCounted);
    counts.forward_macs = m.at("forward_macs").count(0, kMostCounted);
    counts.training_macs = m.at("training_macs").count(0, kMostCounted);
    counts.source = m.at("source").text();
  });
  return counts;
}

Optimizer read_optimizer(const SpecNode& node) {
  std::vector<std::string_view> names;
  for (const Optimizer& optimizer : kOptimizers) names.push_back(optimizer.name);
  return kOptimizers[node.one_of(names)];
}

Variant read_variant(const std::string& name, const SpecNode& node, const Parameters& known) {
  Variant variant;
  variant.name = name;
  node.map([&](SpecMap& m) {
    variant.description = m.at("description").text();
    variant.source = m.at("source").text();
    variant.optimizer = read_optimizer(m.at("optimizer"));
    variant.frameworks = texts(m.find("frameworks"));
    variant.also_called = texts(m.find("also_called"));
    if (const auto expected = m.find("expected")) variant.expected = read_expected(*expected);
    if (const auto parameters = m.find("parameters")) {
      parameters->map([&](SpecMap& p) {
        for (const auto& [key, unused] : known) {
          if (const auto value = p.find(key)) variant.parameters[key] = value->tree();
        }
      });
    }
  });
  return variant;
}

Shape read_shape(const SpecNode& node) {
  Shape shape{{0, 1}, {}};
  for (const SpecNode& dim : node.list()) shape.dims.push_back(dim.count(1, kLargestDimension));
  if (shape.dims.empty() || shape.dims.size() > kMostDimensions) {
    node.fail("has " + std::to_string(shape.dims.size()) + " dimensions; expected 1 to 8, without the batch");
  }
  return shape;
}

LayerGraph read_graph(const SpecNode& node, const SpecTree& blocks, const Parameters& parameters) {
  std::vector<GraphInput> inputs;
  std::vector<LayerSpec> layers;
  node.map([&](SpecMap& m) {
    const SpecNode input_node = m.at("inputs");
    const SpecTree input_tree = substitute(input_node.tree(), parameters);
    SpecNode(input_tree, input_node.path()).map([&](SpecMap& i) {
      for (const auto& [name, mark, shape] : i.all()) inputs.push_back({name, read_shape(shape), mark});
    });
    if (inputs.empty()) input_node.fail("names no input; expected 'data: [channels, height, width]'");
    layers = expand_layers(m.at("layers"), blocks, parameters, inputs[0].name);
  });
  for (const LayerSpec& layer : layers) {
    for (const GraphInput& input : inputs) {
      if (layer.name == input.name) {
        throw ModelError(layer.mark, "layer " + in_quotes(layer.name) + ": has the name of a graph input");
      }
    }
  }
  return build_layer_graph(std::move(inputs), std::move(layers));
}

TrainingPass read_pass(const SpecNode& node, const std::map<std::string, LayerGraph>& graphs) {
  TrainingPass pass;
  node.map([&](SpecMap& m) {
    const SpecNode graph = m.at("graph");
    pass.graph = graph.text();
    if (!graphs.contains(pass.graph)) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : graphs) known.push_back(name);
      graph.fail("unknown graph " + in_quotes(pass.graph) + did_you_mean(pass.graph, known));
    }
    if (const auto repeat = m.find("repeat")) pass.repeat = repeat->count(1, kMostRepeats);
    if (const auto backward = m.find("backward")) pass.backward = backward->flag();
    if (const auto update = m.find("update")) pass.update = update->flag();
    if (pass.update && !pass.backward) node.fail("updates without a backward pass; expected 'update: false'");
  });
  return pass;
}

std::vector<std::string> names_of(const ModelFile& file) {
  std::vector<std::string> names;
  for (const Variant& variant : file.variants) names.push_back(variant.name);
  return names;
}

}  // namespace

ModelFile read_model_file(const std::filesystem::path& path) {
  const SpecTree tree = read_spec_file(path);
  ModelFile file;
  file.name = path.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    file.title = m.at("title").text();
    file.sample = m.at("sample").text();
    file.parameters = read_parameters(m.find("parameters"));
    if (const auto blocks = m.find("blocks")) file.blocks = blocks->tree();
    file.graphs = m.at("graphs").tree();
    file.training = m.at("training").tree();
    const SpecNode variants = m.at("variants");
    variants.map([&](SpecMap& v) {
      for (const auto& [name, mark, node] : v.all()) {
        file.variants.push_back(read_variant(name, node, file.parameters));
      }
    });
    if (file.variants.empty()) variants.fail("names no variant; expected at least one");
  });
  return file;
}

const Variant& find_variant(const ModelFile& file, const std::string& variant, const std::string& framework) {
  const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::vector<std::string> names = names_of(file);
  if (variant.empty()) {
    for (const Variant& candidate : file.variants) {
      if (holds(candidate.frameworks, framework)) return candidate;
    }
    if (framework.empty() || file.variants.size() == 1) return file.variants.front();
    throw UsageError("no variant of " + file.name + " is the one " + in_quotes(framework) +
                     " trains; expected a --variant, one of " + joined(names));
  }
  for (const Variant& candidate : file.variants) {
    if (candidate.name == variant || holds(candidate.also_called, variant)) return candidate;
  }
  throw UsageError("unknown variant " + in_quotes(variant) + " of " + file.name + "; expected one of " +
                   joined(names) + did_you_mean(variant, names));
}

Model build_model(const ModelFile& file, const Variant& variant) {
  Model model{.name = file.name,
              .title = file.title,
              .sample = file.sample,
              .variant = variant,
              .graphs = {},
              .training = {}};
  Parameters parameters = file.parameters;
  for (const auto& [name, value] : variant.parameters) parameters[name] = value;
  SpecNode(file.graphs, "graphs").map([&](SpecMap& m) {
    for (const auto& [name, mark, node] : m.all()) {
      model.graphs.emplace(name, read_graph(node, file.blocks, parameters));
    }
  });
  for (const SpecNode& pass : SpecNode(file.training, "training").list()) {
    model.training.push_back(read_pass(pass, model.graphs));
  }
  if (model.training.empty()) SpecNode(file.training, "training").fail("has no pass; expected at least one");
  return model;
}

}  // namespace tbdsim
