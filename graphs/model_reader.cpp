#include <algorithm>
#include <cmath>
#include <set>

#include "graphs/blocks.h"
#include "graphs/lowering_reader.h"
#include "graphs/model.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostCounted = 1'000'000'000'000'000;
constexpr std::int64_t kMostRepeats = 1'000'000;
constexpr std::size_t kMostBuckets = 1'000;
constexpr std::size_t kMostEnds = 1'000;  // inputs of a graph; outputs
constexpr std::size_t kMostRuns = 1'000;  // of a pass; passes of the training
constexpr std::int64_t kMostSamplesAtOnce = 1'000'000'000;
constexpr double kLeastSourceShare = 0.01;
constexpr double kRounding = 1e-9;  // 0.7 x 30 is 21
constexpr double kMostUnits = 1'000'000'000;

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

std::vector<std::int64_t> read_buckets(const SpecNode& node) {
  std::vector<std::int64_t> buckets;
  for (const SpecNode& item : node.list()) {
    buckets.push_back(item.count(1, kLargestDimension));
    if (buckets.size() > 1 && buckets[buckets.size() - 2] >= buckets.back())
      item.fail("is not above the one before it; expected ascending lengths");
  }
  if (buckets.empty()) node.fail("names no length; expected at least one");
  if (buckets.size() > kMostBuckets) node.fail("has more than 1000 lengths");
  return buckets;
}

// What each variant may override.
struct Overridable {
  const Parameters& parameters;
  const Parameters& sizes;
};

Variant read_variant(const std::string& name, const SpecNode& node, const Overridable& known) {
  Variant variant;
  variant.name = name;
  node.map([&](SpecMap& m) {
    variant.description = m.at("description").text();
    variant.source = m.at("source").text();
    variant.optimizer = read_optimizer(m.at("optimizer"));
    if (const auto clip = m.find("clip")) variant.clip = static_cast<Clip>(clip->one_of(kClipNames));
    variant.frameworks = texts(m.find("frameworks"));
    variant.also_called = texts(m.find("also_called"));
    if (const auto dataset = m.find("dataset")) variant.dataset = dataset->text();
    if (const auto batches = m.find("token_batches"))
      variant.token_batches = static_cast<TokenBatches>(batches->one_of(kTokenBatchesNames));
    if (const auto buckets = m.find("buckets")) {
      variant.buckets = read_buckets(*buckets);
      if (!known.sizes.contains(std::string(kLengthSize)))
        buckets->fail("are lengths of a sequence; expected 'sequence_length' among the model's sizes");
    }
    if (const auto share = m.find("source_share")) {
      variant.source_share = share->number(kLeastSourceShare, 1);
      if (!known.sizes.contains(std::string(kSourceLengthSize)))
        share->fail("is of a source's length; expected 'source_length' among the model's sizes");
    }
    if (const auto lowering = m.find("lowering")) {
      (void)override_lowering(*lowering, {});  // errors are of this file
      variant.lowering = lowering->tree();
    }
    if (const auto expected = m.find("expected")) variant.expected = read_expected(*expected);
    if (const auto parameters = m.find("parameters")) {
      parameters->map([&](SpecMap& p) {
        for (const Parameters* of : {&known.parameters, &known.sizes}) {
          for (const auto& [key, unused] : *of) {
            if (const auto value = p.find(key)) variant.parameters[key] = value->tree();
          }
        }
      });
    }
  });
  return variant;
}

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
    outputs = texts(m.find("outputs"));
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

ThroughputUnit read_throughput(const SpecNode& node, bool has_length) {
  ThroughputUnit throughput;
  node.map([&](SpecMap& m) {
    throughput.unit = m.at("unit").text();
    const auto per_length = m.find("per_length");
    if (per_length) {
      if (!has_length)
        per_length->fail("is of a sequence; expected 'sequence_length' among the model's sizes");
      throughput.per_length = per_length->number(0.0, kMostUnits);
      throughput.per_sample = 0;
    }
    if (const auto per_sample = m.find("per_sample"))
      throughput.per_sample = per_sample->number(0.0, kMostUnits);
  });
  return throughput;
}

// Reads the file's own keys over those of the file it is based on.
void read_model_keys(const SpecTree& tree, ModelFile& file) {
  SpecNode(tree).map([&](SpecMap& m) {
    const bool based = m.find("based_on").has_value();
    const auto key = [&](std::string_view name) { return based ? m.find(name) : std::optional(m.at(name)); };
    if (const auto title = key("title")) file.title = title->text();
    if (const auto sample = key("sample")) file.sample = sample->text();
    if (const auto batches = m.find("batches_per_iteration"))
      file.batches_per_iteration = batches->count(1, kMostRepeats);
    if (const auto batch = m.find("largest_batch")) file.largest_batch = batch->count(1, kMostSamplesAtOnce);
    for (auto& [name, value] : read_parameters(m.find("parameters"))) file.parameters[name] = value;
    for (auto& [name, value] : read_parameters(m.find("sizes"))) file.sizes[name] = value;
    for (const auto& [name, unused] : file.sizes) {
      if (file.parameters.contains(name))
        m.at("sizes").fail("names " + in_quotes(name) +
                           ", which is a parameter already; expected another name");
    }
    if (const auto throughput = m.find("throughput")) {
      file.throughput = read_throughput(*throughput, file.sizes.contains(std::string(kLengthSize)));
    } else if (file.throughput.unit.empty()) {
      file.throughput.unit = file.sample + "s";
    }
    if (const auto blocks = m.find("blocks")) file.blocks = blocks->tree();
    if (const auto graphs = key("graphs")) file.graphs = graphs->tree();
    if (const auto training = key("training")) file.training = training->tree();
    const auto variants = key("variants");
    if (!variants) return;
    file.variants.clear();
    variants->map([&](SpecMap& v) {
      for (const auto& [name, mark, node] : v.all()) {
        file.variants.push_back(read_variant(name, node, {file.parameters, file.sizes}));
      }
    });
    if (file.variants.empty()) variants->fail("names no variant; expected at least one");
  });
}

// The name in `based_on`, which is of a model in the same folder, or empty.
std::string base_of(const SpecTree& tree) {
  for (const SpecEntry& entry : tree.entries) {
    if (entry.key != "based_on") continue;
    const SpecNode node(entry.value, "based_on");
    if (node.text().find('/') != std::string::npos)
      node.fail(in_quotes(node.text()) + " is a path; expected the name of a model in the same folder");
    return node.text();
  }
  return "";
}

ModelFile read_model_file(const std::filesystem::path& path, int depth) {
  constexpr int kDeepest = 4;
  const SpecTree tree = read_spec_file(path);
  ModelFile file;
  const std::string base = base_of(tree);
  if (!base.empty()) {
    if (depth == kDeepest)
      throw SpecError(tree.mark,
                      "is based on a model that is based on another, and so on; expected at most 4");
    file = read_model_file(path.parent_path() / (base + ".yaml"), depth + 1);
  }
  file.name = path.stem().string();
  read_model_keys(tree, file);
  return file;
}

std::vector<std::string> names_of(const ModelFile& file) {
  std::vector<std::string> names;
  for (const Variant& variant : file.variants) names.push_back(variant.name);
  return names;
}

}  // namespace

ModelFile read_model_file(const std::filesystem::path& path) { return read_model_file(path, 0); }

bool has_size(const ModelFile& file, const std::string& name) {
  return file.sizes.contains(name) || file.parameters.contains(name);
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
