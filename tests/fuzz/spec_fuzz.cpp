// Any bytes either fail as a SpecError or parse to a tree that survives being written and read again, and
// that is the one yaml-cpp makes of them.
#include "hwspecs/base/number.h"
#include "hwspecs/base/plain_yaml.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/spec_writer.h"
#include "tests/fuzz/memory_file.h"

namespace {
using tbdsim::SpecTree;

// Quotes mean something only around what could be a number or a flag; the writer may add them elsewhere.
bool quotes_matter(const std::string& text) {
  return tbdsim::parse_number(text).has_value() || text == "true" || text == "false";
}

// Equal but for positions.
bool same(const SpecTree& a, const SpecTree& b) {
  if (a.kind != b.kind || a.text != b.text || (a.quoted != b.quoted && quotes_matter(a.text))) return false;
  if (a.items.size() != b.items.size() || a.entries.size() != b.entries.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!same(a.items[i], b.items[i])) return false;
  }
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    if (a.entries[i].key != b.entries[i].key || !same(a.entries[i].value, b.entries[i].value)) return false;
  }
  return true;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string yaml(reinterpret_cast<const char*>(data), size);
  SpecTree tree;
  try {
    tree = tbdsim::parse_spec(yaml, "fuzz.yaml");
  } catch (const tbdsim::SpecError&) {
    return 0;
  }
  const auto file = std::make_shared<const std::string>("fuzz.yaml");
  tbdsim::fuzz::require(same(tree, tbdsim::parse_full_yaml(yaml, file)));
  tbdsim::fuzz::require(same(tree, tbdsim::parse_spec(tbdsim::write_spec(tree), "written.yaml")));
  return 0;
}
