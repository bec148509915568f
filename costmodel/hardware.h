// The data sheet as the time formulas need it, and what a card is expected to sustain of it.
#pragma once

#include "costmodel/families/kernel_time.h"
#include "hwspecs/base/math_type.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// Rates for one kind of arithmetic, through `computes_in`. Throws UsageError when the card has neither.
[[nodiscard]] Hardware hardware_of(const GpuSpec& gpu, MathType math);

// Whether the card has tensor cores (from 7.0 on) that multiply in this arithmetic.
[[nodiscard]] bool has_tensor_cores(const GpuSpec& gpu, MathType math);

// Log-normal: ln x ~ N(ln mean, sd). sd 0: held.
struct Prior {
  double mean = 1;
  double sd = 0.1;
};

// The share of the quoted peak that large matrix products of an unmeasured card reach: what its file says was
// measured (of cards below 150 W no more than the rule of power allows), or else a rule. Cards of 150 W and
// more from Pascal on: 0.92 (0.78-0.99 measured), GeForce cards, which exceed the boost clock they are sold
// with where they are cool: 1 (0.99 measured on a GTX 1080 Ti). Power holds the others: min(0.92, eta x W /
// peak) with eta of 57 GFLOP/J (Maxwell, Pascal, Turing), 77 (Volta, Ampere, Hopper) or 126 (Ada; Blackwell
// is taken as Ada), from a T4, a P4 and an L4. Kepler: 0.40, for its base clock is 0.64 of the boost clock,
// and schedulers feed 128 of 192 lanes without pairs of instructions. Source: the study of DeepBench and
// NeuSight tables, "Rule for an unseen GPU".
[[nodiscard]] Prior expected_clock(const GpuSpec& gpu);

// What expected_clock includes of the power of a board below 150 W.
[[nodiscard]] PowerLimit small_board_limit(const GpuSpec& gpu);

// Tensor cores at work for seconds draw what the board allows, and power goes with the cube of the clock: the
// clock of a board with fewer watts for each SM and GHz of this arithmetic than the fullest of its
// architecture, over that one's. An A100 on PCIe (250 W) has 0.86 of the SXM board (400 W); BERT takes 1.12 to 1.14 times as long
// there. 1 for boards below 150 W, whose expected clock knows their power.
[[nodiscard]] double power_share(const GpuSpec& gpu, MathType math);

// Kernels written for earlier architectures multiply warp by warp (mma.sync), which gives 0.62 of the peak of
// Hopper's tensor cores. Source: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture
// via Microbenchmarking", 2024 (62.9 % on an H800); convolutions of VGG-13 in TF32 with cuDNN 8 on an H100
// agree.
[[nodiscard]] double instruction_share(const GpuSpec& gpu);

// What an SM does in a clock with this arithmetic, of what SMs of its generation can: tensor cores of GeForce
// cards are half as quick with sums in fp32, those of 8.6 and 8.9 half of 8.0's. 1 for arithmetic without
// tensor cores. Source: CUDA C++ Programming Guide and the architectures' whitepapers, fp16 with sums in
// fp32: 1024 (7.x), 2048 (8.x and 12.x, whose instructions are those of 8.x), 4096 (9.0), 8192 (10.x); TF32
// half of it, FP8 twice.
[[nodiscard]] double rate_share(const GpuSpec& gpu, MathType math);

// Hopper's products by warp groups (wgmma) take operands of 4 bytes only with rows along k; others are
// multiplied warp by warp: 0.62 in TF32, 1 of other architectures. Source: PTX ISA 8.0, wgmma.mma_async: only
// .f16 and .bf16 can be transposed. BERT in TF32 on an H100 SXM: 28 % too fast without it.
[[nodiscard]] double tf32_across_k(const GpuSpec& gpu);

}  // namespace tbdsim
