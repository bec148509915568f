// Layers of Caffe as layers of tbd-sim.
#include <algorithm>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/prototxt_reader.h"

namespace tbdsim {
namespace {

using Sides = std::vector<std::int64_t>;

bool is_image(const NetworkTensor& tensor) { return tensor.shape.size() == 3; }

// A number for each channel of a tensor.
Sides channels_of(const NetworkTensor& tensor) {
  Sides dims(tensor.shape.size(), 1);
  dims[0] = tensor.shape[0];
  return dims;
}

SpecTree dims_of(const Sides& sides) {
  std::vector<SpecTree> dims;
  for (const std::int64_t side : sides) dims.push_back(spec_number(side));
  return spec_list(dims);
}

}  // namespace

NetworkTensor PrototxtReader::convert(const Site& site) {
  struct Conversion {
    std::string_view type;
    NetworkTensor (PrototxtReader::*add)(const Site&);
  };
  using Reader = PrototxtReader;
  static constexpr Conversion kConversions[] = {
      {"AbsVal", &Reader::function},
      {"BNLL", &Reader::function},
      {"BatchNorm", &Reader::batch_norm},
      {"Concat", &Reader::concat},
      {"Convolution", &Reader::convolution},
      {"ConvolutionDepthwise", &Reader::convolution},
      {"Crop", &Reader::crop},
      {"Deconvolution", &Reader::deconvolution},
      {"DepthwiseConvolution", &Reader::convolution},
      {"Dropout", &Reader::dropout},
      {"ELU", &Reader::relu},
      {"Eltwise", &Reader::eltwise},
      {"Embed", &Reader::embed},
      {"EuclideanLoss", &Reader::loss},
      {"Exp", &Reader::function},
      {"Flatten", &Reader::flatten},
      {"HingeLoss", &Reader::loss},
      {"InnerProduct", &Reader::fully_connected},
      {"LRN", &Reader::lrn},
      {"Log", &Reader::function},
      {"Normalize", &Reader::normalize},
      {"PReLU", &Reader::prelu},
      {"Permute", &Reader::permute},
      {"Pooling", &Reader::pool},
      {"Power", &Reader::power},
      {"ReLU", &Reader::relu},
      {"ReLU6", &Reader::relu},
      {"Reshape", &Reader::reshape},
      {"Scale", &Reader::scale},
      {"Sigmoid", &Reader::sigmoid},
      {"SigmoidCrossEntropyLoss", &Reader::loss},
      {"Softmax", &Reader::same},
      {"SoftmaxWithLoss", &Reader::loss},
      {"Split", &Reader::same},
      {"TanH", &Reader::tanh},
  };
  const auto* found = std::ranges::find(kConversions, std::string_view(site.type), &Conversion::type);
  return found == std::end(kConversions) ? unsupported(site) : (this->*found->add)(site);
}

NetworkTensor PrototxtReader::unsupported(const Site& site, const std::string& why) {
  builder_.note_unsupported(
      (site.type.empty() ? "a layer without a type" : site.type) + (why.empty() ? "" : " " + why), site.name);
  return site.in();
}

NetworkTensor PrototxtReader::like_input(const char* type, const Site& site, LayerKeys keys) {
  return builder_.add(type, site.name, {site.in()}, site.in().shape, std::move(keys));
}

NetworkTensor PrototxtReader::resized(const char* type, const Site& site, const NetworkTensor& from,
                                      const Sides& shape) {
  builder_.fix_shapes();
  return builder_.add(type, site.name, {from}, shape, {{"dims", dims_of(shape)}});
}

NetworkTensor PrototxtReader::trained(const Site& site, const NetworkTensor& from, const char* operation,
                                      const Sides& dims) {
  return builder_.add("pairwise", site.name, {from}, from.shape,
                      {{"operation", spec_scalar(operation)}, {"trained", dims_of(dims)}});
}

NetworkTensor PrototxtReader::same(const Site& site) { return site.in(); }
NetworkTensor PrototxtReader::relu(const Site& site) {
  return like_input(site.type == "ReLU6" ? "relu6" : "relu", site);
}
NetworkTensor PrototxtReader::sigmoid(const Site& site) { return like_input("sigmoid", site); }
NetworkTensor PrototxtReader::tanh(const Site& site) { return like_input("tanh", site); }
NetworkTensor PrototxtReader::function(const Site& site) { return like_input("pointwise", site); }

NetworkTensor PrototxtReader::loss(const Site& site) {
  ++losses_;
  return site.in();
}

// A trained slope of negative numbers, of each channel or of all.
NetworkTensor PrototxtReader::prelu(const Site& site) {
  Sides dims = channels_of(site.in());
  if (site.layer.message("prelu_param").text("channel_shared") == "true") dims[0] = 1;
  return trained(site, site.in(), "function", dims);
}

NetworkTensor PrototxtReader::power(const Site& site) {
  const PrototxtMessage& p = site.layer.message("power_param");
  const auto value = [&](const char* key, double otherwise) {
    const std::string text = p.text(key);
    const auto number = text.empty() ? otherwise : parse_number(text);
    if (!number)
      builder_.fail(fmt::format("{}: {}: {}; expected a number", in_quotes(site.name), key, in_quotes(text)));
    return *number;
  };
  const bool linear = value("power", 1) == 1;
  if (linear && value("scale", 1) == 1 && value("shift", 0) == 0) return site.in();
  return like_input(linear ? "scale" : "pointwise", site);
}

// Caffe's own has no trained numbers: those are of a layer Scale behind it.
NetworkTensor PrototxtReader::batch_norm(const Site& site) {
  const auto pair = scales_.find(&site.layer);
  const bool scaled = pair != scales_.end();
  const bool shifted = scaled && pair->second->message("scale_param").text("bias_term") == "true";
  LayerKeys keys;
  if (!scaled) keys.emplace_back("scale", spec_scalar("false"));
  if (!shifted) keys.emplace_back("shift", spec_scalar("false"));
  return like_input("batch_norm", site, std::move(keys));
}

// Factors of a norm are there; others are trained, or another tensor's: a number for each channel.
NetworkTensor PrototxtReader::scale(const Site& site) {
  const bool of_norm =
      std::ranges::any_of(scales_, [&](const auto& pair) { return pair.second == &site.layer; });
  if (of_norm) return site.in();
  const PrototxtMessage& p = site.layer.message("scale_param");
  if (site.from.size() < 2) {
    const NetworkTensor to = trained(site, site.in(), "multiply", channels_of(site.in()));
    return p.text("bias_term") == "true" ? trained(site, to, "add", channels_of(to)) : to;
  }
  const NetworkTensor& factor = site.from[1];
  if (site.in().shape == factor.shape) return builder_.add("multiply", site.name, site.from, factor.shape);
  if (product_of(factor.shape) != site.in().shape[0]) return unsupported(site, "of other factors");
  const NetworkTensor pixel = builder_.add_reshape(site.name + "/factors", factor, channels_of(site.in()));
  return builder_.add("multiply", site.name, {site.in(), pixel}, site.in().shape);
}

// SSD's: each pixel over the length of its channels, times a trained factor of each channel.
NetworkTensor PrototxtReader::normalize(const Site& site) {
  if (!is_image(site.in())) return unsupported(site, "of no image");
  const Sides pixels = {product_of({site.in().shape[1], site.in().shape[2]}), site.in().shape[0]};
  const NetworkTensor copied = builder_.add("image_positions", site.name + "/pixels", {site.in()}, pixels);
  const NetworkTensor norm = builder_.add("rms_norm", site.name, {copied}, pixels);
  const Sides swapped = {pixels[1], pixels[0]};
  const NetworkTensor back = builder_.add("transpose", site.name + "/back", {norm}, swapped);
  return builder_.add_reshape(site.name + "/image", back, site.in().shape);
}

NetworkTensor PrototxtReader::lrn(const Site& site) {
  const PrototxtMessage& p = site.layer.message("lrn_param");
  if (p.text("norm_region") == "WITHIN_CHANNEL") return unsupported(site, "within a channel");
  constexpr std::int64_t kWindow = 5;  // caffe.proto
  return like_input("lrn", site, {{"window", spec_number(number_or(p, "local_size", kWindow, 1))}});
}

NetworkTensor PrototxtReader::dropout(const Site& site) {
  const std::string ratio = site.layer.message("dropout_param").text("dropout_ratio");
  const double drop = ratio.empty() ? 0.5 : parse_number(ratio).value_or(-1);
  if (!(drop > 0 && drop < 1))
    builder_.fail(fmt::format("{}: dropout_ratio: {}; expected a number from 0 to 1", in_quotes(site.name),
                              in_quotes(ratio)));
  return like_input("dropout", site, {{"keep", spec_scalar(fmt::format("{:.6g}", 1 - drop))}});
}

NetworkTensor PrototxtReader::fully_connected(const Site& site) {
  const PrototxtMessage& p = site.layer.message("inner_product_param");
  const std::int64_t outputs = number(p.text("num_output"), site.name + ": num_output", 1);
  LayerKeys keys = {{"outputs", spec_number(outputs)}};
  if (p.text("bias_term") == "false") keys.emplace_back("bias", spec_scalar("false"));
  return set_owner(site, builder_.add("fully_connected", site.name, {site.in()}, {outputs},
                                      of_weights(site, std::move(keys))));
}

NetworkTensor PrototxtReader::embed(const Site& site) {
  const PrototxtMessage& p = site.layer.message("embed_param");
  if (site.in().shape.size() != 1) return unsupported(site, "of no sequence");
  const std::int64_t outputs = number(p.text("num_output"), site.name + ": num_output", 1);
  const std::int64_t words = number(p.text("input_dim"), site.name + ": input_dim", 1);
  return set_owner(
      site,
      builder_.add("embedding", site.name, {site.in()}, {site.in().shape[0], outputs},
                   of_weights(site, {{"words", spec_number(words)}, {"outputs", spec_number(outputs)}})));
}

// Along the channels or the last side.
NetworkTensor PrototxtReader::concat(const Site& site) {
  if (site.from.size() == 1) return site.in();
  Sides shape = site.in().shape;
  const std::int64_t along = axis(site.layer.message("concat_param"), site, 1);
  const bool last = along + 1 == std::ssize(shape);
  if (along != 0 && !last) return unsupported(site, "along another side");
  const auto at = static_cast<std::size_t>(along);
  shape[at] = 0;
  for (const NetworkTensor& part : site.from) {
    if (part.shape.size() != shape.size())
      builder_.fail(in_quotes(site.name) +
                    ": inputs of several shapes; expected them alike but for channels");
    shape[at] += part.shape[at];
  }
  LayerKeys keys;
  if (along != 0) keys.emplace_back("axis", spec_scalar("last"));
  return builder_.add("concat", site.name, site.from, shape, std::move(keys));
}

NetworkTensor PrototxtReader::eltwise(const Site& site) {
  const std::string operation = site.layer.message("eltwise_param").text("operation");
  if (site.from.size() < 2) return unsupported(site);
  if (operation.empty() || operation == "SUM")
    return builder_.add("add", site.name, site.from, site.in().shape);
  if (operation != "PROD" && operation != "MAX") return unsupported(site, operation);
  NetworkTensor to = site.in();
  for (std::size_t i = 1; i < site.from.size(); ++i) {
    to = operation == "PROD" ? builder_.add("multiply", site.name, {to, site.from[i]}, to.shape)
                             : builder_.add("pairwise", site.name, {to, site.from[i]}, to.shape,
                                            {{"operation", spec_scalar("function")}});
  }
  return to;
}

// The sides of the second input, from an axis on.
NetworkTensor PrototxtReader::crop(const Site& site) {
  constexpr std::int64_t kRows = 2;  // caffe.proto
  const std::int64_t from = axis(site.layer.message("crop_param"), site, kRows);
  if (site.from.size() != 2 || site.from[1].shape.size() != site.in().shape.size())
    return unsupported(site, "of other shapes");
  Sides shape = site.in().shape;
  for (auto i = static_cast<std::size_t>(std::max<std::int64_t>(from, 0)); i < shape.size(); ++i)
    shape[i] = std::min(shape[i], site.from[1].shape[i]);
  return shape == site.in().shape ? site.in() : resized("slice", site, site.in(), shape);
}

// Parts of one side, each a blob of its own: equal ones, or from one point to the next.
NetworkTensor PrototxtReader::slice(const Site& site) {
  const PrototxtMessage& p = site.layer.message("slice_param");
  const std::vector<std::string> tops = site.layer.texts("top");
  const std::int64_t along = axis(p, site, 1);
  if (along < 0) return unsupported(site, "of the batch");
  const auto at = static_cast<std::size_t>(along);
  const std::int64_t all = site.in().shape[at];
  Sides points = whole_numbers(p.texts("slice_point"), "slice_point");
  const std::int64_t parts = std::ssize(tops);
  for (std::int64_t i = 1; points.empty() && i < parts; ++i) points.push_back(all / parts * i);
  if (std::ssize(points) < parts - 1 || parts < 1) points = Sides(tops.size(), all);
  if (std::ssize(points) >= parts)
    builder_.fail(fmt::format("{}: {} slice_point of {} tops; expected one fewer than tops",
                              in_quotes(site.name), points.size(), parts));
  points.push_back(all);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < tops.size(); ++i) {
    Sides shape = site.in().shape;
    shape[at] = points[i] - before;
    before = points[i];
    if (shape[at] < 1 || before > all)
      builder_.fail(
          fmt::format("{}: slice_point: a part of {} of {}; expected points in order, one fewer than "
                      "tops",
                      in_quotes(site.name), shape[at], all));
    last_ = blobs_[tops[i]] = shape == site.in().shape ? site.in() : resized("slice", site, site.in(), shape);
  }
  return last_;
}

