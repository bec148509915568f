#include "simulate/import/onnx_patterns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/onnx_constants.h"
#include "simulate/import/onnx_masks.h"
#include "simulate/import/onnx_node.h"

namespace tbdsim {
namespace {

std::string through_casts(const OnnxConversion& net, std::string name) {
  constexpr int kMostCasts = 16;
  for (int i = 0; i < kMostCasts; ++i) {
    const OnnxNode* node = net.producer(name);
    if (node == nullptr || node->op != "Cast" || node->inputs.empty()) break;
    name = node->inputs[0];
  }
  return name;
}

bool is_same(const OnnxConversion& net, const std::string& a, const std::string& b) {
  return through_casts(net, a) == through_casts(net, b);
}

std::string input_of(const OnnxNode& node, std::size_t input) {
  return input < node.inputs.size() ? node.inputs[input] : "";
}

// The factor x of a product with a number; the name itself where it is none.
std::string without_number(const OnnxConversion& net, const std::string& name) {
  const OnnxNode* node = net.producer(name);
  if (node == nullptr || (node->op != "Mul" && node->op != "Div")) return name;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const OnnxTensor* number = net.constant(*node, i);
    if (number != nullptr && product_of(number->dims) == 1 && !(node->op == "Div" && i == 0))
      return input_of(*node, 1 - i);
  }
  return name;
}

// The variance, or mean square, below sqrt(v + eps): v's mean, whose square it takes.
struct Root {
  std::string squared;  // what is squared
  const OnnxNode* mean = nullptr;
};
std::optional<Root> root_of(const OnnxConversion& net, const OnnxNode& node, std::size_t input) {
  const OnnxNode* root = net.producer(node, input, "Sqrt");
  const OnnxNode* sum = root == nullptr ? nullptr : net.producer(*root, 0, "Add");
  if (sum == nullptr) return std::nullopt;
  const OnnxNode* mean = net.producer(*sum, 0, "ReduceMean");
  if (mean == nullptr) mean = net.producer(*sum, 1, "ReduceMean");
  if (mean == nullptr) return std::nullopt;
  const OnnxNode* square = net.producer(*mean, 0, "Pow");
  if (square == nullptr) square = net.producer(*mean, 0, "Mul");
  if (square == nullptr) return std::nullopt;
  return Root{.squared = input_of(*square, 0), .mean = mean};
}

// Whether a mean goes over the last side, as norms of features do.
bool over_last(const OnnxConversion& net, const OnnxNode& mean, const OnnxData& of) {
  const auto axes = axes_of(net, mean, 1, of.sides.size());
  return axes.size() == 1 && axes[0] + 1 == std::ssize(of.sides);
}

void set_norm(OnnxConversion& net, const OnnxNode& node, const OnnxNode& mean, const OnnxData& data,
              const char* type) {
  NetworkTensor from = net.copied(data);
  // Features that are not the last side are norms of another order of the same elements.
  if (!over_last(net, mean, data)) {
    std::int64_t features = 1;
    for (const std::int64_t axis : axes_of(net, mean, 1, data.sides.size()))
      features *= data.sides[static_cast<std::size_t>(axis)].size;
    if (features < 1 || product_of(from.shape) % features != 0) features = from.shape.back();
    from = net.viewed(from, {product_of(from.shape) / features, features});
  }
  LayerKeys keys;
  if (type == std::string_view("layer_norm")) keys.emplace_back("affine", spec_scalar("false"));
  net.set(node, net.builder().add(type, name_of_layer(node), {from}, from.shape, std::move(keys)),
          data.sides);
  net.set_open(node, {.type = type, .from = from, .keys = {}});
}

// Tanh of a polynomial of x, or erf of a multiple: the inner part of a GELU of x.
bool reaches(const OnnxConversion& net, const std::string& name, const std::string& x, int steps) {
  if (is_same(net, name, x)) return true;
  const OnnxNode* node = net.producer(name);
  const bool polynomial =
      node != nullptr && (node->op == "Mul" || node->op == "Add" || node->op == "Pow" || node->op == "Div");
  if (!polynomial || steps == 0 || node->inputs.size() > 2) return false;
  return std::ranges::any_of(node->inputs,
                             [&](const auto& input) { return reaches(net, input, x, steps - 1); });
}

bool set_gelu(OnnxConversion& net, const OnnxNode& node) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const OnnxNode* sum = net.producer(node, i, "Add");
    if (sum == nullptr) continue;
    const OnnxNode* inner = nullptr;
    for (const char* op : {"Erf", "Tanh"}) {
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}})
        inner = inner != nullptr ? inner : net.producer(*sum, k, op);
    }
    if (inner == nullptr) continue;
    const std::string other = input_of(node, 1 - i), x = without_number(net, other);
    constexpr int kDeepest = 6;
    for (const std::string& of : {other, x}) {
      const OnnxData* data = net.data(of);
      if (data == nullptr || !reaches(net, input_of(*inner, 0), of, kDeepest)) continue;
      const OnnxData from = *data;
      const NetworkTensor tensor = net.viewed(from);
      LayerKeys keys;
      if (inner->op == "Tanh") keys.emplace_back("approximate", spec_scalar("tanh"));
      net.set(node, net.builder().add("gelu", name_of_layer(node), {tensor}, tensor.shape, std::move(keys)),
              from.sides);
      if (of == other) net.set_open(node, {.type = "gelu", .from = tensor, .keys = {}});
      return true;
    }
  }
  return false;
}

