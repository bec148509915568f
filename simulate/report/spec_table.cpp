#include "simulate/report/spec_table.h"

#include <algorithm>
#include <map>

#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/usable_memory.h"

namespace tbdsim {
namespace {

constexpr std::size_t kWidestValue = 60;  // characters, beside key and source

bool is_flat(const SpecTree& tree) {
  const auto scalar = [](const SpecTree& item) { return item.kind == SpecTree::Kind::scalar; };
  if (tree.kind == SpecTree::Kind::list) return std::all_of(tree.items.begin(), tree.items.end(), scalar);
  return tree.kind == SpecTree::Kind::scalar;
}

// "pcie3", "[0, 1]" or "link: pcie3, gpus: [0, 1]".
std::string flat_text(const SpecTree& tree) {
  if (tree.kind == SpecTree::Kind::scalar) return tree.text;
  std::string text;
  for (const SpecTree& item : tree.items) text += (text.empty() ? "" : ", ") + flat_text(item);
  if (tree.kind == SpecTree::Kind::list) return "[" + text + "]";
  for (const SpecEntry& entry : tree.entries)
    text += (text.empty() ? "" : ", ") + entry.key + ": " + flat_text(entry.value);
  return text;
}

// Long lists lose what is beyond their first items on the screen.
Cell value_cell(const SpecTree& tree) {
  const std::string text = flat_text(tree);
  if (tree.kind != SpecTree::Kind::list || text.size() <= kWidestValue) return text_cell(text);
  std::string shown = "[";
  for (const SpecTree& item : tree.items) {
    if (shown.size() + flat_text(item).size() > kWidestValue) break;
    shown += flat_text(item) + ", ";
  }
  return {shown + "... " + std::to_string(tree.items.size()) + " in all]", text};
}

// The map's entries under `sources`: the source of each key.
std::map<std::string, std::string> sources_in(const SpecTree& tree) {
  std::map<std::string, std::string> sources;
  for (const SpecEntry& entry : tree.entries) {
    if (entry.key != "sources") continue;
    for (const SpecEntry& source : entry.value.entries) sources[source.key] = source.value.text;
  }
  return sources;
}

void append_rows(const std::string& path, const SpecTree& tree, const std::string& source, Table& table);

// Each key with its own source; the first with that of the whole map where it has none.
void append_entries(const std::string& prefix, const SpecTree& tree, std::string source, Table& table) {
  const auto sources = sources_in(tree);
  for (const SpecEntry& entry : tree.entries) {
    if (entry.key == "sources") continue;
    const auto own = sources.find(entry.key);
    const std::string& source_of_entry = own == sources.end() ? source : own->second;
    append_rows(prefix + entry.key, entry.value, source_of_entry, table);
    source.clear();
  }
}

// Appends a row for each value that fits on a line.
void append_rows(const std::string& path, const SpecTree& tree, const std::string& source, Table& table) {
  const auto flat_entry = [](const SpecEntry& entry) { return is_flat(entry.value); };
  const bool flat_map =
      tree.kind == SpecTree::Kind::map && std::all_of(tree.entries.begin(), tree.entries.end(), flat_entry);
  const bool short_map = flat_map && flat_text(tree).size() <= kWidestValue;
  if (is_flat(tree) || short_map) {
    table.rows.push_back({text_cell(path), value_cell(tree), text_cell(source)});
    return;
  }
  for (std::size_t i = 0; i < tree.items.size(); ++i)
    append_rows(path + "[" + std::to_string(i) + "]", tree.items[i], i == 0 ? source : "", table);
  append_entries(path + ".", tree, source, table);
}

}  // namespace

std::optional<Kind> kind_of(const Catalog& catalog, const std::string& name) {
  if (catalog.contains(Kind::model, name)) return Kind::model;
  for (const KindInfo& info : kKinds) {
    if (catalog.contains(info.kind, name)) return info.kind;
  }
  for (const KindInfo& info : kKinds) {
    if (catalog.name_of(info.kind, name)) return info.kind;
  }
  return std::nullopt;
}

Table spec_table(const Catalog& catalog, Kind kind, const std::string& name) {
  const SpecTree tree = read_spec_file(catalog.find(kind, name));
  Table table;
  table.name = "keys";
  table.preface = {std::string(info_of(kind).singular) + " " + name, ""};
  table.columns = {{"key", "key"}, {"value", "value"}, {"source", "source"}};
  append_entries("", tree, "", table);
  return table;
}

Table gpu_table(const Catalog& catalog, const GpuSpec& gpu) {
  Table table = spec_table(catalog, Kind::gpu, gpu.name);
  const auto row = [&](std::string_view key) {
    return std::find_if(table.rows.begin(), table.rows.end(),
                        [&](const std::vector<Cell>& cells) { return cells[0].text == key; });
  };
  const auto size = row("memory_size");
  (*size)[1] = text_cell(memory_text(gpu.usable_memory, gpu.memory_size));
  if (row("usable_memory") == table.rows.end()) {
    table.rows.insert(std::next(size), {text_cell("usable_memory"), text_cell(to_text(gpu.usable_memory)),
                                        text_cell(usable_memory_rule_text(gpu.memory_type, gpu.ecc))});
  }
  return table;
}

}  // namespace tbdsim
