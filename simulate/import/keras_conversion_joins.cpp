// Layers and operators of Keras that read several tensors: sums, products, tensors side by side.
#include <algorithm>
#include <iterator>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/keras_conversion.h"

namespace tbdsim {
namespace {

using Sides = std::vector<std::int64_t>;

// A number for each channel as an image of one pixel, beside an image.
NetworkTensor beside(KerasConversion& net, const KerasSite& site, const NetworkTensor& tensor,
                     const NetworkTensor& other) {
  if (other.shape.size() != 3 || tensor.shape.size() != 1) return tensor;
  return net.builder().add_reshape(site.name + "/pixel", tensor, {tensor.shape[0], 1, 1});
}

// The sides of two tensors together; empty where they are neither equal nor 1.
Sides spread(const Sides& a, const Sides& b) {
  if (a.size() != b.size()) return {};
  Sides all = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return {};
    all[i] = std::max(a[i], b[i]);
  }
  return all;
}

NetworkTensor pair(KerasConversion& net, const KerasSite& site, const char* operation, NetworkTensor a,
                   NetworkTensor b) {
  a = beside(net, site, a, b);
  b = beside(net, site, b, a);
  const Sides shape = spread(a.shape, b.shape);
  if (shape.empty()) return net.unsupported(site, "of tensors of several shapes");
  const std::string_view kind = operation;
  if (kind == "add" && a.shape == b.shape) return net.add(site, "add", {a, b}, shape);
  if (kind == "multiply" && a.shape == shape) return net.add(site, "multiply", {a, b}, shape);
  if (kind == "multiply" && b.shape == shape) return net.add(site, "multiply", {b, a}, shape);
  return net.add(site, "pairwise", {a, b}, shape, {{"operation", spec_scalar(operation)}});
}

struct Join {
  std::string_view type;
  const char* operation;
};
constexpr Join kJoins[] = {{"Add", "add"},           {"Average", "add"},       {"CustomScaleLayer", "add"},
                           {"Divide", "divide"},     {"Maximum", "function"},  {"Minimum", "function"},
                           {"Multiply", "multiply"}, {"Subtract", "subtract"}, {"TrueDivide", "divide"}};

// Functions that operators of Keras 2 call: "math.multiply", "__operators__.add", "nn.relu".
constexpr Join kCalls[] = {{"add", "Add"},           {"divide", "Divide"},   {"gelu", "gelu"},
                           {"maximum", "Maximum"},   {"minimum", "Minimum"}, {"multiply", "Multiply"},
                           {"mul", "Multiply"},      {"relu", "relu"},       {"relu6", "relu6"},
                           {"sigmoid", "sigmoid"},   {"silu", "silu"},       {"softmax", "softmax"},
                           {"subtract", "Subtract"}, {"sub", "Subtract"},    {"tanh", "tanh"},
                           {"truediv", "Divide"},    {"swish", "silu"}};

NetworkTensor joined(KerasConversion& net, const KerasSite& site, const char* operation) {
  NetworkTensor to = net.in(site);
  if (site.from.size() == 1)  // with a number
    return net.add(site, std::string_view(operation) == "function" ? "relu" : "scale", {to}, to.shape);
  bool alike = std::string_view(operation) == "add";
  std::vector<NetworkTensor> all = {to};
  for (std::size_t i = 1; i < site.from.size(); ++i) {
    all.push_back(net.in(site, i));
    alike &= all.back().shape == to.shape;
  }
  if (alike) return net.add(site, "add", all, to.shape);
  for (std::size_t i = 1; i < all.size(); ++i) to = pair(net, site, operation, to, all[i]);
  return to;
}

// Along a side of all: with channels first the first or the last, or between, where what is behind is seen
// as one.
NetworkTensor concatenated(KerasConversion& net, const KerasSite& site) {
  std::vector<NetworkTensor> parts;
  for (std::size_t i = 0; i < site.from.size(); ++i) parts.push_back(net.in(site, i));
  if (parts.size() == 1) return parts[0];
  const std::size_t rank = parts[0].shape.size();
  const JsonNode* given = net.keras().find(site.config, "axis");
  std::int64_t axis = given == nullptr ? -1 : given->whole(-8, 8);
  if (axis < 0) axis += static_cast<std::int64_t>(rank) + 1;
  if (axis < 1 || axis > static_cast<std::int64_t>(rank)) given->fail("a side of the tensors");
  const bool moved = rank > 2 && !net.channels_first();
  const std::size_t at = moved ? static_cast<std::size_t>(axis) % rank : static_cast<std::size_t>(axis - 1);
  Sides shape = parts[0].shape;
  shape[at] = 0;
  for (const NetworkTensor& part : parts) {
    Sides same = part.shape;
    if (same.size() != rank) return net.unsupported(site, "of tensors of several shapes");
    shape[at] += same[at];
    same[at] = parts[0].shape[at];
    if (same != parts[0].shape) return net.unsupported(site, "of tensors of several shapes");
  }
  if (at == 0) return net.add(site, "concat", parts, shape);
  const auto rows = [&](const Sides& sides) {
    Sides seen(sides.begin(), sides.begin() + static_cast<std::ptrdiff_t>(at));
    seen.push_back(product_of({sides.begin() + static_cast<std::ptrdiff_t>(at), sides.end()}));
    return seen;
  };
  const bool between = at + 1 < rank;
  if (between) {
    for (NetworkTensor& part : parts)
      part = net.builder().add_reshape(site.name + "/rows", part, rows(part.shape));
  }
  const NetworkTensor to =
      net.add(site, "concat", parts, between ? rows(shape) : shape, {{"axis", spec_scalar("last")}});
  return between ? net.builder().add_reshape(site.name, to, shape) : to;
}

NetworkTensor called(KerasConversion& net, const KerasSite& site) {
  const std::string whole = net.text(site, "function", "");
  const std::string name = whole.substr(whole.rfind('.') + 1);
  const auto* const found = std::ranges::find(kCalls, std::string_view(name), &Join::type);
  if (found == std::end(kCalls)) return net.unsupported(site, whole);
  const auto* const join = std::ranges::find(kJoins, std::string_view(found->operation), &Join::type);
  return join == std::end(kJoins) ? net.function(site, found->operation, net.in(site))
                                  : joined(net, site, join->operation);
}

}  // namespace

bool convert_keras_join(KerasConversion& net, const KerasSite& site, KerasOutputs& to) {
  if (site.type == "Concatenate") {
    to = {{.inside = concatenated(net, site)}};
    return true;
  }
  if (site.type == "TFOpLambda" || site.type == "TensorFlowOpLayer") {
    to = {{.inside = called(net, site)}};
    return true;
  }
  const auto* const found = std::ranges::find(kJoins, std::string_view(site.type), &Join::type);
  if (found == std::end(kJoins)) return false;
  to = {{.inside = joined(net, site, found->operation)}};
  return true;
}

}  // namespace tbdsim
