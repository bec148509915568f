// What if a file said something else: single values of a spec replaced while it is read. The file stays as it
// is; readers check the new value as they check any, with its unit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/spec_tree.h"

namespace tbdsim {

// "gpu.memory_bandwidth=+50%".
struct SpecChange {
  std::string spec;  // "gpu", "framework", "link", ...; empty: of the scenario itself ("batch=64")
  std::vector<std::string> path;  // keys from the root of the file: {"math", "fp32", "clock"}
  std::string value;              // "800 GB/s", or of the file's number "+50%", "-20%", "x2"
  std::string only{};             // file of that spec, by its name, or all links of a kind; empty: every one

  friend bool operator==(const SpecChange&, const SpecChange&) = default;
};
using SpecChanges = std::vector<SpecChange>;

// Throws UsageError where the text is not "name=value" with keys between points.
[[nodiscard]] SpecChange parse_change(const std::string& text);

// "100GB/s" -> "100 GB/s", for command lines; anything else as it is.
[[nodiscard]] std::string with_space(const std::string& value);

[[nodiscard]] std::string key_text(const SpecChange& change);  // "gpu.memory_bandwidth"
[[nodiscard]] std::string to_text(const SpecChange& change);   // "gpu.memory_bandwidth=+50%"

// Changes the file's own number: it must have one.
[[nodiscard]] bool is_relative(const SpecChange& change);

// Those of one spec that mean its file of this name.
[[nodiscard]] SpecChanges changes_of(const SpecChanges& changes, std::string_view spec,
                                     std::string_view name);

// Sets each value in order; keys that are not there are added, for the reader to know or refuse. Items of a
// list go by number, from 0. A count that a factor makes a fraction is rounded when it is read. Throws
// SpecError, which names the change, for a relative one of what is no number or not there, and for a path
// through what is no map.
void apply_changes(SpecTree& tree, const SpecChanges& changes);

// Whether the tree has a value there.
[[nodiscard]] bool has_value(const SpecTree& tree, const SpecChange& change);

}  // namespace tbdsim
