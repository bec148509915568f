// Work of a training stack (Megatron-LM, DeepSpeed, FSDP) beside the network's mathematics: its kernels,
// its buffers, what it overlaps, and what its host work costs. One set of constants for a stack, whatever the
// runs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graphs/kernel.h"
#include "hwspecs/base/quantity.h"

namespace tbdsim {

// Launches that are CUDA graphs, which take no time of the host: none; those of routers and of what counts
// tokens (Megatron-Core's scopes moe_router and moe_preprocess); all but the products of experts, whose sizes
// the host has to know (with attention); all.
enum class CudaGraphs { none, routers, but_experts, all };
inline constexpr std::array<std::string_view, 4> kCudaGraphsNames = {"false", "routers", "but_experts",
                                                                     "true"};

// Kernels of the loss.
//   operators   a kernel for each of its operators
//   fused       one between two collectives (Megatron-LM, core/fusions/fused_cross_entropy.py, compiled by
//               PyTorch: what operators overwrite it writes anew)
//   one_kernel  one forward, one backward, both in 16 bits (xentropy of flash-attn)
//   in_place    as one_kernel, with the gradient in the place of the scores (Transformer Engine,
//               common/triton/cross_entropy.py)
enum class VocabularyLoss { operators, fused, one_kernel, in_place };
inline constexpr std::array<std::string_view, 4> kVocabularyLossNames = {"false", "true", "one_kernel",
                                                                         "in_place"};

struct Stack {
  std::string_view name;
  std::string_view title;

  // Kernels.
  bool fused_attention = true;                          // keeps no scores
  AttentionKernel attention = AttentionKernel::flash2;  // whose it is then
  double attention_factor = 1;                          // times of it over that kernel's
  bool fused_pointwise = true;  // bias, activation, dropout and residual in one kernel each; norms in one
  bool joined_products = true;  // queries, keys and values in one product; gate and up in one
  VocabularyLoss loss = VocabularyLoss::operators;
  // Bytes for each score of the loss by operators, alive at once: in 16 bits and in fp32, where Megatron-LM's
  // overwrites them (core/tensor_parallel/cross_entropy.py); or probabilities and two gradients in fp32
  // (PyTorch's nll_loss and log_softmax).
  double operators_loss_bytes = 2 + 4;
  // Bytes for each of these scores in blocks of the caching allocator that are free by then and too small.
  double operators_loss_holes = 0;
  double held_scores = 0;  // bytes of each score that the program holds until the backward pass ends
  // Cross entropies of all scores in fp32 that each micro-batch is measured by after its backward pass.
  int metrics = 0;
  // Words are padded to a multiple of so many on each tensor-parallel rank.
  std::int64_t word_multiple = 1;
  double loss_chunks = 1;        // pieces of the tokens whose scores are computed one after another
  bool overlaps_weights = true;  // collectives of the backward pass run beside gradients of weights
  bool overlaps_tensor = false;  // collectives of tensor parallelism run beside products (Userbuffers)
  // All-to-alls of experts run beside passes of other micro-batches (Megatron-Core,
  // overlap_moe_expert_parallel_comm: the forward pass of one beside the backward pass of another).
  bool overlaps_experts = false;
  // Full recomputation of a block ends with the last tensor that the backward pass needs, before the block's
  // last product (PyTorch since 2.1, torch/utils/checkpoint.py, set_checkpoint_early_stop: checkpoints that
  // are not reentrant; torchtitan turns it off, activation_checkpoint.py@b5bcd76c).
  bool stops_early = false;
  // A token goes once to each rank that has some of its experts, not once to each expert (DeepEP, HybridEP).
  bool dispatches_once = false;

