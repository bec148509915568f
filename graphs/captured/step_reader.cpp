#include "graphs/captured/step_reader.h"

#include <stdexcept>

#include "graphs/captured/gzip.h"
#include "graphs/captured/json_node.h"
#include "hwspecs/base/file.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 26U;  // as it is on disk
constexpr std::size_t kMostBytes = std::size_t{1} << 28U;      // decompressed
constexpr std::size_t kMostValues = 8'000'000;
constexpr std::size_t kMostDepth = 12;
constexpr std::size_t kMostItems = 1'000'000;  // modules, storages, tensors, operators
constexpr std::size_t kMostSizes = 64;         // dimensions of a tensor, as PyTorch has it
constexpr std::size_t kLongestText = 4'096;
constexpr std::int64_t kMostOfSize = 1'000'000'000'000'000;
constexpr std::int64_t kVersion = 1;

// A whole number, or [a, b] for a + b x batch.
Size read_any_size(const JsonNode& node) {
  if (!node.is_list()) return {node.whole(-kMostOfSize, kMostOfSize), 0};
  node.require_items(2, "a whole number, or [a, b] for a + b x batch");
  const Size size{node[0].whole(-kMostOfSize, kMostOfSize), node[1].whole(-kMostOfSize, kMostOfSize)};
  if (size.per_sample == 0) node[1].fail("a number other than 0");
  return size;
}

// The same; never below 0 at a batch of 1 and more.
Size read_size(const JsonNode& node) {
  const Size size = read_any_size(node);
  if (size.per_sample < 0 || size.fixed + size.per_sample < 0)
    node.fail("a size of 0 or more at every batch");
  return size;
}

std::vector<Size> read_sizes(const JsonNode& node) {
  node.require_list(kMostSizes, "a list of sizes");
  std::vector<Size> sizes;
  sizes.reserve(node.size());
  for (std::size_t i = 0; i < node.size(); ++i) sizes.push_back(read_size(node[i]));
  return sizes;
}

// The product of sizes of which at most one grows with the batch.
Size product(const JsonNode& node, const std::vector<Size>& shape, const std::vector<Size>* strides) try {
  Size all = fixed_size(1);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (strides != nullptr && (*strides)[i] == Size{}) continue;
    if (shape[i].per_sample == 0) {
      all = all * shape[i].fixed;
    } else {
      if (all.per_sample != 0) node.fail("at most one size that grows with the batch");
      all = shape[i] * all.fixed;
    }
  }
  return all;
} catch (const std::overflow_error&) {
  node.fail("a smaller tensor");
}

int read_index(const JsonNode& node, std::size_t count, std::int64_t least = 0) {
  return static_cast<int>(node.whole(least, static_cast<std::int64_t>(count) - 1));
}

class StepReader {
 public:
  explicit StepReader(const JsonNode& root) : root_(root) {}

  CapturedStep run(std::string file) {
    constexpr std::string_view kKeys[] = {
        "format",    "version",       "name",    "title",    "sample",  "length",    "captured_with",
        "precision", "channels_last", "modules", "storages", "tensors", "operators", "warnings"};
    require_version();
    root_.require_keys(kKeys);
    step_.file = std::move(file);
    read_head();
    each("modules", step_.modules, [](const JsonNode& node) { return read_module(node); });
    operators_ = count_of("operators");
    each("storages", step_.storages, [this](const JsonNode& node) { return read_storage(node); });
    each("tensors", step_.tensors, [this](const JsonNode& node) { return read_tensor(node); });
    each("operators", step_.operators, [this](const JsonNode& node) { return read_operator(node); });
    each("warnings", step_.warnings, [](const JsonNode& node) { return node.text(kLongestText); });
    if (step_.modules.empty()) root_.at("modules").fail("the whole model and those below it");
    if (step_.operators.empty()) root_.at("operators").fail("at least one operator");
    return std::move(step_);
  }

 private:
  // A file of another format or version is refused before its keys are.
  void require_version() const {
    if (!root_.is_map() || !root_.has("format") || !root_.at("format").is_text() ||
        root_.at("format").text(kLongestText) != "tbdsim step")
      root_.fail("a step file: \"format\": \"tbdsim step\" ('tbd-sim import' reads files of other programs)");
    if (!root_.has("version")) root_.fail("a key 'version'");
    const JsonNode version = root_.at("version");
    if (version.whole(0, kMostOfSize) != kVersion)
      version.fail(std::to_string(kVersion) +
                   ", the version that this program reads: capture the step again");
  }

