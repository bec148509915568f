// The families of kernels that are fitted, in the order in which tables list them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tbdsim {

inline constexpr std::array<std::string_view, 10> kFamilyNames = {
    "gemm",   "batched_gemm",      "grouped_gemm",      "convolution",    "recurrent", "persistent_recurrent",
    "stream", "flash_attention_2", "flash_attention_3", "cudnn_attention"};
inline constexpr std::size_t kFamilyCount = kFamilyNames.size();

template <class Family>
[[nodiscard]] constexpr std::size_t index_of_family() {
  std::size_t i = 0;
  while (kFamilyNames[i] != Family::name) ++i;
  return i;
}

}  // namespace tbdsim
