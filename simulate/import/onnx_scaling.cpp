#include "simulate/import/onnx_scaling.h"

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/onnx_node.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostFactor = 64;  // as the layer upsample has it

}  // namespace

std::optional<NetworkTensor> add_transposed(NetworkBuilder& builder, const OnnxNode& node,
                                            const NetworkTensor& from, std::int64_t filters,
                                            const std::pair<WindowSide, WindowSide>& window) {
  const WindowSide &tall = window.first, &wide = window.second;
  const std::vector<std::int64_t> more = whole_numbers(node, "output_padding");
  const std::int64_t extra = more.empty() ? 0 : more[0];
  const bool square = tall.kernel == wide.kernel && tall.stride == wide.stride &&
                      tall.before == wide.before && tall.before == tall.after && wide.before == wide.after;
  const bool plain = tall.dilation == 1 && wide.dilation == 1 && whole_number_of(node, "group", 1) == 1;
  if (!square || !plain || from.shape.size() != 3 || extra < 0 || extra >= tall.stride) return std::nullopt;
  const auto side = [&](std::int64_t in) {
    return (in - 1) * tall.stride - 2 * tall.before + tall.kernel + extra;
  };
  return builder.add("conv_transpose2d", name_of_layer(node), {from},
                     {filters, side(from.shape[1]), side(from.shape[2])},
                     {{"filters", spec_number(filters)},
                      {"kernel", spec_number(tall.kernel)},
                      {"stride", spec_number(tall.stride)},
                      {"padding", spec_number(tall.before)},
                      {"output_padding", spec_number(extra)},
                      {"bias", spec_scalar(node.inputs.size() > 2 ? "true" : "false")}});
}

std::optional<NetworkTensor> add_upsample(NetworkBuilder& builder, const OnnxNode& node,
                                          const NetworkTensor& from, const std::vector<std::int64_t>& image) {
  if (from.shape.size() != 3 || image.size() != 2 || image[0] < 1 || image[1] < 1) return std::nullopt;
  const std::int64_t factor = image[0] / from.shape[1];
  const bool whole = factor >= 1 && factor <= kMostFactor && factor * from.shape[1] == image[0] &&
                     factor * from.shape[2] == image[1];
  LayerKeys keys;
  if (whole) keys.emplace_back("factor", spec_number(factor));
  if (!whole) keys.emplace_back("outputs", spec_list({spec_number(image[0]), spec_number(image[1])}));
  if (!whole) builder.fix_shapes();
  const auto mode = node.attributes.find("mode");
  if (mode != node.attributes.end() && mode->second.text != "nearest")
    keys.emplace_back("mode", spec_scalar("bilinear"));
  return builder.add("upsample", name_of_layer(node), {from}, {from.shape[0], image[0], image[1]},
                     std::move(keys));
}

std::optional<NetworkTensor> add_depth_to_space(NetworkBuilder& builder, const OnnxNode& node,
                                                const NetworkTensor& from) {
  const std::int64_t factor = whole_number_of(node, "blocksize", 1);
  if (from.shape.size() != 3 || factor < 2 || factor > kMostFactor || from.shape[0] % (factor * factor) != 0)
    return std::nullopt;
  return builder.add("depth_to_space", name_of_layer(node), {from},
                     {from.shape[0] / (factor * factor), from.shape[1] * factor, from.shape[2] * factor},
                     {{"factor", spec_number(factor)}});
}

}  // namespace tbdsim
