#include "hwspecs/base/catalog_reference.h"

#include <algorithm>
#include <vector>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

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

namespace {

std::vector<std::string> stems_in(const fs::path& folder) {
  std::vector<std::string> stems;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".yaml") stems.push_back(entry.path().stem().string());
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

}  // namespace

fs::path base_named(const SpecNode& node, Kind kind, const fs::path& file, const fs::path& catalogue) {
  const std::string name = node.text();
  const std::string singular(info_of(kind).singular);
  if (name.find_first_of("/\\") != std::string::npos)
    node.fail(in_quotes(name) + " is a path; expected the name of a " + singular +
              " of the catalogue or in the same folder");
  std::vector<fs::path> folders = {file.has_parent_path() ? file.parent_path() : fs::path(".")};
  if (!catalogue.empty()) folders.push_back(catalogue);
  std::vector<std::string> known;
  for (const fs::path& folder : folders) {
    const fs::path base = folder / (name + ".yaml");
    std::error_code ignored;
    if (fs::exists(base, ignored) && !fs::equivalent(base, file, ignored)) return base;
    const std::vector<std::string> there = stems_in(folder);
    known.insert(known.end(), there.begin(), there.end());
  }
  node.fail("there is no " + singular + " " + in_quotes(name) + " in the catalogue or the same folder" +
            did_you_mean(name, known));
}

}  // namespace tbdsim
