// A file that an import writes: its name, its content, and what the reader should know of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/spec_tree.h"

namespace tbdsim {

struct ImportedFile {
  std::string name;  // without the extension
  std::string text;
  std::vector<std::string> notes;  // sentences
  std::string extension = ".yaml";
};

// Values given on the command line for what the files do not say: "tdp" -> "250 W".
using GivenValues = std::map<std::string, std::string>;

// The entry of a map; null where it has none.
[[nodiscard]] const SpecTree* entry_of(const SpecTree& map, std::string_view key);
// Sets an entry of a map, at its end where it is new.
void set_entry(SpecTree& map, const std::string& key, SpecTree value);

// The name as that of a file: small letters, digits and underscores; `otherwise` where nothing is left.
[[nodiscard]] std::string file_name_of(std::string_view name, std::string_view otherwise);

}  // namespace tbdsim
