// Networks of Caffe.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/network.h"
#include "simulate/import/network_files.h"
#include "simulate/import/prototxt_message.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargest = 1'000'000'000;

// Types of the format before 2014 are names in capitals.
std::string type_of(const PrototxtMessage& layer) {
  std::string type = layer.text("type");
  const std::pair<const char*, const char*> old[] = {{"CONVOLUTION", "Convolution"},
                                                     {"POOLING", "Pooling"},
                                                     {"RELU", "ReLU"},
                                                     {"LRN", "LRN"},
                                                     {"INNER_PRODUCT", "InnerProduct"},
                                                     {"DROPOUT", "Dropout"},
                                                     {"CONCAT", "Concat"},
                                                     {"SOFTMAX", "Softmax"},
                                                     {"SOFTMAX_LOSS", "SoftmaxWithLoss"},
                                                     {"DATA", "Data"},
                                                     {"ACCURACY", "Accuracy"},
                                                     {"ELTWISE", "Eltwise"}};
  for (const auto& [capitals, now] : old) {
    if (type == capitals) return now;
  }
  return type;
}

bool only_for_testing(const PrototxtMessage& layer) {
  return layer.message("include").text("phase") == "TEST";
}

class Reader {
 public:
  Reader(const PrototxtMessage& net, const std::string& file)
      : builder_(file, net.text("name").empty() ? "imported network" : net.text("name")) {
    std::vector<std::int64_t> dims = whole_numbers(net.texts("input_dim"), "input_dim");
    if (dims.empty()) dims = whole_numbers(net.message("input_shape").texts("dim"), "dim");
    if (!dims.empty()) set_input(net.text("input"), dims);
    for (const PrototxtMessage::Field& field : net.fields) {
      if ((field.name == "layer" || field.name == "layers") && field.message &&
          !only_for_testing(*field.message))
        read(*field.message);
    }
  }

  ImportedFile file() { return builder_.finish(last_, "Caffe"); }

 private:
  [[nodiscard]] std::int64_t number(const std::string& text, const std::string& what,
                                    std::int64_t least) const {
    const auto value = parse_whole_number(text);
    if (!value || *value < least || *value > kLargest)
      builder_.fail(fmt::format("{}: {}; expected a whole number, {} or more", what, in_quotes(text), least));
    return *value;
  }
  [[nodiscard]] std::vector<std::int64_t> whole_numbers(const std::vector<std::string>& texts,
                                                        const std::string& what) const {
    std::vector<std::int64_t> numbers;
    for (const std::string& text : texts) numbers.push_back(number(text, what, 1));
    return numbers;
  }

  void set_input(const std::string& name, std::vector<std::int64_t> dims) {
    if (dims.size() < 2) builder_.fail("an input without sides; expected batch x channels x height x width");
    dims.erase(dims.begin());
    last_ = blobs_[name] = builder_.input(dims);
  }

