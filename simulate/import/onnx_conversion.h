// The state of a conversion of an ONNX graph: the layers so far, and what each name of the graph stands for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "simulate/import/network.h"
#include "simulate/import/network_files.h"
#include "simulate/import/onnx_data.h"

namespace tbdsim {

class OnnxConversion {
 public:
  OnnxConversion(const OnnxGraph& graph, std::int64_t batch);

  [[nodiscard]] NetworkBuilder& builder() { return builder_; }
  // The first dimension of the first input; a number that nothing else has where it is a name.
  [[nodiscard]] std::int64_t batch() const { return batch_; }
  // Whether operators mean what they did before that version of them.
  [[nodiscard]] bool is_before(std::int64_t opset) const { return graph_.opset > 0 && graph_.opset < opset; }

  // A weight or a number that an input of a node names; null where that is no constant.
  [[nodiscard]] const OnnxTensor* constant(const OnnxNode& node, std::size_t input) const;
  [[nodiscard]] const OnnxTensor* constant(const std::string& name) const;
  // The values of a small constant; empty where they are not known.
  [[nodiscard]] std::vector<double> values(const OnnxNode& node, std::size_t input) const;
  [[nodiscard]] std::vector<std::int64_t> whole_values(const OnnxNode& node, std::size_t input) const;
  // The tensor that the network computed for an input of a node; null for constants.
  [[nodiscard]] const OnnxData* data(const OnnxNode& node, std::size_t input) const;
  [[nodiscard]] const OnnxData* data(const std::string& name) const;
  [[nodiscard]] const OnnxNode* producer(const std::string& name) const;
  // The node that makes an input of a node and is one of that operator; null for others.
  [[nodiscard]] const OnnxNode* producer(const OnnxNode& node, std::size_t input, std::string_view op) const;

  // A tensor as a layer reads it: its elements as they lie in memory, or copied in the order of its sides.
  [[nodiscard]] NetworkTensor viewed(const OnnxData& data);
  // `name`: of the layer, where the view is a node of the graph.
  [[nodiscard]] NetworkTensor viewed(const NetworkTensor& from, const std::vector<std::int64_t>& shape,
                                     const std::string& name = "");
  [[nodiscard]] NetworkTensor copied(const OnnxData& data);
  // The tensor in the order of its memory, for a layer that is the same in any.
  [[nodiscard]] NetworkTensor stored(const OnnxData& data);

  // Sets what an output of a node stands for. Without sides it has those of the first input where the shape
  // is the same, else the batch before the shape. Sides that cannot be are noted as unsupported.
  void set(const OnnxNode& node, NetworkTensor tensor);
  void set(const OnnxNode& node, NetworkTensor tensor, OnnxSides sides);
  void set(const OnnxNode& node, OnnxData data);
  void set(const std::string& name, OnnxData data) { data_[name] = std::move(data); }
  // Without its values where the constants before have very many together.
  void set_constant(const std::string& name, OnnxTensor tensor);
  // Notes the operator; what reads it goes on as if it kept the shape, so that all unsupported ones are
  // found.
  void unsupported(const OnnxNode& node, const std::string& why = "");

  // The layer that has a weight of that name first: a later one is tied to it.
  [[nodiscard]] std::string owner_of(const OnnxTensor& weight) const;
  void set_owner(const OnnxTensor& weight, const std::string& layer) {
    if (weight.trained.size() == 1) owners_[weight.trained.begin()->first] = layer;
  }
  // The layer whose first parameter is that whole weight of so many elements, a bias or a scale; empty for
  // none.
  [[nodiscard]] std::string vector_of(const OnnxTensor& weight, std::int64_t elements) const;
  void set_vector(const OnnxTensor& weight, const std::string& layer, std::int64_t elements);

  // Elements of a trained tensor that a layer adds to the network: none where another has it already.
  [[nodiscard]] std::int64_t new_elements(const OnnxTensor& weight);

  // A layer that a following product or sum with a trained tensor may become part of.
  struct Open {
    std::string type;
    NetworkTensor from;
    LayerKeys keys;          // without those below
    bool scaled = false;     // whether the product is there already
    OnnxTensor weight = {};  // of a product
    std::string owner = {};  // the layer that has the weight, if another
  };
  void set_open(const OnnxNode& node, Open open) { open_[node.outputs[0]] = std::move(open); }
  [[nodiscard]] const Open* open(const std::string& name) const;

  void count_norm() { ++norms_; }
  void count_bias() { ++biases_; }
  // A batch norm that the export folded away and that is a layer again.
  void count_restored() { ++norms_, ++restored_; }
  [[nodiscard]] int restored_norms() const { return restored_; }
  // Convolutions have biases and there is no batch norm: the export may have folded norms into them.
  [[nodiscard]] bool may_have_folded_norms() const { return norms_ == 0 && biases_ > 0; }

 private:
  const OnnxGraph& graph_;
  NetworkBuilder builder_;
  std::int64_t batch_;
  std::map<std::string, OnnxData> data_;
  std::map<std::string, OnnxTensor> made_;  // constants that nodes make of others
  std::map<std::string, const OnnxNode*> producers_;
  std::map<std::string, std::string> owners_, vectors_;  // layers, by weights
  std::map<std::string, Open> open_;
  std::map<std::pair<std::string, std::vector<std::int64_t>>, NetworkTensor> views_;
  std::size_t kept_ = 0;        // values of those constants
  int norms_ = 0, biases_ = 0;  // batch norms; convolutions with a bias
  int restored_ = 0;            // batch norms that convolutions had folded in
};

}  // namespace tbdsim
