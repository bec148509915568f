#include "simulate/plan/stack.h"

#include <vector>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/layout/text_key.h"

namespace tbdsim {
namespace {

// Host time of a kernel that a module of Megatron launches, in the forward pass or computed again: checks,
// tensors made and freed, nodes of autograd, which launches gradients as fast as PyTorch launches operators.
// Two sets of `fit` rows say the same: vtrain_single (Megatron-DeepSpeed of 2022; 115 to 125 us with
// operators at 8 us or less) and the mixtures of experts of megatron_bridge (Megatron-Core of 2025; 110 to
// 118 us).
constexpr Seconds kMegatronLaunch(118e-6);
// Dao, "FlashAttention-2", 2023: 1.7 to 3 times as fast as FlashAttention, about 2 times as its Triton
// version.
constexpr double kFirstFlash = 2;

// Megatron-LM@d98e8a64, training/arguments.py, make_vocab_size_divisible_by.
constexpr std::int64_t kMegatronWords = 128;

// Bytes for each parameter of sum += gradient: two are read, one is written.
constexpr double kAddedIn16Bits = 2 + 2 + 2;
constexpr double kAddedInFp32 = 4 + 2 + 4;
// Bytes for each score: its probability and two gradients in fp32.
constexpr double kTorchLoss = 4 + 4 + 4;
// Bytes for each score in 16 bits: freed before the backward pass, whose arrays of scores in fp32 are larger.
constexpr double kHalfScores = 2;

// Bytes of states follow from the code of each stack.
constexpr std::array<Stack, 7> kStacks = {{
    {.name = "megatron",
     .title =
         "Megatron-Core with Transformer Engine: fused kernels, distributed optimizer, overlapped reduction",
     .attention = AttentionKernel::cudnn,
     .word_multiple = kMegatronWords,
     .gradient_bytes = 4,
     .reduced_bytes = 4,
     .update_traffic = 38,
     .launch = kMegatronLaunch,
     .transformer_engine = true},
    {.name = "nemo",
     .title =
         "NeMo's performance recipes of 2025: the same, with gradients in 16 bits and collectives of tensor "
         "parallelism in pieces beside products",
     .attention = AttentionKernel::cudnn,
     // scripts/performance/helpers.py@8cfedd72: cross_entropy_fusion_impl "te", grad_reduce_in_fp32 False.
     .loss = VocabularyLoss::in_place,
     // mlcommons/training_results_v4.0, NVIDIA/benchmarks/gpt3/implementations/nemo/conf,
     // make_vocab_size_divisible_by; Megatron-Core's default.
     .word_multiple = kMegatronWords,
     .overlaps_tensor = true,
     .gradient_bytes = 2,
     .reduced_bytes = 2,
     .update_traffic = 36,
     .launch = kMegatronLaunch,
     .transformer_engine = true},
    {.name = "megatron_deepspeed",
     .title = "Megatron-DeepSpeed, 2022: fused softmax that keeps scores, gradients reduced after the "
              "backward pass",
     .fused_attention = false,
     .word_multiple = kMegatronWords,
     .overlaps_weights = false,
     .gradient_bytes = 2,
     .reduced_bytes = 2,
     .update_traffic = 54,
     .accumulation_traffic = kAddedIn16Bits,
     // The partition's gradients as one array in 16 bits, and that in fp32 (DeepSpeed 0.5, stage_1_and_2.py,
     // step).
     .update_copies = 2 + 4,
     .overlaps_reduction = false,
     .overlaps_gather = false,
     // DeepSpeed v0.5.10, stage_1_and_2.py: stage 1 has no contiguous gradients (engine.py), and
     // reduce_ipg_grads then calls allreduce_bucket for each bucket.
     .reduces_all = true,
     .launch = kMegatronLaunch,
     // Steps of vtrain_single that differ in micro-batches alone leave 0 to 2 ms beside update and exchange.
     .iteration = Seconds(0),
     .buckets = Bytes(1 * kGiga)},  // reduce_bucket_size of 5e8 numbers, its default
    {.name = "internevo",
     .title =
         "InternEvo 0.2: flash attention of its first version, fused norms, ZeRO-1 with overlapped reduction",
     .attention_factor = kFirstFlash,
     .gradient_bytes = 2,
     .reduced_bytes = 2,
     .update_traffic = 38,
     .accumulation_traffic = kAddedIn16Bits,
     .update_copies = 2 + 4,    // as DeepSpeed's
     .overlaps_gather = false,  // each rank broadcasts its part after the update
     .bucket_numbers = 256 * kMebi,
     .buckets = Bytes(512 * kMebi)},
    {.name = "composer",
     .title = "MosaicML Composer and llm-foundry, 2023: PyTorch FSDP, flash attention of its first version",
     .attention_factor = kFirstFlash,
     .fused_pointwise = false,
     // llmfoundry/models/mpt/modeling_mpt.py@8c8dd48f: loss_fn fused_crossentropy.
     .loss = VocabularyLoss::one_kernel,
     // Cross entropy and perplexity (same file at v0.4.0, train_metrics; mosaicml/composer@64051888,
     // composer/trainer/trainer.py, _eval_train_metrics).
     .metrics = 2,
     .stops_early = true,
     .gradient_bytes = 4,
     .reduced_bytes = 4,
     .master_is_parameter = true,
     .update_traffic = 40},
    {.name = "fsdp",
     .title = "PyTorch FSDP of parameters in fp32 with compute in bf16, eager",
     .fused_pointwise = false,
     .joined_products = false,
     .operators_loss_bytes = kTorchLoss,
     .operators_loss_holes = kHalfScores,
     .master_bytes = 4,
     .gradient_bytes = 4,
     .reduced_bytes = 4,
     .master_is_parameter = true,
     .keeps_casts = false,
     .update_traffic = 40},
    {.name = "fsdp_compiled",
     .title = "PyTorch FSDP of parameters in fp32 with compute in bf16, torch.compile of each block",
     .fused_pointwise = true,
     .joined_products = false,
     .operators_loss_bytes = kTorchLoss,
     .operators_loss_holes = kHalfScores,
     .master_bytes = 4,
     .gradient_bytes = 4,
     .reduced_bytes = 4,
     .master_is_parameter = true,
     .keeps_casts = false,
     .update_traffic = 40,
     // Estimate: fewer and larger kernels, guarded once.
     .launch = Seconds(5e-6),
     .operator_launch = Seconds(5e-6),
     // Inductor's buffers are of few sizes and reused. Two `fit` rows of torchtitan say 0.99 and 1.01, five
     // of eager runs 0.97 to 1.17.
     .reserved = 1},
}};

template <bool Stack::*Member>
constexpr auto kFlag = set_flag<Member, Stack>;

// Bytes for each parameter, one of these numbers.
template <double Stack::*Member, char... Digits>
void set_bytes(Stack& stack, std::string_view key, const std::string& value) {
  static constexpr std::array kDigits = {Digits...};
  std::array<std::string_view, kDigits.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = {&kDigits[i], 1};
  stack.*Member = kDigits[choice_of(key, value, names)] - '0';
}

// Sums in fp32 beside gradients in 16 bits (DeepSpeed's BF16_Optimizer) are what is reduced and updated.
void set_gradient_bytes(Stack& stack, std::string_view key, const std::string& value) {
  set_bytes<&Stack::gradient_bytes, '2', '4', '6'>(stack, key, value);
  if (stack.gradient_bytes < 6) return;
  stack.accumulation_traffic = kAddedInFp32;
  stack.update_copies = 0;
}

void set_loss(Stack& stack, std::string_view key, const std::string& value) {
  stack.loss = static_cast<VocabularyLoss>(choice_of(key, value, kVocabularyLossNames));
}

// Kernels of attention_kernel, with their times over those of the kernel that stands for them.
struct NamedAttention {
  AttentionKernel kernel;
  double factor;
};
constexpr std::array<std::string_view, 4> kAttentionNames = {"flash1", "flash2", "flash3", "cudnn"};
constexpr std::array<NamedAttention, kAttentionNames.size()> kAttentions = {
    {{AttentionKernel::flash2, kFirstFlash},
     {AttentionKernel::flash2, 1},
     {AttentionKernel::flash3, 1},
     {AttentionKernel::cudnn, 1}}};

void set_attention(Stack& stack, std::string_view key, const std::string& value) {
  const NamedAttention& chosen = kAttentions[choice_of(key, value, kAttentionNames)];
  stack.attention = chosen.kernel;
  stack.attention_factor = chosen.factor;
}

void set_graphs(Stack& stack, std::string_view key, const std::string& value) {
  stack.graphs = static_cast<CudaGraphs>(choice_of(key, value, kCudaGraphsNames));
}

// AdamW that is not fused has an array of denominators in fp32 while it updates (PyTorch 2.15,
// torch/optim/adam.py, _multi_tensor_adam: exp_avg_sq_sqrt).
void set_foreach(Stack& stack, std::string_view key, const std::string& value) {
  constexpr double kArray = 4;
  if (flag_of(key, value)) stack.update_copies += kArray;
}

void set_chunks(Stack& stack, std::string_view key, const std::string& value) {
  constexpr std::int64_t kMostChunks = 1024;
  stack.loss_chunks = static_cast<double>(number_of(key, value, 1, kMostChunks));
}

void set_workspace(Stack& stack, std::string_view key, const std::string& value) {
  constexpr std::int64_t kMost = 4096;
  stack.workspace = Bytes(static_cast<double>(number_of(key, value, 1, kMost)) * kMebi);
}

void set_replica_overlap(Stack& stack, std::string_view key, const std::string& value) {
  stack.overlaps_reduction = stack.overlaps_gather = flag_of(key, value);
}

constexpr TextKey<Stack> kKeys[] = {{"fused_attention", kFlag<&Stack::fused_attention>},
                                    {"attention_kernel", set_attention},
                                    {"fused_pointwise", kFlag<&Stack::fused_pointwise>},
                                    {"fused_loss", set_loss},
                                    {"overlap_tensor", kFlag<&Stack::overlaps_tensor>},
                                    {"overlap_experts", kFlag<&Stack::overlaps_experts>},
                                    {"dispatch_once", kFlag<&Stack::dispatches_once>},
                                    {"fp8_activations", kFlag<&Stack::narrow_activations>},
                                    {"operator_fuser", kFlag<&Stack::fuses_operators>},
                                    {"early_stop", kFlag<&Stack::stops_early>},
                                    {"overlap_replicas", set_replica_overlap},
                                    {"cuda_graphs", set_graphs},
                                    {"foreach_update", set_foreach},
                                    {"loss_chunks", set_chunks},
                                    {"held_scores", set_bytes<&Stack::held_scores, '0', '2', '4'>},
                                    {"cublas_workspace", set_workspace},
                                    {"reduce_bytes", set_bytes<&Stack::reduced_bytes, '2', '4'>},
                                    {"gradient_bytes", set_gradient_bytes},
                                    {"parameter_bytes", set_bytes<&Stack::parameter_bytes, '1', '2', '4'>},
                                    {"master_bytes", set_bytes<&Stack::master_bytes, '2', '4'>},
                                    {"moment_bytes", set_bytes<&Stack::moment_bytes, '2', '4', '6', '8'>}};
constexpr auto kKeyNames = names_of(kKeys);

}  // namespace

std::span<const std::string_view> stack_keys() { return kKeyNames; }

void set_stack(Stack& stack, std::string_view key, const std::string& value) {
  set_by_name(kKeys, stack, key, value);
}

std::span<const Stack> all_stacks() { return kStacks; }

const Stack& stack_named(const std::string& name) {
  std::vector<std::string> known;
  for (const Stack& stack : kStacks) {
    if (stack.name == name) return stack;
    known.emplace_back(stack.name);
  }
  throw UsageError(fmt::format("unknown training stack {}; expected one of {}{}", in_quotes(name),
                               joined(known), did_you_mean(name, known)));
}

}  // namespace tbdsim
