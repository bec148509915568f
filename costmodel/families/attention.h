// Attention in one kernel that keeps no scores, forward and backward. A thread block holds 128 queries of a
// head and goes over its keys; backward it holds keys, goes over queries and computes the scores again.
//
//   time    = launch + sqrt(compute^2 + memory^2)
//   compute = rounds * 128 * score
//   score   = sqrt((products / (share * rate))^2 + (softmax * exponentials / (units * clock) + dropout)^2)
//   rounds  = ceil(n / SMs) * (longest + prologue), or with a causal mask what longest-first scheduling leaves:
//             ((n / SMs * (length + prologue))^4 + (longest + prologue)^4)^(1/4), the less of both
//   memory  = bytes / (bandwidth * sustained bandwidth)
//
//   pass      n                             length   products of a score       exponentials
//   forward   heads * ceil(queries / 128)   keys     2 (features + values)     1
//   backward  heads * ceil(keys / 128)      queries  2 (3 features + 2 values) 2
//
// length, longest: keys that a block goes over in the mean and at most, rounded up to 64; of a causal mask
// half of them and half a block, of a window no more than it and a block. rate: operations a second and SM;
// units: exponentials a clock and SM, 16 up to compute capability 10.0 and 32 from 10.3 (CUDA C++ Programming
// Guide, throughput of special functions; NVIDIA Blackwell Ultra: twice the exponentials). Products and
// exponentials overlap in part. share, prologue (keys), launch (s) of each pass, softmax and bandwidth are
// fitted; backward the share is that of 128 features times (128 / features)^wide, and gradients that are
// added up in a fixed order take `ordered` times as long.
//
// dropout: the random numbers of probabilities that are dropped out (dropout_instructions); 0 in
// FlashAttention, of which no dropout was timed.
//
// Why exponentials: cuDNN 9 on a GB200, bf16 and fp8 with 64 to 256 features forward, fits with one share
// (0.94) and softmax = 1.02, 4 % median error: half the operations of an fp8 product do not make it twice as
// fast. FlashAttention 2 multiplies warp by warp (mma.sync): its rate is no more than 0.62 of Hopper's 4,096
// operations a clock, on later GPUs too; slower tensor cores come nearer to their rate (operands_in_time).
//
// Where power limits the clock of full load (kernel_time.h, PowerLimit), a score takes power_relief() of
// the time, by the share of it in which the tensor cores multiply: an A100 PCIe runs attention at the clock
// of an SXM board, though not its matrix products.
//
// Sources of the form: Dao, "FlashAttention-2", 2023, sections 3 and 4; Shah et al., "FlashAttention-3",
// 2024, section 3 (exponentials beside products).
#pragma once

#include <algorithm>
#include <cstddef>

#include "costmodel/call.h"
#include "costmodel/families/conv_work.h"
#include "costmodel/families/thread_blocks.h"
#include "costmodel/residuals/log2_of_size.h"

