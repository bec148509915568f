// Constants that are computed: element by element, filled, reduced, multiplied.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "simulate/import/onnx_constants.h"
#include "simulate/import/onnx_folding.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_values.h"

namespace tbdsim {

bool Folding::elementwise() const {
  constexpr std::size_t kMostTerms = 64;
  std::optional<Dims> to = Dims{};
  std::vector<std::vector<double>> values;
  for (std::size_t i = 0; i < node.inputs.size() && to; ++i) {
    if (in(i) == nullptr) return false;
    to = spread_dims(*to, in(i)->dims);
  }
  if (!to || node.inputs.empty()) return false;
  const std::int64_t count = product_of(*to);
  bool known = count <= kMostFolded && node.inputs.size() <= kMostTerms;
  for (std::size_t i = 0; i < node.inputs.size() && known; ++i) {
    values.push_back(net.values(node, i));
    known = !values.back().empty();
  }
  if (!known) return done(*to);
  const bool whole = std::ranges::all_of(values, [](const auto& one) {
    return std::ranges::all_of(one, [](double v) { return v == std::floor(v); });
  });
  std::vector<double> result(static_cast<std::size_t>(count));
  for (std::size_t at = 0; at < result.size(); ++at) {
    const auto value = [&](std::size_t i) {
      const std::size_t index = spread_index(at, *to, in(i)->dims);
      return index < values[i].size() ? values[i][index] : 0.0;
    };
    if (node.op == "Where") {
      result[at] = value(0) != 0 ? value(1) : value(2);
    } else if (node.op == "Div") {
      const double quotient = value(1) == 0 ? 0 : value(0) / value(1);
      result[at] = whole && !in(0)->real && !in(1)->real ? std::trunc(quotient) : quotient;
    } else {
      result[at] = value(0);
      const NumberFunction function = number_function(node.op);
      if (values.size() == 1) result[at] = function(result[at], 0);
      for (std::size_t i = 1; i < values.size(); ++i) result[at] = function(result[at], value(i));
    }
  }
  return done(*to, result);
}

bool Folding::filled() const {  // ConstantOfShape, Expand, RandomUniform, Tile
  const bool random = node.op.starts_with("Random");
  Dims to = random ? whole_numbers(node, "shape")
                   : net.whole_values(node, node.op == "Expand" || node.op == "Tile" ? 1 : 0);
  if (node.op == "ConstantOfShape" && in(0) != nullptr) {
    const auto value = node.attributes.find("value");
    const double number = value == node.attributes.end() ? 0 : value->second.number;
    const std::int64_t count = product_of(to);
    return done(to, std::vector<double>(
                        count <= kMostFolded ? static_cast<std::size_t>(std::max<std::int64_t>(count, 0)) : 0,
                        number));
  }
  if (random) return done(to);
  const bool to_a_number = in(1) != nullptr && in(1)->dims == Dims{0};
  if (in(0) == nullptr || (to.empty() && !to_a_number)) return false;
  const auto values = net.values(node, 0);
  if (node.op == "Tile") {
    for (std::size_t i = 0; i < to.size() && i < in(0)->dims.size(); ++i)
      to[i] = product_of({std::max<std::int64_t>(to[i], 0), in(0)->dims[i]});
    return done(to);
  }
  const auto spread = spread_dims(in(0)->dims, to);
  if (!spread) return false;
  const std::int64_t count = product_of(*spread);
  return done(*spread, values.size() == 1 && count <= kMostFolded
                           ? std::vector<double>(static_cast<std::size_t>(count), values[0])
                           : std::vector<double>{});
}

bool Folding::range() const {
  const auto first = net.values(node, 0), last = net.values(node, 1), step = net.values(node, 2);
  if (first.size() != 1 || last.size() != 1 || step.size() != 1 || step[0] == 0) return false;
  const double count = std::max(0.0, std::ceil((last[0] - first[0]) / step[0]));
  constexpr double kMostNumbers = 1e9;
  if (!(count <= kMostNumbers)) return false;
  std::vector<double> values;
  for (double i = 0; i < count && count <= static_cast<double>(kMostFolded); ++i)
    values.push_back(first[0] + i * step[0]);
  return done({static_cast<std::int64_t>(count)}, values);
}

bool Folding::reduced() const {
  if (in(0) == nullptr) return false;
  Dims to = in(0)->dims;
  const Dims axes = axes_of(net, node, 1, to.size());
  const bool keep = whole_number_of(node, "keepdims", 1) != 0;
  const auto values = net.values(node, 0);
  std::vector<double> result;
  if (to.size() == 1 && !values.empty() && node.op == "ReduceProd")
    result = {std::accumulate(values.begin(), values.end(), 1.0, std::multiplies<>())};
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (keep) to[static_cast<std::size_t>(*axis)] = 1;
    if (!keep) to.erase(to.begin() + *axis);
  }
  return done(to, result);
}

