// Values of --precision: the storage type of activations, the arithmetic of convolutions and GEMMs, and
// whether fp32 master weights are cast each iteration. Norms, losses and updates compute in fp32.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hwspecs/base/math_type.h"

namespace tbdsim {

struct Precision {
  std::string_view name;
  MathType math;
  std::int64_t storage_bytes;  // of an activation, a gradient map, a cast weight and its gradient
  bool master_weights;         // variables stay fp32 and are cast for every iteration, gradients cast back
  bool loss_scaling;           // gradients are divided by the loss's scale and checked for overflow
  std::string_view description;
};

inline constexpr std::int64_t kFp32Bytes = 4;

inline constexpr std::array<Precision, 5> kPrecisions = {{
    {"fp32", MathType::fp32, 4, false, false, "fp32 storage and arithmetic"},
    {"tf32", MathType::tf32, 4, false, false, "fp32 storage, tensor-core arithmetic with 10-bit mantissas"},
    {"fp16", MathType::fp16, 2, true, true, "fp16 storage and arithmetic, fp32 variables"},
    {"bf16", MathType::bf16, 2, true, false, "bf16 storage and arithmetic, fp32 variables"},
    {"amp", MathType::fp16, 2, true, true, "automatic mixed precision: as fp16"},
}};

}  // namespace tbdsim
