// A YAML file as plain data with positions: what spec_reader parses, model_reader edits and spec_writer
// writes.
#pragma once

#include <string>
#include <vector>

#include "hwspecs/base/error.h"

namespace tbdsim {

struct SpecEntry;

struct SpecTree {
  enum class Kind { scalar, list, map };
  Kind kind = Kind::scalar;
  std::string text;                // of a scalar
  bool quoted = false;             // the scalar stood in quotes: text even when it looks like a number
  std::vector<SpecTree> items;     // of a list
  std::vector<SpecEntry> entries;  // of a map, in the file's order, keys unique
  Mark mark;
  // The change (spec_change.h) that set this value: replaced by another one, or the file's number times a
  // factor.
  enum class Change { none, replaced, scaled } change = Change::none;
};

struct SpecEntry {
  std::string key;
  Mark mark;  // of the key
  SpecTree value;
};

}  // namespace tbdsim