bool Folding::cast() const {
  if (in(0) == nullptr) return false;
  std::vector<double> values = net.values(node, 0);
  for (double& value : values) value = is_real() ? value : std::trunc(value);
  return done(in(0)->dims, values);
}

bool Folding::clip() const {
  if (in(0) == nullptr) return false;
  std::vector<double> values = net.values(node, 0);
  const auto least = net.values(node, 1), most = net.values(node, 2);
  for (double& value : values) {
    if (!least.empty()) value = std::max(value, least[0]);
    if (!most.empty()) value = std::min(value, most[0]);
  }
  return done(in(0)->dims, values);
}

bool Folding::einsum() const {
  const auto given = node.attributes.find("equation");
  std::string equation = given == node.attributes.end() ? "" : given->second.text;
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos) return false;
  std::map<char, std::int64_t> sizes;
  std::size_t at = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i, ++at) {
    if (in(i) == nullptr) return false;
    for (const std::int64_t size : in(i)->dims) {
      if (at >= arrow || equation[at] == ',') return false;
      sizes[equation[at++]] = size;
    }
  }
  Dims to;
  for (const char c : equation.substr(arrow + 2)) to.push_back(sizes.contains(c) ? sizes[c] : 1);
  return done(to);
}

bool Folding::gather_rows() const {  // GatherND
  if (in(0) == nullptr || in(1) == nullptr || in(1)->dims.empty()) return false;
  const std::int64_t depth = std::min(in(1)->dims.back(), kLargestSide) +
                             std::clamp<std::int64_t>(whole_number_of(node, "batch_dims", 0), 0, 8);
  if (depth < 1 || depth > std::ssize(in(0)->dims)) return false;
  Dims to(in(1)->dims.begin(), in(1)->dims.end() - 1);
  to.insert(to.end(), in(0)->dims.begin() + depth, in(0)->dims.end());
  return done(to);
}

bool Folding::one_hot() const {
  const Dims depth = net.whole_values(node, 1);
  if (in(0) == nullptr || depth.empty()) return false;
  Dims to = in(0)->dims;
  to.push_back(depth[0]);
  return done(to);
}

bool Folding::convolution() const {  // of a table of positions, by pixels
  if (in(0) == nullptr || in(1) == nullptr || in(0)->dims.size() < 3 || in(1)->dims.empty()) return false;
  Dims to = in(0)->dims;
  to[1] = in(1)->dims[0];
  return done(to);
}

bool Folding::resized() const {
  if (in(0) == nullptr) return false;
  Dims to = in(0)->dims;
  const auto scales = net.values(node, 2), sizes = net.values(node, 3);
  constexpr double kLargest = 1e6;
  for (std::size_t i = 0; i < to.size(); ++i) {
    double side = static_cast<double>(to[i]);
    if (i < scales.size()) side *= scales[i];
    if (i < sizes.size()) side = sizes[i];
    if (!(side >= 1 && side <= kLargest)) return false;
    to[i] = static_cast<std::int64_t>(side);
  }
  return done(to);
}

bool Folding::product() const {
  const auto a = dims(0), b = dims(1);
  if (!a || !b || a->empty() || b->empty()) return false;
  Dims to = *a;
  const bool transposed = whole_number_of(node, "transB", 0) == 1;
  if (b->size() > to.size()) to.insert(to.begin(), b->begin(), b->end() - std::ssize(to));
  to.back() = transposed ? (*b)[0] : b->back();
  return done(to);
}

}  // namespace tbdsim
