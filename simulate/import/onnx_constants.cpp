#include "simulate/import/onnx_constants.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_values.h"

namespace tbdsim {
namespace {

struct Folding {
  OnnxConversion& net;
  const OnnxNode& node;

  [[nodiscard]] const OnnxTensor* in(std::size_t i) const { return net.constant(node, i); }
  // Sides of an input, constant or computed.
  [[nodiscard]] std::optional<Dims> dims(std::size_t i) const {
    if (const OnnxTensor* tensor = in(i)) return tensor->dims;
    if (const OnnxData* data = net.data(node, i)) return dims_of(data->sides, net.batch());
    return std::nullopt;
  }

  // Whether the result is made of floating-point numbers, whose division leaves no whole ones.
  [[nodiscard]] bool is_real() const {
    constexpr std::int64_t kFloat = 1, kHalf = 10, kDouble = 11, kBfloat16 = 16;
    if (node.op == "Shape" || node.op == "Size") return false;
    if (node.op == "Cast") {
      const std::int64_t to = whole_number_of(node, "to", kFloat);
      return to == kFloat || to == kHalf || to == kDouble || to == kBfloat16;
    }
    if (node.op == "Gather" || node.op == "Slice" || node.op == "Reshape")
      return in(0) != nullptr && in(0)->real;
    bool real = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) real |= in(i) != nullptr && in(i)->real;
    return real;
  }

  bool done(Dims dims, std::vector<double> values = {}, std::size_t output = 0) const {
    constexpr std::int64_t kLargestSide = 1'000'000'000'000;
    for (std::int64_t& side : dims) side = std::clamp<std::int64_t>(side, 0, kLargestSide);
    OnnxTensor to;
    std::int64_t count = 1;
    for (const std::int64_t side : dims) count = side <= 0 ? 0 : product_of({count, side});
    if (static_cast<std::int64_t>(values.size()) == count) to.numbers = std::move(values);
    to.dims = std::move(dims);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (const OnnxTensor* from = in(i)) to.trained.insert(from->trained.begin(), from->trained.end());
    }
    to.real = is_real();
    if (output < node.outputs.size()) net.set_constant(node.outputs[output], std::move(to));
    return true;
  }

  [[nodiscard]] bool shape() const {
    const auto of = dims(0);
    if (!of) return false;
    if (node.op == "Size") return done({}, {static_cast<double>(product_of(*of))});
    const auto rank = std::ssize(*of);
    std::int64_t first = whole_number_of(node, "start", 0), last = whole_number_of(node, "end", rank);
    first = std::clamp<std::int64_t>(first < 0 ? first + rank : first, 0, rank);
    last = std::clamp<std::int64_t>(last < 0 ? last + rank : last, first, rank);
    const std::vector<double> values(of->begin() + first, of->begin() + last);
    return done({last - first}, values);
  }