NetworkTensor PrototxtReader::flatten(const Site& site) {
  const NetworkTensor& from = site.in();
  if (from.shape.size() == 1 || (is_image(from) && from.shape[1] == 1 && from.shape[2] == 1)) return from;
  return builder_.add_reshape(site.name, from, {product_of(from.shape)});
}

// Sides of 0 stay, one of -1 is what is left.
NetworkTensor PrototxtReader::reshape(const Site& site) {
  const Sides& from = site.in().shape;
  const std::vector<std::string> dims = site.layer.message("reshape_param").message("shape").texts("dim");
  Sides to;
  std::int64_t known = 1;
  for (std::size_t i = 1; i < dims.size(); ++i) {  // the batch before
    std::int64_t side = number(dims[i], site.name + ": dim", -1);
    if (side == 0) side = i <= from.size() ? from[i - 1] : 1;
    to.push_back(side);
    if (side > 0) known = product_of({known, side});
  }
  const std::int64_t all = product_of(from);
  for (std::int64_t& side : to) {
    if (side == -1) side = all / known;
  }
  if (to.empty() || product_of(to) != all || std::ranges::any_of(to, [](auto side) { return side < 1; }))
    return unsupported(site, "of the batch");
  return to == from ? site.in() : builder_.add_reshape(site.name, site.in(), to);
}

