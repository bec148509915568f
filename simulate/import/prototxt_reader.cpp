#include "simulate/import/prototxt_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/network_files.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargest = 1'000'000'000;

// Types of the format before 2014 are names in capitals.
std::string type_of(const PrototxtMessage& layer) {
  std::string type = layer.text("type");
  const std::pair<const char*, const char*> old[] = {{"ABSVAL", "AbsVal"},
                                                     {"ACCURACY", "Accuracy"},
                                                     {"CONCAT", "Concat"},
                                                     {"CONVOLUTION", "Convolution"},
                                                     {"DATA", "Data"},
                                                     {"DECONVOLUTION", "Deconvolution"},
                                                     {"DROPOUT", "Dropout"},
                                                     {"ELTWISE", "Eltwise"},
                                                     {"EUCLIDEAN_LOSS", "EuclideanLoss"},
                                                     {"FLATTEN", "Flatten"},
                                                     {"INNER_PRODUCT", "InnerProduct"},
                                                     {"LRN", "LRN"},
                                                     {"POOLING", "Pooling"},
                                                     {"POWER", "Power"},
                                                     {"RELU", "ReLU"},
                                                     {"SIGMOID", "Sigmoid"},
                                                     {"SLICE", "Slice"},
                                                     {"SOFTMAX", "Softmax"},
                                                     {"SOFTMAX_LOSS", "SoftmaxWithLoss"},
                                                     {"SPLIT", "Split"},
                                                     {"TANH", "TanH"}};
  for (const auto& [capitals, now] : old) {
    if (type == capitals) return now;
  }
  return type;
}

bool only_for_testing(const PrototxtMessage& layer) {
  return layer.message("include").text("phase") == "TEST" ||
         layer.message("exclude").text("phase") == "TRAIN";
}

// Layers of the training phase, in order.
std::vector<const PrototxtMessage*> trained_layers(const PrototxtMessage& net) {
  std::vector<const PrototxtMessage*> layers;
  for (const PrototxtMessage::Field& field : net.fields) {
    if ((field.name == "layer" || field.name == "layers") && field.message &&
        !only_for_testing(*field.message))
      layers.push_back(&*field.message);
  }
  return layers;
}

// Whether a layer has rates of its weights, and all are 0: it is not trained.
bool is_frozen(const PrototxtMessage& layer) {
  std::vector<std::string> rates;
  for (const PrototxtMessage::Field& field : layer.fields) {
    if (field.name == "param" && field.message) rates.push_back(field.message->text("lr_mult"));
    if (field.name == "blobs_lr") rates.push_back(field.text);
  }
  return !rates.empty() &&
         std::ranges::all_of(rates, [](const std::string& rate) { return parse_number(rate) == 0.0; });
}

}  // namespace

PrototxtReader::PrototxtReader(const PrototxtMessage& net, const std::string& file)
    : builder_(file, net.text("name").empty() ? "imported network" : net.text("name")) {
  std::vector<std::int64_t> dims = whole_numbers(net.texts("input_dim"), "input_dim");
  if (dims.empty()) dims = whole_numbers(net.message("input_shape").texts("dim"), "dim");
  if (!dims.empty()) set_input(net.text("input"), dims);
  find_scaled_norms(net);
  for (const PrototxtMessage* layer : trained_layers(net)) read(*layer);
}

ImportedFile PrototxtReader::file() {
  if (losses_ > 1)
    builder_.note(fmt::format("the last of {} losses; layers that only others need are left out", losses_));
  return builder_.finish(last_, "Caffe");
}

// A norm's factors and biases are those of the layer Scale that reads what it makes next.
void PrototxtReader::find_scaled_norms(const PrototxtMessage& net) {
  std::map<std::string, const PrototxtMessage*> norms;  // by what they make, and nothing has read yet
  for (const PrototxtMessage* layer : trained_layers(net)) {
    const std::vector<std::string> bottoms = layer->texts("bottom");
    for (const std::string& bottom : bottoms) {
      const auto found = norms.find(bottom);
      if (found == norms.end()) continue;
      if (type_of(*layer) == "Scale" && bottoms.size() == 1) scales_.emplace(found->second, layer);
      norms.erase(found);
    }
    for (const std::string& top : layer->texts("top")) {
      norms.erase(top);
      if (type_of(*layer) == "BatchNorm") norms.emplace(top, layer);
    }
  }
}

std::int64_t PrototxtReader::number(const std::string& text, const std::string& what,
                                    std::int64_t least) const {
  const auto value = parse_whole_number(text);
  if (!value || *value < least || *value > kLargest)
    builder_.fail(fmt::format("{}: {}; expected a whole number, {} or more", what, in_quotes(text), least));
  return *value;
}

std::vector<std::int64_t> PrototxtReader::whole_numbers(const std::vector<std::string>& texts,
                                                        const std::string& what) const {
  std::vector<std::int64_t> numbers;
  for (const std::string& text : texts) numbers.push_back(number(text, what, 1));
  return numbers;
}

std::int64_t PrototxtReader::number_or(const PrototxtMessage& parameters, const std::string& key,
                                       std::int64_t otherwise, std::int64_t least) const {
  const std::string text = parameters.text(key);
  return text.empty() ? otherwise : number(text, key, least);
}

void PrototxtReader::set_input(const std::string& name, std::vector<std::int64_t> dims) {
  if (dims.size() < 2) builder_.fail("an input without sides; expected batch x channels x height x width");
  dims.erase(dims.begin());
  last_ = blobs_[name] = builder_.input(dims);
}

