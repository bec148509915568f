#include "simulate/import/keras_graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::size_t kDeepest = 96, kMostValues = 20'000'000, kLongestName = 1000;
constexpr std::int64_t kMostLayers = 100'000;

bool is_model(std::string_view type) {
  return type == "Sequential" || type == "Functional" || type == "Model";
}

// Names of layers as tensors refer to them.
struct Reference {
  std::string layer;
  std::int64_t call = 0, number = 0;
  const JsonNode* at = nullptr;
};

// ["conv", 0, 0] or, of Keras 2, ["conv", 0, 0, {"further": ["tensors", 0, 0]}].
bool is_reference(const JsonNode& value) {
  constexpr std::size_t kLeast = 3, kMost = 4;
  return value.is_list() && value.size() >= kLeast && value.size() <= kMost && value[0].is_text() &&
         value[1].is_whole() && value[2].is_whole() && value[1].whole(INT64_MIN, INT64_MAX) >= 0;
}

// Every tensor that a value names, in order.
class References {
 public:
  explicit References(KerasFile& file) : file_(file) {}

  void add(const JsonNode& value) {
    if (is_reference(value)) {
      found_.push_back({.layer = value[0].text(kLongestName),
                        .call = value[1].whole(0, kMostLayers),
                        .number = value[2].whole(0, kMostLayers),
                        .at = &value});
      if (value.size() > 3) add(file_.item(value, 3));
    } else if (value.is_list()) {
      for (std::size_t i = 0; i < value.size(); ++i) add(file_.item(value, i));
    } else if (value.is_map()) {
      add_of_map(value);
    }
  }
  [[nodiscard]] const std::vector<Reference>& found() const { return found_; }
  [[nodiscard]] bool causal() const { return causal_; }

 private:
  void add_of_map(const JsonNode& map) {
    if (const JsonNode* config = file_.find(map, "config")) {  // a tensor of Keras 3
      if (const JsonNode* history = file_.find(*config, "keras_history")) return add(*history);
      return;
    }
    if (const JsonNode* flag = file_.find(map, "use_causal_mask")) causal_ |= flag->is_flag() && flag->flag();
    for (const std::string_view key : {"args", "kwargs", "inputs", "query", "value", "key", "initial_state",
                                       "x", "y", "x1", "x2", "a", "b"}) {
      if (const JsonNode* inside = file_.find(map, key)) add(*inside);
    }
  }

  KerasFile& file_;
  std::vector<Reference> found_;
  bool causal_ = false;
};

}  // namespace

KerasFile::KerasFile(const std::string& file, const std::string& text) {
  parse(file, text);
  const JsonNode* root = &nodes_.back();
  if (root->is_text()) {  // json.dump(model.to_json()) makes a text of the text
    parse(file, root->text(text.size()));
    root = &nodes_.back();
  }
  model_ = std::make_shared<const KerasModel>(read_model(model_in(*root)));
}

void KerasFile::parse(const std::string& file, const std::string& text) {
  documents_.emplace_back(file, text, kDeepest, kMostValues, "model.to_json() of Keras");
  (void)keep(documents_.back().root());
}

const JsonNode* KerasFile::find(const JsonNode& map, std::string_view key) {
  if (!map.is_map() || !map.has(key)) return nullptr;
  const JsonNode& value = keep(map.at(key));
  return value.is_null() ? nullptr : &value;
}

const JsonNode& KerasFile::require(const JsonNode& map, std::string_view key) {
  const JsonNode* found = find(map, key);
  if (found == nullptr) map.fail("a map with the key " + in_quotes(std::string(key)));
  return *found;
}

const JsonNode& KerasFile::item(const JsonNode& list, std::size_t index) { return keep(list[index]); }

// TensorFlow.js has the model inside of its topology.
const JsonNode& KerasFile::model_in(const JsonNode& root) {
  if (const JsonNode* topology = find(root, "modelTopology")) return model_in(*topology);
  if (const JsonNode* model = find(root, "model_config")) return *model;
  return root;
}

KerasFile::Part KerasFile::part(const JsonNode& value) {
  return {.type = require(value, "class_name").text(kLongestName), .config = &require(value, "config")};
}

KerasLayer KerasFile::layer(const JsonNode& value) {
  const Part own = part(value);
  KerasLayer layer{.type = own.type, .name = "", .config = own.config, .calls = {}, .inner = nullptr};
  for (const JsonNode* map : {&value, own.config}) {
    const JsonNode* name = find(*map, "name");
    if (name != nullptr && layer.name.empty()) layer.name = name->text(kLongestName);
  }
  // Keras 3 writes classes of others as "package>Name".
  layer.type = layer.type.substr(layer.type.rfind('>') + 1);
  if (is_model(layer.type)) layer.inner = std::make_shared<const KerasModel>(read_model(value));
  return layer;
}

// A model with its class and config, or a config alone, as model.get_config() has it.
KerasModel KerasFile::read_model(const JsonNode& value) {
  const JsonNode* inside = find(value, "layers") == nullptr ? find(value, "config") : nullptr;
  const JsonNode& config = inside == nullptr ? value : *inside;
  const JsonNode& list = config.is_list() ? config : require(config, "layers");  // Keras 2.1 and before
  list.require_list(kMostLayers, "a list of layers");
  KerasModel model;
  if (const JsonNode* name = find(config, "name")) model.name = name->text(kLongestName);
  std::vector<const JsonNode*> values;
  for (std::size_t i = 0; i < list.size(); ++i) values.push_back(&item(list, i));
  if (values.empty()) list.fail("layers, one or more");
  for (const JsonNode* one : values) model.layers.push_back(layer(*one));
  if (find(config, "output_layers") != nullptr)
    read_graph(model, config, values);
  else
    read_chain(model, config);
  return model;
}

