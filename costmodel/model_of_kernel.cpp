#include "costmodel/model_of_kernel.h"

#include <type_traits>

#include "costmodel/call.h"
#include "costmodel/families/families.h"

namespace tbdsim {
namespace {

template <class Family, class CallOfKernel>
bool is_of(const CallOfKernel& call, MathType math, const Calibration& calibration) {
  if constexpr (std::is_same_v<CallOfKernel, typename Family::Call>) {
    return gives_time<Family>(call, math, calibration);
  } else {
    return false;
  }
}

std::size_t family_of(const Kernel& kernel, double batch, MathType math, const Calibration& calibration) {
  return with_call(kernel, batch, [&](auto call) {
    std::size_t family = kFamilyCount;
    if constexpr (std::is_same_v<decltype(call), AttentionCall>)
      call.kernel = attention_on(*calibration.gpu, call.kernel);
#define TBDSIM_FIND(Family) \
  if (is_of<Family>(call, math, calibration)) family = index_of_family<Family>();
    TBDSIM_FOR_EACH_FAMILY(TBDSIM_FIND)
#undef TBDSIM_FIND
    return family;
  });
}

}  // namespace

AttentionKernel attention_on(const GpuSpec& gpu, AttentionKernel asked) {
  if (asked != AttentionKernel::by_gpu) return asked;
  constexpr double kAmpere = 8, kHopper = 9, kBlackwell = 10;
  const double capability = gpu.compute_capability;
  if (capability < kAmpere) return AttentionKernel::memory_efficient;
  return capability == kHopper || capability == kBlackwell ? AttentionKernel::cudnn : AttentionKernel::flash2;
}

bool runs_persistent_kernels(MathType math, const Calibration& calibration) {
  constexpr int kFewestMultiprocessors = 98;
  constexpr double kAmpere = 8, kSmallAmpere = 8.6;
  const auto& models = calibration.models[index_of_family<PersistentRecurrentFamily>()];
  const GpuSpec& gpu = *calibration.gpu;
  const double capability = gpu.compute_capability;
  return math == MathType::fp16 && models[index_of(math)].block != nullptr &&
         gpu.sm_count >= kFewestMultiprocessors && capability >= kAmpere && capability != kSmallAmpere;
}

const FamilyModel* model_of_kernel(const Kernel& kernel, double batch, MathType math,
                                   const Calibration& calibration) {
  if (kernel.kind == KernelKind::transfer) return nullptr;
  const std::size_t family = family_of(kernel, batch, math, calibration);
  if (family == kFamilyCount) return nullptr;  // memory-efficient attention
  const FamilyModel& model = calibration.models[family][index_of(math)];
  const bool is_attention = std::holds_alternative<AttentionShape>(kernel.shape);
  if (model.block == nullptr || (is_attention && !model.hardware.tensor_cores)) return nullptr;
  const auto* conv = std::get_if<ConvShape>(&kernel.shape);
  if (conv == nullptr) return &model;
  ConvCall call = conv_call(kernel, *conv, batch);
  call.limits = calibration.conv_limits[index_of(math)];
  return &model_that_timed(call, model);
}

}  // namespace tbdsim