  [[nodiscard]] bool elementwise() const {
    std::optional<Dims> to = Dims{};
    std::vector<std::vector<double>> values;
    for (std::size_t i = 0; i < node.inputs.size() && to; ++i) {
      if (in(i) == nullptr) return false;
      to = spread_dims(*to, in(i)->dims);
      values.push_back(net.values(node, i));
    }
    if (!to || values.empty()) return false;
    const std::int64_t count = product_of(*to);
    const bool known =
        count <= kMostFolded && std::ranges::none_of(values, [](const auto& v) { return v.empty(); });
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

  [[nodiscard]] bool gather() const {
    const OnnxTensor *from = in(0), *index = in(1);
    if (from == nullptr || index == nullptr || from->dims.empty()) return false;
    std::int64_t axis = whole_number_of(node, "axis", 0);
    if (axis < 0) axis += std::ssize(from->dims);
    if (axis < 0 || axis >= std::ssize(from->dims)) return false;
    Dims to(from->dims.begin(), from->dims.begin() + axis);
    to.insert(to.end(), index->dims.begin(), index->dims.end());
    to.insert(to.end(), from->dims.begin() + axis + 1, from->dims.end());
    std::vector<double> result;
    const std::vector<double> values = net.values(node, 0);
    if (from->dims.size() == 1) {
      for (std::int64_t at : net.whole_values(node, 1)) {
        if (at < 0) at += std::ssize(values);
        if (at >= 0 && at < std::ssize(values)) result.push_back(values[static_cast<std::size_t>(at)]);
      }
    }
    return done(to, result);
  }

  [[nodiscard]] bool slice() const {
    const OnnxTensor* from = in(0);
    if (from == nullptr) return false;
    const Dims to = sliced_dims(net, node, from->dims);
    if (to.empty()) return false;
    const SlicedSides parts = slice_of(net, node, from->dims);
    return done(to, picked(net.values(node, 0), from->dims, to, [&](Dims at) {
                  for (std::size_t k = 0; k < at.size(); ++k) at[k] = parts.first[k] + at[k] * parts.step[k];
                  return at;
                }));
  }

  [[nodiscard]] bool concat() const {
    Dims to;
    std::vector<double> values;
    bool known = true;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const OnnxTensor* part = in(i);
      if (part == nullptr) return false;
      std::int64_t axis = whole_number_of(node, "axis", 0);
      if (axis < 0) axis += std::ssize(part->dims);
      if (axis < 0 || axis >= std::ssize(part->dims)) return false;
      const auto own = net.values(node, i);
      known &= axis == 0 && (!own.empty() || part->dims[0] == 0);
      values.insert(values.end(), own.begin(), own.end());
      if (i == 0) {
        to = part->dims;
      } else if (part->dims.size() == to.size()) {
        to[static_cast<std::size_t>(axis)] += part->dims[static_cast<std::size_t>(axis)];
      }
    }
    return done(to, known ? values : std::vector<double>{});
  }

