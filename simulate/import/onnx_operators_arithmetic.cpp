// Sums and products of ONNX: of tensors, with numbers, of matrices.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/network.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_operators.h"

namespace tbdsim {
namespace {

using Shape = std::vector<std::int64_t>;

OnnxSides padded(OnnxSides sides, std::size_t rank) {
  if (sides.size() < rank) sides.insert(sides.begin(), rank - sides.size(), OnnxSide{});
  return sides;
}

const char* operation_of(const OnnxNode& node) {
  if (node.op == "Add" || node.op == "Sum") return "add";
  if (node.op == "Sub") return "subtract";
  if (node.op == "Mul") return "multiply";
  return node.op == "Div" ? "divide" : "function";
}

LayerKeys operation_key(const std::string& operation) { return {{"operation", spec_scalar(operation)}}; }

// An operation on two tensors that depend on the samples. The result lies in memory as the first of them does
// that has its sides, as in PyTorch (aten/src/ATen/TensorIterator.cpp, reorder_dimensions).
void pair_of_data(OnnxConversion& net, const OnnxNode& node, const std::string& operation, const OnnxData& a,
                  const OnnxData& b) {
  const auto sides = spread_sides(a.sides, b.sides);
  if (!sides) return net.unsupported(node, "of tensors of several shapes");
  OnnxData result{.layer = {}, .sides = *sides};
  if (a.sides == *sides || b.sides == *sides) result.places = (a.sides == *sides ? a : b).places;
  const auto stored = [&](const OnnxSides& seen) {
    return sides_in_memory({.layer = {}, .sides = padded(seen, sides->size()), .places = result.places});
  };
  const OnnxSides all = stored(*sides);
  const Shape to = shape_of(all), left = shape_beside(stored(a.sides), all),
              right = shape_beside(stored(b.sides), all);
  NetworkTensor large = net.viewed(a.layer, left), small = net.viewed(b.layer, right);
  const std::string name = name_of_layer(node);
  if (operation == "multiply" && left != to && right == to) std::swap(large, small);
  NetworkBuilder& builder = net.builder();
  result.layer = operation == "add" && left == right ? builder.add("add", name, {large, small}, to)
                 : operation == "multiply" && large.shape == to
                     ? builder.add("multiply", name, {large, small}, to)
                     : builder.add("pairwise", name, {large, small}, to, operation_key(operation));
  net.set(node, std::move(result));
}

// A trained tensor: a bias, a factor for each feature or channel, positions, or any other.
void pair_with_trained(OnnxConversion& net, const OnnxNode& node, const OnnxData& data,
                       const OnnxTensor& weight) {
  const OnnxSides own = padded(sides_beside(weight.dims, data.sides, net.batch()), data.sides.size());
  const auto sides = spread_sides(data.sides, own);
  if (!sides) return net.unsupported(node, "of tensors of several shapes");
  const Shape to = shape_of(*sides), shape = shape_beside(own, *sides);
  const NetworkTensor from = net.viewed(data.layer, shape_beside(padded(data.sides, sides->size()), *sides));
  const std::int64_t count = product_of(shape);
  const std::string name = name_of_layer(node), operation = operation_of(node);
  NetworkBuilder& builder = net.builder();
  if (count < 1) return net.unsupported(node, "with a tensor of no elements");
  const std::string tied = net.vector_of(weight, count);
  const bool alone = (net.owner_of(weight).empty() || !tied.empty()) && from.shape == to;
  const bool of_features = shape.back() == to.back() && count == to.back() && count > 1;
  const bool of_channels = to.size() == 3 && shape[0] == count;
  const auto set_vector = [&](const char* type, LayerKeys keys) {
    if (!tied.empty()) keys.emplace_back("tied_to", spec_text(tied));
    const NetworkTensor made = builder.add(type, name, {from}, to, std::move(keys));
    if (tied.empty()) net.set_vector(weight, made.layer, count);
    net.set(node, made, *sides);
  };
  if (alone && of_features && operation == "add") return set_vector("bias", {});
  if (alone && of_features && operation == "multiply") return set_vector("layer_scale", {});
  if (alone && (count == 1 || of_channels) && operation == "multiply")
    return set_vector("layer_scale", {{"axes", spec_scalar(count == 1 ? "all" : "image")}});
  const std::int64_t elements = net.new_elements(weight), rows = elements / to.back();
  if (operation == "add" && shape == to && to.size() == 2 && elements > 0 && elements == rows * to[1] &&
      rows != to[0])
    return net.set(
        node,
        rows > to[0] ? builder.add("learned_positions", name, {from}, to, {{"positions", spec_number(rows)}})
                     : builder.add("add_embedding", name, {from}, to, {{"words", spec_number(rows)}}),
        *sides);
  builder.fix_shapes();
  std::vector<SpecTree> dims;
  for (const std::int64_t side : shape) dims.push_back(spec_number(side));
  LayerKeys keys = operation_key(operation);
  keys.emplace_back("trained", spec_list(dims));
  if (elements != count) keys.emplace_back("elements", spec_number(elements));
  net.set(node, builder.add("pairwise", name, {from}, to, std::move(keys)), *sides);
}

// Numbers that are no parameters: constants, or drawn or computed beside the data.
void pair_with_numbers(OnnxConversion& net, const OnnxNode& node, const OnnxData& data,
                       const OnnxSides& own) {
  const auto sides = spread_sides(data.sides, own);
  if (!sides) return net.unsupported(node, "of tensors of several shapes");
  const bool spreads = *sides != data.sides;
  NetworkTensor from = spreads ? net.viewed(data) : net.stored(data);
  const Shape to = spreads ? shape_of(*sides) : from.shape;
  if (from.shape != to && product_of(from.shape) == product_of(to)) from = net.viewed(data.layer, to);
  if (from.shape != to) {
    from = add_resized(net, "expand", name_of_layer(node) + "/expand",
                       net.viewed(data.layer, shape_beside(padded(data.sides, sides->size()), *sides)), to);
  }
  const bool whole_table = operation_of(node) == std::string_view("add") && own.size() > 1 &&
                           product_of(shape_of(own)) == product_of(to);
  const bool function = operation_of(node) == std::string_view("function") && node.op != "Where";
  const char* type = function ? "pointwise" : whole_table ? "add_positions" : "scale";
  net.set(node, OnnxData{.layer = net.builder().add(type, name_of_layer(node), {from}, to),
                         .sides = *sides,
                         .places = spreads ? std::vector<std::size_t>{} : data.places});
}

struct Factor {
  NetworkTensor tensor;  // heads x rows x columns
  bool transposed = false;
};

// A factor of a product of matrices of each head, copied where its heads do not lie one after another.
Factor factor_of(OnnxConversion& net, const OnnxNode& node, const OnnxData& data, const OnnxSides& heads,
                 bool may_transpose) {
  OnnxData from = data;
  const std::size_t rank = from.sides.size();
  bool transposed = false;
  if (may_transpose && !is_in_order(from)) {
    std::swap(from.sides[rank - 1], from.sides[rank - 2]);
    std::swap(from.places[rank - 1], from.places[rank - 2]);
    transposed = is_in_order(from);
    if (!transposed) from = data;
  }
  OnnxSides leading(from.sides.begin(), from.sides.end() - 2);
  const std::int64_t rows = from.sides[rank - 2].size, columns = from.sides[rank - 1].size;
  NetworkTensor tensor = net.copied(from);
  leading = padded(leading, heads.size());
  const std::int64_t all = product_of(shape_of(heads));
  if (product_of(shape_of(leading)) != all) {
    Shape small = shape_beside(leading, heads), large = shape_of(heads);
    for (Shape* shape : {&small, &large}) shape->insert(shape->end(), {rows, columns});
    tensor = add_resized(net, "expand", name_of_layer(node) + "/expand", net.viewed(tensor, small), large);
  }
  return {net.viewed(tensor, {all, rows, columns}), transposed};
}

void product_of_data(OnnxConversion& net, const OnnxNode& node, const OnnxData& a, const OnnxData& b) {
  const auto matrices = [](const OnnxData& data) {
    const std::size_t rank = data.sides.size();
    return rank >= 3 && !data.sides[rank - 1].batch && !data.sides[rank - 2].batch;
  };
  if (!matrices(a) || !matrices(b)) return net.unsupported(node, "of two computed tensors");
  const auto heads = spread_sides(OnnxSides(a.sides.begin(), a.sides.end() - 2),
                                  OnnxSides(b.sides.begin(), b.sides.end() - 2));
  if (!heads || a.sides.back().size != b.sides[b.sides.size() - 2].size)
    return net.unsupported(node, "of tensors of several shapes");
  const Factor left = factor_of(net, node, a, *heads, false), right = factor_of(net, node, b, *heads, true);
  const std::int64_t columns = right.tensor.shape[right.transposed ? 1 : 2];
  OnnxSides sides = *heads;
  sides.push_back({.size = left.tensor.shape[1]});
  sides.push_back({.size = columns});
  net.set(
      node,
      net.builder().add(right.transposed ? "attention_scores" : "attention_context", name_of_layer(node),
                        {left.tensor, right.tensor}, {left.tensor.shape[0], left.tensor.shape[1], columns}),
      sides);
}

// A constant as data beside other data: the same for all samples.
OnnxData beside(OnnxConversion& net, const OnnxNode& node, const OnnxTensor& weight, const OnnxData& data,
                std::size_t rank) {
  OnnxSides sides = padded(sides_beside(weight.dims, {}, 1), rank);
  for (std::size_t i = 0; i < sides.size(); ++i)
    sides[i].batch = i < data.sides.size() && data.sides[i].batch;
  return {.layer = add_trained(net, node, weight, data.layer, shape_of(sides)), .sides = sides};
}

}  // namespace

void convert_pair(OnnxConversion& net, const OnnxNode& node) {
  std::vector<OnnxData> data;
  const OnnxTensor* constant = nullptr;
  OnnxSides numbers;
  for (std::size_t i = node.op == "Where" ? 1 : 0; i < node.inputs.size(); ++i) {
    const OnnxData* found = net.data(node, i);
    if (found != nullptr && !found->whole) data.push_back(*found);
    if (found != nullptr && found->whole) numbers = found->sides;
    if (found == nullptr && net.constant(node, i) == nullptr)
      return net.unsupported(node, "with an unknown input");
    if (const OnnxTensor* tensor = net.constant(node, i)) constant = tensor;
  }
  if (data.empty()) return net.unsupported(node, "of tensors of several shapes");
  if (data.size() > 2) {
    std::vector<NetworkTensor> terms;
    for (const OnnxData& one : data) terms.push_back(net.viewed(one));
    const bool alike = std::ranges::all_of(terms, [&](const auto& t) { return t.shape == terms[0].shape; });
    if (!alike) return net.unsupported(node, "of tensors of several shapes");
    return net.set(node, net.builder().add("add", name_of_layer(node), terms, terms[0].shape), data[0].sides);
  }
  if (data.size() == 2) return pair_of_data(net, node, operation_of(node), data[0], data[1]);
  if (constant != nullptr && !constant->trained.empty())
    return pair_with_trained(net, node, data[0], *constant);
  if (constant != nullptr) numbers = sides_beside(constant->dims, data[0].sides, net.batch());
  pair_with_numbers(net, node, data[0], numbers);
}

void convert_matrix_product(OnnxConversion& net, const OnnxNode& node) {
  const OnnxData* first = net.data(node, 0);
  const OnnxData* second = net.data(node, 1);
  if (first != nullptr && second != nullptr)
    return product_of_data(net, node, OnnxData(*first), OnnxData(*second));
  const OnnxTensor* weight = net.constant(node, first == nullptr ? 0 : 1);
  if (weight == nullptr || (first == nullptr && second == nullptr)) return net.unsupported(node);
  if (first == nullptr || weight->dims.size() != 2) {
    const OnnxData data = first == nullptr ? *second : *first;
    if (data.sides.size() < 3 || weight->dims.size() < 2)
      return net.unsupported(node, "with a weight of other sides");
    const OnnxData other = beside(net, node, *weight, data, data.sides.size());
    return first == nullptr ? product_of_data(net, node, other, data)
                            : product_of_data(net, node, data, other);
  }
  const OnnxData data = *first;
  const bool transposed = node.op == "Gemm" && whole_number_of(node, "transB", 0) == 1;
  const std::int64_t inputs = weight->dims[transposed ? 1 : 0], outputs = weight->dims[transposed ? 0 : 1];
  NetworkTensor from = net.copied(data);
  const bool positions = from.shape.size() > 1 && from.shape.back() == inputs;
  if (!positions && product_of(from.shape) != inputs) {
    if (net.builder().has_unsupported()) return net.unsupported(node);
    net.builder().fail(fmt::format("{}: a weight for {} features; expected one for {}, as its input has",
                                   name_of_layer(node), inputs, from.shape.back()));
  }
  std::vector<std::int64_t> shape = positions ? from.shape : std::vector<std::int64_t>{outputs};
  shape.back() = outputs;
  OnnxSides sides = data.sides;
  sides.back().size = outputs;
  OnnxConversion::Open open{
      .type = "fully_connected", .from = from, .keys = {{"outputs", spec_number(outputs)}}};
  open.scaled = true;
  open.weight = *weight;
  if (positions) open.keys.emplace_back("per_position", spec_scalar("true"));
  open.owner = net.owner_of(*weight);
  if (!open.owner.empty()) open.keys.emplace_back("tied_to", spec_text(open.owner));
  LayerKeys keys = open.keys;
  const OnnxTensor* bias = node.op == "Gemm" ? net.constant(node, 2) : nullptr;
  const OnnxData* term = node.op == "Gemm" ? net.data(node, 2) : nullptr;    // that is computed
  const bool biased = bias != nullptr && net.owner_of(*bias) == open.owner;  // both used before, or neither
  if (!biased) keys.emplace_back("bias", spec_scalar("false"));
  NetworkTensor to =
      net.builder().add("fully_connected", name_of_layer(node), {from}, shape, std::move(keys));
  if (open.owner.empty()) {
    net.set_owner(*weight, to.layer);
    if (biased) net.set_owner(*bias, to.layer);
  }
  if (bias != nullptr && !biased) to = net.builder().add("bias", name_of_layer(node) + "/bias", {to}, shape);
  if (term != nullptr) return pair_of_data(net, node, "add", {.layer = to, .sides = sides}, OnnxData(*term));
  net.set(node, to, sides);
  if (bias == nullptr) net.set_open(node, std::move(open));
}

// Two operands become matrices of each head: letters of both and the output are heads, letters of both alone
// are summed over.
void convert_einsum(OnnxConversion& net, const OnnxNode& node) {
  const auto given = node.attributes.find("equation");
  std::string equation = given == node.attributes.end() ? "" : given->second.text;
  std::erase(equation, ' ');
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  const bool two = comma != std::string::npos && arrow != std::string::npos && node.inputs.size() == 2 &&
                   equation.find('.') == std::string::npos;
  const OnnxData *a = net.data(node, 0), *b = net.data(node, 1);
  const bool known = (a != nullptr || net.constant(node, 0) != nullptr) &&
                     (b != nullptr || net.constant(node, 1) != nullptr);
  if (!two || !known || (a == nullptr && b == nullptr)) return net.unsupported(node, in_quotes(equation));
  const std::string left = equation.substr(0, comma), right = equation.substr(comma + 1, arrow - comma - 1),
                    to = equation.substr(arrow + 2);
  OnnxData first = a != nullptr ? *a : OnnxData{}, second = b != nullptr ? *b : OnnxData{};
  if (a == nullptr)
    first = {.layer = add_trained(net, node, *net.constant(node, 0), b->layer, net.constant(node, 0)->dims),
             .sides = sides_beside(net.constant(node, 0)->dims, {}, 1)};
  if (b == nullptr)
    second = {.layer = add_trained(net, node, *net.constant(node, 1), a->layer, net.constant(node, 1)->dims),
              .sides = sides_beside(net.constant(node, 1)->dims, {}, 1)};
  if (first.sides.size() != left.size() || second.sides.size() != right.size())
    return net.unsupported(node, in_quotes(equation));
  std::string heads, rows, columns, summed;
  for (const char c : left) {
    const bool in_right = right.find(c) != std::string::npos, in_to = to.find(c) != std::string::npos;
    (in_right ? (in_to ? heads : summed) : rows) += c;
  }
  for (const char c : right) columns += left.find(c) == std::string::npos ? std::string(1, c) : "";
  const auto side = [&](char c) {
    const std::size_t at = left.find(c);
    return at != std::string::npos ? first.sides[at] : second.sides[right.find(c)];
  };
  const auto sizes = [&](const std::string& letters) {
    std::int64_t product = 1;
    for (const char c : letters) product = product_of({product, side(c).size});
    return product;
  };
  const auto arranged = [&](OnnxData data, const std::string& letters, const std::string& order) {
    OnnxData other = data;
    other.sides.clear();
    other.places.clear();
    for (const char c : order) {
      const std::size_t at = letters.find(c);
      other.sides.push_back(data.sides[at]);
      other.places.push_back(data.places.empty() ? at : data.places[at]);
    }
    return net.copied(other);
  };
  const bool sums_batch = std::ranges::any_of(summed, [&](char c) { return side(c).batch; });
  if (to.find_first_not_of(heads + rows + columns) != std::string::npos || sums_batch)
    return net.unsupported(node, in_quotes(equation));
  const std::int64_t h = sizes(heads), m = sizes(rows), n = sizes(columns), k = sizes(summed);
  const NetworkTensor x = net.viewed(arranged(first, left, heads + rows + summed), {h, m, k}),
                      y = net.viewed(arranged(second, right, heads + summed + columns), {h, k, n});
  OnnxData result{.layer = net.builder().add("attention_context", name_of_layer(node), {x, y}, {h, m, n})};
  const std::string made = heads + rows + columns;
  for (const char c : to) {
    result.sides.push_back(side(c));
    result.places.push_back(made.find(c));
  }
  if (!node.outputs.empty()) net.set(node.outputs[0], result);
}

}  // namespace tbdsim