  // States, bytes for each parameter.
  // Bytes of the copy that products of layers read; with zero 3 of what is gathered. In fp8 with the
  // transpose that Hopper's products need as many as in 16 bits. Embedding and logits have 16 bits.
  double parameter_bytes = 2;
  double master_bytes = 4;    // fp32 copy; 0: none beside it
  double gradient_bytes = 2;  // as they accumulate
  double reduced_bytes = 2;   // as they are reduced over replicas
  double moment_bytes = 8;    // Adam's two
  // With zero 3: the fp32 copy is the parameter (PyTorch's FSDP), not beside its part in 16 bits (DeepSpeed
  // stage3.py, Megatron-FSDP's main weights, InternEvo fsdp_optimizer.py).
  bool master_is_parameter = false;
  // The backward pass keeps the cast of a product's input in fp8 or fp4, not the 16 bits (Transformer
  // Engine, module/linear.py; not torchao, float8_linear.py).
  bool keeps_casts = true;
  // Transformer Engine's operator fuser (Megatron-Core, use_transformer_engine_op_fuser; TransformerEngine
  // release_v2.8, pytorch/ops/fused): norms, activations and their gradients of feed-forward layers write the
  // fp8 operands of the products that follow (TEFusedMLP); an adapter's scale and sum are part of its product
  // (forward_linear_scale_add.py, backward_linear_scale.py), which needs whole matrices.
  bool fuses_operators = false;
  // The input of a gated activation is kept in fp8 (Megatron-Core, activation_func_fp8_input_store).
  bool narrow_activations = false;
  // Bytes that clipping, update and copies read and write for each local parameter.
  double update_traffic = 30;
  // Bytes that adding one further micro-batch's gradients reads and writes for each parameter; 0: the product
  // that computes them adds.
  double accumulation_traffic = 0;
  // Bytes for each parameter that a rank updates, of copies of its gradients which live during the update.
  double update_copies = 0;

  // Communication over replicas.
  bool overlaps_reduction = true;  // of gradients, with the last backward pass
  bool overlaps_gather = true;     // of updated parameters, with the next forward pass
  // Gradients of a bucket: so many, or so many for each replica, whichever are more (Megatron-LM@d98e8a64,
  // core/distributed/distributed_data_parallel.py).
  double bucket_numbers = 40e6, bucket_of_replica = 1e6;
  // With zero 1 every rank gets the sums of all gradients, not of its part alone: an all-reduce.
  bool reduces_all = false;

  // Host.
  // The host takes `launch` for each kernel or collective that a module launches, in the forward pass or when
  // it is computed again, and `operator_launch` for each of a plain operator: of gradients (autograd), of
  // routers. Estimates, as a PyTorch operator.
  Seconds launch{8e-6}, operator_launch{8e-6};
  CudaGraphs graphs = CudaGraphs::none;
  Seconds iteration{10e-3};  // once a step: data, logging, synchronizing; estimate

  // Memory.
  double handles =
      2;  // of cuBLAS in PyTorch, with a workspace each: of the forward pass, of autograd's thread
  Bytes workspace{};                // of each; 0: PyTorch's default
  bool transformer_engine = false;  // whose products have workspaces of their own
  double reserved = 1.06;  // reserved by the caching allocator over allocated, for layouts without a peer
  Bytes context{1.6e9};    // CUDA context and libraries: BLOOM's chronicles name 1.6 GB on an A100
  Bytes buckets{};         // in which gradients are gathered before they are reduced
};

inline constexpr std::string_view kDefaultStack = "megatron";

// Bytes for each score of the loss that are alive at once.
[[nodiscard]] inline double loss_bytes(const Stack& stack) {
  switch (stack.loss) {
    case VocabularyLoss::operators:
      break;
    case VocabularyLoss::fused:
      return 2 + 4 + 4;
    case VocabularyLoss::one_kernel:
      return 2 + 2;
    case VocabularyLoss::in_place:
      return 2;
  }
  return stack.operators_loss_bytes;
}

// Share of the memory bandwidth that one fused pass over many tensors reaches.
inline constexpr double kUpdateBandwidth = 0.85;

// Throws UsageError, with "did you mean".
[[nodiscard]] const Stack& stack_named(const std::string& name);
[[nodiscard]] std::span<const Stack> all_stacks();

// Keys of what a run may do unlike its stack's default. simulate/job/job_request.cpp says what they mean.
[[nodiscard]] std::span<const std::string_view> stack_keys();
// Throws UsageError for another value; `key` is one of stack_keys().
void set_stack(Stack& stack, std::string_view key, const std::string& value);

}  // namespace tbdsim
