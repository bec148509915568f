// The families of kernels that are fitted: one row each, and which calls are whose.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <variant>

#include "costmodel/call.h"
#include "costmodel/families/batched_gemm.h"
#include "costmodel/families/convolution.h"
#include "costmodel/families/gemm.h"
#include "costmodel/families/recurrent.h"
#include "costmodel/families/stream.h"

#define TBDSIM_FOR_EACH_FAMILY(X) \
  X(GemmFamily)                   \
  X(BatchedGemmFamily)            \
  X(ConvFamily)                   \
  X(RecurrentFamily)              \
  X(StreamFamily)

namespace tbdsim {

#define TBDSIM_NAME(Family) Family::name,
inline constexpr std::array kFamilyNames = {TBDSIM_FOR_EACH_FAMILY(TBDSIM_NAME)};
#undef TBDSIM_NAME
inline constexpr std::size_t kFamilyCount = kFamilyNames.size();

template <class Family>
[[nodiscard]] constexpr std::size_t index_of_family() {
  std::size_t i = 0;
  while (kFamilyNames[i] != Family::name) ++i;
  return i;
}

// Matrix products of more than one matrix are BatchedGemmFamily's.
template <class Family>
[[nodiscard]] bool belongs_to(const typename Family::Call& call) {
  if constexpr (std::is_same_v<typename Family::Call, GemmCall>) return (call.batch > 1) == Family::batched;
  return true;
}

}  // namespace tbdsim
