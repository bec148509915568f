#include "graphs/blocks.h"

#include <algorithm>
#include <set>

#include "graphs/layers/layer_types.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostLayers = 20'000;
constexpr std::size_t kMostUses = 20'000;  // of blocks, also of such as repeat nothing
constexpr std::size_t kMostExpanded =
    200'000'000;                             // bytes of all trees made on the way, which bounds the time
constexpr std::size_t kMostNames = 1'000;    // that a layer reads
constexpr std::size_t kLongestText = 1'000;  // characters of an expanded name
constexpr int kDeepestBlocks = 16;
constexpr std::int64_t kMostRepeats = 100'000;

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The parameters visible at some place: the model's, and those of the block around it.
struct Scope {
  const Parameters& globals;
  Parameters locals{};

  [[nodiscard]] bool contains(const std::string& name) const {
    return locals.contains(name) || globals.contains(name);
  }
};

const SpecTree& look_up(const std::string& name, const Mark& mark, const Scope& scope) {
  std::vector<std::string> known;
  for (const Parameters* names : {&scope.locals, &scope.globals}) {
    const auto found = names->find(name);
    if (found != names->end()) return found->second;
  }
  for (const Parameters* names : {&scope.locals, &scope.globals}) {
    for (const auto& [key, unused] : *names) known.push_back("$" + key);
  }
  throw SpecError(mark, "unknown parameter " + in_quotes("$" + name) + did_you_mean("$" + name, known));
}

// The parameter's name at text[at] == '$', and where the text goes on.
std::string parameter_name(const std::string& text, std::size_t at, std::size_t& end, const Mark& mark) {
  const bool braces = at + 1 < text.size() && text[at + 1] == '{';
  const std::size_t begin = at + (braces ? 2 : 1);
  end = begin;
  while (end < text.size() && is_word(text[end])) ++end;
  const std::string name = text.substr(begin, end - begin);
  const bool closed = !braces || (end < text.size() && text[end] == '}');
  if (name.empty() || !closed) {
    throw SpecError(mark, in_quotes(text) + " has a '$' without a parameter; expected $name or ${name}");
  }
  if (braces) ++end;
  return name;
}

// Memory of a tree, roughly.
std::size_t size_of(const SpecTree& tree) {
  std::size_t size = sizeof(SpecTree) + tree.text.size();
  for (const SpecTree& item : tree.items) size += size_of(item);
  for (const SpecEntry& entry : tree.entries) size += sizeof(SpecEntry) + size_of(entry.value);
  return size;
}

// The number of bytes that may still be copied. Lists put into lists of lists grow exponentially, so every
// copy is paid for in advance.
class Budget {
 public:
  void pay(std::size_t bytes, const Mark& mark) {
    if (bytes > left_) throw SpecError(mark, "the expanded model is larger than 200 MB");
    left_ -= bytes;
  }

 private:
  std::size_t left_ = kMostExpanded;
};

SpecTree substitute_scalar(const SpecTree& scalar, const Scope& scope, Budget& budget) {
  if (scalar.text.find('$') == std::string::npos) return scalar;
  std::string text;
  for (std::size_t at = 0; at < scalar.text.size();) {
    if (scalar.text[at] != '$') {
      text += scalar.text[at++];
      continue;
    }
    std::size_t end = at;
    const SpecTree& value = look_up(parameter_name(scalar.text, at, end, scalar.mark), scalar.mark, scope);
    if (at == 0 && end == scalar.text.size()) {  // the whole value, be it a list
      budget.pay(size_of(value), scalar.mark);
      return value;
    }
    if (value.kind != SpecTree::Kind::scalar) {
      throw SpecError(scalar.mark,
                      in_quotes(scalar.text) + " puts a list or map into text; expected a single value");
    }
    text += value.text;
    at = end;
    if (text.size() > kLongestText)
      throw SpecError(scalar.mark, "text longer than 1000 characters after expansion");
  }
  SpecTree result = scalar;
  result.text = std::move(text);
  return result;
}

SpecTree substitute_within(const SpecTree& tree, const Scope& scope, Budget& budget) {
  budget.pay(sizeof(SpecTree) + tree.text.size(), tree.mark);
  if (tree.kind == SpecTree::Kind::scalar) return substitute_scalar(tree, scope, budget);
  SpecTree result{.kind = tree.kind, .text = "", .items = {}, .entries = {}, .mark = tree.mark};
  result.items.reserve(tree.items.size());
  result.entries.reserve(tree.entries.size());
  for (const SpecTree& item : tree.items) result.items.push_back(substitute_within(item, scope, budget));
  for (const SpecEntry& entry : tree.entries) {
    result.entries.push_back({entry.key, entry.mark, substitute_within(entry.value, scope, budget)});
  }
  return result;
}

