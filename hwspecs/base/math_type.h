// The arithmetic a kernel uses and a GPU offers. Storage formats are graphs/precision.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tbdsim {

enum class MathType : std::uint8_t { fp32, tf32, fp16, bf16, fp8, fp4 };

inline constexpr std::size_t kMathTypeCount = 6;
inline constexpr std::array<std::string_view, kMathTypeCount> kMathTypeNames = {"fp32", "tf32", "fp16",
                                                                                "bf16", "fp8",  "fp4"};

[[nodiscard]] constexpr std::size_t index_of(MathType type) { return static_cast<std::size_t>(type); }
[[nodiscard]] constexpr std::string_view name_of(MathType type) { return kMathTypeNames[index_of(type)]; }

}  // namespace tbdsim
