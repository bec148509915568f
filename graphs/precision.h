// Values of --precision: the storage type of activations, the arithmetic of convolutions and GEMMs, and
// whether fp32 master weights are cast each iteration. Norms, losses and updates compute in fp32.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "hwspecs/base/math_type.h"

namespace tbdsim {

// How operands of products with weights are scaled to the range of fp8 or fp4.
//   none     by the kernels that write them, with scales of earlier iterations, at no cost (delayed scaling,
//            fused: NVIDIA's submissions of BERT to MLPerf)
//   tensors  one scale for each tensor (torchao Float8Linear, dynamic tensorwise)
//   rows     one for each row of an operand (torchao, rowwise)
//   blocks   one for each 32 numbers of fp8 or 16 of fp4, which tensor cores apply (OCP MX, NVFP4; Transformer
//            Engine)
enum class Scaling { none, tensors, rows, blocks };

struct Precision {
  std::string_view name;
  MathType math;
  std::int64_t storage_bytes;  // of an activation, a gradient map, a cast weight and its gradient
  bool master_weights;         // variables stay fp32 and are cast for every iteration, gradients cast back
  bool loss_scaling;           // gradients are divided by the loss's scale and checked for overflow
  std::string_view description;
  std::int64_t weight_bytes = 4;    // of a variable
  std::int64_t gradient_bytes = 4;  // of a variable's gradient, as it is kept for the update
  std::int64_t state_bytes = 4;     // of each word of optimizer state
  bool fp32_copy = false;           // the optimizer keeps an fp32 copy of every variable and updates that
  std::optional<MathType> linear_math{};  // of products with weights; none: `math`
  Scaling scaling = Scaling::none;        // of their operands
  std::optional<MathType> cudnn_math{};   // of convolutions and recurrent layers; none: `math`

  [[nodiscard]] constexpr MathType weight_product_math() const { return linear_math.value_or(math); }
  [[nodiscard]] constexpr MathType convolution_math() const { return cudnn_math.value_or(math); }
  // Bytes of a weight's gradient as the product writes it: cast afterwards where variables have casts.
  [[nodiscard]] constexpr std::int64_t product_gradient_bytes() const {
    return master_weights ? storage_bytes : gradient_bytes;
  }
};

inline constexpr std::int64_t kFp32Bytes = 4;

// The first six have fp32 variables, gradients and optimizer state. bf16_master is Megatron-LM's way
// (gradients are added up in fp32, arXiv 2104.04473: 18 B for each parameter with Adam), fp16_master that of
// apex's FP16_Optimizer and the programs before amp (Micikevicius et al., arXiv 1710.03740; 16 B). The last
// five are bf16_master with products in fp8 (Micikevicius et al., arXiv 2209.05433; Rouhani et al., arXiv
// 2310.10537) or fp4 (NVIDIA, arXiv 2509.25149).
inline constexpr std::size_t kFp32VariablePrecisions = 6;
inline constexpr std::array<Precision, 14> kPrecisions = {{
    {"fp32", MathType::fp32, 4, false, false, "fp32 storage and arithmetic"},
    {"tf32", MathType::tf32, 4, false, false, "fp32 storage, tensor-core arithmetic with 10-bit mantissas"},
    {.name = "tf32_convolutions",
     .math = MathType::fp32,
     .storage_bytes = kFp32Bytes,
     .master_weights = false,
     .loss_scaling = false,
     .description = "convolutions and recurrent layers as tf32, matrix products as fp32",
     .cudnn_math = MathType::tf32},
    {"fp16", MathType::fp16, 2, true, true, "fp16 storage and arithmetic, fp32 variables"},
    {"bf16", MathType::bf16, 2, true, false, "bf16 storage and arithmetic, fp32 variables"},
    {"amp", MathType::fp16, 2, true, true, "automatic mixed precision: as fp16"},
    {"bf16_pure", MathType::bf16, 2, false, false, "bf16 everywhere: variables, gradients, optimizer state",
     2, 2, 2},
    {"bf16_master", MathType::bf16, 2, false, false,
     "bf16 variables, fp32 gradients and an fp32 copy of variables", 2, 4, 4, true},
    {"fp16_master", MathType::fp16, 2, false, true,
     "fp16 variables and gradients, and an fp32 copy of variables", 2, 2, 4, true},
    {"fp8", MathType::bf16, 2, false, false,
     "as bf16_master, products with weights in fp8, cast by the kernels before them with scales of earlier "
     "iterations",
     2, 4, 4, true, MathType::fp8},
    {"fp8_tensorwise", MathType::bf16, 2, false, false,
     "as bf16_master, products with weights in fp8, one scale for each tensor, of its own numbers", 2, 4, 4,
     true, MathType::fp8, Scaling::tensors},
    {"fp8_rowwise", MathType::bf16, 2, false, false, "the same, one scale for each row", 2, 4, 4, true,
     MathType::fp8, Scaling::rows},
    {"mxfp8", MathType::bf16, 2, false, false, "the same, one scale for each 32 numbers", 2, 4, 4, true,
     MathType::fp8, Scaling::blocks},
    {"nvfp4", MathType::bf16, 2, false, false,
     "as bf16_master, products with weights in fp4, one scale for each 16 numbers", 2, 4, 4, true,
     MathType::fp4, Scaling::blocks},
}};

}  // namespace tbdsim
