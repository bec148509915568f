// Rates and sizes of a GPU from its data sheet, and the fractions of these rates that it is expected to
// sustain.
#pragma once

#include "costmodel/families/kernel_time.h"
#include "hwspecs/base/math_type.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// The GPU's rates and sizes for one math type, or for the type that it is computed in. Throws UsageError when
// the GPU has neither.
[[nodiscard]] Hardware hardware_of(const GpuSpec& gpu, MathType math);

// True if the GPU has tensor cores (compute capability 7.0 and above) for this math type.
[[nodiscard]] bool has_tensor_cores(const GpuSpec& gpu, MathType math);

// A log-normal prior: ln x ~ N(ln mean, sd). sd 0: x is held at the mean.
struct Prior {
  double mean = 1;
  double sd = 0.1;
};

// Standard deviation of ln(clock) between boards of one sort.
inline constexpr double kClockBetweenBoards = 0.08;

// Expected share of the quoted peak in large GEMMs on an unmeasured GPU. A GPU's file may give a measured
// `sustained_share`. Else, from DeepBench and NeuSight tables: 0.92 for GPUs from Pascal on (0.78-0.99
// measured); 1 for GeForce cards, which exceed their quoted boost clock while they are cool (0.99 measured on
// a GTX 1080 Ti); 0.40 for Kepler, whose base clock is 0.64 of the boost clock and whose schedulers feed 128
// of 192 lanes without dual issue. Times power_share() for tensor cores; without them times issued_share()
// and lane_limit().
[[nodiscard]] Prior expected_clock(const GpuSpec& gpu, MathType math);

// Share of the fp32 peak that products reach without tensor cores where the clock is whole: 0.85 from compute
// capability 8.6 on, else 1. SMs of 128 lanes whose four schedulers start one instruction of 32 threads a
// clock each have the peak only while every instruction multiplies; loads of operands and addresses take
// clocks of their own. Volta's and the A100's 64 lanes leave half of the clocks to them, Maxwell and Pascal
// start two instructions at once (CUDA C++ Programming Guide, throughput of arithmetic instructions;
// whitepapers). An H100 SXM held at 1,980 MHz has 0.778 of its peak in products of 4096
// (calibrate/records/h100_sxm/operators.csv, `sustained`), 0.77 in NeuSight's linear layers, where 0.92 were
// expected.
[[nodiscard]] double issued_share(const GpuSpec& gpu);

// Clock over the one that power would not limit, without tensor cores: at most eta * W / (peak * that share
// of it) of boards below 150 W, and of all with SMs of 8.6, 8.9 and 12.x, which are quoted with up to 300
// GFLOP/J. eta in GFLOP/J is 57 (Maxwell, Pascal, Turing: a T4 and a P4), 77 (Volta, Ampere, Hopper) or 126
// (Ada: an L4, which runs at a third of its clock; Blackwell is taken as Ada), W is the board's power and
// peak its fp32 rate. An H100 SXM's fp32 products without a pause take 697 W at 51.4 TFLOP/s, 74 GFLOP/J
// (calibrate/records/h100_sxm/operators.csv); alone they keep their clock, so that Hopper's boards have no
// limit. What expected_clock includes of it.
[[nodiscard]] PowerLimit lane_limit(const GpuSpec& gpu);

// Sustained tensor-core clock relative to the largest board of the same architecture, by the watts per SM and
// GHz (of the clock that this math type is quoted at), because tensor cores under load draw the board's power
// limit:
//
//   W = W0 (0.15 + 0.85 clock^3)
//
// Power grows with the cube of the clock but for a part, which is memory, leakage and what else does not
// follow it. 0.15: large bf16 products on an A100 PCIe 80 GB of 300 W (SimuMax) reach 0.89 of what they do on
// the SXM board of 400 W (aiconfigurator), 237 and 265 TFLOP/s at the 90th percentile. BERT takes 1.12
// to 1.14 times as long on an A100 PCIe of 250 W, three fifths of it products (0.83 here). A T4 of 70 W, by
// this 0.66 of its peak in half precision, has 0.65 in products and 0.66 in convolutions (DeepBench). 1
// without tensor cores.
[[nodiscard]] double power_share(const GpuSpec& gpu, MathType math);

inline constexpr double kCubeRoot =
    1.0 / 3;  // exponent of tensor cores: power grows with the cube of the clock

// The limit of power that the expected clock of an unmeasured GPU includes in this arithmetic: power_share()
// of tensor cores, which falls with the cube root of the share of busy SMs, else lane_limit().
[[nodiscard]] PowerLimit limit_of_unmeasured(const GpuSpec& gpu, MathType math);

// Tensor-core clock that the board's power sustains over that which `measured_watts` (W) sustained, by the
// same rule; 1 where these are 0, not known.
[[nodiscard]] double power_ratio(const GpuSpec& gpu, double measured_watts);

// Share of the tensor-core peak of kernels that were measured on GPUs up to compute capability `measured` (0:
// not known, taken as older): those for architectures before Hopper multiply warp by warp (mma.sync), which
// reaches 0.62 on Hopper and later; 1 else. Source: Luo et al., "Benchmarking and Dissecting the Nvidia
// Hopper GPU Architecture via Microbenchmarking", 2024 (62.9 % on an H800); convolutions of VGG-13 in TF32
// with cuDNN 8 on an H100 agree. 12.x has the instructions of 8.x, and loses nothing.
[[nodiscard]] double instruction_share(const GpuSpec& gpu, double measured);

// Operations per clock and SM with this math type, over the most of its generation's SMs: tensor cores of
// GeForce cards run at half rate with fp32 accumulation, those of 8.6 and 8.9 at half of 8.0's. 1 for math
// types without tensor cores. Source: CUDA C++ Programming Guide and the architectures' whitepapers, fp16
// with sums in fp32: 1024 (7.x), 2048 (8.x and 12.x, whose instructions are those of 8.x), 4096 (9.0), 8192
// (10.x); TF32 half of it, FP8 twice, FP4 four times.
[[nodiscard]] double rate_share(const GpuSpec& gpu, MathType math);

// Loss of convolutions on tensor cores in smaller tiles, a ratio to that of kernels measured on GPUs up to
// compute capability `measured` (1 where that is not known, 0). From 8.0 on operands pass from memory to
// shared memory without registers (NVIDIA A100 whitepaper, asynchronous copy). A tile of half the area takes
// 1 / 0.60 as long as its share with cuDNN 7.6 on V100 and T4, 1 / 0.80 with cuDNN 9 on an H100; cuDNN 8 on
// an A100 is taken to lie between, as MLPerf's SSD and U-Net 3-D ask, whose filters are few: 1 / 0.69.
[[nodiscard]] double tile_loss(const GpuSpec& gpu, double measured);

// Rate of TF32 GEMMs neither of whose operands has rows along k, over the rate of the others: 0.62 on Hopper,
// else 1. wgmma reads operands of 4 bytes from shared memory only with rows along k; one of the two may come
// from registers, in any order. Source: PTX ISA 8.0, wgmma.mma_async: only .f16 and .bf16 can be transposed.
// An H100 SXM with cuBLAS 13 (calibrate/records/h100_sxm): 400 TFLOP/s with the rows of both or one along k,
// 255 with those of none.
[[nodiscard]] double tf32_across_k(const GpuSpec& gpu);

}  // namespace tbdsim
