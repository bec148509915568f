// Lists as they are typed: "8,16,32".
#pragma once

#include <string>
#include <vector>

namespace tbdsim {

// The parts between commas. A comma within brackets, [a, b] or {a: b}, separates none, nor does one in a part
// that stands in double quotes: "my,model.yaml",resnet50. The quotes are no part of it; "" in them is one of
// its own. Throws UsageError for quotes that do not end.
[[nodiscard]] std::vector<std::string> list_of(const std::string& text);

// The part as list_of() reads it: in quotes where it would be several.
[[nodiscard]] std::string list_part(const std::string& text);

}  // namespace tbdsim