struct Block {
  std::vector<std::string> parameters;
  const SpecTree* layers = nullptr;
  std::string path;
};

class Expander {
 public:
  Expander(const SpecTree& blocks, const Parameters& globals) : globals_(globals) {
    if (blocks.kind == SpecTree::Kind::scalar && blocks.text.empty()) return;  // the model has no blocks
    SpecNode(blocks, "blocks").map([&](SpecMap& m) {
      for (const auto& [name, mark, node] : m.all()) read_block(name, node);
    });
  }

  // Expands one list; returns the name of its last layer.
  std::string expand(const SpecNode& list, const Scope& scope, std::string previous, int depth) {
    const std::vector<SpecNode> entries = list.list();
    if (entries.empty()) list.fail("has no layers; expected at least one");
    for (const SpecNode& entry : entries) {
      if (find_entry(entry, "block") != nullptr) {
        previous = expand_uses(entry, scope, previous, depth);
      } else {
        const SpecTree layer = bound(entry, scope);
        previous = add_layer(SpecNode(layer, entry.path()), previous);
      }
    }
    return previous;
  }

  [[nodiscard]] ExpandedLayers take() { return {std::move(layers_), std::move(used_)}; }

 private:
  static const SpecTree* find_entry(const SpecNode& node, std::string_view key) {
    for (const SpecEntry& entry : node.tree().entries) {
      if (entry.key == key) return &entry.value;
    }
    return nullptr;
  }

  // The entry with its parameters replaced.
  SpecTree bound(const SpecNode& entry, const Scope& scope) {
    return substitute_within(entry.tree(), scope, budget_);
  }

  void read_block(const std::string& name, const SpecNode& node) {
    Block block;
    block.path = node.path() + ".layers";
    node.map([&](SpecMap& m) {
      if (const auto parameters = m.find("parameters")) {
        for (const SpecNode& parameter : parameters->list()) {
          block.parameters.push_back(parameter.text());
          if (globals_.contains(block.parameters.back()) || block.parameters.back() == "in" ||
              block.parameters.back() == "name") {
            parameter.fail("hides the model's parameter of that name; expected another name");
          }
        }
      }
      block.layers = &m.at("layers").tree();
    });
    blocks_.emplace(name, std::move(block));
  }

  // Expands one use of a block, `repeat` times.
  std::string expand_uses(const SpecNode& entry, const Scope& scope, std::string previous, int depth) {
    const SpecTree* repeat = find_entry(entry, "repeat");
    if (repeat == nullptr) return expand_use(bound(entry, scope), entry.path(), previous, depth);
    std::string index;
    std::int64_t first = 0;
    std::int64_t last = 0;
    const SpecTree bounds = substitute_within(*repeat, scope, budget_);
    SpecNode(bounds, entry.path() + ".repeat").map([&](SpecMap& m) {
      const SpecNode name = m.at("index");
      index = name.text();
      if (scope.contains(index) || index == "in" || index == "name") {
        name.fail("hides the parameter of that name; expected another name");
      }
      first = m.at("from").count(0, kMostRepeats);
      last = m.at("to").count(0, kMostRepeats);
    });
    Scope inner = scope;
    const bool outermost = repetition_ < 0;
    for (std::int64_t i = first; i <= last; ++i) {
      if (outermost) repetition_ = static_cast<int>(i - first);
      inner.locals[index] =
          SpecTree{.text = std::to_string(i), .items = {}, .entries = {}, .mark = repeat->mark};
      previous = expand_use(bound(entry, inner), entry.path(), previous, depth);
    }
    if (outermost) repetition_ = -1;
    return previous;
  }

  std::string expand_use(const SpecTree& use, const std::string& path, const std::string& previous,
                         int depth) {
    const SpecNode node(use, path);
    if (++uses_ > kMostUses) node.fail("more than 20000 uses of blocks");
    if (depth >= kDeepestBlocks) node.fail("blocks nested more than 16 deep; does a block contain itself?");
    const Block* block = nullptr;
    Scope scope{globals_};
    std::string input = previous;
    node.map([&](SpecMap& m) {
      const SpecNode block_name = m.at("block");
      block = &find_block(block_name);
      used_.insert(block_name.text());
      (void)m.find("repeat");
      scope.locals["name"] = m.at("name").tree();
      if (const auto from = m.find("from")) input = from->text();
      bind(*block, m.find("with"), node, scope);
    });
    scope.locals["in"] = SpecTree{.text = input, .items = {}, .entries = {}, .mark = use.mark};
    return expand(SpecNode(*block->layers, block->path), scope, input, depth + 1);
  }

