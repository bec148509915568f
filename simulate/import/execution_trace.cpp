#include "simulate/import/execution_trace.h"

#include <algorithm>
#include <array>
#include <istream>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "graphs/captured/json_node.h"
#include "graphs/captured/operator_table.h"
#include "hwspecs/base/error.h"
#include "simulate/import/unpacked_file.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 28U;
constexpr std::size_t kMostValues = 16'000'000;
constexpr std::size_t kMostDepth = 16;
constexpr std::size_t kMostNodes = 1'000'000;
constexpr std::size_t kMostItems = 100'000;  // inputs of a node, entries of a list among them
constexpr std::size_t kLongestText = 65'536;
constexpr std::int64_t kMostOfSize = 1'000'000'000'000;
constexpr int kDeepestList = 3;

struct TypeName {
  std::string_view traced;
  Dtype dtype;
};
constexpr TypeName kTypes[] = {{"float", Dtype::f32},
                               {"c10::Half", Dtype::f16},
                               {"c10::BFloat16", Dtype::bf16},
                               {"double", Dtype::f64},
                               {"c10::Float8_e4m3fn", Dtype::f8e4m3},
                               {"c10::Float8_e5m2", Dtype::f8e5m2},
                               {"long int", Dtype::i64},
                               {"long", Dtype::i64},
                               {"int", Dtype::i32},
                               {"short int", Dtype::i16},
                               {"short", Dtype::i16},
                               {"signed char", Dtype::i8},
                               {"unsigned char", Dtype::u8},
                               {"bool", Dtype::boolean},
                               {"c10::complex<float>", Dtype::c64},
                               {"c10::complex<double>", Dtype::c128}};

// The text between "Tensor(" and ")"; none for another type.
std::optional<std::string_view> inside(std::string_view type, std::string_view before, char after) {
  if (!type.starts_with(before) || !type.ends_with(after)) return std::nullopt;
  return type.substr(before.size(), type.size() - before.size() - 1);
}

// The types of a list's items: "Int,Tensor(float)". Commas inside of brackets part nothing.
std::vector<std::string_view> items_of(std::string_view types) {
  std::vector<std::string_view> items;
  int open = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const char c = types[i];
    open += (c == '(' || c == '[' || c == '<') ? 1 : (c == ')' || c == ']' || c == '>') ? -1 : 0;
    if (c != ',' || open != 0) continue;
    items.push_back(types.substr(begin, i - begin));
    begin = i + 1;
  }
  if (begin < types.size()) items.push_back(types.substr(begin));
  return items;
}

JsonNode member(const JsonNode& node, std::string_view key) {
  if (!node.has(key)) node.fail("a map with the key '" + std::string(key) + "'");
  return node.at(key);
}

// The keys of a node's inputs or outputs; before version 1.0.2 shapes and types are keys of the node, too.
struct SideKeys {
  std::string_view side, old_shapes, old_types;
};
constexpr SideKeys kInputs{"inputs", "input_shapes", "input_types"};
constexpr SideKeys kOutputs{"outputs", "output_shapes", "output_types"};

std::vector<std::int64_t> sizes_of(const JsonNode& node) {
  node.require_list(64, "a list of sizes");
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < node.size(); ++i) sizes.push_back(node[i].whole(0, kMostOfSize));
  return sizes;
}

std::vector<std::int64_t> strides_without_gaps(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = std::min(strides[i] * std::max<std::int64_t>(1, shape[i]), kMostOfSize);
  return strides;
}

// [tensor, storage, offset, elements, bytes of one, device]; older traces end earlier.
TracedTensor read_tensor(const JsonNode& value, const JsonNode& shape, const std::optional<JsonNode>& strides,
                         std::string_view type) {
  const auto* const known = std::ranges::find(kTypes, type, &TypeName::traced);
  if (known == std::end(kTypes))
    value.fail("a tensor of a type that is known, not '" + std::string(type) + "'");
  value.require_list(16, "[tensor, storage, offset, elements, bytes of an element, device]");
  TracedTensor tensor{.dtype = known->dtype, .shape = sizes_of(shape)};
  if (value.size() < 3) value.fail("[tensor, storage, offset, elements, bytes of an element, device]");
  tensor.storage = value[1].whole(INT64_MIN, INT64_MAX);
  tensor.offset = value[2].whole(0, kMostOfSize);
  if (value.size() > 5) tensor.on_gpu = value[5].text(kLongestText).starts_with("cuda");
  tensor.strides = strides && strides->is_list() && strides->size() == tensor.shape.size()
                       ? sizes_of(*strides)
                       : strides_without_gaps(tensor.shape);
  return tensor;
}