NetworkTensor PrototxtReader::permute(const Site& site) {
  const std::vector<std::string> given = site.layer.message("permute_param").texts("order");
  const Sides& from = site.in().shape;
  Sides order, sorted, shape;
  for (const std::string& text : given) order.push_back(number(text, site.name + ": order", 0));
  sorted = order;
  std::ranges::sort(sorted);
  Sides all(from.size() + 1);
  std::iota(all.begin(), all.end(), 0);
  if (order.empty() || order[0] != 0 || sorted != all) return unsupported(site, "of the batch");
  order.erase(order.begin());
  for (std::int64_t& side : order) shape.push_back(from[static_cast<std::size_t>(--side)]);
  return builder_.add("transpose", site.name, {site.in()}, shape, {{"order", dims_of(order)}});
}

NetworkTensor PrototxtReader::pool(const Site& site) {
  const PrototxtMessage& p = site.layer.message("pooling_param");
  const auto [tall, wide] = windows(p, site, true);
  return builder_.add_window(p.text("pool") == "AVE" ? "avg_pool" : "max_pool", site.name, site.in(), tall,
                             wide, site.in().shape[0]);
}

NetworkTensor PrototxtReader::convolution(const Site& site) {
  const PrototxtMessage& p = site.layer.message("convolution_param");
  const auto [tall, wide] = windows(p, site, false);
  const std::int64_t filters = number(p.text("num_output"), site.name + ": num_output", 1);
  LayerKeys keys = {{"filters", spec_number(filters)}};
  if (p.text("bias_term") != "false") keys.emplace_back("bias", spec_scalar("true"));
  const bool depthwise = site.type != "Convolution";
  const std::int64_t groups = number_or(p, "group", depthwise ? site.in().shape[0] : 1, 1);
  if (groups != 1) keys.emplace_back("groups", spec_number(groups));
  return set_owner(site, builder_.add_window("conv2d", site.name, site.in(), tall, wide, filters,
                                             of_weights(site, std::move(keys))));
}

