// Work of one rank: all that it computes, sends and keeps of a block, the embedding or the logits, for one
// micro-batch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "costmodel/communication/collective.h"
#include "graphs/kernel.h"
#include "graphs/precision.h"
#include "simulate/layout/decoder_shape.h"
#include "simulate/layout/layout.h"
#include "simulate/plan/stack.h"

namespace tbdsim {

// The part of a layout on which the work of a block depends.
struct Share {
  std::int64_t tp = 1, cp = 1, ep = 1, etp = 1;
  ContextExchange context = ContextExchange::ring;
  bool sequence_parallel = false;
  std::int64_t micro_batch = 1;
  RecomputeModules modules = kDefaultModules;  // of selective recomputation

  friend auto operator<=>(const Share&, const Share&) = default;
};
[[nodiscard]] Share share_of(const ParallelLayout& layout);

// Ranks among which a message goes.
enum class AcrossRanks { tensor, context, expert, expert_tensor };

// A collective that the block's next kernel waits for.
struct Message {
  Collective collective = Collective::all_reduce;
  AcrossRanks over = AcrossRanks::tensor;
  Bytes bytes;         // as collective_time() counts
  bool alone = false;  // never beside products, whatever the stack overlaps
};

// How a kernel's forward pass is had again for the backward pass, by what recomputation keeps.
enum class Kept {
  product,    // a matrix product
  half,       // one of those products of which operator-wise recomputation keeps every second
  attention,  // attention in one kernel
  scores,     // attention that keeps scores: products, softmax, dropout
  pointwise   // norms, activations, residuals
};

struct Again {
  Kept kept = Kept::product;
  bool selected = false;  // of a module that selective recomputation computes again
  bool tail = false;      // the block's last product and what follows: no gradient needs what they make
};

struct RankWork {
  std::vector<Kernel> forward;
  std::vector<Again> again;      // of each forward kernel
  std::vector<Kernel> backward;  // gradients of inputs and of weights
  std::vector<Message> forward_messages;
  std::vector<Message> backward_messages;
  // Launches of single experts' products beyond one for all of them.
  double forward_experts = 0, backward_experts = 0;
  // Launches of the router and of what counts and sends tokens, beyond those of the kernels.
  double forward_routing = 0, backward_routing = 0;
  bool routes_again = false;     // selective recomputation sends tokens to their experts again
  Bytes ring;                    // keys and values that a context-parallel rank passes on, beside attention
  std::array<Bytes, 4> kept{};   // by Recomputation: activations between forward and backward pass
  Bytes largest;                 // activations of the pass that are alive at once beside those
  Bytes holes;                   // that the caching allocator holds beside `largest`, of no use to it
  Bytes after;                   // alive at once after the backward pass
  double parameters = 0;         // on this rank, of layers that all replicas share; without adapters
  double expert_parameters = 0;  // of experts
  double adapter_parameters = 0;
  double expert_adapter_parameters = 0;
};

// `math`: of the products of layers; `attention`: of logits, adapters, routers and attention that keeps
// scores, in 16 bits; `fused_attention`: of attention in one kernel.
struct WorkPrecision {
  MathType math = MathType::bf16;
  MathType attention = MathType::bf16;
  MathType fused_attention = MathType::bf16;
};

[[nodiscard]] RankWork block_work(const DecoderShape& shape, const Share& share, const Job& job, bool experts,
                                  const Stack& stack, const WorkPrecision& precision);
[[nodiscard]] RankWork embedding_work(const DecoderShape& shape, const Share& share, const Job& job,
                                      const Stack& stack);
// The last norm, logits and loss.
[[nodiscard]] RankWork head_work(const DecoderShape& shape, const Share& share, const Job& job,
                                 const Stack& stack, const WorkPrecision& precision);

}  // namespace tbdsim