std::vector<NetworkTensor> PrototxtReader::inputs(const PrototxtMessage& layer) const {
  std::vector<NetworkTensor> all;
  for (const std::string& bottom : layer.texts("bottom")) {
    const auto found = blobs_.find(bottom);
    if (found != blobs_.end())
      all.push_back(found->second);
    else if (bottom != "label")
      builder_.fail(fmt::format("{}: bottom {}; expected what a layer before it makes{}",
                                in_quotes(layer.text("name")), in_quotes(bottom),
                                did_you_mean(bottom, names_of(blobs_))));
  }
  if (all.empty()) builder_.fail(in_quotes(layer.text("name")) + ": no bottom; expected what it reads");
  return all;
}

void PrototxtReader::read(const PrototxtMessage& layer) {
  const std::string type = type_of(layer);
  if (type == "Accuracy" || type == "Silence" || type == "ArgMax") return;
  const bool data =
      type == "Input" || type == "DummyData" || (type.ends_with("Data") && layer.texts("bottom").empty());
  if (data) return read_data(layer, type);
  const std::vector<std::string> tops = layer.texts("top");
  const Site site{.layer = layer, .type = type, .name = layer.text("name"), .from = inputs(layer)};
  if (type == "Slice") return (void)slice(site);
  last_ = convert(site);
  for (const std::string& top : tops) blobs_[top] = last_;
}

// Layers that read images tell their size by what they cut out of them, or make of them.
void PrototxtReader::read_data(const PrototxtMessage& layer, const std::string& type) {
  if (!blobs_.empty()) return;
  std::vector<std::int64_t> dims = whole_numbers(
      layer.message(type == "DummyData" ? "dummy_data_param" : "input_param").message("shape").texts("dim"),
      "dim");
  const PrototxtMessage& transform = layer.message("transform_param");
  const PrototxtMessage& resize = transform.message("resize_param");
  constexpr std::int64_t kColours = 3;
  if (dims.empty() && !resize.text("height").empty())
    dims = {1, kColours, number(resize.text("height"), "height", 1),
            number(resize.text("width"), "width", 1)};
  if (dims.empty()) {
    std::string crop = transform.text("crop_size");
    if (crop.empty()) crop = layer.message("data_param").text("crop_size");
    if (crop.empty())
      builder_.fail(in_quotes(layer.text("name")) +
                    " tells no size of images; expected crop_size or input_param");
    const std::int64_t pixels = number(crop, "crop_size", 1);
    dims = {1, kColours, pixels, pixels};
  }
  set_input(layer.text("top"), dims);
}

std::int64_t PrototxtReader::side(const PrototxtMessage& parameters, const std::string& key, bool height,
                                  std::int64_t otherwise, std::int64_t least) const {
  if (const std::string text = parameters.text(key + (height ? "_h" : "_w")); !text.empty())
    return number(text, key, least);
  for (const std::string& name : {key, key + "_size"}) {
    const std::vector<std::string> texts = parameters.texts(name);
    if (!texts.empty()) return number(height ? texts.front() : texts.back(), name, least);
  }
  return otherwise;
}

WindowSide PrototxtReader::window(const PrototxtMessage& p, bool height, std::int64_t input,
                                  bool pooling) const {
  const bool global = p.text("global_pooling") == "true";
  const bool whole = p.text("round_mode") == "FLOOR" || p.text("ceil_mode") == "false";
  const std::int64_t pad = side(p, "pad", height, 0, 0);
  return {.kernel = global ? input : side(p, "kernel", height, 0, 1),
          .stride = global ? 1 : side(p, "stride", height, 1, 1),
          .before = pad,
          .after = pad,
          .dilation = pooling ? 1 : side(p, "dilation", height, 1, 1),
          .round_up = pooling && !whole};
}

std::pair<WindowSide, WindowSide> PrototxtReader::windows(const PrototxtMessage& p, const Site& site,
                                                          bool pooling) const {
  if (site.in().shape.size() != 3) builder_.fail(in_quotes(site.name) + " reads no image; expected one");
  const WindowSide tall = window(p, true, site.in().shape[1], pooling),
                   wide = window(p, false, site.in().shape[2], pooling);
  if (tall.kernel < 1 || wide.kernel < 1)
    builder_.fail(in_quotes(site.name) + ": no kernel_size; expected one");
  return {tall, wide};
}

std::int64_t PrototxtReader::axis(const PrototxtMessage& p, const Site& site, std::int64_t otherwise) const {
  const std::int64_t rank = std::ssize(site.in().shape) + 1;
  std::int64_t axis = otherwise;
  for (const char* key : {"axis", "concat_dim", "slice_dim"}) {
    if (const std::string text = p.text(key); !text.empty()) axis = number(text, key, -rank);
  }
  if (axis < 0) axis += rank;
  if (axis >= rank)
    builder_.fail(fmt::format("{}: axis: {}; expected one of {} sides", in_quotes(site.name), axis, rank));
  return axis - 1;
}

// Layers whose weights have one name share them; those that learn at a rate of 0 are not trained.
LayerKeys PrototxtReader::of_weights(const Site& site, LayerKeys keys) const {
  const std::string weight = site.layer.message("param").text("name");
  const auto owner = weight.empty() ? owners_.end() : owners_.find(weight);
  if (owner != owners_.end()) keys.emplace_back("tied_to", spec_text(owner->second));
  if (is_frozen(site.layer)) keys.emplace_back("frozen", spec_scalar("true"));
  return keys;
}

NetworkTensor PrototxtReader::set_owner(const Site& site, const NetworkTensor& layer) {
  const std::string weight = site.layer.message("param").text("name");
  if (!weight.empty()) owners_.try_emplace(weight, layer.layer);
  return layer;
}

ImportedFile prototxt_network(const std::string& text, const std::string& file) {
  return PrototxtReader(read_prototxt(text, file), file).file();
}

}  // namespace tbdsim
