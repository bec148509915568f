#include "costmodel/model_of_kernel.h"

#include <type_traits>

#include "costmodel/call.h"
#include "costmodel/families/families.h"

namespace tbdsim {
namespace {

template <class Family, class CallOfKernel>
bool is_of(const CallOfKernel& call) {
  if constexpr (std::is_same_v<CallOfKernel, typename Family::Call>) {
    return belongs_to<Family>(call);
  } else {
    return false;
  }
}

std::size_t family_of(const Kernel& kernel, double batch) {
  return with_call(kernel, batch, [](const auto& call) {
    std::size_t family = kFamilyCount;
#define TBDSIM_FIND(Family) \
  if (is_of<Family>(call)) family = index_of_family<Family>();
    TBDSIM_FOR_EACH_FAMILY(TBDSIM_FIND)
#undef TBDSIM_FIND
    return family;
  });
}

}  // namespace

const FamilyModel* model_of_kernel(const Kernel& kernel, double batch, MathType math,
                                   const Calibration& calibration) {
  if (kernel.kind == KernelKind::transfer || std::holds_alternative<AttentionShape>(kernel.shape))
    return nullptr;
  const FamilyModel& model = calibration.models[family_of(kernel, batch)][index_of(math)];
  return model.block == nullptr ? nullptr : &model;
}

}  // namespace tbdsim
