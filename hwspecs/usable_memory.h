// Memory that CUDA reports to programs (cudaDeviceProp::totalGlobalMem), in bytes: less than a card is sold
// with.
#pragma once

#include <string>
#include <string_view>

#include "hwspecs/base/quantity.h"

namespace tbdsim {

// True where ECC keeps its check bits in the memory itself. Stacked memory (HBM) has chips for them.
[[nodiscard]] bool ecc_takes_memory(std::string_view memory_type);

// Usable bytes of a card whose reported memory is not known:
//
//   memory_size * (15/16 with ECC in the memory) * kReportedShare
//
// One sixteenth, 6.25 %, is what ECC takes of GDDR memory (NVIDIA Tesla K40 and K80 board specifications,
// from memory). kReportedShare, what driver and firmware leave, is the median of the cards whose memory is
// known (hwspecs/gpus/*.yaml, `usable_memory`); each of them predicted from the others is off by 0.5 % on
// average and 2.3 % at most, a RTX 5080 (tests/hwspecs/usable_memory_test.cpp).
inline constexpr double kReportedShare = 0.989;
[[nodiscard]] Bytes usable_memory_by_rule(Bytes memory_size, std::string_view memory_type, bool ecc);

// "estimate: 98.9 % of 15/16 of memory_size, ECC on": the rule as a source.
[[nodiscard]] std::string usable_memory_rule_text(std::string_view memory_type, bool ecc);

}  // namespace tbdsim
