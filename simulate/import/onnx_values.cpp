#include "simulate/import/onnx_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "simulate/import/onnx_node.h"

namespace tbdsim {
namespace {

struct NumberRow {
  std::string_view op;
  NumberFunction function;
};
constexpr NumberRow kNumberRows[] = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Mod", [](double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }},
    {"Pow", [](double a, double b) { return std::pow(a, b); }},
    {"Min", [](double a, double b) { return std::min(a, b); }},
    {"Max", [](double a, double b) { return std::max(a, b); }},
    {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
    {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"And", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
    {"Or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
    {"Not", [](double a, double) { return a == 0 ? 1.0 : 0.0; }},
    {"Neg", [](double a, double) { return -a; }},
    {"Abs", [](double a, double) { return std::abs(a); }},
    {"Floor", [](double a, double) { return std::floor(a); }},
    {"Ceil", [](double a, double) { return std::ceil(a); }},
    {"Round", [](double a, double) { return std::nearbyint(a); }},
    {"Sqrt", [](double a, double) { return std::sqrt(a); }},
    {"Reciprocal", [](double a, double) { return 1 / a; }},
    {"Exp", [](double a, double) { return std::exp(a); }},
    {"Log", [](double a, double) { return std::log(a); }}};

}  // namespace

std::optional<Dims> spread_dims(Dims a, Dims b) {
  if (a.size() < b.size()) std::swap(a, b);
  b.insert(b.begin(), a.size() - b.size(), 1);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return std::nullopt;
    a[i] = a[i] == 1 ? b[i] : a[i];
  }
  return a;
}

std::size_t spread_index(std::size_t index, const Dims& to, const Dims& dims) {
  std::size_t result = 0, stride = 1;
  for (std::size_t k = 0; k < to.size(); ++k) {
    const auto side = static_cast<std::size_t>(to[to.size() - 1 - k]);
    const std::size_t at = index % side;
    index /= side;
    if (k >= dims.size()) continue;
    const auto own = static_cast<std::size_t>(dims[dims.size() - 1 - k]);
    result += (own == 1 ? 0 : at) * stride;
    stride *= own;
  }
  return result;
}

NumberFunction number_function(std::string_view op) {
  const auto* const row = std::ranges::find(kNumberRows, op, &NumberRow::op);
  return row == std::end(kNumberRows) ? nullptr : row->function;
}

bool keeps_dims(std::string_view op) {
  static constexpr std::string_view kOps[] = {"Cast",
                                              "CastLike",
                                              "Identity",
                                              "Dropout",
                                              "Sigmoid",
                                              "Tanh",
                                              "Erf",
                                              "Sin",
                                              "Cos",
                                              "Softmax",
                                              "Relu",
                                              "Clip",
                                              "CumSum",
                                              "Trilu",
                                              "Bernoulli",
                                              "Softplus",
                                              "IsNaN",
                                              "IsInf",
                                              "RandomUniformLike",
                                              "Sign",
                                              "LayerNormalization",
                                              "Gelu",
                                              "HardSwish",
                                              "HardSigmoid",
                                              "LogSoftmax",
                                              "RandomNormalLike",
                                              "Xor",
                                              "BitShift",
                                              "BitwiseAnd",
                                              "BitwiseOr",
                                              "ScatterElements",
                                              "ScatterND",
                                              "BatchNormalization",
                                              "InstanceNormalization",
                                              "Atan",
                                              "GatherElements"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

SlicedSides slice_of(const OnnxConversion& net, const OnnxNode& node, const Dims& dims) {
  const auto list = [&](std::size_t input, const char* name) {
    auto found = net.whole_values(node, input);
    return found.empty() ? whole_numbers(node, name) : found;
  };
  const auto starts = list(1, "starts"), ends = list(2, "ends"), steps = list(4, "steps");
  auto axes = list(3, "axes");
  SlicedSides to{Dims(dims.size(), 0), Dims(dims.size(), 1), dims};
  if (starts.empty() || starts.size() != ends.size()) return {};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::int64_t axis = axes.empty() ? static_cast<std::int64_t>(i) : i < axes.size() ? axes[i] : -1000;
    if (axis < 0) axis += std::ssize(dims);
    if (axis < 0 || axis >= std::ssize(dims)) return {};
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t size = dims[at], step = i < steps.size() ? steps[i] : 1;
    if (step == 0 || size < 1) return {};
    const auto inside = [&](std::int64_t place, std::int64_t least, std::int64_t most) {
      return std::clamp<std::int64_t>(place < 0 ? place + size : place, least, most);
    };
    const bool forward = step > 0;
    const std::int64_t first = inside(starts[i], 0, forward ? size : size - 1);
    const std::int64_t last = forward           ? inside(ends[i], 0, size)
                              : ends[i] < -size ? -1
                                                : inside(ends[i], -1, size - 1);
    const std::int64_t span = forward ? last - first : first - last, width = forward ? step : -step;
    to.first[at] = first;
    to.step[at] = step;
    to.count[at] = span <= 0 ? 0 : (span - 1) / width + 1;
  }
  return to;
}

}  // namespace tbdsim
