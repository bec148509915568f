// The function that lowers an operator, by its name. Tables have names without namespace `aten`, overload and
// the underscore of operators that write to their first argument ("aten.add_.Tensor": "add").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tbdsim {

class OperatorSite;

// A row of the table.
struct OperatorEntry {
  std::string_view name;
  void (*lower)(OperatorSite&) = nullptr;
  std::int64_t flops = 0;  // of an element, where the function takes it from here
};

// The row of an operator as a step file names it; null where there is none.
[[nodiscard]] const OperatorEntry* find_operator(std::string_view recorded);

// The recorded name as rows have it.
[[nodiscard]] std::string_view name_in_table(std::string_view recorded);

// True for an operator that writes to its first argument.
[[nodiscard]] bool is_in_place(std::string_view recorded);

}  // namespace tbdsim
