// Attention in one kernel where no profile has a fitted block (attention.h): PyTorch's memory-efficient
// kernel, arithmetic without tensor cores, profiles of one's own. A thread block holds 128 queries of a head
// and goes over its keys; backward it holds keys, goes over queries and computes the scores again.
//
//   time    = launch + sqrt(compute^2 + memory^2)
//   compute = ceil(blocks / SMs) * 128 * length
//             * (products / (efficiency * rate) + products / (fed * clock) + instructions / (128 * clock))
//   memory  = bytes read and written / (0.8 * bandwidth)
//
//   pass      blocks                      length   products of a score       instructions of a score
//   forward   heads * ceil(queries/128)   keys     2 (features + values)     8
//   backward  heads * ceil(keys/128)      queries  2 (3 features + 2 values) 16
//
// length: rounded up to 64, of a causal mask half of it and half a block; rate: operations a second and SM,
// those of products warp by warp (mma.sync) at most: 0.62 of Hopper's 4,096 a clock, as hardware.h says,
// which FlashAttention 2 does not exceed on Blackwell either; efficiency: 0.9 forward, 0.7 backward, where
// gradients of queries are added up in memory; fed: operations a clock and SM for which operands come from
// shared memory, in time here. The instructions are those of softmax: maximum, difference, exponential, sum,
// scaling, conversion.
//
// The memory-efficient kernel on tensor cores has an efficiency of 1, but its operands do not come in time
// and it executes more instructions; more than 128 features do not fit its registers:
//
//   pass      fed     instructions of a score   time with more than 128 features
//   forward   5,300   45                        1.5 of it
//   backward  1,840   119                       4.6 of it
//
// In fp32 the kernel multiplies in TF32 three times, by parts of the numbers that it splits them into
// (3xTF32: OpMultiplyAddFastF32 of CUTLASS in PyTorch's gemm_kernel_utils.h, from Ampere on, whether TF32 is
// allowed or not). Splitting takes longer than multiplying: 148 operations of a product a clock and SM
// forward, 166 backward, from the fp32 steps of ViT-B on an H100, and of GPT-2 and BERT-large, which drop
// probabilities out (calibrate/records/h100_sxm/step_kernels.csv.gz: 818, 642 and 208 us forward, 1,814,
// 1,316 and 436 backward, within 6 %). Dropping out takes instructions of its own (attention.h).
//
// Source of the six in half precision: PyTorch's kernel on an H100 in bf16, 36 calls
// (calibrate/records/h100_sxm/operators.csv), 4 to 5 % off in the median with 64 to 128 features. An A100
// comes to 33 and 25 % of its peak with 128 features. Dao, "FlashAttention-2", 2023, section 1:
// FlashAttention 1 reached 30 to 50 % of it forward and 25 to 35 % backward, and xFormers' kernel of CUTLASS,
// which PyTorch's memory-efficient one is, is about as fast in its figures 4 to 6. Source of the form and of
// the other efficiencies: sections 3 and 4, on an A100 190 to 230 TFLOP/s forward, 150 to 195 backward, with
// 64 and 128 features.
#pragma once

#include <algorithm>
#include <limits>

#include "costmodel/call.h"
#include "costmodel/families/attention.h"
#include "costmodel/families/conv_work.h"
#include "costmodel/families/thread_blocks.h"

namespace tbdsim {

// Rates and instructions that the time of a score depends on, as above.
struct ScoreOfPass {
  double efficiency, fed, instructions, beyond_registers;
};

[[nodiscard]] constexpr ScoreOfPass score_of_split_numbers(bool forward) {
  constexpr double kBeside = std::numeric_limits<double>::infinity();  // products beside the splitting
  return {kBeside, forward ? 148.0 : 166.0, 0, 1};
}

[[nodiscard]] constexpr ScoreOfPass score_of_pass(bool cutlass, bool forward) {
  constexpr double kInTime = std::numeric_limits<double>::infinity();
  if (cutlass) return forward ? ScoreOfPass{1, 5'300, 45, 1.5} : ScoreOfPass{1, 1'840, 119, 4.6};
  return forward ? ScoreOfPass{0.9, kInTime, 8, 1} : ScoreOfPass{0.7, kInTime, 16, 1};
}

[[nodiscard]] inline TimeParts<double> unfitted_attention_time(const AttentionCall& c,
                                                               const Hardware& hardware,
                                                               double sustained_clock) {
  constexpr double kBlock = 128, kStep = 64;  // queries of a block, keys that it reads at a time
  constexpr double kBandwidth = 0.8;
  constexpr double kInRegisters = 128;  // features
  constexpr double kLaunch = 5e-6;      // s
  const bool forward = c.phase == Phase::forward;
  const double held = forward ? c.queries : c.keys;
  const double steps = kStep * ceil_nonneg((forward ? c.keys : c.queries) / kStep);
  const double all = c.causal ? 0.5 * (steps + std::min(kBlock, steps)) : steps;
  const double length = c.window > 0 ? std::min(all, c.window + kBlock) : all;
  const double waves = ceil_nonneg(c.heads * ceil_nonneg(held / kBlock) / hardware.sm_count);
  const double rate = sustained_clock * warp_product_rate(hardware);
  const double clock = sustained_clock * hardware.clock;
  constexpr double kAmpere = 80, kFp32 = 4;
  const bool memory_efficient = c.kernel == AttentionKernel::memory_efficient;
  const bool splits_numbers =
      memory_efficient && c.element_bytes == kFp32 && hardware.compute_capability >= kAmpere;
  const ScoreOfPass pass = splits_numbers ? score_of_split_numbers(forward)
                                          : score_of_pass(memory_efficient && hardware.tensor_cores, forward);
  const double products = forward ? 2 * (c.features + c.values) : 2 * (3 * c.features + 2 * c.values);
  const double instructions = pass.instructions + (c.drops ? dropout_instructions(c.kernel, c.phase) : 0);
  const double score = (products / (pass.efficiency * rate) + products / (pass.fed * clock) +
                        instructions / (kIssuedPerClock * clock)) *
                       (std::max(c.features, c.values) > kInRegisters ? pass.beyond_registers : 1);
  const double busy = c.heads * ceil_nonneg(held / kBlock) / (waves * hardware.sm_count);
  const double relief = hardware.power.clock_share < 1 ? power_relief(hardware.power, busy) : 1;
  const double compute = waves * kBlock * length * score * relief;
  const double memory = c.bytes / (kBandwidth * hardware.bandwidth);
  return {compute, memory, kLaunch, kLaunch + smooth_max(compute, memory)};
}

}  // namespace tbdsim