bool set_activation(OnnxConversion& net, const OnnxNode& node, const std::string& x, const char* type) {
  const OnnxData* data = net.data(x);
  if (data == nullptr || data->whole) return false;
  const OnnxData from = *data;
  const NetworkTensor tensor = net.viewed(from);
  net.set(node, net.builder().add(type, name_of_layer(node), {tensor}, tensor.shape), from.sides);
  return true;
}

// min(max(x + 3, 0), 6): the x of it.
std::string shifted_clip(const OnnxConversion& net, const OnnxNode& node, std::size_t input) {
  const OnnxNode* clip = net.producer(node, input, "Clip");
  const OnnxNode* sum = clip == nullptr ? nullptr : net.producer(*clip, 0, "Add");
  if (sum == nullptr) return "";
  const OnnxTensor* number = net.constant(*sum, 1);
  return number != nullptr && product_of(number->dims) == 1 ? input_of(*sum, 0) : "";
}

// The operator below dropouts and masks of rows without a key.
const OnnxNode* softmax_below(const OnnxConversion& net, const OnnxNode& node) {
  const OnnxNode* found = net.producer(input_of(node, 0));
  for (int steps = 0; found != nullptr && steps < 6; ++steps) {
    if (found->op == "Softmax") return found;
    const bool passes =
        found->op == "Dropout" || found->op == "Cast" || found->op == "Identity" || found->op == "Where";
    if (!passes) return nullptr;
    found = net.producer(input_of(*found, found->op == "Where" ? 2 : 0));
  }
  return nullptr;
}

}  // namespace