// Layers one behind another. The first layer, or the model, may say what a chain begins with.
void KerasFile::read_chain(KerasModel& model, const JsonNode& config) {
  const bool shown = model.layers[0].type == "InputLayer";
  if (shown) model.inputs = {0};
  const auto say = [&](const JsonNode& map, std::string_view key) {
    if (model.input_shape == nullptr) model.input_shape = find(map, key);
  };
  if (!shown) {
    say(*model.layers[0].config, "batch_input_shape");
    say(*model.layers[0].config, "batch_shape");
    if (config.is_map()) say(config, "build_input_shape");
  }
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    KerasCall call;
    if (i > 0) call.from = {{.layer = i - 1, .call = 0, .number = 0}};
    model.layers[i].calls = {call};
    model.order.emplace_back(i, 0);
  }
  model.outputs = {{.layer = model.layers.size() - 1, .call = 0, .number = 0}};
}

namespace {

// Calls in order: those whose inputs are all there, the first of the file first.
std::vector<std::pair<std::size_t, std::size_t>> ordered_calls(const KerasModel& model) {
  using Call = std::pair<std::size_t, std::size_t>;
  std::map<Call, std::vector<Call>> readers;
  std::map<Call, std::size_t> missing;
  std::set<Call> ready;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t k = 0; k < model.layers[i].calls.size(); ++k) {
      const auto& from = model.layers[i].calls[k].from;
      for (const KerasOutput& output : from) readers[{output.layer, output.call}].emplace_back(i, k);
      missing[{i, k}] = from.size();
      if (from.empty()) ready.emplace(i, k);
    }
  }
  std::vector<Call> order;
  while (!ready.empty()) {
    order.push_back(*ready.begin());
    ready.erase(ready.begin());
    for (const Call& reader : readers[order.back()]) {
      if (--missing[reader] == 0) ready.insert(reader);
    }
  }
  return order;
}

}  // namespace

void KerasFile::read_graph(KerasModel& model, const JsonNode& config,
                           const std::vector<const JsonNode*>& values) {
  std::map<std::string, std::size_t> numbers;
  std::vector<std::vector<References>> calls(values.size());
  std::vector<std::size_t> last_call(values.size(), 0);  // the highest number by which one is referred to
  bool as_maps = false;                                  // nodes are those of Keras 3
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!numbers.emplace(model.layers[i].name, i).second)
      values[i]->fail("another name than " + in_quotes(model.layers[i].name) + ", which a layer before has");
  }
  const auto number_of = [&](const Reference& reference) {
    const auto found = numbers.find(reference.layer);
    if (found != numbers.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [name, number] : numbers) names.push_back(name);
    reference.at->fail("a layer of the model" + did_you_mean(reference.layer, names));
  };
  const auto refer = [&](const References& references) {
    for (const Reference& one : references.found()) {
      std::size_t& last = last_call[number_of(one)];
      last = std::max(last, static_cast<std::size_t>(one.call));
    }
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const JsonNode* nodes = find(*values[i], "inbound_nodes");
    for (std::size_t k = 0; nodes != nullptr && nodes->is_list() && k < nodes->size(); ++k) {
      calls[i].emplace_back(*this).add(item(*nodes, k));
      as_maps |= (*nodes)[k].is_map();
      refer(calls[i].back());
    }
    if (calls[i].empty()) calls[i].emplace_back(*this);
  }
  References outputs(*this), inputs(*this);
  outputs.add(require(config, "output_layers"));
  if (!as_maps) refer(outputs);
  if (const JsonNode* list = find(config, "input_layers")) inputs.add(*list);
  // Keras 2 counts the making of a model inside as its first call; Keras 3 does so among the outputs alone
  // (functional.py: get_config counts from 1, serialize_node from 0).
  const auto output_of = [&](const Reference& reference, bool is_output) {
    const std::size_t layer = number_of(reference), count = calls[layer].size();
    const auto call = static_cast<std::size_t>(reference.call);
    const bool making = as_maps ? is_output && call > 0 : last_call[layer] >= count;
    const std::size_t before = model.layers[layer].inner && making ? 1 : 0;
    if (call < before || call - before >= count) reference.at->fail("a call of the layer that it has");
    return KerasOutput{
        .layer = layer, .call = call - before, .number = static_cast<std::size_t>(reference.number)};
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const References& references : calls[i]) {
      KerasCall& call = model.layers[i].calls.emplace_back();
      call.causal = references.causal();
      for (const Reference& one : references.found()) call.from.push_back(output_of(one, false));
    }
  }
  for (const Reference& one : inputs.found()) model.inputs.push_back(number_of(one));
  for (const Reference& one : outputs.found()) model.outputs.push_back(output_of(one, true));
  if (model.outputs.empty()) config.fail("output_layers that name a layer");
  model.order = ordered_calls(model);
  std::size_t all = 0;
  for (const KerasLayer& one : model.layers) all += one.calls.size();
  if (model.order.size() != all)
    config.fail("layers that read what others before them make, without a circle");
}

}  // namespace tbdsim