  const Block& find_block(const SpecNode& name) const {
    const auto found = blocks_.find(name.text());
    if (found != blocks_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [key, unused] : blocks_) known.push_back(key);
    name.fail("unknown block " + in_quotes(name.text()) + did_you_mean(name.text(), known));
  }

  // Puts the arguments of a use into its scope: every parameter of the block, and nothing else.
  static void bind(const Block& block, const std::optional<SpecNode>& with, const SpecNode& use,
                   Scope& scope) {
    if (!with) {
      if (!block.parameters.empty()) use.fail("key 'with' is missing; expected " + joined(block.parameters));
      return;
    }
    with->map([&](SpecMap& m) {
      for (const std::string& parameter : block.parameters) scope.locals[parameter] = m.at(parameter).tree();
    });
  }

  // "a" or [a, b]
  static std::vector<std::string> names_of(const SpecNode& node) {
    if (!node.is_list()) return {node.text()};
    if (node.tree().items.size() > kMostNames) node.fail("names more than 1000 layers");
    std::vector<std::string> names;
    for (const SpecNode& name : node.list()) names.push_back(name.text());
    return names;
  }

  static void check_whole(const LayerSpec& layer, SpecMap& m) {
    if (layer.whole.empty()) return;
    const SpecNode whole = m.at("whole");
    if (!layer.per_step)
      whole.fail("is said of a layer that does not run step by step; expected 'per_step: true'");
    const std::set<std::string> from(layer.from.begin(), layer.from.end());
    for (const std::string& name : layer.whole) {
      if (!from.contains(name)) {
        whole.fail("names " + in_quotes(name) + ", which the layer does not read" +
                   did_you_mean(name, layer.from));
      }
    }
  }

  std::string add_layer(const SpecNode& node, const std::string& previous) {
    if (layers_.size() >= kMostLayers) node.fail("more than 20000 layers");
    LayerSpec layer;
    layer.mark = node.mark();
    node.map([&](SpecMap& m) {
      layer.name = m.at("name").text();
      const SpecNode type_name = m.at("type");
      const LayerType& type = layer_type(type_name);
      layer.type = type.name;
      if (const auto frozen = m.find("frozen")) layer.frozen = frozen->flag();
      if (const auto fp32 = m.find("fp32")) layer.fp32 = fp32->flag();
      if (const auto per_step = m.find("per_step")) layer.per_step = per_step->flag();
      if (const auto whole = m.find("whole")) layer.whole = names_of(*whole);
      if (const auto tied = m.find("tied_to")) layer.tied_to = tied->text();
      if (const auto shard = m.find("shard"))
        layer.shard = static_cast<Sharding>(shard->one_of(kShardingNames));
      layer.repetition = repetition_;
      const auto from = m.find("from");
      layer.from = from ? names_of(*from) : std::vector<std::string>{previous};
      check_whole(layer, m);
      layer.layer = type.make(m);
    });
    layers_.push_back(std::move(layer));
    return layers_.back().name;
  }

  const Parameters& globals_;
  std::map<std::string, Block> blocks_;
  std::vector<LayerSpec> layers_;
  std::set<std::string> used_;  // names of blocks
  std::size_t uses_ = 0;
  int repetition_ = -1;  // as LayerSpec::repetition
  Budget budget_;
};

}  // namespace

SpecTree substitute(const SpecTree& tree, const Parameters& parameters) {
  Budget budget;
  return substitute_within(tree, Scope{parameters}, budget);
}

std::set<std::string> parameters_in(const SpecTree& tree) {
  std::set<std::string> names;
  for (std::size_t at = tree.text.find('$'); at < tree.text.size(); at = tree.text.find('$', at))
    names.insert(parameter_name(tree.text, at, at, tree.mark));
  for (const SpecTree& item : tree.items) names.merge(parameters_in(item));
  for (const SpecEntry& entry : tree.entries) names.merge(parameters_in(entry.value));
  return names;
}

ExpandedLayers expand_layers(const SpecNode& layers, const SpecTree& blocks, const Parameters& parameters,
                             const std::string& input) {
  Expander expander(blocks, parameters);
  (void)expander.expand(layers, Scope{parameters}, input, 0);
  return expander.take();
}

}  // namespace tbdsim