bool convert_decomposed_norm(OnnxConversion& net, const OnnxNode& node) {
  if (node.inputs.size() != 2 || (node.op != "Div" && node.op != "Mul")) return false;
  if (node.op == "Div") {
    const OnnxNode* centred = net.producer(node, 0, "Sub");
    const auto root = root_of(net, node, 1);
    if (centred != nullptr && root && net.producer(*centred, 1, "ReduceMean") != nullptr) {
      const OnnxData* data = net.data(input_of(*centred, 0));
      if (data == nullptr || data->whole) return false;
      set_norm(net, node, *root->mean, OnnxData(*data), "layer_norm");
      return true;
    }
    if (!root || !is_same(net, root->squared, input_of(node, 0))) return false;
    const OnnxData* data = net.data(input_of(node, 0));
    if (data == nullptr) return false;
    set_norm(net, node, *root->mean, OnnxData(*data), "rms_norm");
    return true;
  }
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const OnnxNode* inverse = net.producer(node, i, "Reciprocal");
    if (inverse == nullptr) inverse = net.producer(node, i, "Div");
    if (inverse == nullptr) continue;
    const auto root = root_of(net, *inverse, inverse->op == "Div" ? 1 : 0);
    const OnnxData* data = net.data(input_of(node, 1 - i));
    if (!root || data == nullptr || !is_same(net, root->squared, input_of(node, 1 - i))) continue;
    const OnnxNode* centred = net.producer(node, 1 - i, "Sub");
    const bool centres = centred != nullptr && net.producer(*centred, 1, "ReduceMean") != nullptr;
    const OnnxData* whole = centres ? net.data(input_of(*centred, 0)) : data;
    if (whole == nullptr) continue;
    set_norm(net, node, *root->mean, OnnxData(*whole), centres ? "layer_norm" : "rms_norm");
    return true;
  }
  return false;
}

bool convert_decomposed_activation(OnnxConversion& net, const OnnxNode& node) {
  if (node.inputs.size() != 2) return false;
  if (node.op == "Div" && net.constant(node, 1) != nullptr) {
    if (const std::string x = shifted_clip(net, node, 0); !x.empty())
      return set_activation(net, node, x, "hardsigmoid");
    const OnnxNode* product = net.producer(node, 0, "Mul");
    if (product == nullptr) return false;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const std::string x = shifted_clip(net, *product, i);
      if (!x.empty() && x == input_of(*product, 1 - i)) return set_activation(net, node, x, "hardswish");
    }
    return false;
  }
  if (node.op != "Mul") return false;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const std::string& other = node.inputs[1 - i];
    if (const OnnxNode* gate = net.producer(node, i, "Sigmoid");
        gate != nullptr && (input_of(*gate, 0) == other || without_number(net, input_of(*gate, 0)) == other))
      return set_activation(net, node, other, "silu");
    if (const OnnxNode* gate = net.producer(node, i, "HardSigmoid");
        gate != nullptr && input_of(*gate, 0) == other)
      return set_activation(net, node, other, "hardswish");
    if (const OnnxNode* gate = net.producer(node, i, "Div");
        gate != nullptr && shifted_clip(net, *gate, 0) == other)
      return set_activation(net, node, other, "hardswish");
    const OnnxNode* tanh = net.producer(node, i, "Tanh");
    const OnnxNode* softplus = tanh == nullptr ? nullptr : net.producer(*tanh, 0, "Softplus");
    if (softplus != nullptr && input_of(*softplus, 0) == other)
      return set_activation(net, node, other, "pointwise");
  }
  return set_gelu(net, node);
}

