// The strict reader of YAML. The code that uses a value states its type and range:
//
//   const SpecTree tree = read_spec_file(path);
//   SpecNode(tree).map([&](SpecMap& m) {
//     gpu.sm_count = m.at("sm_count").count(1, 1000);
//     gpu.boost_clock = m.at("boost_clock").quantity<Hertz>();
//   });
//
// At the end of the map every key that was not read is an error with file:line:column and "did you mean".
// Duplicate keys, missing units, octal-looking, nan, infinite and negative numbers, anchors, aliases, tags,
// several documents, text that is not UTF-8, nesting beyond 64 levels and files beyond 1 MiB are errors as
// well.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/spec_parser.h"
#include "hwspecs/base/spec_tree.h"

namespace tbdsim {

class SpecMap;

// A value and the path of keys that leads to it ("math.fp32.quoted_peak"). Refers to a tree that outlives it.
// Every accessor throws SpecError `file:line:column: path: what; what was expected`.
class SpecNode {
 public:
  explicit SpecNode(const SpecTree& tree, std::string path = "") : tree_(&tree), path_(std::move(path)) {}

  [[nodiscard]] const SpecTree& tree() const { return *tree_; }
  [[nodiscard]] const Mark& mark() const { return tree_->mark; }
  [[nodiscard]] const std::string& path() const { return path_; }

  [[nodiscard]] bool is_scalar() const { return tree_->kind == SpecTree::Kind::scalar; }
  [[nodiscard]] bool is_list() const { return tree_->kind == SpecTree::Kind::list; }

  // Runs `read` on the map, then rejects keys that it did not read.
  void map(const std::function<void(SpecMap&)>& read) const;
  [[nodiscard]] std::vector<SpecNode> list() const;

  [[nodiscard]] std::string text() const;  // not empty
  [[nodiscard]] bool flag() const;         // true or false
  [[nodiscard]] std::int64_t count(std::int64_t least = 0,
                                   std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  [[nodiscard]] double number(double least, double most) const;
  // A positive quantity with its unit.
  template <class Q>
  [[nodiscard]] Q quantity() const {
    return Q(positive_si(Q::dimension));
  }
  // The index of the text among `names`.
  [[nodiscard]] std::size_t one_of(std::span<const std::string_view> names) const;
  [[nodiscard]] std::size_t one_of(std::initializer_list<std::string_view> names) const {
    return one_of(std::span(names.begin(), names.size()));
  }

  [[noreturn]] void fail(const std::string& what) const;

 private:
  template <class Expected>
  [[nodiscard]] const std::string& scalar(Expected expected) const;
  [[nodiscard]] double positive_si(const Dimension& dimension) const;

  const SpecTree* tree_;
  std::string path_;
};

// The keys of one map while it is being read.
class SpecMap {
 public:
  explicit SpecMap(const SpecNode& node);

  [[nodiscard]] SpecNode at(std::string_view key);  // SpecError when missing
  [[nodiscard]] std::optional<SpecNode> find(std::string_view key);
  [[nodiscard]] std::vector<std::string> texts(
      std::string_view key);  // of the list there; none where missing

  // The entries of a map whose keys are free (names of parameters, blocks, sources): none of them is
  // rejected.
  struct NamedNode {
    std::string name;
    Mark mark;
    SpecNode node;
  };
  [[nodiscard]] std::vector<NamedNode> all();

  void reject_unknown_keys() const;
  [[nodiscard]] const SpecNode& node() const { return node_; }

 private:
  [[nodiscard]] std::string path_of(std::string_view key) const;

  SpecNode node_;
  std::vector<std::string> asked_;
  bool asked_all_ = false;
};

}  // namespace tbdsim
