#include "hwspecs/usable_memory.h"

#include <fmt/format.h>

namespace tbdsim {

bool ecc_takes_memory(std::string_view memory_type) { return !memory_type.starts_with("HBM"); }

Bytes usable_memory_by_rule(Bytes memory_size, std::string_view memory_type, bool ecc) {
  constexpr double kLeftByEcc = 15.0 / 16;
  const double beside_check_bits = ecc && ecc_takes_memory(memory_type) ? kLeftByEcc : 1;
  return memory_size * (beside_check_bits * kReportedShare);
}

std::string usable_memory_rule_text(std::string_view memory_type, bool ecc) {
  const bool less = ecc && ecc_takes_memory(memory_type);
  return fmt::format("estimate: {:.1f} % of {}memory_size", 100 * kReportedShare,
                     less ? "15/16 (ECC) of " : "");
}

}  // namespace tbdsim