TracedValue read_value(const JsonNode& value, const JsonNode& shape, const std::optional<JsonNode>& strides,
                       std::string_view type, int depth = 0) {
  if (type.starts_with("Tensor(nullptr") || type == "None" || value.is_null()) return {};
  if (const auto of = inside(type, "Tensor(", ')')) return {read_tensor(value, shape, strides, *of)};
  if (const auto of = inside(type, "GenericList[", ']'); of && value.is_list()) {
    if (depth == kDeepestList) value.fail("lists in lists of at most 3 levels");
    value.require_list(kMostItems, "a list");
    const std::vector<std::string_view> types = items_of(*of);
    if (types.size() != value.size()) value.fail("as many items as types, " + std::to_string(types.size()));
    std::vector<TracedValue> list;
    const bool shapes = shape.is_list() && shape.size() == value.size();
    const bool with_strides = strides && strides->is_list() && strides->size() == value.size();
    for (std::size_t i = 0; i < types.size(); ++i) {
      list.push_back(read_value(value[i], shapes ? shape[i] : shape,
                                with_strides ? std::optional((*strides)[i]) : std::nullopt, types[i],
                                depth + 1));
    }
    return {std::move(list)};
  }
  if (value.is_flag()) return {value.flag()};
  if (value.is_whole()) return {value.whole(INT64_MIN, INT64_MAX)};
  if (value.is_number()) return {value.number()};
  if (value.is_text()) return {value.text(kLongestText)};
  return {};  // an object of a kind that no kernel depends on
}

// A node as its place in the tree and what it calls itself.
struct Node {
  std::int64_t id = 0;
  std::int64_t above = 0;
  std::size_t index = 0;  // in the file
  std::string name{};
  std::string schema{};  // "aten::add.Tensor(Tensor self, ...) -> Tensor"; empty: no operator
  int parent = -1;       // among the nodes, by id
  StepPhase phase = StepPhase::forward;
  bool holds_known = false;  // it or one inside is an operator that tbd-sim knows
  bool taken = false;        // it or one around it is an operator of the step
};

