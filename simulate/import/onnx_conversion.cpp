#include "simulate/import/onnx_conversion.h"

#include <utility>

#include "simulate/import/onnx_node.h"

namespace tbdsim {

OnnxConversion::OnnxConversion(const OnnxGraph& graph)
    : graph_(graph), builder_(graph.file, graph.title.empty() ? "imported network" : graph.title) {
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& input : node.inputs) ++uses_[input];
    for (const std::string& output : node.outputs) producers_[output] = &node;
  }
}

const OnnxTensor* OnnxConversion::constant(const OnnxNode& node, std::size_t input) const {
  if (input >= node.inputs.size()) return nullptr;
  const auto found = graph_.tensors.find(node.inputs[input]);
  if (found != graph_.tensors.end()) return &found->second;
  const auto made = made_.find(node.inputs[input]);
  return made == made_.end() ? nullptr : &made->second;
}

std::optional<NetworkTensor> OnnxConversion::data(const OnnxNode& node, std::size_t input) const {
  return input < node.inputs.size() ? data(node.inputs[input]) : std::nullopt;
}

std::optional<NetworkTensor> OnnxConversion::data(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? std::nullopt : std::optional(found->second);
}

const OnnxNode* OnnxConversion::producer(const std::string& name) const {
  const auto found = producers_.find(name);
  return found == producers_.end() ? nullptr : found->second;
}

const OnnxNode* OnnxConversion::producer_for_one(const std::string& name) const {
  const auto uses = uses_.find(name);
  return uses != uses_.end() && uses->second == 1 ? producer(name) : nullptr;
}

void OnnxConversion::set(const OnnxNode& node, NetworkTensor tensor) {
  if (!node.outputs.empty()) tensors_[node.outputs[0]] = std::move(tensor);
}

void OnnxConversion::unsupported(const OnnxNode& node, const std::string& why) {
  builder_.note_unsupported(why.empty() ? node.op : node.op + " " + why);
  const auto from = data(node, 0);
  if (!from) return;
  for (const std::string& output : node.outputs) tensors_[output] = *from;
}

NetworkTensor OnnxConversion::flat(const OnnxNode& node, const NetworkTensor& from) {
  return from.shape.size() == 1 ? from
                                : builder_.add_reshape(name_of_layer(node), from, {product_of(from.shape)});
}

}  // namespace tbdsim