// A group for each channel enlarges the image by numbers that a filler makes (bilinear) and nothing trains.
NetworkTensor PrototxtReader::deconvolution(const Site& site) {
  const PrototxtMessage& p = site.layer.message("convolution_param");
  const auto [tall, wide] = windows(p, site, false);
  const std::int64_t filters = number(p.text("num_output"), site.name + ": num_output", 1);
  const std::int64_t groups = number_or(p, "group", 1, 1);
  const auto side = [](const WindowSide& window, std::int64_t in) {
    return product_of({in - 1, window.stride}) + window.kernel - 2 * window.before;
  };
  const Sides& in = site.in().shape;
  const Sides shape = {filters, side(tall, in[1]), side(wide, in[2])};
  if (shape[1] < 1 || shape[2] < 1)
    builder_.fail(in_quotes(site.name) + ": its pads leave no image; expected fewer");
  const bool square = tall.kernel == wide.kernel && tall.stride == wide.stride && tall.before == wide.before;
  const bool enlarges = groups > 1 && groups == filters && groups == in[0];
  if (enlarges) {
    builder_.fix_shapes();
    return builder_.add("upsample", site.name, {site.in()}, shape,
                        {{"outputs", spec_list({spec_number(shape[1]), spec_number(shape[2])})},
                         {"mode", spec_scalar("bilinear")}});
  }
  if (!square || groups != 1 || tall.dilation != 1 || tall.stride > tall.kernel ||
      tall.before >= tall.kernel) {
    const NetworkTensor to = unsupported(site, "in groups, or not square");
    return {.layer = to.layer, .shape = shape};
  }
  return set_owner(
      site,
      builder_.add(
          "conv_transpose2d", site.name, {site.in()}, shape,
          of_weights(site, {{"filters", spec_number(filters)},
                            {"kernel", spec_number(tall.kernel)},
                            {"stride", spec_number(tall.stride)},
                            {"padding", spec_number(tall.before)},
                            {"bias", spec_scalar(p.text("bias_term") == "false" ? "false" : "true")}})));
}

}  // namespace tbdsim
