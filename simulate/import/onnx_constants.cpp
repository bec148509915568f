#include "simulate/import/onnx_constants.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>

#include "simulate/import/onnx_folding.h"
#include "simulate/import/onnx_node.h"
#include "simulate/import/onnx_values.h"

namespace tbdsim {
namespace {

struct FoldRow {
  std::string_view op;
  bool (Folding::*fold)() const;
};
constexpr FoldRow kFolds[] = {{"Shape", &Folding::shape},
                              {"Size", &Folding::shape},
                              {"Gather", &Folding::gather},
                              {"Slice", &Folding::slice},
                              {"Concat", &Folding::concat},
                              {"Squeeze", &Folding::squeeze},
                              {"Unsqueeze", &Folding::squeeze},
                              {"Reshape", &Folding::reshape},
                              {"Flatten", &Folding::flatten},
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
  if (const auto* const row = std::ranges::find(kFolds, node.op, &FoldRow::op); row != std::end(kFolds))
    return (fold.*row->fold)();
  if (number_function(node.op) != nullptr) return fold.elementwise();
  if (node.op.starts_with("Reduce")) return fold.reduced();
  const bool known = keeps_dims(node.op) && fold.in(0) != nullptr;
  const bool same = node.op == "Identity" || node.op == "CastLike";
  return known && fold.done(fold.in(node.op == "GatherElements" && fold.in(1) ? 1 : 0)->dims,
                            same ? net.values(node, 0) : std::vector<double>{});
}

}  // namespace tbdsim