namespace tbdsim {

// Keys that a block skips none within; 0: no limit. cuDNN's backward pass in fp8 takes as long with a window
// of 128 as without (cuDNN 9.19 and 9.22 on a GB200).
[[nodiscard]] inline double window_of(const AttentionCall& c) {
  return c.phase != Phase::forward && c.element_bytes == 1 ? 0 : c.window;
}

// Scores that are needed: of a causal mask half, of a window its keys.
[[nodiscard]] inline double attention_scores(const AttentionCall& c) {
  const double all = c.heads * c.queries * c.keys * (c.causal ? 0.5 : 1);
  return c.window > 0 ? std::min(all, c.heads * c.queries * c.window) : all;
}

// Multiplications and additions of the products: two forward, five backward.
[[nodiscard]] inline double attention_flops(const AttentionCall& c) {
  const bool forward = c.phase == Phase::forward;
  return 2 * attention_scores(c) * (forward ? c.features + c.values : 3 * c.features + 2 * c.values);
}

// Operations a second and SM of products warp by warp.
[[nodiscard]] inline double warp_product_rate(const Hardware& hardware) {
  constexpr double kMostPerClock = 0.62 * 4'096;  // hardware.h, instruction_share
  const double rate = hardware.peak / hardware.sm_count;
  return hardware.tensor_cores ? std::min(rate, kMostPerClock * hardware.clock) : rate;
}

// How much nearer to `rate` (operations a second and SM) products warp by warp come than on an A100. They
// wait for keys and values from shared memory, which sends 128 B a clock and SM on every GPU from Volta on:
// each number of two bytes meets the 32 queries of a warp, two operations each, 4,096 operations a clock. An
// RTX 4090, whose tensor cores do 512, reaches its peak with FlashAttention 2 (apache/tvm,
// tl_doc/flash_perf.md: 169 TFLOP/s of 165 at the boost clock).
[[nodiscard]] inline double operands_in_time(double rate, const Hardware& hardware) {
  constexpr double kSent = 4'096, kA100 = 2'048;
  return (1 + kA100 / kSent) / (1 + rate / hardware.clock / kSent);
}

// Exponentials a clock and SM.
[[nodiscard]] inline double exponentials_per_clock(const Hardware& hardware) {
  constexpr double kBlackwellUltra = 103;
  const bool twice = hardware.compute_capability >= kBlackwellUltra && hardware.compute_capability < 110;
  return twice ? 32 : 16;
}

// Instructions of a thread that a score takes longer where probabilities are dropped out: random numbers,
// from steps on an H100 (calibrate/records/h100_sxm, step_kernels). cuDNN 9: GPT-2 (1,024 tokens, causal) and
// BERT-large (384) in half precision, 23 and 20 forward, 11 and 5 backward. PyTorch's memory-efficient
// kernel: the same networks in fp32 and TF32 beside ViT-B, which drops nothing, within 6 %.
[[nodiscard]] constexpr double dropout_instructions(AttentionKernel kernel, Phase phase) {
  const bool forward = phase == Phase::forward;
  if (kernel == AttentionKernel::cudnn) return forward ? 21 : 8;
  return kernel == AttentionKernel::memory_efficient ? (forward ? 93 : 164) : 0;
}

struct AttentionParameter {
  enum : std::size_t {
    kShare,
    kShareBackward,
    kWide,
    kSoftmax,
    kPrologue,
    kPrologueBackward,
    kLaunch,
    kLaunchBackward,
    kBandwidth,
    kOrdered
  };
};
inline constexpr auto kAttentionParameters = std::to_array<Parameter>({
    {"share", 0.8, 0.1, 1, "", "share of the sustained rate that products reach, forward", 0.4,
     "no product is faster than the tensor cores"},
    {"share_backward", 0.6, 0.05, 1, "", "the same backward, with 128 features", 0.4,
     "no product is faster than the tensor cores"},
    {"wide", 0.3, 0.01, 1, "", "power of 128 over the features that the share backward goes with", 0.5,
     "more features are never faster"},
    {"softmax", 1, 0.2, 5, "", "time of the softmax over that of its exponentials", 0.3},
    {"prologue", 150, 1, 3000, "keys", "start and end of a thread block, forward", 1},
    {"prologue_backward", 150, 1, 3000, "keys", "the same backward", 1},
    {"launch", 6e-6, 5e-7, 2e-4, "s", "each call forward", 0.5},
    {"launch_backward", 1.5e-5, 5e-7, 2e-4, "s", "each call backward: three kernels", 0.5},
    {"bandwidth", 0.75, 0.05, 1.2, "", "share of the memory bandwidth", 0.4},
    {"ordered", 1.2, 1, 3, "", "time of gradients added up in a fixed order over that in any", 0.2,
     "an order is never faster than none"},
});

// One library's kernels.
template <AttentionKernel library>
struct AttentionFamily {
  using Call = AttentionCall;
  using Sizes = Call;
  static constexpr AttentionKernel kernel = library;
  static constexpr std::string_view name = library == AttentionKernel::flash2   ? "flash_attention_2"
                                           : library == AttentionKernel::flash3 ? "flash_attention_3"
                                                                                : "cudnn_attention";
  static constexpr auto parameters = kAttentionParameters;