  [[nodiscard]] std::vector<NetworkTensor> inputs(const PrototxtMessage& layer) const {
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

  // Value of a key, of its form with _h or _w, or a default.
  [[nodiscard]] std::int64_t side(const PrototxtMessage& parameters, const std::string& key, const char* side,
                                  std::int64_t otherwise, std::int64_t least) const {
    for (const std::string& name : {key + side, key, key + "_size"}) {
      if (const std::string text = parameters.text(name); !text.empty()) return number(text, name, least);
    }
    return otherwise;
  }
  [[nodiscard]] WindowSide window(const PrototxtMessage& p, const char* which, std::int64_t input,
                                  bool pooling) const {
    const bool global = p.text("global_pooling") == "true";
    const std::int64_t pad = side(p, "pad", which, 0, 0);
    return {.kernel = global ? input : side(p, "kernel", which, 0, 1),
            .stride = global ? 1 : side(p, "stride", which, 1, 1),
            .before = pad,
            .after = pad,
            .dilation = pooling ? 1 : side(p, "dilation", which, 1, 1),
            .round_up = pooling};
  }

  void read(const PrototxtMessage& layer) {
    const std::string type = type_of(layer);
    if (type == "Accuracy" || type == "Silence") return;
    if (type == "Data" || type == "Input" || type == "ImageData" || type == "DummyData")
      return read_data(layer, type);
    last_ = convert({.layer = layer, .type = type, .name = layer.text("name"), .from = inputs(layer)});
    for (const std::string& top : layer.texts("top")) blobs_[top] = last_;
  }

  // Layers that read images tell their size by what they cut out of them.
  void read_data(const PrototxtMessage& layer, const std::string& type) {
    if (!blobs_.empty()) return;
    std::vector<std::int64_t> dims = whole_numbers(
        layer.message(type == "DummyData" ? "dummy_data_param" : "input_param").message("shape").texts("dim"),
        "dim");
    if (dims.empty()) {
      std::string crop = layer.message("transform_param").text("crop_size");
      if (crop.empty()) crop = layer.message("data_param").text("crop_size");
      if (crop.empty())
        builder_.fail(in_quotes(layer.text("name")) +
                      " tells no size of images; expected crop_size or input_param");
      const std::int64_t pixels = number(crop, "crop_size", 1);
      dims = {1, 3, pixels, pixels};
    }
    set_input(layer.text("top"), dims);
  }

  // A layer as the functions of the table below take it.
  struct Site {
    const PrototxtMessage& layer;
    std::string type, name;
    std::vector<NetworkTensor> from;

    [[nodiscard]] const NetworkTensor& in() const { return from[0]; }
  };

  NetworkTensor convert(const Site& site) {
    struct Conversion {
      std::string_view type;
      NetworkTensor (Reader::*add)(const Site&);
    };
    static constexpr Conversion kConversions[] = {
        {"BatchNorm", &Reader::batch_norm},
        {"Concat", &Reader::concat},
        {"Convolution", &Reader::convolution},
        {"Dropout", &Reader::dropout},
        {"ELU", &Reader::relu},
        {"Eltwise", &Reader::sum},
        {"Flatten", &Reader::same},
        {"InnerProduct", &Reader::fully_connected},
        {"LRN", &Reader::lrn},
        {"PReLU", &Reader::relu},
        {"Pooling", &Reader::pool},
        {"ReLU", &Reader::relu},
        {"Scale", &Reader::same},  // of a batch norm
        {"Sigmoid", &Reader::sigmoid},
        {"Softmax", &Reader::same},
        {"SoftmaxWithLoss", &Reader::same},
        {"Split", &Reader::same},
        {"TanH", &Reader::tanh},
    };
    const auto* found = std::ranges::find(kConversions, std::string_view(site.type), &Conversion::type);
    return found == std::end(kConversions) ? unsupported(site) : (this->*found->add)(site);
  }

  NetworkTensor unsupported(const Site& site) {
    builder_.note_unsupported(site.type.empty() ? "a layer without a type" : site.type);
    return site.in();
  }

  NetworkTensor same(const Site& site) { return site.in(); }
  NetworkTensor relu(const Site& site) { return like_input("relu", site); }
  NetworkTensor sigmoid(const Site& site) { return like_input("sigmoid", site); }
  NetworkTensor tanh(const Site& site) { return like_input("tanh", site); }
  NetworkTensor batch_norm(const Site& site) { return like_input("batch_norm", site); }
  NetworkTensor like_input(const char* type, const Site& site, LayerKeys keys = {}) {
    return builder_.add(type, site.name, {site.in()}, site.in().shape, std::move(keys));
  }

  NetworkTensor lrn(const Site& site) {
    const std::string size = site.layer.message("lrn_param").text("local_size");
    return like_input("lrn", site,
                      {{"window", spec_number(size.empty() ? 5 : number(size, "local_size", 1))}});
  }

  NetworkTensor dropout(const Site& site) {
    const std::string ratio = site.layer.message("dropout_param").text("dropout_ratio");
    const double drop = ratio.empty() ? 0.5 : parse_number(ratio).value_or(-1);
    if (!(drop > 0 && drop < 1))
      builder_.fail(fmt::format("{}: dropout_ratio: {}; expected a number from 0 to 1", in_quotes(site.name),
                                in_quotes(ratio)));
    return like_input("dropout", site, {{"keep", spec_scalar(fmt::format("{:.6g}", 1 - drop))}});
  }

  NetworkTensor fully_connected(const Site& site) {
    const PrototxtMessage& p = site.layer.message("inner_product_param");
    const std::int64_t outputs = number(p.text("num_output"), site.name + ": num_output", 1);
    LayerKeys keys = {{"outputs", spec_number(outputs)}};
    if (p.text("bias_term") == "false") keys.emplace_back("bias", spec_scalar("false"));
    return builder_.add("fully_connected", site.name, {site.in()}, {outputs}, std::move(keys));
  }

  NetworkTensor concat(const Site& site) {
    std::vector<std::int64_t> shape = site.in().shape;
    for (std::size_t i = 1; i < site.from.size(); ++i) {
      if (site.from[i].shape.size() != shape.size())
        builder_.fail(in_quotes(site.name) +
                      ": inputs of several shapes; expected them alike but for channels");
      shape[0] += site.from[i].shape[0];
    }
    return builder_.add("concat", site.name, site.from, shape);
  }

  NetworkTensor sum(const Site& site) {
    const std::string operation = site.layer.message("eltwise_param").text("operation");
    if (site.from.size() < 2 || !(operation.empty() || operation == "SUM")) return unsupported(site);
    return builder_.add("add", site.name, site.from, site.in().shape);
  }

  // The windows along height and width of an image.
  [[nodiscard]] std::pair<WindowSide, WindowSide> windows(const PrototxtMessage& p, const Site& site,
                                                          bool pooling) const {
    if (site.in().shape.size() != 3) builder_.fail(in_quotes(site.name) + " reads no image; expected one");
    const WindowSide tall = window(p, "_h", site.in().shape[1], pooling),
                     wide = window(p, "_w", site.in().shape[2], pooling);
    if (tall.kernel < 1 || wide.kernel < 1)
      builder_.fail(in_quotes(site.name) + ": no kernel_size; expected one");
    return {tall, wide};
  }

  NetworkTensor pool(const Site& site) {
    const PrototxtMessage& p = site.layer.message("pooling_param");
    const auto [tall, wide] = windows(p, site, true);
    return builder_.add_window(p.text("pool") == "AVE" ? "avg_pool" : "max_pool", site.name, site.in(), tall,
                               wide, site.in().shape[0]);
  }

  NetworkTensor convolution(const Site& site) {
    const PrototxtMessage& p = site.layer.message("convolution_param");
    const auto [tall, wide] = windows(p, site, false);
    const std::int64_t filters = number(p.text("num_output"), site.name + ": num_output", 1);
    LayerKeys keys = {{"filters", spec_number(filters)}};
    if (p.text("bias_term") != "false") keys.emplace_back("bias", spec_scalar("true"));
    const std::string groups = p.text("group");
    if (!groups.empty() && groups != "1")
      keys.emplace_back("groups", spec_number(number(groups, site.name + ": group", 1)));
    return builder_.add_window("conv2d", site.name, site.in(), tall, wide, filters, std::move(keys));
  }

  NetworkBuilder builder_;
  std::map<std::string, NetworkTensor> blobs_;
  NetworkTensor last_;
};

}  // namespace

ImportedFile prototxt_network(const std::string& text, const std::string& file) {
  return Reader(read_prototxt(text, file), file).file();
}

}  // namespace tbdsim
