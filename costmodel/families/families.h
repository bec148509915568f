// All families of kernels that are fitted.
#pragma once

#include <type_traits>

#include "costmodel/call.h"
#include "costmodel/families/attention.h"
#include "costmodel/families/batched_gemm.h"
#include "costmodel/families/convolution.h"
#include "costmodel/families/family_names.h"
#include "costmodel/families/gemm.h"
#include "costmodel/families/grouped_gemm.h"
#include "costmodel/families/persistent_recurrent.h"
#include "costmodel/families/recurrent.h"
#include "costmodel/families/stream.h"

// Explicit instantiations need the names; code that runs uses for_each_family.
#define TBDSIM_FOR_EACH_FAMILY(X) \
  X(GemmFamily)                   \
  X(BatchedGemmFamily)            \
  X(GroupedGemmFamily)            \
  X(ConvFamily)                   \
  X(RecurrentFamily)              \
  X(PersistentRecurrentFamily)    \
  X(StreamFamily)                 \
  X(FlashAttention2Family)        \
  X(FlashAttention3Family)        \
  X(CudnnAttentionFamily)

namespace tbdsim {

template <class Family>
struct FamilyTag {
  using Type = Family;
};

// Calls visit(FamilyTag<Family>{}) for each family in the order of kFamilyNames, until one returns true;
// returns whether one did.
template <class Visit>
constexpr bool for_each_family(Visit visit) {
  const auto fold = [&]<class... Family>(FamilyTag<Family>... tags) { return (visit(tags) || ...); };
  return fold(FamilyTag<GemmFamily>{}, FamilyTag<BatchedGemmFamily>{}, FamilyTag<GroupedGemmFamily>{},
              FamilyTag<ConvFamily>{}, FamilyTag<RecurrentFamily>{}, FamilyTag<PersistentRecurrentFamily>{},
              FamilyTag<StreamFamily>{}, FamilyTag<FlashAttention2Family>{},
              FamilyTag<FlashAttention3Family>{}, FamilyTag<CudnnAttentionFamily>{});
}

// GEMMs of more than one matrix are BatchedGemmFamily's, those of experts GroupedGemmFamily's; recurrent
// layers in one kernel PersistentRecurrentFamily's; an attention is its library's.
template <class Family>
[[nodiscard]] bool belongs_to(const typename Family::Call& call) {
  if constexpr (std::is_same_v<Family, GroupedGemmFamily>) {
    return call.grouped;
  } else if constexpr (std::is_same_v<typename Family::Call, GemmCall>) {
    return !call.grouped && (call.batch > 1) == Family::batched;
  } else if constexpr (std::is_same_v<typename Family::Call, RecurrentCall>) {
    return fits_persistent_kernel(call) == Family::persistent;
  } else if constexpr (std::is_same_v<typename Family::Call, AttentionCall>) {
    return call.kernel == Family::kernel;
  } else {
    return true;
  }
}

}  // namespace tbdsim
