// Networks of Caffe in the text form of Protocol Buffers: name: value, name { ... }.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/network.h"
#include "simulate/import/network_files.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargest = 1'000'000'000;
constexpr int kDeepest = 64;

// A message: fields in order, each a text or a message.
struct Message {
  struct Field;
  std::vector<Field> fields;

  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  [[nodiscard]] std::vector<const Message*> messages(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto all = texts(name);
    return all.empty() ? std::string() : all.front();
  }
  [[nodiscard]] const Message& message(std::string_view name) const;
};
struct Message::Field {
  std::string name, text;
  std::optional<Message> message;
};

const Message kNone{};

std::vector<std::string> Message::texts(std::string_view name) const {
  std::vector<std::string> all;
  for (const Field& field : fields) {
    if (field.name == name && !field.message) all.push_back(field.text);
  }
  return all;
}
std::vector<const Message*> Message::messages(std::string_view name) const {
  std::vector<const Message*> all;
  for (const Field& field : fields) {
    if (field.name == name && field.message) all.push_back(&*field.message);
  }
  return all;
}
const Message& Message::message(std::string_view name) const {
  const auto all = messages(name);
  return all.empty() ? kNone : *all.front();
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Message message(int depth) {
    if (depth > kDeepest) fail("nests deeper than 64");
    Message message;
    for (std::string name = token(); !name.empty() && name != "}"; name = token()) {
      if (name == ";" || name == ",") continue;
      Message::Field field{.name = name, .text = {}, .message = {}};
      std::string next = token();
      if (next == ":") next = token();
      if (next == "{") {
        field.message = this->message(depth + 1);
      } else if (next.empty() || next == "}" || next == ":") {
        fail(in_quotes(name) + " without a value");
      } else {
        field.text = next;
      }
      message.fields.push_back(std::move(field));
      if (++fields_ > kMostFields) fail("more than a million fields");
    }
    return message;
  }

  [[noreturn]] void fail(const std::string& what) const {
    fail_at(file_, line_, what + "; expected a prototxt of Caffe");
  }

 private:
  static constexpr std::size_t kMostFields = 1'000'000;

  // A word, a text in quotes without them, or one of { } : ; , and the empty text at the end.
  std::string token() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\n' || c == ' ' || c == '\t' || c == '\r') {
        line_ += c == '\n';
        ++at_;
      } else {
        break;
      }
    }
    if (at_ >= text_.size()) return {};
    const char first = text_[at_];
    if (std::string_view("{}:;,").find(first) != std::string_view::npos) return std::string(1, text_[at_++]);
    std::string word;
    if (first == '"' || first == '\'') {
      for (++at_; at_ < text_.size() && text_[at_] != first; ++at_) {
        if (text_[at_] == '\n') fail("a text without its closing quote");
        word += text_[at_];
      }
      if (at_++ >= text_.size()) fail("a text without its closing quote");
      return word.empty() ? " " : word;
    }
    while (at_ < text_.size() &&
           std::string_view("{}:;, \t\r\n#\"'").find(text_[at_]) == std::string_view::npos)
      word += text_[at_++];
    return word;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t fields_ = 0;
  int line_ = 1;
};