  [[nodiscard]] bool squeeze() const {
    const OnnxTensor* from = in(0);
    if (from == nullptr) return false;
    const bool grows = node.op == "Unsqueeze";
    Dims to = from->dims, axes = whole_numbers(node, "axes");
    if (axes.empty()) axes = net.whole_values(node, 1);
    const auto rank = std::ssize(to) + (grows ? std::ssize(axes) : 0);
    for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
    std::ranges::sort(axes);
    if (grows) {
      for (const std::int64_t axis : axes)
        to.insert(to.begin() + std::clamp<std::int64_t>(axis, 0, std::ssize(to)), 1);
    } else if (axes.empty()) {
      std::erase(to, 1);
    } else {
      for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        if (*axis >= 0 && *axis < std::ssize(to)) to.erase(to.begin() + *axis);
      }
    }
    return done(to, net.values(node, 0));
  }

  [[nodiscard]] bool reshape() const {
    const OnnxTensor* from = in(0);
    if (from == nullptr) return false;
    Dims to = net.whole_values(node, 1);
    if (to.empty()) to = whole_numbers(node, "shape");
    if (in(1) == nullptr && to.empty()) return false;
    std::int64_t known = 1;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i] == 0 && i < from->dims.size()) to[i] = from->dims[i];
      if (to[i] > 0) known = product_of({known, to[i]});
    }
    for (std::int64_t& side : to) side = side < 0 ? product_of(from->dims) / known : side;
    return done(to, net.values(node, 0));
  }

  [[nodiscard]] bool transpose() const {
    if (in(0) == nullptr) return false;
    Dims to = in(0)->dims;
    const Dims order = whole_numbers(node, "perm");
    if (order.empty()) std::reverse(to.begin(), to.end());
    for (std::size_t i = 0; i < order.size() && i < to.size(); ++i) {
      if (order[i] < 0 || order[i] >= std::ssize(to)) return false;
      to[i] = in(0)->dims[static_cast<std::size_t>(order[i])];
    }
    return done(to, picked(net.values(node, 0), in(0)->dims, to, [&](const Dims& at) {
                  Dims place(at.rbegin(), at.rend());
                  for (std::size_t k = 0; k < order.size() && k < at.size(); ++k)
                    place[static_cast<std::size_t>(order[k])] = at[k];
                  return place;
                }));
  }

  [[nodiscard]] bool filled() const {  // ConstantOfShape, Expand, RandomUniform, Tile
    const bool random = node.op.starts_with("Random");
    Dims to = random ? whole_numbers(node, "shape")
                     : net.whole_values(node, node.op == "Expand" || node.op == "Tile" ? 1 : 0);
    if (node.op == "ConstantOfShape" && in(0) != nullptr) {
      const auto value = node.attributes.find("value");
      const double number = value == node.attributes.end() ? 0 : value->second.number;
      const std::int64_t count = product_of(to);
      return done(
          to,
          std::vector<double>(
              count <= kMostFolded ? static_cast<std::size_t>(std::max<std::int64_t>(count, 0)) : 0, number));
    }
    if (random) return done(to);
    if (in(0) == nullptr || to.empty()) return false;
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

  [[nodiscard]] bool range() const {
    const auto first = net.values(node, 0), last = net.values(node, 1), step = net.values(node, 2);
    if (first.size() != 1 || last.size() != 1 || step.size() != 1 || step[0] == 0) return false;
    const double count = std::max(0.0, std::ceil((last[0] - first[0]) / step[0]));
    if (!(count <= 1e9)) return false;
    std::vector<double> values;
    for (double i = 0; i < count && count <= static_cast<double>(kMostFolded); ++i)
      values.push_back(first[0] + i * step[0]);
    return done({static_cast<std::int64_t>(count)}, values);
  }

  [[nodiscard]] bool reduced() const {
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

  [[nodiscard]] bool split() const {
    if (in(0) == nullptr || in(0)->dims.empty()) return false;
    std::int64_t axis = whole_number_of(node, "axis", 0);
    const Dims& from = in(0)->dims;
    if (axis < 0) axis += std::ssize(from);
    if (axis < 0 || axis >= std::ssize(from)) return false;
    Dims sizes = net.whole_values(node, 1);
    const auto values = net.values(node, 0);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      Dims to = from;
      std::int64_t& side = to[static_cast<std::size_t>(axis)];
      side = i < sizes.size() ? sizes[i] : side / std::ssize(node.outputs);
      std::vector<double> part;
      if (from.size() == 1 && at >= 0 && side >= 0 && at + side <= std::ssize(values))
        part.assign(values.begin() + at, values.begin() + at + side);
      at += side;
      (void)done(to, part, i);
    }
    return true;
  }

  [[nodiscard]] bool cast() const {
    if (in(0) == nullptr) return false;
    std::vector<double> values = net.values(node, 0);
    for (double& value : values) value = is_real() ? value : std::trunc(value);
    return done(in(0)->dims, values);
  }

  [[nodiscard]] bool clip() const {
    if (in(0) == nullptr) return false;
    std::vector<double> values = net.values(node, 0);
    const auto least = net.values(node, 1), most = net.values(node, 2);
    for (double& value : values) {
      if (!least.empty()) value = std::max(value, least[0]);
      if (!most.empty()) value = std::min(value, most[0]);
    }
    return done(in(0)->dims, values);
  }

  [[nodiscard]] bool einsum() const {
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

  [[nodiscard]] bool gather_rows() const {  // GatherND
    if (in(0) == nullptr || in(1) == nullptr || in(1)->dims.empty()) return false;
    const std::int64_t depth =
        in(1)->dims.back() + std::clamp<std::int64_t>(whole_number_of(node, "batch_dims", 0), 0, 8);
    if (depth < 1 || depth > std::ssize(in(0)->dims)) return false;
    Dims to(in(1)->dims.begin(), in(1)->dims.end() - 1);
    to.insert(to.end(), in(0)->dims.begin() + depth, in(0)->dims.end());
    return done(to);
  }

  [[nodiscard]] bool one_hot() const {
    const Dims depth = net.whole_values(node, 1);
    if (in(0) == nullptr || depth.empty()) return false;
    Dims to = in(0)->dims;
    to.push_back(depth[0]);
    return done(to);
  }

  [[nodiscard]] bool convolution() const {  // of a table of positions, by pixels
    if (in(0) == nullptr || in(1) == nullptr || in(0)->dims.size() < 3 || in(1)->dims.empty()) return false;
    Dims to = in(0)->dims;
    to[1] = in(1)->dims[0];
    return done(to);
  }

  [[nodiscard]] bool resized() const {
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

  [[nodiscard]] bool product() const {
    const auto a = dims(0), b = dims(1);
    if (!a || !b || a->empty() || b->empty()) return false;
    Dims to = *a;
    const bool transposed = whole_number_of(node, "transB", 0) == 1;
    if (b->size() > to.size()) to.insert(to.begin(), b->begin(), b->end() - std::ssize(to));
    to.back() = transposed ? (*b)[0] : b->back();
    return done(to);
  }
};

}  // namespace

std::vector<std::int64_t> axes_of(const OnnxConversion& net, const OnnxNode& node, std::size_t input,
                                  std::size_t rank) {
  std::vector<std::int64_t> axes = whole_numbers(node, "axes");
  if (axes.empty()) axes = net.whole_values(node, input);
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  const auto sides = static_cast<std::int64_t>(rank);
  for (std::int64_t& axis : axes) axis += axis < 0 ? sides : 0;
  std::ranges::sort(axes);
  std::erase_if(axes, [&](std::int64_t axis) { return axis < 0 || axis >= sides; });
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

std::vector<std::int64_t> sliced_dims(const OnnxConversion& net, const OnnxNode& node,
                                      const std::vector<std::int64_t>& dims) {
  return slice_of(net, node, dims).count;
}

bool fold_constants(OnnxConversion& net, const OnnxNode& node) {
  const Folding fold{net, node};
  using Fold = bool (Folding::*)() const;
  static const std::map<std::string_view, Fold> kFolds = {{"Shape", &Folding::shape},
                                                          {"Size", &Folding::shape},
                                                          {"Gather", &Folding::gather},
                                                          {"Slice", &Folding::slice},
                                                          {"Concat", &Folding::concat},
                                                          {"Squeeze", &Folding::squeeze},
                                                          {"Unsqueeze", &Folding::squeeze},
                                                          {"Reshape", &Folding::reshape},
                                                          {"Transpose", &Folding::transpose},
                                                          {"ConstantOfShape", &Folding::filled},
                                                          {"Expand", &Folding::filled},
                                                          {"Tile", &Folding::filled},
                                                          {"RandomUniform", &Folding::filled},
                                                          {"RandomNormal", &Folding::filled},
                                                          {"Range", &Folding::range},
                                                          {"Split", &Folding::split},
                                                          {"MatMul", &Folding::product},
                                                          {"Gemm", &Folding::product},
                                                          {"Where", &Folding::elementwise},
                                                          {"Div", &Folding::elementwise},
                                                          {"Cast", &Folding::cast},
                                                          {"Clip", &Folding::clip},
                                                          {"Einsum", &Folding::einsum},
                                                          {"GatherND", &Folding::gather_rows},
                                                          {"OneHot", &Folding::one_hot},
                                                          {"Conv", &Folding::convolution},
                                                          {"Resize", &Folding::resized}};
  if (const auto found = kFolds.find(node.op); found != kFolds.end()) return (fold.*found->second)();
  if (number_function(node.op) != nullptr) return fold.elementwise();
  if (node.op.starts_with("Reduce")) return fold.reduced();
  const bool known = keeps_dims(node.op) && fold.in(0) != nullptr;
  const bool same = node.op == "Identity" || node.op == "CastLike";
  return known && fold.done(fold.in(node.op == "GatherElements" && fold.in(1) ? 1 : 0)->dims,
                            same ? net.values(node, 0) : std::vector<double>{});
}

}  // namespace tbdsim