// scaled_dot_product_attention is exported as softmax((q s)(k s)' + mask) v, s^2 the scale; code that
// computes it step by step scales once.
bool convert_attention(OnnxConversion& net, const OnnxNode& node) {
  if (node.op != "MatMul" || net.data(node, 1) == nullptr) return false;
  const OnnxNode* softmax = softmax_below(net, node);
  if (softmax == nullptr) return false;
  const OnnxNode* scores = net.producer(*softmax, 0, "MatMul");
  bool causal = false;
  if (const OnnxNode* masked = net.producer(*softmax, 0, "Add"); masked != nullptr) {
    const OnnxTensor* mask = net.constant(*masked, 1);
    const OnnxData* computed = net.data(*masked, 1);
    if ((mask != nullptr && !mask->trained.empty()) || (computed != nullptr && !computed->whole))
      return false;
    causal = is_causal_mask(net, input_of(*masked, 1));
    scores = net.producer(*masked, 0, "MatMul");
  }
  if (scores == nullptr) return false;
  const std::string query = without_number(net, input_of(*scores, 0)),
                    key = without_number(net, input_of(*scores, 1));
  if (query == input_of(*scores, 0) || key == input_of(*scores, 1)) return false;
  const OnnxData *q = net.data(query), *k = net.data(key), *v = net.data(node, 1);
  const std::size_t rank = q == nullptr ? 0 : q->sides.size();
  if (rank < 3 || k == nullptr || k->sides.size() != rank || v->sides.size() != rank) return false;
  const OnnxSides leading(q->sides.begin(), q->sides.end() - 2);
  if (leading != OnnxSides(k->sides.begin(), k->sides.end() - 2) ||
      leading != OnnxSides(v->sides.begin(), v->sides.end() - 2))
    return false;
  const std::int64_t heads = product_of(shape_of(leading)), queries = q->sides[rank - 2].size,
                     features = q->sides[rank - 1].size, keys = k->sides[rank - 1].size,
                     values = v->sides[rank - 1].size;
  OnnxSides sides = q->sides;
  sides[rank - 1].size = values;
  const std::vector<NetworkTensor> from = {net.viewed(q->layer, {queries, heads * features}),
                                           net.viewed(k->layer, {keys, heads * features}),
                                           net.viewed(v->layer, {keys, heads * values})};
  LayerKeys own = {{"heads", spec_number(heads)}};
  if (causal && queries == keys) own.emplace_back("causal", spec_scalar("true"));
  OnnxData to{.layer = net.builder().add("attention", name_of_layer(node), from, {queries, heads * values},
                                         std::move(own)),
              .sides = sides};
  // Its output lies position by position.
  for (std::size_t i = 0; i < rank; ++i) to.places.push_back(i);
  if (!sides[rank - 3].batch) std::swap(to.places[rank - 3], to.places[rank - 2]);
  net.set(node.outputs[0], to);
  return true;
}

bool joins_layer_before(OnnxConversion& net, const OnnxNode& node) {
  if (node.inputs.size() != 2 || (node.op != "Mul" && node.op != "Add")) return false;
  const std::size_t at = net.data(node, 0) != nullptr ? 0 : 1;
  const OnnxTensor* number = net.constant(node, 1 - at);
  const OnnxConversion::Open* found = net.open(through_casts(net, node.inputs[at]));
  const OnnxData* data = net.data(node, at);
  if (number == nullptr || found == nullptr || data == nullptr) return false;
  OnnxConversion::Open open = *found;
  const OnnxSides sides = data->sides;
  const bool product = node.op == "Mul";
  if (open.type == "gelu") {
    if (!product || product_of(number->dims) != 1) return false;
    net.set(node.outputs[0], OnnxData(*data));
    return true;
  }
  const bool linear = open.type == "fully_connected", group = open.type == "group_norm";
  const std::int64_t count = product_of(number->dims);
  const std::int64_t features = linear  ? data->layer.shape.back()
                                : group ? open.from.shape[0]
                                        : open.from.shape.back();
  if (product == open.scaled || count != features || (open.type == "rms_norm" && !product)) return false;
  if (linear && net.owner_of(*number) != open.owner) return false;  // a bias that the other layer has not
  LayerKeys keys = open.keys;
  if (product && open.type == "layer_norm") keys.emplace_back("bias", spec_scalar("false"));
  std::vector<std::int64_t> shape = open.from.shape;
  if (linear) shape = data->layer.shape;
  const NetworkTensor to =
      net.builder().add(open.type, name_of_layer(node), {open.from}, shape, std::move(keys));
  if (linear && open.owner.empty()) {
    net.set_owner(open.weight, to.layer);
    net.set_owner(*number, to.layer);
  }
  net.set(node, to, sides);
  if (!product) return true;
  open.scaled = true;
  net.set_open(node, std::move(open));
  return true;
}

}  // namespace tbdsim
