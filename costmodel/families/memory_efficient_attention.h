// Attention in one kernel where no profile has a fitted block (attention.h): PyTorch's memory-efficient
// kernel, arithmetic without tensor cores, profiles of one's own. A thread block holds 128 queries of a head
// and goes over its keys; backward it holds keys, goes over queries and computes the scores again.
//
//   time    = launch + sqrt(compute^2 + memory^2)
//   compute = ceil(blocks / SMs) * 128 * length * (products / (efficiency * rate) + instructions / (128 * clock))
//   memory  = bytes read and written / (0.8 * bandwidth)
//
//   pass      blocks                      length   products of a score       instructions of a score
//   forward   heads * ceil(queries/128)   keys     2 (features + values)     8
//   backward  heads * ceil(keys/128)      queries  2 (3 features + 2 values) 16
//
// length: rounded up to 64, of a causal mask half of it and half a block; rate: operations a second and SM,
// those of products warp by warp (mma.sync) at most: 0.62 of Hopper's 4,096 a clock, as hardware.h says,
// which FlashAttention 2 does not exceed on Blackwell either; efficiency: 0.9 forward, 0.7 backward, where
// gradients of queries are added up in memory; of the memory-efficient kernel on tensor cores 0.5 and 0.34 of
// an A100's, and as much nearer to others' as operands come in time (operands_in_time).
// The instructions are those of softmax: maximum, difference, exponential, sum, scaling, conversion.
//
// Source of the form and of what it reaches on an A100: Dao, "FlashAttention-2", 2023, sections 3 and 4: 190
// to 230 TFLOP/s forward, 150 to 195 backward, with 64 and 128 features. Its section 1: FlashAttention 1
// reached 30 to 50 % of an A100's peak forward and 25 to 35 % backward; xFormers' kernel of CUTLASS, which
// PyTorch's memory-efficient one is, is as fast as that in its figures 4 to 6. With 0.5 and 0.34 it reaches
// 40 to 44 % and 30 to 32 %.
#pragma once

#include <algorithm>

#include "costmodel/call.h"
#include "costmodel/families/attention.h"
#include "costmodel/families/conv_work.h"
#include "costmodel/families/thread_blocks.h"

namespace tbdsim {

[[nodiscard]] inline TimeParts<double> unfitted_attention_time(const AttentionCall& c,
                                                               const Hardware& hardware,
                                                               double sustained_clock) {
  constexpr double kBlock = 128, kStep = 64;  // queries of a block, keys that it reads at a time
  constexpr double kBandwidth = 0.8;
  constexpr double kLaunch = 5e-6;  // s
  const bool forward = c.phase == Phase::forward;
  const double held = forward ? c.queries : c.keys;
  const double steps = kStep * ceil_nonneg((forward ? c.keys : c.queries) / kStep);
  const double all = c.causal ? 0.5 * (steps + std::min(kBlock, steps)) : steps;
  const double length = c.window > 0 ? std::min(all, c.window + kBlock) : all;
  const double waves = ceil_nonneg(c.heads * ceil_nonneg(held / kBlock) / hardware.sm_count);
  const double rate = sustained_clock * warp_product_rate(hardware);
  const bool cutlass = c.kernel == AttentionKernel::memory_efficient && hardware.tensor_cores;
  const double of_an_a100 = forward ? 0.5 : 0.34;
  const double efficiency =
      cutlass ? std::min(1.0, of_an_a100 * operands_in_time(warp_product_rate(hardware), hardware))
              : (forward ? 0.9 : 0.7);
  const double products = forward ? 2 * (c.features + c.values) : 2 * (3 * c.features + 2 * c.values);
  const double score = products / (efficiency * rate) +
                       (forward ? 8 : 16) / (kIssuedPerClock * hardware.clock * sustained_clock);
  const double busy = c.heads * ceil_nonneg(held / kBlock) / (waves * hardware.sm_count);
  const double relief = hardware.power.clock_share < 1 ? power_relief(hardware.power, busy) : 1;
  const double compute = waves * kBlock * length * score * relief;
  const double memory = c.bytes / (kBandwidth * hardware.bandwidth);
  return {compute, memory, kLaunch, kLaunch + smooth_max(compute, memory)};
}

}  // namespace tbdsim
