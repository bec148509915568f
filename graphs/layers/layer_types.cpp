#include "graphs/layers/layer_types.h"

#include <array>
#include <vector>

namespace tbdsim {
namespace {

constexpr std::array<LayerType, 11> kLayerTypes = {{
    {"conv2d",
     "2-D convolution: filters, kernel, stride (1), padding (a number, same or valid), bias (false)",
     make_conv2d},
    {"batch_norm", "batch normalisation over rows and pixels: scale (true), shift (true)", make_batch_norm},
    {"relu", "rectified linear unit", make_relu},
    {"max_pool", "maximum over a window: kernel, stride, padding", make_max_pool},
    {"avg_pool", "mean over a window: kernel, stride, padding", make_avg_pool},
    {"global_avg_pool", "mean over all pixels", make_global_avg_pool},
    {"add", "element-wise sum of two or more inputs of one shape", make_add},
    {"concat", "inputs side by side along the channels", make_concat},
    {"dropout", "random zeroing: keep, the probability of keeping an element", make_dropout},
    {"fully_connected", "matrix product with the flattened input: outputs, bias (true)",
     make_fully_connected},
    {"softmax_loss", "softmax and cross entropy against one label a row", make_softmax_loss},
}};

}  // namespace

std::span<const LayerType> layer_types() { return kLayerTypes; }

const LayerType& layer_type(const SpecNode& name) {
  std::vector<std::string_view> names;
  for (const LayerType& type : kLayerTypes) names.push_back(type.name);
  return kLayerTypes[name.one_of(names)];
}

}  // namespace tbdsim
