// The state of a conversion of an ONNX graph: the layers so far, and what each name of the graph stands for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "simulate/import/network.h"
#include "simulate/import/network_files.h"

namespace tbdsim {

class OnnxConversion {
 public:
  explicit OnnxConversion(const OnnxGraph& graph);

  [[nodiscard]] NetworkBuilder& builder() { return builder_; }

  // A weight that an input of a node names; null where that is no constant.
  [[nodiscard]] const OnnxTensor* constant(const OnnxNode& node, std::size_t input) const;
  // The tensor that the network computed for an input of a node; none for constants.
  [[nodiscard]] std::optional<NetworkTensor> data(const OnnxNode& node, std::size_t input) const;
  [[nodiscard]] std::optional<NetworkTensor> data(const std::string& name) const;
  // The node that makes a tensor which one node alone reads; null for others.
  [[nodiscard]] const OnnxNode* producer_for_one(const std::string& name) const;
  [[nodiscard]] const OnnxNode* producer(const std::string& name) const;

  // Sets what the first output of a node, or a name, stands for.
  void set(const OnnxNode& node, NetworkTensor tensor);
  void set(const std::string& name, NetworkTensor tensor) { tensors_[name] = std::move(tensor); }
  void set_constant(const std::string& name, OnnxTensor tensor) { made_[name] = std::move(tensor); }
  // Notes the operator; what reads it goes on as if it kept the shape, so that all unsupported ones are
  // found.
  void unsupported(const OnnxNode& node, const std::string& why = "");
  // One row of features for each sample.
  NetworkTensor flat(const OnnxNode& node, const NetworkTensor& from);

  void count_norm() { ++norms_; }
  void count_bias() { ++biases_; }
  // Convolutions have biases and there is no batch norm: the export may have folded norms into them.
  [[nodiscard]] bool may_have_folded_norms() const { return norms_ == 0 && biases_ > 0; }

 private:
  const OnnxGraph& graph_;
  NetworkBuilder builder_;
  std::map<std::string, NetworkTensor> tensors_;
  std::map<std::string, OnnxTensor> made_;  // constants that nodes make of others
  std::map<std::string, int> uses_;         // of each name, as an input
  std::map<std::string, const OnnxNode*> producers_;
  int norms_ = 0, biases_ = 0;  // batch norms; convolutions with a bias
};

}  // namespace tbdsim
