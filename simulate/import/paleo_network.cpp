// Networks of Paleo: {"name": ..., "layers": {name: {"parents": [...], "type": ..., ...}}}, sides as N, H, W,
// C and filters as H, W, inputs, outputs (TalwalkarLab/paleo, nets/*.json).
#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/network.h"
#include "simulate/import/network_files.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLargest = 1'000'000'000;
constexpr int kDeepest = 64;

class Reader {
 public:
  Reader(const Json& root, const std::string& file)
      : builder_(file, root.contains("name") && root["name"].is_string() ? root["name"].get<std::string>()
                                                                         : "imported network") {
    if (!root.contains("layers") || !root["layers"].is_object())
      builder_.fail("no map of layers; expected a network of Paleo");
    for (const auto& [name, layer] : root["layers"].items()) {
      if (!layer.is_object()) builder_.fail(in_quotes(name) + " is no map; expected a layer");
      read(name, layer);
    }
  }

  ImportedFile file() {
    if (last_.layer.empty()) builder_.fail("no layer of type Input; expected one");
    return builder_.finish(last_, "Paleo");
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> numbers(const std::string& name, const Json& layer, const char* key,
                                                  std::size_t count) const {
    std::vector<std::int64_t> list;
    if (layer.contains(key) && layer[key].is_array()) {
      for (const Json& item : layer[key]) {
        if (item.is_number_integer() && item.get<std::int64_t>() >= 1 && item.get<std::int64_t>() <= kLargest)
          list.push_back(item.get<std::int64_t>());
      }
    }
    if (list.size() != count)
      builder_.fail(
          fmt::format("{}: {}: expected a list of {} whole numbers above 0", in_quotes(name), key, count));
    return list;
  }
  [[nodiscard]] static std::string text(const Json& layer, const char* key) {
    return layer.contains(key) && layer[key].is_string() ? layer[key].get<std::string>() : std::string();
  }

  [[nodiscard]] std::vector<NetworkTensor> parents(const std::string& name, const Json& layer) const {
    std::vector<NetworkTensor> all;
    if (layer.contains("parents") && layer["parents"].is_array()) {
      for (const Json& parent : layer["parents"]) {
        const auto found = parent.is_string() ? tensors_.find(parent.get<std::string>()) : tensors_.end();
        if (found == tensors_.end())
          builder_.fail(fmt::format(
              "{}: the parent {}; expected a layer before it{}", in_quotes(name),
              in_quotes(parent.is_string() ? parent.get<std::string>() : parent.dump()),
              did_you_mean(parent.is_string() ? parent.get<std::string>() : "", names_of(tensors_))));
        all.push_back(found->second);
      }
    }
    if (all.empty()) builder_.fail(in_quotes(name) + ": no parents; expected the layers it reads");
    return all;
  }

  [[nodiscard]] std::pair<WindowSide, WindowSide> window(const std::string& name, const Json& layer,
                                                         const NetworkTensor& from, std::int64_t height,
                                                         std::int64_t width) const {
    const std::vector<std::int64_t> strides = numbers(name, layer, "strides", 4);
    const auto side = [&](std::int64_t kernel, std::int64_t stride, std::size_t axis) {
      WindowSide window{.kernel = kernel, .stride = stride};
      if (text(layer, "padding") == "SAME" && from.shape.size() == 3) {
        const std::int64_t in = from.shape[axis], out = (in + stride - 1) / stride;
        const std::int64_t needed = std::max<std::int64_t>(0, (out - 1) * stride + kernel - in);
        window.before = needed / 2;
        window.after = needed - needed / 2;
      }
      return window;
    };
    return {side(height, strides[1], 1), side(width, strides[2], 2)};
  }

  void activate(const std::string& name, const Json& layer, NetworkTensor& to) {
    const std::string activation = text(layer, "activation_fn");
    if (activation == "relu")
      to = builder_.add("relu", name + "/relu", {to}, to.shape);
    else if (!activation.empty())
      builder_.note_unsupported("activation_fn " + activation);
  }

  void read(const std::string& name, const Json& layer) {
    const std::string type = text(layer, "type");
    NetworkTensor to;
    if (type == "Input") {
      const std::vector<std::int64_t> tensor = numbers(name, layer, "tensor", 4);
      to = builder_.input({tensor[3], tensor[1], tensor[2]});
    } else {
      const std::vector<NetworkTensor> from = parents(name, layer);
      to = convert(name, type, layer, from);
    }
    last_ = tensors_[name] = to;
  }

  NetworkTensor convert(const std::string& name, const std::string& type, const Json& layer,
                        const std::vector<NetworkTensor>& from) {
    if (type == "Convolution") {
      const std::vector<std::int64_t> filter = numbers(name, layer, "filter", 4);
      const auto [tall, wide] = window(name, layer, from[0], filter[0], filter[1]);
      NetworkTensor to =
          builder_.add_window("conv2d", name, from[0], tall, wide, filter[3],
                              {{"filters", spec_number(filter[3])}, {"bias", spec_scalar("true")}});
      activate(name, layer, to);
      return to;
    }
    if (type == "Pooling") {
      const std::vector<std::int64_t> size = numbers(name, layer, "ksize", 4);
      const auto [tall, wide] = window(name, layer, from[0], size[1], size[2]);
      const bool mean = text(layer, "pooling_type") == "avg" || text(layer, "pooling_type") == "average";
      return builder_.add_window(mean ? "avg_pool" : "max_pool", name, from[0], tall, wide, from[0].shape[0]);
    }
    if (type == "InnerProduct") {
      const bool given = layer.contains("num_outputs") && layer["num_outputs"].is_number_integer();
      const std::int64_t outputs = given ? layer["num_outputs"].get<std::int64_t>() : 0;
      if (outputs < 1 || outputs > kLargest)
        builder_.fail(in_quotes(name) + ": num_outputs: expected a whole number above 0");
      NetworkTensor to =
          builder_.add("fully_connected", name, {from[0]}, {outputs}, {{"outputs", spec_number(outputs)}});
      activate(name, layer, to);
      return to;
    }
    if (type == "Dropout")
      return builder_.add("dropout", name, {from[0]}, from[0].shape, {{"keep", spec_scalar("0.5")}});
    if (type == "Concatenate") {
      std::vector<std::int64_t> shape = from[0].shape;
      for (std::size_t i = 1; i < from.size(); ++i) shape[0] += from[i].shape[0];
      return builder_.add("concat", name, from, shape);
    }
    if (type == "Elementwise" && from.size() > 1) return builder_.add("add", name, from, from[0].shape);
    if (type == "Softmax" || type == "Reshape") return from[0];
    builder_.note_unsupported(type.empty() ? "a layer without a type" : type);
    return from[0];
  }

  NetworkBuilder builder_;
  std::map<std::string, NetworkTensor> tensors_;
  NetworkTensor last_;
};

}  // namespace

ImportedFile paleo_network(const std::string& text, const std::string& file) {
  const auto shallow = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) throw std::length_error("deep");
    return true;
  };
  Json root;
  try {
    root = Json::parse(text, shallow);
  } catch (const std::exception&) {
    NetworkBuilder(file, "").fail("no JSON, or nests deeper than 64; expected a network of Paleo");
  }
  if (!root.is_object()) NetworkBuilder(file, "").fail("no JSON map; expected a network of Paleo");
  return Reader(root, file).file();
}

}  // namespace tbdsim
