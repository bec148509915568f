#include "hwspecs/base/spec_writer.h"

#include <yaml-cpp/emitter.h>

namespace tbdsim {
namespace {

// yaml-cpp leaves "--- a" plain, which at a line's start begins a document.
bool needs_quotes(const std::string& text) { return text.starts_with("---") || text.starts_with("..."); }

void emit(YAML::Emitter& out, const SpecTree& tree) {
  switch (tree.kind) {
    case SpecTree::Kind::scalar:
      if (tree.quoted || needs_quotes(tree.text)) out << YAML::DoubleQuoted;
      out << tree.text;
      return;
    case SpecTree::Kind::list:
      out << YAML::BeginSeq;
      for (const SpecTree& item : tree.items) emit(out, item);
      out << YAML::EndSeq;
      return;
    case SpecTree::Kind::map:
      out << YAML::BeginMap;
      for (const SpecEntry& entry : tree.entries) {
        out << YAML::Key;
        if (needs_quotes(entry.key)) out << YAML::DoubleQuoted;
        out << entry.key << YAML::Value;
        emit(out, entry.value);
      }
      out << YAML::EndMap;
      return;
  }
}

}  // namespace

std::string write_spec(const SpecTree& tree) {
  YAML::Emitter out;
  emit(out, tree);
  return std::string(out.c_str()) + "\n";
}

SpecTree spec_scalar(std::string text) {
  SpecTree tree;
  tree.text = std::move(text);
  return tree;
}

SpecTree spec_text(std::string text) {
  SpecTree tree = spec_scalar(std::move(text));
  tree.quoted = true;
  return tree;
}

void add_entry(SpecTree& map, std::string key, SpecTree value) {
  map.kind = SpecTree::Kind::map;
  map.entries.push_back({std::move(key), {}, std::move(value)});
}

}  // namespace tbdsim