// Types of the format before 2014 are names in capitals.
std::string type_of(const Message& layer) {
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

bool only_for_testing(const Message& layer) { return layer.message("include").text("phase") == "TEST"; }

class Reader {
 public:
  Reader(const Message& net, const std::string& file)
      : builder_(file, net.text("name").empty() ? "imported network" : net.text("name")) {
    std::vector<std::int64_t> dims = whole_numbers(net.texts("input_dim"), "input_dim");
    if (dims.empty()) dims = whole_numbers(net.message("input_shape").texts("dim"), "dim");
    if (!dims.empty()) set_input(net.text("input"), dims);
    for (const Message::Field& field : net.fields) {
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

  [[nodiscard]] std::vector<NetworkTensor> inputs(const Message& layer) const {
    std::vector<NetworkTensor> all;
    for (const std::string& bottom : layer.texts("bottom")) {
      const auto found = blobs_.find(bottom);
      if (found != blobs_.end())
        all.push_back(found->second);
      else if (bottom != "label")
        builder_.fail(
            fmt::format("{}: no layer before it makes {}", in_quotes(layer.text("name")), in_quotes(bottom)));
    }
    if (all.empty()) builder_.fail(in_quotes(layer.text("name")) + ": no bottom; expected what it reads");
    return all;
  }

  // Value of a key, of its form with _h or _w, or a default.
  [[nodiscard]] std::int64_t side(const Message& parameters, const std::string& key, const char* side,
                                  std::int64_t otherwise, std::int64_t least) const {
    for (const std::string& name : {key + side, key, key + "_size"}) {
      if (const std::string text = parameters.text(name); !text.empty()) return number(text, name, least);
    }
    return otherwise;
  }
  [[nodiscard]] WindowSide window(const Message& p, const char* which, std::int64_t input,
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

  void read(const Message& layer) {
    const std::string type = type_of(layer), name = layer.text("name");
    if (type == "Accuracy" || type == "Silence") return;
    if (type == "Data" || type == "Input" || type == "ImageData" || type == "DummyData")
      return read_data(layer, type);
    const std::vector<NetworkTensor> from = inputs(layer);
    NetworkTensor to = convert(layer, type, name, from);
    last_ = to;
    for (const std::string& top : layer.texts("top")) blobs_[top] = to;
  }

  // Layers that read images tell their size by what they cut out of them.
  void read_data(const Message& layer, const std::string& type) {
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

  NetworkTensor convert(const Message& layer, const std::string& type, const std::string& name,
                        const std::vector<NetworkTensor>& from) {
    const NetworkTensor& in = from[0];
    const bool image = in.shape.size() == 3;
    if ((type == "Convolution" || type == "Pooling") && !image)
      builder_.fail(in_quotes(name) + " reads no image; expected one");
    if (type == "Convolution") return convolution(layer.message("convolution_param"), name, in);
    if (type == "Pooling") {
      const Message& p = layer.message("pooling_param");
      const WindowSide tall = window(p, "_h", in.shape[1], true), wide = window(p, "_w", in.shape[2], true);
      if (tall.kernel < 1 || wide.kernel < 1)
        builder_.fail(in_quotes(name) + ": no kernel_size; expected one");
      return builder_.add_window(p.text("pool") == "AVE" ? "avg_pool" : "max_pool", name, in, tall, wide,
                                 in.shape[0]);
    }
    if (type == "InnerProduct") {
      const Message& p = layer.message("inner_product_param");
      const std::int64_t outputs = number(p.text("num_output"), name + ": num_output", 1);
      LayerKeys keys = {{"outputs", spec_number(outputs)}};
      if (p.text("bias_term") == "false") keys.emplace_back("bias", spec_scalar("false"));
      return builder_.add("fully_connected", name, {in}, {outputs}, std::move(keys));
    }
    if (type == "ReLU" || type == "PReLU" || type == "ELU") return builder_.add("relu", name, {in}, in.shape);
    if (type == "Sigmoid") return builder_.add("sigmoid", name, {in}, in.shape);
    if (type == "TanH") return builder_.add("tanh", name, {in}, in.shape);
    if (type == "BatchNorm") return builder_.add("batch_norm", name, {in}, in.shape);
    if (type == "Scale" || type == "Flatten" || type == "Split" || type == "Softmax" ||
        type == "SoftmaxWithLoss")
      return in;  // Scale: of a batch norm
    if (type == "LRN") {
      const std::string size = layer.message("lrn_param").text("local_size");
      return builder_.add("lrn", name, {in}, in.shape,
                          {{"window", spec_number(size.empty() ? 5 : number(size, "local_size", 1))}});
    }
    if (type == "Dropout") {
      const std::string ratio = layer.message("dropout_param").text("dropout_ratio");
      const double drop = ratio.empty() ? 0.5 : parse_number(ratio).value_or(-1);
      if (!(drop > 0 && drop < 1))
        builder_.fail(fmt::format("{}: dropout_ratio: {}; expected a number from 0 to 1", in_quotes(name),
                                  in_quotes(ratio)));
      return builder_.add("dropout", name, {in}, in.shape,
                          {{"keep", spec_scalar(fmt::format("{:.6g}", 1 - drop))}});
    }
    if (type == "Concat") {
      std::vector<std::int64_t> shape = in.shape;
      for (std::size_t i = 1; i < from.size(); ++i) {
        if (from[i].shape.size() != shape.size())
          builder_.fail(in_quotes(name) + ": inputs of several shapes; expected them alike but for channels");
        shape[0] += from[i].shape[0];
      }
      return builder_.add("concat", name, from, shape);
    }
    const std::string operation = layer.message("eltwise_param").text("operation");
    if (type == "Eltwise" && from.size() > 1 && (operation.empty() || operation == "SUM"))
      return builder_.add("add", name, from, in.shape);
    builder_.note_unsupported(type.empty() ? "a layer without a type" : type);
    return in;
  }

  NetworkTensor convolution(const Message& p, const std::string& name, const NetworkTensor& in) {
    const std::int64_t filters = number(p.text("num_output"), name + ": num_output", 1);
    const WindowSide tall = window(p, "_h", in.shape[1], false), wide = window(p, "_w", in.shape[2], false);
    if (tall.kernel < 1 || wide.kernel < 1) builder_.fail(in_quotes(name) + ": no kernel_size; expected one");
    LayerKeys keys = {{"filters", spec_number(filters)}};
    if (p.text("bias_term") != "false") keys.emplace_back("bias", spec_scalar("true"));
    const std::string groups = p.text("group");
    if (!groups.empty() && groups != "1")
      keys.emplace_back("groups", spec_number(number(groups, name + ": group", 1)));
    return builder_.add_window("conv2d", name, in, tall, wide, filters, std::move(keys));
  }

  NetworkBuilder builder_;
  std::map<std::string, NetworkTensor> blobs_;
  NetworkTensor last_;
};

}  // namespace

ImportedFile prototxt_network(const std::string& text, const std::string& file) {
  Parser parser(text, file);
  const Message net = parser.message(0);
  return Reader(net, file).file();
}

}  // namespace tbdsim
