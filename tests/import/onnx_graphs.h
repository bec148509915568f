// Graphs of ONNX for tests.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "simulate/import/network_files.h"

namespace tbdsim::test {

inline OnnxNode node(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
  return {.op = op, .inputs = std::move(inputs), .outputs = {output}};
}

inline OnnxNode with(OnnxNode node, const std::string& attribute, std::vector<std::int64_t> integers) {
  node.attributes[attribute].integers = std::move(integers);
  return node;
}

// A graph of one input x, of 4 positions of 6 features for each sample.
inline OnnxGraph graph_of(std::vector<OnnxNode> nodes, const std::string& output,
                          std::vector<std::int64_t> dims = {-1, 4, 6}) {
  OnnxGraph graph{.file = "f.onnx", .title = "t"};
  graph.inputs = {{.name = "x", .dims = std::move(dims)}};
  graph.outputs = {output};
  graph.nodes = std::move(nodes);
  return graph;
}

inline void add_number(OnnxGraph& graph, const std::string& name, double value) {
  graph.tensors[name] = {.dims = {}, .integers = {}, .numbers = {value}};
}
inline void add_whole(OnnxGraph& graph, const std::string& name, std::vector<std::int64_t> values) {
  const std::int64_t count = std::ssize(values);
  graph.tensors[name] = {.dims = {count}, .integers = std::move(values), .numbers = {}, .real = false};
}
inline void add_weight(OnnxGraph& graph, const std::string& name, std::vector<std::int64_t> dims) {
  std::int64_t count = 1;
  for (const std::int64_t side : dims) count *= side;
  graph.tensors[name] = {
      .dims = std::move(dims), .integers = {}, .numbers = {}, .real = true, .trained = {{name, count}}};
}

inline std::string text_of(const OnnxGraph& graph) { return onnx_network(graph, {}).text; }

}  // namespace tbdsim::test
