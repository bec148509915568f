#include "graphs/fine_tuning.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "graphs/layers/layer_types.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::string_view kProduct = "fully_connected";
constexpr std::string_view kUsuallyAdapted = "attention";

// "layer3/attention/query" -> layer3, attention, query.
std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool has_part(const LayerSpec& layer, std::string_view part) {
  const std::vector<std::string_view> parts = parts_of(layer.name);
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

bool is_adaptable(const GraphLayer& layer) {
  return layer.spec.type == kProduct && layer.spec.repetition >= 0;
}

bool is_adapted(const GraphLayer& layer, const std::vector<std::string>& chosen) {
  if (!is_adaptable(layer)) return false;
  return std::any_of(chosen.begin(), chosen.end(), [&](const std::string& part) {
    return part == kAllProducts || has_part(layer.spec, part);
  });
}

bool has_parameters(const GraphLayer& layer) { return !layer.parameters.empty(); }

// Every part named must be that of a layer for which `suits` is true.
void require_layers(const Model& model, std::string_view what, const std::vector<std::string>& chosen,
                    bool (*suits)(const GraphLayer&)) {
  std::set<std::string> known;
  for (const auto& [name, graph] : model.graphs) {
    for (const GraphLayer& layer : graph.layers) {
      if (!suits(layer)) continue;
      for (const std::string_view part : parts_of(layer.spec.name)) known.emplace(part);
    }
  }
  for (const std::string& part : chosen) {
    if (known.contains(part)) continue;
    std::vector<std::string> names(known.begin(), known.end());
    const std::string hint = did_you_mean(part, names);
    constexpr std::string_view kDigits = "0123456789";
    std::erase_if(names, [&](const std::string& name) { return name.find_first_of(kDigits) != name.npos; });
    constexpr std::size_t kMostNamed = 12;
    names.resize(std::min(names.size(), kMostNamed));
    throw UsageError(std::string(what) + ": no layer of " + model.name + " with such weights has " +
                     in_quotes(part) + " in its name" +
                     (names.empty() ? "" : "; expected one of " + joined(names)) +
                     ", or the name of a layer" + hint);
  }
}

std::shared_ptr<const Layer> make_layer(std::string_view type, std::vector<SpecEntry> keys) {
  SpecTree tree{.kind = SpecTree::Kind::map, .text = {}, .items = {}, .entries = std::move(keys), .mark = {}};
  const SpecTree name{.text = std::string(type), .items = {}, .entries = {}, .mark = {}};
  std::shared_ptr<const Layer> layer;
  SpecNode(tree).map([&](SpecMap& m) { layer = layer_type(SpecNode(name)).make(m); });
  return layer;
}

std::shared_ptr<const Layer> make_product(std::int64_t outputs, bool per_position) {
  const auto entry = [](const char* key, const std::string& value) -> SpecEntry {
    return {key, {}, SpecTree{.text = value, .items = {}, .entries = {}, .mark = {}}};
  };
  return make_layer(kProduct,
                    {entry("outputs", std::to_string(outputs)), entry("bias", "false"),
                     entry("per_position", per_position ? "true" : "false"), entry("narrow", "false")});
}

// The layers that stand for an adapted product: the frozen product, A, B, their scaling and the sum. GPUs
// that share the product share B by columns, or A by rows (Megatron-LM's and NeMo's parallel adapters).
std::vector<LayerSpec> adapted(const GraphLayer& product, std::int64_t rank) {
  const LayerSpec& spec = product.spec;
  const bool per_position = product.output.dims.size() == product.input_shapes[0].dims.size();
  const auto named = [&](const char* suffix, std::string_view type, std::vector<std::string> from) {
    LayerSpec layer = spec;
    layer.name += suffix;
    layer.type = type;
    layer.from = std::move(from);
    layer.frozen = false;
    layer.shard = Sharding::none;
    return layer;
  };
  LayerSpec base = named("/base", kProduct, spec.from);
  base.frozen = true;
  base.shard = spec.shard;
  LayerSpec a = named("/lora_A", kProduct, spec.from);
  a.layer = make_product(rank, per_position);
  a.adapts = base.name;
  a.shard = spec.shard == Sharding::rows ? Sharding::rows : Sharding::none;
  LayerSpec b = named("/lora_B", kProduct, {a.name});
  b.layer = make_product(product.output.dims.back(), per_position);
  b.adapts = base.name;
  b.shard = spec.shard == Sharding::columns ? Sharding::columns : Sharding::none;
  LayerSpec scaled = named("/lora", "scale", {b.name});
  scaled.layer = make_layer("scale", {});
  scaled.adapts = base.name;
  LayerSpec sum = named("", "add", {base.name, scaled.name});
  sum.layer = make_layer("add", {});
  return {std::move(base), std::move(a), std::move(b), std::move(scaled), std::move(sum)};
}

LayerGraph with_adapters(const LayerGraph& graph, const FineTuning& how,
                         const std::vector<std::string>& chosen) {
  std::map<std::string, std::string> bases;  // of adapted products, whose weights others may share
  std::vector<LayerSpec> layers;
  for (const GraphLayer& layer : graph.layers) {
    if (!is_adapted(layer, chosen)) {
      layers.push_back(layer.spec);
      layers.back().frozen = true;
      const auto base = bases.find(layer.spec.tied_to);
      if (base != bases.end()) layers.back().tied_to = base->second;
      continue;
    }
    for (LayerSpec& part : adapted(layer, how.rank)) layers.push_back(std::move(part));
    bases[layer.spec.name] = layer.spec.name + "/base";
  }
  return build_layer_graph(graph.inputs, std::move(layers), graph.outputs);
}

LayerGraph with_frozen(const LayerGraph& graph, const std::vector<std::string>& frozen) {
  std::vector<LayerSpec> layers;
  for (const GraphLayer& layer : graph.layers) {
    LayerSpec& spec = layers.emplace_back(layer.spec);
    spec.frozen = spec.frozen || std::any_of(frozen.begin(), frozen.end(),
                                             [&](const std::string& part) { return has_part(spec, part); });
  }
  return build_layer_graph(graph.inputs, std::move(layers), graph.outputs);
}

bool trains(const LayerGraph& graph) {
  return std::any_of(graph.layers.begin(), graph.layers.end(),
                     [](const GraphLayer& layer) { return layer.weight_gradient; });
}

}  // namespace

Model fine_tuned(Model model, const FineTuning& how) {
  std::vector<std::string> chosen = how.adapted;
  if (chosen.empty()) chosen.emplace_back(kUsuallyAdapted);
  std::vector<std::string> named = chosen;
  std::erase(named, kAllProducts);
  if (how.rank > 0) require_layers(model, "lora", named, is_adaptable);
  require_layers(model, "freeze", how.frozen, has_parameters);
  bool any = false;
  for (auto& [name, graph] : model.graphs) {
    if (how.rank > 0) graph = with_adapters(graph, how, chosen);
    if (!how.frozen.empty()) graph = with_frozen(graph, how.frozen);
    any = any || trains(graph);
  }
  if (!any)
    throw UsageError("freeze: no weight of " + model.name +
                     " is left to train; expected some layers, or adapters, that are");
  return model;
}

}  // namespace tbdsim
