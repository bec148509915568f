#include "hwspecs/base/catalog_reference.h"

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace fs = std::filesystem;

fs::path file_named(const SpecNode& node, Kind kind, const Catalog& catalog) {
  const std::string name = node.text();
  const bool of_file = node.tree().change == SpecTree::Change::none;  // else from the command line
  if (is_path(name) && of_file) return fs::path(*node.mark().file).parent_path() / name;
  try {
    return catalog.find(kind, name);
  } catch (const UsageError& unknown) {
    node.fail(unknown.what());
  }
}

}  // namespace tbdsim
