// ONNX files: messages of onnx/onnx.proto (github.com/onnx/onnx), whose fields have the numbers below in
// every version of the format. They are read without the ONNX library, which a network of layers needs no
// more of than names, shapes and attributes: weights stay in the file, and neither the program nor the Python
// package depends on it.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

#include "hwspecs/base/file.h"
#include "simulate/import/network.h"
#include "simulate/import/network_files.h"
#include "simulate/import/onnx_data.h"
#include "simulate/import/onnx_tables.h"
#include "simulate/import/text_lines.h"
#include "simulate/import/wire_message.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostValues = 4'096;  // of a tensor: more are weights, of which only the shape matters
constexpr std::size_t kMostNodes = 1'000'000;
constexpr std::size_t kMostDimensions = 64;

namespace model {
constexpr std::uint32_t kGraph = 7, kOpset = 8, kFunction = 25;
}
namespace opset {
constexpr std::uint32_t kDomain = 1, kVersion = 2;
}
namespace graph {
constexpr std::uint32_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node {
constexpr std::uint32_t kInput = 1, kOutput = 2, kName = 3, kOperator = 4, kAttribute = 5;
}
namespace attribute {
constexpr std::uint32_t kName = 1, kFloat = 2, kInt = 3, kText = 4, kTensor = 5, kInts = 8;
}
namespace tensor {
constexpr std::uint32_t kDims = 1, kType = 2, kFloats = 4, kInt32s = 5, kInt64s = 7, kName = 8, kRaw = 9;
}
namespace data_type {
constexpr std::int64_t kFloat = 1, kInt32 = 6, kInt64 = 7, kBool = 9, kHalf = 10, kDouble = 11,
                       kBfloat16 = 16;
constexpr bool is_real(std::int64_t kind) {
  return kind == 0 || kind == kFloat || kind == kHalf || kind == kDouble || kind == kBfloat16;
}
}  // namespace data_type
namespace value_info {
constexpr std::uint32_t kName = 1, kType = 2;
}
namespace type {
constexpr std::uint32_t kTensor = 1, kElement = 1, kShape = 2;
}
namespace shape {
constexpr std::uint32_t kDim = 1, kValue = 1, kSymbol = 2;
}

using OnField = std::function<void(const WireField&)>;

void for_each_field(std::string_view bytes, const OnField& on_field) {
  WireMessage message(bytes);
  for (WireField field; message.next(field);) on_field(field);
}

// The numbers of a tensor's bytes, which are little-endian.
template <class Number, class Value>
void append_raw(std::string_view raw, std::vector<Value>& values) {
  for (std::size_t at = 0; at + sizeof(Number) <= raw.size() && values.size() < kMostValues;
       at += sizeof(Number)) {
    Number number{};
    std::memcpy(&number, raw.data() + at, sizeof(Number));
    values.push_back(static_cast<Value>(number));
  }
}

struct NamedTensor {
  std::string name;
  OnnxTensor tensor;
};

NamedTensor read_tensor(std::string_view bytes) {
  NamedTensor to;
  std::int64_t kind = 0;
  std::string_view raw, floats;
  std::vector<std::int64_t> whole;
  for_each_field(bytes, [&](const WireField& field) {
    if (field.number == tensor::kDims) append_whole_numbers(field, kMostDimensions, to.tensor.dims);
    if (field.number == tensor::kType) kind = field.whole();
    if (field.number == tensor::kFloats) floats = field.bytes;
    if (field.number == tensor::kInt32s || field.number == tensor::kInt64s)
      append_whole_numbers(field, kMostValues, whole);
    if (field.number == tensor::kName) to.name = std::string(field.bytes);
    if (field.number == tensor::kRaw) raw = field.bytes;
  });
  for (std::int64_t& side : to.tensor.dims) side = std::clamp<std::int64_t>(side, 0, kLargestSide);
  if (kind == data_type::kFloat) {
    append_raw<float>(raw.empty() ? floats : raw, to.tensor.numbers);
    const StoredNumbers<float> all(raw.empty() ? floats : raw);
    to.tensor.computed = is_computed_table(to.tensor.dims, all);
    to.tensor.lower_triangle = is_lower_triangle(to.tensor.dims, all);
  }
  if (kind == data_type::kBool)
    to.tensor.lower_triangle = is_lower_triangle(to.tensor.dims, StoredNumbers<std::uint8_t>(raw));
  if (kind == data_type::kDouble) append_raw<double>(raw, to.tensor.numbers);
  if (kind == data_type::kInt32 || kind == data_type::kInt64 || kind == data_type::kBool)
    to.tensor.integers = std::move(whole);
  if (kind == data_type::kBool) append_raw<std::uint8_t>(raw, to.tensor.integers);
  to.tensor.real = data_type::is_real(kind);
  if (kind == data_type::kInt32) append_raw<std::int32_t>(raw, to.tensor.integers);
  if (kind == data_type::kInt64) append_raw<std::int64_t>(raw, to.tensor.integers);
  return to;
}

struct Attribute {
  std::string name;
  OnnxAttribute value;
  std::string_view tensor;  // the message of a tensor
};

Attribute read_attribute(std::string_view bytes) {
  Attribute to;
  for_each_field(bytes, [&](const WireField& field) {
    if (field.number == attribute::kName) to.name = std::string(field.bytes);
    if (field.number == attribute::kFloat) to.value.number = static_cast<double>(field.single());
    if (field.number == attribute::kInt) to.value.integers.push_back(field.whole());
    if (field.number == attribute::kText) to.value.text = std::string(field.bytes.substr(0, 1'000));
    if (field.number == attribute::kTensor) to.tensor = field.bytes;
    if (field.number == attribute::kInts) append_whole_numbers(field, kMostValues, to.value.integers);
  });
  return to;
}

// A node; one that is a constant becomes a tensor instead.
void read_node(std::string_view bytes, OnnxGraph& graph) {
  OnnxNode to;
  std::vector<Attribute> attributes;
  for_each_field(bytes, [&](const WireField& field) {
    if (field.number == node::kInput) to.inputs.emplace_back(field.bytes);
    if (field.number == node::kOutput) to.outputs.emplace_back(field.bytes);
    if (field.number == node::kName) to.name = std::string(field.bytes);
    if (field.number == node::kOperator) to.op = std::string(field.bytes);
    if (field.number == node::kAttribute) attributes.push_back(read_attribute(field.bytes));
  });
  if (to.op == "Constant" && to.outputs.size() == 1) {
    OnnxTensor& constant = graph.tensors[to.outputs[0]];
    for (const Attribute& one : attributes) {
      if (!one.tensor.empty()) constant = read_tensor(one.tensor).tensor;
      if (one.name == "value_int" || one.name == "value_ints") constant.integers = one.value.integers;
      if (one.name == "value_float") constant.numbers = {one.value.number};
      if (one.name == "value_int" || one.name == "value_ints") constant.real = false;
      if (one.name == "value_ints") constant.dims = {std::ssize(one.value.integers)};
    }
    return;
  }
  for (Attribute& one : attributes) {
    if (!one.tensor.empty()) {  // of ConstantOfShape: the number that fills it
      const std::vector<double> values = values_of(read_tensor(one.tensor).tensor);
      if (!values.empty()) one.value.number = values[0];
    }
    to.attributes[one.name] = std::move(one.value);
  }
  if (graph.nodes.size() >= kMostNodes) throw std::runtime_error("has more than 1000000 nodes");
  graph.nodes.push_back(std::move(to));
}

OnnxInput read_value(std::string_view bytes) {
  OnnxInput to;
  const auto dim = [&](const WireField& field) {
    if (field.number != shape::kDim) return;
    std::int64_t side = -1;
    std::string symbol;
    for_each_field(field.bytes, [&](const WireField& value) {
      if (value.number == shape::kValue && value.bytes.empty() && value.whole() > 0) side = value.whole();
      if (value.number == shape::kSymbol) symbol = std::string(value.bytes.substr(0, 100));
    });
    if (to.dims.size() >= kMostDimensions) return;
    to.dims.push_back(side);
    to.symbols.push_back(std::move(symbol));
  };
  const auto tensor_type = [&](const WireField& field) {
    if (field.number == type::kElement && field.bytes.empty()) to.real = data_type::is_real(field.whole());
    if (field.number == type::kShape) for_each_field(field.bytes, dim);
  };
  for_each_field(bytes, [&](const WireField& field) {
    if (field.number == value_info::kName) to.name = std::string(field.bytes);
    if (field.number != value_info::kType) return;
    for_each_field(field.bytes, [&](const WireField& one) {
      if (one.number == type::kTensor) for_each_field(one.bytes, tensor_type);
    });
  });
  return to;
}

// Numbers that torch.onnx computes once and keeps are named as the nodes that would have made them, and are
// no parameters.
bool is_folded(std::string_view name) {
  static constexpr std::string_view kNodes[] = {
      "val",      "mul",         "add",       "sub",   "div",    "cos",    "sin",        "cat",
      "view",     "expand",      "unsqueeze", "where", "full",   "arange", "permute",    "transpose",
      "slice",    "clone",       "index",     "zeros", "ones",   "pow",    "reciprocal", "to",
      "_to_copy", "masked_fill", "triu",      "tril",  "repeat", "stack"};
  const std::size_t end = name.find_last_not_of("0123456789");
  if (end != std::string_view::npos && name[end] == '_' && end + 1 < name.size()) name = name.substr(0, end);
  return std::find(std::begin(kNodes), std::end(kNodes), name) != std::end(kNodes);
}

// The version of ONNX's own operators, whose domain has no name or its own; 0 for another domain.
std::int64_t read_opset(std::string_view bytes) {
  std::string_view domain;
  std::int64_t version = 0;
  for_each_field(bytes, [&](const WireField& field) {
    if (field.number == opset::kDomain) domain = field.bytes;
    if (field.number == opset::kVersion) version = field.whole();
  });
  return domain.empty() || domain == "ai.onnx" ? version : 0;
}

void read_graph(std::string_view bytes, OnnxGraph& to) {
  std::vector<OnnxInput> inputs;
  for_each_field(bytes, [&](const WireField& field) {
    if (field.number == graph::kNode) read_node(field.bytes, to);
    if (field.number == graph::kName) to.title = std::string(field.bytes.substr(0, 200));
    if (field.number == graph::kInput) inputs.push_back(read_value(field.bytes));
    if (field.number == graph::kOutput) to.outputs.push_back(read_value(field.bytes).name);
    if (field.number != graph::kInitializer) return;
    NamedTensor weight = read_tensor(field.bytes);
    const bool trained = weight.tensor.real && !weight.tensor.dims.empty() && !weight.tensor.computed;
    if (trained && !is_folded(weight.name))
      weight.tensor.trained[weight.name] = product_of(weight.tensor.dims);
    to.tensors[weight.name] = std::move(weight.tensor);
  });
  for (OnnxInput& input : inputs) {
    if (!to.tensors.contains(input.name)) to.inputs.push_back(std::move(input));
  }
}

std::string name_of_function(std::string_view bytes) {
  constexpr std::uint32_t kName = 1;
  std::string name;
  for_each_field(bytes, [&](const WireField& field) {
    if (field.number == kName) name = std::string(field.bytes);
  });
  return name;
}

}  // namespace

std::vector<double> values_of(const OnnxTensor& tensor) {
  if (tensor.integers.empty()) return tensor.numbers;
  return {tensor.integers.begin(), tensor.integers.end()};
}

bool is_untrained_zero(const OnnxTensor& tensor) {
  const std::vector<double> values = values_of(tensor);
  return tensor.trained.empty() && !values.empty() &&
         std::ranges::all_of(values, [](double value) { return value == 0; });
}

OnnxGraph parse_onnx(std::string_view bytes, const std::string& file) {
  OnnxGraph graph{.file = file};
  try {
    for_each_field(bytes, [&](const WireField& field) {
      if (field.number == model::kGraph) read_graph(field.bytes, graph);
      if (field.number == model::kFunction) graph.functions.insert(name_of_function(field.bytes));
      if (field.number == model::kOpset) graph.opset = std::max(graph.opset, read_opset(field.bytes));
    });
  } catch (const std::runtime_error& wrong) {
    fail_at(file, 0,
            fmt::format("no ONNX: {}; expected a file as torch.onnx.export writes it", wrong.what()));
  }
  if (graph.nodes.empty())
    fail_at(file, 0, "no ONNX model with nodes; expected a file as torch.onnx.export writes it");
  return graph;
}

OnnxGraph read_onnx(const std::filesystem::path& file) {
  constexpr std::uintmax_t kLargest = (std::uintmax_t{1} << 31U) - 1;  // of Protocol Buffers
  return parse_onnx(read_file(file, kLargest), file.string());
}

}  // namespace tbdsim
