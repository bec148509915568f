#include "simulate/import/onnx_folding.h"

#include <algorithm>
#include <utility>

#include "simulate/import/onnx_node.h"

namespace tbdsim {

std::optional<Dims> Folding::dims(std::size_t i) const {
  if (const OnnxTensor* tensor = in(i)) return tensor->dims;
  if (const OnnxData* data = net.data(node, i)) return dims_of(data->sides, net.batch());
  return std::nullopt;
}

bool Folding::is_real() const {
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

bool Folding::done(Dims dims, std::vector<double> values, std::size_t output) const {
  if (dims.size() > kMostSides) return false;
  for (std::int64_t& side : dims) side = std::clamp<std::int64_t>(side, 0, kLargestSide);
  OnnxTensor to;
  std::int64_t count = 1;
  for (const std::int64_t side : dims) count = side <= 0 ? 0 : product_of({count, side});
  if (static_cast<std::int64_t>(values.size()) == count) to.numbers = std::move(values);
  to.dims = std::move(dims);
  to.real = is_real();
  for (std::size_t i = 0; i < node.inputs.size() && to.real; ++i) {  // no gradient flows to a shape
    if (const OnnxTensor* from = in(i)) to.trained.insert(from->trained.begin(), from->trained.end());
  }
  if (output < node.outputs.size()) net.set_constant(node.outputs[output], std::move(to));
  return true;
}

}  // namespace tbdsim