  template <class Visit>
  static void for_each_choice(const Call&, const Hardware&, Visit visit) {
    visit(Choice{.algorithm = Algorithm::attention});
  }
  template <class T>
  static TimeParts<T> time(const Call& c, const Choice&, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p);
  static double workspace_bytes(const Call&, const Choice&) { return 0; }
  static double flops(const Call& c) { return attention_flops(c); }
  static double executed(const Sizes& c, const Choice&) { return flops(c); }
  static double bytes(const Call& c) { return c.bytes; }
  static double operand_bytes(const Call& c) { return c.bytes; }
  static std::uint64_t group(const Call& c) {
    const auto flag = [](bool set, unsigned bit) { return static_cast<std::uint64_t>(set) << bit; };
    return flag(c.phase == Phase::forward, 0) + flag(c.causal, 1) + flag(c.window > 0, 2) +
           flag(c.deterministic, 3);
  }
  static Features features(const Call& c) {
    return {group(c),
            5,
            {log2_of_size(c.heads), log2_of_size(c.queries), log2_of_size(c.keys), log2_of_size(c.features),
             log2_of_size(c.queries_per_key)}};
  }
};

using FlashAttention2Family = AttentionFamily<AttentionKernel::flash2>;
using FlashAttention3Family = AttentionFamily<AttentionKernel::flash3>;
using CudnnAttentionFamily = AttentionFamily<AttentionKernel::cudnn>;

template <class T>
struct AttentionRounds {
  T keys;  // (backward: queries) that the SM with the most work goes over, start and end of its blocks
           // included
  T busy;  // mean share of that time in which an SM has a block
};

template <class T>
[[nodiscard]] AttentionRounds<T> attention_rounds(const AttentionCall& c, double sm_count,
                                                  const T& prologue) {
  using std::pow;
  constexpr double kBlock = 128, kStep = 64;
  const bool forward = c.phase == Phase::forward;
  const double blocks = c.heads * ceil_nonneg((forward ? c.queries : c.keys) / kBlock);
  const double steps = kStep * ceil_nonneg((forward ? c.keys : c.queries) / kStep);
  const double window = window_of(c);
  const double widest = window > 0 ? std::min(steps, window + kBlock) : steps;
  const double mean = std::min(widest, c.causal ? 0.5 * (steps + std::min(kBlock, steps)) : steps);
  const T longest = widest + prologue;
  const T shared = blocks / sm_count * (mean + prologue);
  const T whole_waves = ceil_nonneg(blocks / sm_count) * longest;
  if (!c.causal) return {whole_waves, shared / whole_waves};
  const T ratio = longest / shared;
  const T scheduled = shared * pow(1.0 + pow(ratio, 4.0), 0.25);
  const T rounds = std::min<T>(whole_waves, scheduled);
  return {rounds, shared / rounds};
}

template <AttentionKernel library>
template <class T>
TimeParts<T> AttentionFamily<library>::time(const Call& c, const Choice&, const Hardware& hardware,
                                            const AchievedFraction<T>& sustained, std::span<const T> p) {
  using P = AttentionParameter;
  using std::pow;
  constexpr double kBlock = 128, kFeatures = 128;
  const bool forward = c.phase == Phase::forward;
  const double rate =
      library == AttentionKernel::flash2 ? warp_product_rate(hardware) : hardware.peak / hardware.sm_count;
  T share = p[P::kShare];
  if (!forward)
    share = std::min<T>(T(1.0), p[P::kShareBackward] * pow(T(kFeatures / c.features), p[P::kWide]));
  if constexpr (library == AttentionKernel::flash2)
    share = std::min<T>(T(1.0),
                        share * std::max(1.0, operands_in_time(rate, hardware)));  // fitted to faster ones
  const double operations = forward ? 2 * (c.features + c.values) : 2 * (3 * c.features + 2 * c.values);
  const T products = operations / (rate * sustained.clock * share);
  const double exponentials = (forward ? 1 : 2) / (exponentials_per_clock(hardware) * hardware.clock);
  T softmax = p[P::kSoftmax] * exponentials / sustained.clock;
  if (c.drops)
    softmax = softmax +
              dropout_instructions(library, c.phase) / (kIssuedPerClock * hardware.clock) / sustained.clock;
  T score = smooth_max(products, softmax);
  const AttentionRounds<T> rounds =
      attention_rounds(c, hardware.sm_count, p[forward ? P::kPrologue : P::kPrologueBackward]);
  // Tensor cores that wait for the softmax, or for work, draw less power than those of a GEMM.
  if (hardware.power.clock_share < 1)
    score = score * power_relief(hardware.power, T(rounds.busy * share * products / score));
  if (!forward && c.deterministic) score = score * p[P::kOrdered];
  const T compute = rounds.keys * kBlock * score;
  const T memory = c.bytes / (hardware.bandwidth * sustained.bandwidth * p[P::kBandwidth]);
  const T launch = p[forward ? P::kLaunch : P::kLaunchBackward];
  return {compute, memory, launch, launch + smooth_max(compute, memory)};
}

}  // namespace tbdsim
