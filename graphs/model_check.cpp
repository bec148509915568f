#include <set>

#include "graphs/blocks.h"
#include "graphs/model.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

using Names = std::set<std::string>;

// True if the place is in the model's own file, not in one that it is based on.
bool is_own(const Mark& mark, const ModelFile& file) { return mark.file && *mark.file == file.path; }

std::string suggestion(const std::string& name, const Names& used) {
  return did_you_mean(name, std::vector<std::string>(used.begin(), used.end()));
}

const SpecTree* value_of(const SpecTree& map, std::string_view key) {
  for (const SpecEntry& entry : map.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

// Adds the blocks that the tree's layers name, and those that these name in turn. Names with a $parameter
// differ between variants: building each variant finds them.
void add_blocks_named_in(const SpecTree& tree, const SpecTree& blocks, Names& names) {
  for (const SpecTree& item : tree.items) add_blocks_named_in(item, blocks, names);
  for (const SpecEntry& entry : tree.entries) {
    add_blocks_named_in(entry.value, blocks, names);
    if (entry.key != "block") continue;
    const SpecTree* block = value_of(blocks, entry.value.text);
    if (block != nullptr && names.insert(entry.value.text).second) add_blocks_named_in(*block, blocks, names);
  }
}

// Builds all variants; returns the blocks that they use, or would with other numbers of repeats.
Names blocks_of_all_variants(const ModelFile& file) {
  Names used;
  for (const Variant& variant : file.variants) used.merge(build_model(file, variant).blocks);
  for (const Variant& member : file.family) used.merge(build_model(file, member).blocks);
  const Names built = used;
  add_blocks_named_in(file.graphs, file.blocks, used);
  for (const std::string& name : built) {
    if (const SpecTree* block = value_of(file.blocks, name)) add_blocks_named_in(*block, file.blocks, used);
  }
  return used;
}

void require_blocks(const ModelFile& file) {
  const Names used = blocks_of_all_variants(file);
  for (const SpecEntry& entry : file.blocks.entries) {
    if (!is_own(entry.mark, file) || used.contains(entry.key)) continue;
    throw SpecError(entry.mark, "blocks." + entry.key + ": no variant of the model uses this block" +
                                    suggestion(entry.key, used));
  }
}

void require_parameters(const ModelFile& file) {
  Names used = parameters_in(file.graphs);
  used.merge(parameters_in(file.blocks));
  used.merge(parameters_in(file.training));
  const auto require = [&](const Parameters& parameters, const std::string& path) {
    for (const auto& [name, value] : parameters) {
      if (is_own(value.mark, file) && !used.contains(name))
        SpecNode(value, path + name)
            .fail("nothing in the model uses " + in_quotes("$" + name) + suggestion(name, used));
    }
  };
  require(file.parameters, "parameters.");
  require(file.sizes, "sizes.");
}

}  // namespace

void require_whole(const ModelFile& file) {
  require_blocks(file);
  require_parameters(file);
}

}  // namespace tbdsim