  void read_head() {
    step_.name = named("name");
    step_.title = named("title");
    step_.sample = named("sample");
    step_.length = root_.at("length").whole(0, kMostOfSize);
    const JsonNode with = root_.at("captured_with");
    constexpr std::string_view kKeys[] = {"torch", "batches"};
    with.require_keys(kKeys);
    step_.torch = with.at("torch").text(kLongestText);
    const JsonNode batches = with.at("batches");
    batches.require_list(kMostSizes, "a list of batches");
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const std::int64_t batch = batches[i].whole(1, kMostOfSize);
      if (batches.size() == 1) step_.only_batch = batch;
    }
    step_.precision = static_cast<CapturedPrecision>(root_.at("precision").one_of(kCapturedPrecisionNames));
    step_.channels_last = root_.at("channels_last").flag();
  }

  [[nodiscard]] std::string named(std::string_view key) const {
    const JsonNode node = root_.at(key);
    std::string text = node.text(kLongestText);
    if (text.empty()) node.fail("a name");
    return text;
  }

  [[nodiscard]] std::size_t count_of(std::string_view key) const {
    const JsonNode list = root_.at(key);
    list.require_list(kMostItems, "a list");
    return list.size();
  }

  template <class Item, class Read>
  void each(std::string_view key, std::vector<Item>& items, Read read) const {
    items.reserve(count_of(key));
    const JsonNode list = root_.at(key);
    for (std::size_t i = 0; i < list.size(); ++i) items.push_back(read(list[i]));
  }

  static CapturedModule read_module(const JsonNode& node) {
    node.require_items(2, "[path, class]");
    return {node.item(0, "path").text(kLongestText), node.item(1, "class").text(kLongestText)};
  }

  CapturedStorage read_storage(const JsonNode& node) const {
    node.require_items(5, "[role, bytes, operator that makes it, operator after which it is freed, name]");
    CapturedStorage storage{.role = static_cast<StorageRole>(node.item(0, "role").one_of(kStorageRoleNames)),
                            .bytes = read_size(node.item(1, "bytes")),
                            .born = read_index(node.item(2, "made_by"), operators_, -1),
                            .freed = read_index(node.item(3, "freed_after"), operators_, -1),
                            .name = node.item(4, "name").text(kLongestText)};
    if (storage.freed >= 0 && storage.freed < storage.born)
      node.item(3, "freed_after")
          .fail("-1 or an operator from " + std::to_string(storage.born) + " on, which makes it");
    return storage;
  }

  CapturedTensor read_tensor(const JsonNode& node) const {
    node.require_items(5, "[storage, dtype, shape, strides, offset]");
    CapturedTensor tensor{.storage = read_index(node.item(0, "storage"), step_.storages.size()),
                          .dtype = static_cast<Dtype>(node.item(1, "dtype").one_of(kDtypeNames)),
                          .shape = read_sizes(node.item(2, "shape")),
                          .strides = read_sizes(node.item(3, "strides")),
                          .offset = read_size(node.item(4, "offset")),
                          .elements = {},
                          .stored = {}};
    if (tensor.strides.size() != tensor.shape.size())
      node.item(3, "strides").fail("as many strides as sizes, " + std::to_string(tensor.shape.size()));
    tensor.elements = product(node.item(2, "shape"), tensor.shape, nullptr);
    tensor.stored = product(node.item(2, "shape"), tensor.shape, &tensor.strides);
    return tensor;
  }

  CapturedOperator read_operator(const JsonNode& node) const {
    node.require_items(5, "[name, phase, module, arguments, outputs]");
    CapturedOperator op{.name = node.item(0, "name").text(kLongestText),
                        .phase = static_cast<StepPhase>(node.item(1, "phase").one_of(kStepPhaseNames)),
                        .module = read_index(node.item(2, "module"), step_.modules.size()),
                        .arguments = read_arguments(node.item(3, "arguments")),
                        .outputs = {}};
    if (op.name.empty()) node.item(0, "name").fail("an operator's name");
    const JsonNode outputs = node.item(4, "outputs");
    outputs.require_list(kMostItems, "a list of tensors");
    for (std::size_t i = 0; i < outputs.size(); ++i)
      op.outputs.push_back(read_index(outputs[i], step_.tensors.size(), -1));
    return op;
  }

  [[nodiscard]] std::vector<Argument> read_arguments(const JsonNode& node) const {
    node.require_list(kMostItems, "a list of arguments");
    std::vector<Argument> arguments;
    arguments.reserve(node.size());
    for (std::size_t i = 0; i < node.size(); ++i) arguments.push_back({read_value(node[i])});
    return arguments;
  }

  [[nodiscard]] ArgumentValue read_value(const JsonNode& node) const {
    if (node.is_null()) return std::monostate{};
    if (node.is_flag()) return node.flag();
    if (node.is_whole()) return Size{node.whole(INT64_MIN, INT64_MAX), 0};
    if (node.is_number()) return node.number();
    if (node.is_text()) return node.text(kLongestText);
    if (node.is_list()) return read_arguments(node);
    constexpr std::string_view kExpected = "one of the keys t, n, dtype";
    if (node.size() != 1) node.fail(std::string(kExpected));
    if (node.has("t")) return TensorRef{read_index(node.at("t"), step_.tensors.size())};
    if (node.has("n")) return read_any_size(node.at("n"));
    if (node.has("dtype")) return static_cast<Dtype>(node.at("dtype").one_of(kDtypeNames));
    node.fail(std::string(kExpected));
  }

  const JsonNode& root_;
  std::size_t operators_ = 0;
  CapturedStep step_;
};

}  // namespace

bool is_step_file(std::string_view path) { return path.ends_with(".json") || path.ends_with(".json.gz"); }

CapturedStep read_step_file(const std::filesystem::path& file) {
  std::string text = read_file(file, kMostFileBytes);
  if (is_gzip(text)) {
    try {
      text = decompressed(text, kMostBytes);
    } catch (const std::runtime_error& error) {
      throw UsageError(file.string() + ": " + error.what() + "; expected a step file");
    }
  }
  const JsonDocument document(file.string(), text, kMostDepth, kMostValues);
  const JsonNode root = document.root();
  return StepReader(root).run(file.string());
}

}  // namespace tbdsim