// Operators that call others before autograd sees them; what they call is what runs, if anything.
bool only_calls_others(std::string_view name) {
  constexpr std::string_view kNames[] = {"to",    "reshape",   "contiguous", "flatten",
                                         "chunk", "expand_as", "view_as"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// "aten::add_.Tensor(...)" -> "aten.add_.Tensor"; without an overload, ".default".
std::string recorded_name(const std::string& schema) {
  std::string name = schema.substr(0, schema.find('('));
  const std::size_t colons = name.find("::");
  if (colons != std::string::npos) name.replace(colons, 2, ".");
  if (name.find('.', name.find('.') + 1) == std::string::npos) name += ".default";
  return name;
}

std::string short_name(const std::string& schema) {
  const std::string name = recorded_name(schema);
  const std::size_t begin = name.find('.') + 1;
  return name.substr(begin, name.find('.', begin) - begin);
}

bool is_known(const Node& node) {
  if (node.schema.empty()) return false;
  const std::string name = short_name(node.schema);
  TracedOperator scratch;
  return rename_fused(name, scratch) ||
         (!only_calls_others(name) && find_operator(recorded_name(node.schema)) != nullptr);
}

class TraceReader {
 public:
  TraceReader(const JsonNode& root, std::string file) : root_(root) { trace_.file = std::move(file); }

  ExecutionTrace run() {
    if (!root_.is_map() || !root_.has("nodes")) root_.fail("an execution trace of PyTorch, with its nodes");
    read_nodes();
    join_nodes();
    choose_phases();
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      nodes_[i].holds_known = nodes_[i].holds_known || is_known(nodes_[i]);
      if (nodes_[i].holds_known && nodes_[i].parent >= 0) above(nodes_[i]).holds_known = true;
    }
    for (Node& node : nodes_) take(node);
    after_the_backward_pass();
    if (steps_ > 1)
      root_.fail("one training step, not " + std::to_string(steps_) +
                 " (start and stop the observer around one)");
    return std::move(trace_);
  }

 private:
  Node& above(const Node& node) { return nodes_[static_cast<std::size_t>(node.parent)]; }
  [[nodiscard]] JsonNode list() const { return root_.at("nodes"); }

  void read_nodes() {
    const JsonNode nodes = list();
    nodes.require_list(kMostNodes, "a list of nodes");
    nodes_.reserve(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const JsonNode node = nodes[i];
      Node read{.id = member(node, "id").whole(INT64_MIN, INT64_MAX), .index = i};
      read.name = member(node, "name").text(kLongestText);
      const std::string_view parent = node.has("ctrl_deps") ? "ctrl_deps" : "parent";
      if (node.has(parent)) read.above = node.at(parent).whole(INT64_MIN, INT64_MAX);
      read.schema = schema_of(node);
      nodes_.push_back(std::move(read));
    }
    std::ranges::stable_sort(nodes_, {}, &Node::id);
  }

  // Attributes are a list since version 1.0.2, keys of the node before.
  static std::string schema_of(const JsonNode& node) {
    if (node.has("op_schema")) return node.at("op_schema").text(kLongestText);
    if (!node.has("attrs")) return "";
    const JsonNode attributes = node.at("attrs");
    attributes.require_list(kMostItems, "a list of attributes");
    for (std::size_t i = 0; i < attributes.size(); ++i) {
      const JsonNode attribute = attributes[i];
      if (member(attribute, "name").text(kLongestText) == "op_schema")
        return member(attribute, "value").text(kLongestText);
    }
    return "";
  }

  // An operator begins after what it is inside of, so that its id is larger.
  void join_nodes() {
    std::map<std::int64_t, int> by_id;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      if (const auto found = by_id.find(node.above); found != by_id.end()) node.parent = found->second;
      if (!by_id.emplace(node.id, static_cast<int>(i)).second)
        list()[node.index].at("id").fail("a number that no other node has");
    }
  }

  void choose_phases() {
    for (Node& node : nodes_) {
      if (node.parent >= 0) node.phase = above(node).phase;
      if (node.name.starts_with("autograd::engine::evaluate_function")) node.phase = StepPhase::backward;
      if (node.name.starts_with("Optimizer.zero_grad#")) node.phase = StepPhase::zero;
      if (node.name.starts_with("Optimizer.step#")) {
        node.phase = StepPhase::update;
        ++steps_;
      }
    }
  }

  void take(Node& node) {
    if (node.parent >= 0 && above(node).taken) {
      node.taken = true;
      return;
    }
    if (node.name == "torch::autograd::AccumulateGrad") {
      TracedOperator op = values_of(node);
      if (!op.inputs.empty()) trace_.operators.push_back(std::move(op));
      return;
    }
    const bool unknown = !node.schema.empty() && !node.holds_known;
    if (!unknown && !is_known(node)) return;
    node.taken = true;
    TracedOperator op = values_of(node);
    if (unknown && (op.outputs.empty() || only_calls_others(short_name(node.schema)))) return;
    if (!rename_fused(short_name(node.schema), op)) op.name = recorded_name(node.schema);
    trace_.operators.push_back(std::move(op));
  }

  [[nodiscard]] TracedOperator values_of(const Node& node) const {
    const JsonNode nodes = list();
    const JsonNode at = nodes[node.index];
    TracedOperator op{
        .name = {}, .phase = node.phase, .place = trace_.file + ": node " + std::to_string(node.id)};
    op.inputs = side_of(at, kInputs);
    for (TracedValue& value : side_of(at, kOutputs)) {
      if (auto* list = std::get_if<std::vector<TracedValue>>(&value.value)) {
        for (TracedValue& item : *list) op.outputs.push_back(std::move(item));
      } else {
        op.outputs.push_back(std::move(value));
      }
    }
    std::erase_if(op.outputs, [](const TracedValue& value) {
      return !std::holds_alternative<std::monostate>(value.value) &&
             !std::holds_alternative<TracedTensor>(value.value);
    });
    return op;
  }

  // {"values", "shapes", "types", "strides"} of the inputs or outputs.
  static std::vector<TracedValue> side_of(const JsonNode& node, const SideKeys& keys) {
    const JsonNode all = member(node, keys.side);
    const bool old = all.is_list();
    const JsonNode values = old ? all : member(all, "values");
    const JsonNode shapes = old ? member(node, keys.old_shapes) : member(all, "shapes");
    const JsonNode types = old ? member(node, keys.old_types) : member(all, "types");
    for (const JsonNode* list : {&values, &shapes, &types}) list->require_list(kMostItems, "a list");
    if (shapes.size() != values.size()) shapes.fail("as many as values, " + std::to_string(values.size()));
    if (types.size() != values.size()) types.fail("as many as values, " + std::to_string(values.size()));
    std::optional<JsonNode> strides;
    if (!old && all.has("strides")) strides = all.at("strides");
    const bool with_strides = strides && strides->is_list() && strides->size() == values.size();
    std::vector<TracedValue> read;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string type = types[i].text(kLongestText);
      read.push_back(
          read_value(values[i], shapes[i], with_strides ? std::optional((*strides)[i]) : std::nullopt, type));
    }
    return read;
  }

  // Unscaling and clipping of gradients stand outside of the optimizer's step.
  void after_the_backward_pass() {
    std::size_t after = 0;
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      if (trace_.operators[i].phase == StepPhase::backward) after = i + 1;
    }
    if (after == 0) root_.fail("a training step, which has a backward pass");
    for (std::size_t i = after; i < trace_.operators.size(); ++i) {
      if (trace_.operators[i].phase == StepPhase::forward) trace_.operators[i].phase = StepPhase::update;
    }
  }

  const JsonNode& root_;
  std::vector<Node> nodes_;
  int steps_ = 0;
  ExecutionTrace trace_;
};

}  // namespace

ExecutionTrace read_execution_trace(const std::filesystem::path& file) {
  const JsonDocument document(file.string(), unpacked_text(file, kMostBytes), kMostDepth, kMostValues);
  const JsonNode root = document.root();
  return TraceReader(root, file.string()).run();
}

}  // namespace tbdsim
