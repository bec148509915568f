// Changes of single values of a spec while it is read: "gpu.memory_bandwidth=+50%". The file is not changed;
// readers check the new value, with its unit, like any other.
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

// True for a change relative to the file's number, which must be there.
[[nodiscard]] bool is_relative(const SpecChange& change);

// The changes of one spec that apply to its file of this name.
[[nodiscard]] SpecChanges changes_of(const SpecChanges& changes, std::string_view spec,
                                     std::string_view name);

// Applies the changes in order. Missing keys are added, and the reader accepts or rejects them. Items of a
// list are numbered from 0. A count that a factor makes fractional is rounded when it is read. Throws
// SpecError, which names the change, for a relative change of something that is missing or no number, and for
// a path through something that is no map.
void apply_changes(SpecTree& tree, const SpecChanges& changes);

// True if the tree has a value at the change's path.
[[nodiscard]] bool has_value(const SpecTree& tree, const SpecChange& change);

}  // namespace tbdsim
