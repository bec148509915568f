// How a training step is divided among GPUs, in the terms of Megatron-LM, DeepSpeed and PyTorch's FSDP.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "simulate/layout/decoder_shape.h"
#include "simulate/layout/recompute_modules.h"
#include "simulate/schedule/pipeline.h"

namespace tbdsim {

// Activations that the backward pass computes again.
//   selective  modules of each block (Korthikanti et al. 2022: scores and probabilities of attention)
//   operators  what is no matrix product or attention, and every second product (torch SAC in torchtitan)
//   full       all of a block but its input
enum class Recomputation { none, selective, operators, full };
inline constexpr std::array<std::string_view, 4> kRecomputationNames = {"none", "selective", "operators",
                                                                        "full"};

// How context-parallel ranks share attention.
//   ring        keys and values go round, each rank has a piece of the sequence (Liu et al. 2023)
//   all_to_all  each rank gets the whole sequence for a part of the heads, and gives it back (DeepSpeed-Ulysses)
enum class ContextExchange { ring, all_to_all };
inline constexpr std::array<std::string_view, 2> kContextExchangeNames = {"ring", "all_to_all"};

struct ParallelLayout {
  std::int64_t dp = 0;  // replicas of the whole network; 0: what the GPUs allow
  std::int64_t tp = 1;  // ranks that share each matrix product
  std::int64_t pp = 1;  // stages of a pipeline
  std::int64_t vp = 1;  // chunks of layers on each stage
  std::int64_t cp = 1;  // ranks that share each sequence
  ContextExchange context = ContextExchange::ring;
  std::int64_t ep = 1;   // ranks that share the experts
  std::int64_t etp = 1;  // ranks that share each expert's matrices
  // Divided over the replicas (Rajbhandari et al. 2020): 1 optimizer state, 2 gradients too, 3 parameters too
  // (FSDP, full shard).
  int zero = 0;
  std::int64_t shard = 0;     // ranks over which it is divided, the others are copies (HSDP); 0: all replicas
  bool reshard = true;        // with zero 3: parameters are gathered again for the backward pass
  std::int64_t prefetch = 1;  // with zero 3: blocks gathered ahead; 0: each is waited for
  bool uneven = false;        // chunks may differ by one layer, the first have more
  bool sequence_parallel = false;  // norms and residuals are divided over the tp ranks
  std::int64_t micro_batch = 1;    // sequences in one pass
  Recomputation recompute = Recomputation::none;
  RecomputeModules modules = kDefaultModules;  // with selective recomputation
  // With full recomputation: the first layers of each chunk, the others keep their activations; 0: all.
  std::int64_t recompute_layers = 0;
  PipelineOrder order = PipelineOrder::one_f_one_b;

  // Ranks that hold the same part of the network's dense layers: dp x cp.
  [[nodiscard]] std::int64_t replicas() const { return dp * cp; }
  // Ranks over which ZeRO divides the dense layers.
  [[nodiscard]] std::int64_t shard_ranks() const { return shard > 0 ? shard : replicas(); }
  // Ranks among `over` replicas that hold the same part of the same experts.
  [[nodiscard]] std::int64_t expert_replicas(std::int64_t over) const {
    return std::max<std::int64_t>(1, over * tp / (ep * etp));
  }
  [[nodiscard]] std::int64_t model_ranks() const { return tp * pp * cp; }
  [[nodiscard]] std::int64_t ranks() const { return dp * tp * pp * cp; }

  friend bool operator==(const ParallelLayout&, const ParallelLayout&) = default;
};

// Low-rank adapters (Hu et al. 2021) beside frozen matrices: x A B with A of `rank` columns. All else of the
// network is frozen. Rank 0: none, every parameter trains.
struct Adapters {
  std::int64_t rank = 0;
  bool attention = false;  // queries, keys, values
  bool output = false;     // of attention
  bool up = false;         // into the inner features, the gate too
  bool down = false;       // out of them

  [[nodiscard]] bool frozen() const { return rank > 0; }
};

// The work of a step, and on how many GPUs.
struct Job {
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;  // sequences in a step
  std::int64_t sequence = 1;      // tokens in each
  double imbalance = 1;           // tokens of the fullest rank's experts over the mean rank's
  Adapters adapters{};
};

inline constexpr std::int64_t kMostRanks = 10'000'000;

// Passes of a step: global batch / (dp x micro-batch).
[[nodiscard]] inline std::int64_t micro_batches(const ParallelLayout& layout, const Job& job) {
  return job.global_batch / (layout.dp * layout.micro_batch);
}

// The layout with dp filled in. Throws UsageError for one that does not divide the job: the numbers that do
// not go together and the nearest that would.
[[nodiscard]] ParallelLayout legal_layout(ParallelLayout layout, const DecoderShape& shape, const Job& job);

// True where legal_layout() would not throw; dp is filled in.
[[nodiscard]] bool is_legal(const ParallelLayout& layout, const DecoderShape& shape, const Job& job);

// Layers of a chunk, counted from the network's input. Where layers / (pp x vp) is not whole, the first and
// the last have one less, for the embedding and the logits, if (layers + 2) / (pp x vp) is whole; else the
// first ones have one more.
[[nodiscard]] std::int64_t layers_of_chunk(const ParallelLayout& layout, std::int64_t chunk,
                                           std::int64_t layers);

// "dp 16 tp 8 pp 4 vp 2 mbs 1 zero 1 sp selective": what differs from one GPU alone.
[[nodiscard]] std::string to_text(const ParallelLayout& layout);

}  // namespace tbdsim
