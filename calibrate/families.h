// The families of kernels that are fitted: one row each, and which calls are whose.
#pragma once

#include <type_traits>
#include <variant>

#include "costmodel/call.h"
#include "costmodel/conv_time.h"
#include "costmodel/gemm_time.h"

#define TBDSIM_FOR_EACH_FAMILY(X) X(GemmFamily) X(ConvFamily)

namespace tbdsim {

// Matrix products of more than one matrix are BatchedGemmFamily's.
template <class Family>
[[nodiscard]] bool belongs_to(const Call& call) {
  const auto* mine = std::get_if<typename Family::Call>(&call);
  if constexpr (std::is_same_v<typename Family::Call, GemmCall>) {
    return mine != nullptr && (mine->batch > 1) == Family::batched;
  }
  return mine != nullptr;
}

}  // namespace tbdsim
