#include "simulate/import/onnx_conversion.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "simulate/import/onnx_node.h"

namespace tbdsim {

OnnxConversion::OnnxConversion(const OnnxGraph& graph, std::int64_t batch)
    : graph_(graph),
      builder_(graph.file, graph.title.empty() ? "imported network" : graph.title),
      batch_(batch) {
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& output : node.outputs) producers_[output] = &node;
  }
}

const OnnxTensor* OnnxConversion::constant(const std::string& name) const {
  const auto found = graph_.tensors.find(name);
  if (found != graph_.tensors.end()) return &found->second;
  const auto made = made_.find(name);
  return made == made_.end() ? nullptr : &made->second;
}

const OnnxTensor* OnnxConversion::constant(const OnnxNode& node, std::size_t input) const {
  return input < node.inputs.size() ? constant(node.inputs[input]) : nullptr;
}

std::vector<double> OnnxConversion::values(const OnnxNode& node, std::size_t input) const {
  const OnnxTensor* tensor = constant(node, input);
  return tensor == nullptr ? std::vector<double>{} : values_of(*tensor);
}

std::vector<std::int64_t> OnnxConversion::whole_values(const OnnxNode& node, std::size_t input) const {
  constexpr double kLargest = 1e15;
  std::vector<std::int64_t> whole;
  for (const double value : values(node, input))
    whole.push_back(std::isfinite(value) ? static_cast<std::int64_t>(std::clamp(value, -kLargest, kLargest))
                                         : 0);
  return whole;
}

const OnnxData* OnnxConversion::data(const OnnxNode& node, std::size_t input) const {
  return input < node.inputs.size() ? data(node.inputs[input]) : nullptr;
}

const OnnxData* OnnxConversion::data(const std::string& name) const {
  const auto found = data_.find(name);
  return found == data_.end() ? nullptr : &found->second;
}

const OnnxNode* OnnxConversion::producer(const std::string& name) const {
  const auto found = producers_.find(name);
  return found == producers_.end() ? nullptr : found->second;
}

const OnnxNode* OnnxConversion::producer(const OnnxNode& node, std::size_t input, std::string_view op) const {
  const OnnxNode* found = input < node.inputs.size() ? producer(node.inputs[input]) : nullptr;
  constexpr int kMostCasts = 16;
  for (int i = 0;
       i < kMostCasts && found != nullptr && found->op == "Cast" && op != "Cast" && !found->inputs.empty();
       ++i)
    found = producer(found->inputs[0]);
  return found != nullptr && found->op == op ? found : nullptr;
}

NetworkTensor OnnxConversion::viewed(const NetworkTensor& from, const std::vector<std::int64_t>& shape,
                                     const std::string& name) {
  if (from.shape == shape) return from;
  const auto [entry, is_new] = views_.try_emplace({from.layer, shape});
  if (is_new) entry->second = builder_.add_reshape(name.empty() ? from.layer : name, from, shape);
  return entry->second;
}

NetworkTensor OnnxConversion::viewed(const OnnxData& data) {
  return viewed(data.layer, shape_of(data.sides));
}

NetworkTensor OnnxConversion::stored(const OnnxData& data) {
  return viewed(data.layer, shape_of(sides_in_memory(data)));
}

NetworkTensor OnnxConversion::copied(const OnnxData& data) {
  if (is_in_order(data)) return viewed(data);
  std::vector<std::size_t> kept, stored;
  for (std::size_t i = 0; i < data.sides.size(); ++i) {
    if (!data.sides[i].batch || data.sides[i].size != 1) kept.push_back(i);
  }
  stored = kept;
  std::ranges::stable_sort(stored, {}, [&](std::size_t i) { return data.places[i]; });
  std::vector<std::int64_t> after;
  std::vector<SpecTree> order;
  for (const std::size_t i : kept) {
    after.push_back(data.sides[i].size);
    order.push_back(spec_number(std::ranges::find(stored, i) - stored.begin()));
  }
  const std::string name = data.name.empty() ? data.layer.layer + "/copy" : data.name;
  return builder_.add("transpose", name, {this->stored(data)}, after, {{"order", spec_list(order)}});
}

void OnnxConversion::set_constant(const std::string& name, OnnxTensor tensor) {
  constexpr std::size_t kMostKept = 10'000'000;
  kept_ += tensor.numbers.size();
  if (kept_ > kMostKept) tensor.numbers.clear();
  made_[name] = std::move(tensor);
}

void OnnxConversion::set(const OnnxNode& node, NetworkTensor tensor, OnnxSides sides) {
  set(node, OnnxData{.layer = std::move(tensor), .sides = std::move(sides)});
}

void OnnxConversion::set(const OnnxNode& node, OnnxData data) {
  if (!can_be(data.sides)) return unsupported(node, "to sides that cannot be");
  if (!node.outputs.empty()) data_[node.outputs[0]] = std::move(data);
}

void OnnxConversion::set(const OnnxNode& node, NetworkTensor tensor) {
  const OnnxData* from = data(node, 0);
  const bool same = from != nullptr && shape_of(from->sides) == tensor.shape;
  OnnxSides sides = same ? from->sides : batch_and(tensor.shape);
  set(node, std::move(tensor), std::move(sides));
}

void OnnxConversion::unsupported(const OnnxNode& node, const std::string& why) {
  builder_.note_unsupported(why.empty() ? node.op : node.op + " " + why, name_of_layer(node));
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxData* found = data(node, i);
    if (found == nullptr) continue;
    const OnnxData from = *found;
    for (const std::string& output : node.outputs) data_[output] = from;
    return;
  }
}

std::string OnnxConversion::owner_of(const OnnxTensor& weight) const {
  const auto found = weight.trained.size() != 1 ? owners_.end() : owners_.find(weight.trained.begin()->first);
  return found == owners_.end() ? std::string() : found->second;
}

std::string OnnxConversion::vector_of(const OnnxTensor& weight, std::int64_t elements) const {
  if (weight.trained.size() != 1 || weight.trained.begin()->second != elements) return "";
  const auto found = vectors_.find(weight.trained.begin()->first);
  return found == vectors_.end() ? std::string() : found->second;
}

void OnnxConversion::set_vector(const OnnxTensor& weight, const std::string& layer, std::int64_t elements) {
  set_owner(weight, layer);
  if (weight.trained.size() == 1 && weight.trained.begin()->second == elements)
    vectors_[weight.trained.begin()->first] = layer;
}

std::int64_t OnnxConversion::new_elements(const OnnxTensor& weight) {
  std::int64_t elements = 0;
  for (const auto& [name, count] : weight.trained) elements += owners_.emplace(name, name).second ? count : 0;
  return elements;
}

const OnnxConversion::Open* OnnxConversion::open(const std::string& name) const {
  const auto found = open_.find(name);
  return found == open_.end() ? nullptr : &found->second;
}

}  // namespace tbdsim
