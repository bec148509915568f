#include "simulate/job/job_request.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/base/text_list.h"
#include "simulate/layout/layout_reader.h"
#include "simulate/layout/text_key.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostTokens = 100'000'000;  // in a sequence
constexpr std::int64_t kMostOfAdapters = 100'000;  // columns
constexpr double kMostTimes = 1000;                // of an oversubscription, an imbalance
constexpr auto kPrecisions = std::to_array<std::string_view>({"bf16", "fp16", "fp8", "nvfp4", "tf32"});

template <std::string JobRequest::*Member>
void set_text(JobRequest& request, std::string_view key, const std::string& value) {
  if (value.empty()) throw UsageError(fmt::format("{} is empty; expected a name", key));
  request.*Member = value;
}

template <std::int64_t Job::*Member, std::int64_t Most>
void set_count(JobRequest& request, std::string_view key, const std::string& value) {
  request.job.*Member = number_of(key, value, 1, Most);
}

void set_precision(JobRequest& request, std::string_view key, const std::string& value) {
  (void)choice_of(key, value, kPrecisions);
  request.precision = value;
}

void set_stack_name(JobRequest& request, std::string_view /*key*/, const std::string& value) {
  request.stack = stack_named(value).name;
}

void set_lora_rank(JobRequest& request, std::string_view key, const std::string& value) {
  request.job.adapters.rank = number_of(key, value, 0, kMostOfAdapters);
}

// Names of the matrices beside which adapters stand, as lists.
void set_lora_targets(JobRequest& request, std::string_view key, const std::string& value) {
  constexpr auto kTargets = std::to_array<std::string_view>({"attention", "output", "up", "down", "all"});
  constexpr std::array<bool Adapters::*, 4> kMembers = {&Adapters::attention, &Adapters::output,
                                                        &Adapters::up, &Adapters::down};
  Adapters& adapters = request.job.adapters;
  adapters = {.rank = adapters.rank};
  for (const std::string& name : list_of(value)) {
    const std::size_t target = choice_of(key, name, kTargets);
    for (std::size_t i = 0; i < kMembers.size(); ++i) {
      if (target == i || target == kMembers.size()) adapters.*kMembers[i] = true;
    }
  }
}

constexpr TextKey<JobRequest> kSetters[] = {
    {"model", set_text<&JobRequest::model>},
    {"gpu", set_text<&JobRequest::gpu>},
    {"machine", set_text<&JobRequest::machine>},
    {"network", set_text<&JobRequest::network>},
    {"oversubscription",
     [](JobRequest& r, std::string_view key, const std::string& value) {
       r.oversubscription = real_of(key, value, 1, kMostTimes);
     }},
    {"leaf_gpus", set_number<&JobRequest::leaf_gpus, 1, kMostRanks, JobRequest>},
    {"profile", set_text<&JobRequest::profile>},
    {"gpus", set_count<&Job::gpus, kMostRanks>},
    {"global_batch", set_count<&Job::global_batch, kMostRanks>},
    {"seq_len", set_count<&Job::sequence, kMostTokens>},
    {"precision", set_precision},
    {"fp8_attention", set_flag<&JobRequest::fp8_attention, JobRequest>},
    {"stack", set_stack_name},
    {"search", set_flag<&JobRequest::search, JobRequest>},
    {"lora_rank", set_lora_rank},
    {"lora_targets", set_lora_targets},
    {"expert_imbalance", [](JobRequest& r, std::string_view key, const std::string& value) {
       r.job.imbalance = real_of(key, value, 1, kMostTimes);
     }}};

using enum JobKeyGroup;
constexpr std::string_view kSize = "a size of the decoder, instead of a model or unlike the model's";
constexpr auto kKeys = std::to_array<JobKey>(
    {{"model", model, "a decoder, or a YAML file"},
     {"gpu", hardware, "a GPU, or a YAML file"},
     {"machine", hardware, "what joins the GPUs (default: what is usual for them; the output says which)"},
     {"network", hardware, "between machines, instead of the machine's: a link, a file or a rate"},
     {"oversubscription", hardware,
      "of the network's tree above its leaf switches: 2 for half of the bandwidth (default 1)"},
     {"leaf_gpus", hardware, "GPUs below one leaf switch (default: those of a machine)"},
     {"profile", hardware, "source of kernel times (default: what suits the GPU best)"},
     {"gpus", batch, "GPUs in all (default 8)"},
     {"global_batch", batch, "sequences in a step (default 1)"},
     {"seq_len", batch, "tokens in a sequence (default: the model's)"},
     {"precision", training,
      "of the products of layers: bf16 (default), fp16, fp8, nvfp4, tf32; a captured step has its own"},
     {"fp8_attention", training, "with --precision fp8 or nvfp4: true for attention in fp8, too"},
     {"stack", training,
      "megatron (default), nemo, megatron_deepspeed, internevo, composer, fsdp, fsdp_compiled"},
     {"lora_rank", training, "columns of adapters beside frozen weights (default 0: all parameters train)"},
     {"lora_targets", training,
      "matrices with adapters: attention (queries, keys, values), output, up, down, all (default "
      "attention,output)"},
     {"expert_imbalance", training, "tokens of the fullest rank of experts over the mean (default 1)"},
     {"search", training, "with keys of a layout: true to keep these and search the others"},
     {"dp", layout, "replicas (default: what the GPUs allow)"},
     {"tp", layout, "tensor-parallel ranks"},
     {"pp", layout, "stages of the pipeline"},
     {"vp", layout, "chunks of layers on each stage (interleaved)"},
     {"cp", layout, "context-parallel ranks"},
     {"cp_exchange", layout, "ring (default) or all_to_all (Ulysses), of context-parallel ranks"},
     {"ep", layout, "expert-parallel ranks"},
     {"etp", layout, "ranks that share each expert's matrices (default 1: experts are whole)"},
     {"zero", layout, "ZeRO stage: 1 optimizer state, 2 gradients, 3 parameters (FSDP)"},
     {"shard", layout, "ranks over which ZeRO divides; the others are copies (HSDP)"},
     {"reshard", layout, "with zero 3: gather parameters again for the backward pass: true (default), false"},
     {"prefetch", layout, "with zero 3: blocks gathered ahead (default 1; 0: each is waited for)"},
     {"sequence_parallel", layout, "true: norms and residuals are divided over the tensor-parallel ranks"},
     {"uneven", layout, "true: stages may differ by one layer, the first have more"},
     {"micro_batch", layout, "sequences in one pass"},
     {"recompute", layout, "none, selective, operators or full"},
     {"recompute_modules", layout,
      "with recompute selective: what of each block, of core_attn (default), layernorm, moe_act, "
      "mla_up_proj, "
      "mlp, moe"},
     {"recompute_layers", layout,
      "with recompute full: so many layers of each chunk; the others keep their activations (default 0: "
      "all)"},
     {"schedule", layout, "1f1b (default), gpipe or zero_bubble"},
     {"fused_attention", stack,
      "unlike the stack: true for attention in one kernel, which keeps no scores; false"},
     {"attention_kernel", stack,
      "unlike the stack: whose kernel computes attention in one: flash1, flash2, flash3 (flash-attn), cudnn"},
     {"fused_pointwise", stack,
      "unlike the stack: true for bias, activation, dropout and residual in one kernel each; false"},
     {"fused_loss", stack,
      "unlike the stack: true for a loss of three kernels (Megatron-Core's native fusion), one_kernel "
      "(xentropy of flash-attn), in_place (Transformer Engine's); false"},
     {"overlap_tensor", stack,
      "unlike the stack: true for tensor-parallel collectives in pieces beside products; false"},
     {"overlap_experts", stack,
      "unlike the stack: true for all-to-alls of experts beside passes of other micro-batches; false"},
     {"dispatch_once", stack,
      "unlike the stack: true for a token once to each rank with some of its experts; false: once to each"},
     {"overlap_replicas", stack,
      "unlike the stack: true for gradients and parameters exchanged beside passes; false"},
     {"fp8_activations", stack,
      "unlike the stack: true for inputs of gated activations that are kept in fp8 (Megatron-Core's "
      "activation_func_fp8_input_store); false"},
     {"operator_fuser", stack,
      "unlike the stack: true for Transformer Engine's fused operators: casts to fp8 within norms and "
      "activations of feed-forward layers, adapters' scale and sum within products "
      "(use_transformer_engine_op_fuser); false"},
     {"early_stop", stack,
      "unlike the stack: true for full recomputation that leaves out a block's last product, which no "
      "gradient needs (PyTorch's checkpoints since 2.1 that are not reentrant); false"},
     {"cuda_graphs", stack,
      "unlike the stack: true for launches as CUDA graphs, which take no time of the host; routers; "
      "but_experts for all but products of experts; false"},
     {"foreach_update", stack,
      "unlike the stack: true for an AdamW that is not fused, with an array of its own while it updates; "
      "false"},
     {"loss_chunks", stack, "unlike the stack: pieces in which scores of words and loss are computed"},
     {"held_scores", stack,
      "unlike the stack: bytes of each score of a word that the program holds until the backward pass ends, "
      "as "
      "a variable in Python does: 0, 2 or 4"},
     {"cublas_workspace", stack,
      "MiB of each of PyTorch's two workspaces of cuBLAS (CUBLAS_WORKSPACE_CONFIG; default 8, from Hopper on "
      "32)"},
     {"reduce_bytes", stack, "unlike the stack: bytes of a gradient as it is reduced, 2 or 4"},
     {"gradient_bytes", stack, "unlike the stack: bytes of a gradient as it accumulates, 2, 4 or 6 (both)"},
     {"parameter_bytes", stack,
      "unlike the stack: bytes of a layer's parameter as products read it: 1 (fp8), 2 (16 bits, or fp8 and "
      "its transpose), 4 (all of these)"},
     {"master_bytes", stack,
      "unlike the stack: bytes of the update's copy of a parameter, 2 (what 16 bits "
      "leave of fp32) or 4"},
     {"moment_bytes", stack, "unlike the stack: bytes of Adam's two moments together, 2, 4, 6 or 8"},
     {"layers", shape, kSize},
     {"hidden", shape, kSize},
     {"heads", shape, kSize},
     {"kv_heads", shape, kSize},
     {"head_size", shape, kSize},
     {"value_size", shape, kSize},
     {"ffn", shape, kSize},
     {"vocabulary", shape, kSize},
     {"positions", shape, kSize},
     {"gated", shape, kSize},
     {"rms_norm", shape, kSize},
     {"rotary", shape, kSize},
     {"bias", shape, kSize},
     {"tied", shape, kSize},
     {"dropout", shape, kSize},
     {"causal", shape, kSize},
     {"q_rank", shape, kSize},
     {"kv_rank", shape, kSize},
     {"rotary_size", shape, kSize},
     {"experts", shape, kSize},
     {"experts_per_token", shape, kSize},
     {"expert_ffn", shape, kSize},
     {"shared_ffn", shape, kSize},
     {"dense_layers", shape, kSize}});

const JobKey* find_key(std::string_view name) {
  const auto* const found =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const JobKey& key) { return key.name == name; });
  return found == kKeys.end() ? nullptr : found;
}

}  // namespace

std::span<const JobKey> job_keys() { return kKeys; }
std::span<const std::string_view> job_precisions() { return kPrecisions; }
bool is_job_key(std::string_view name) { return find_key(name) != nullptr; }

std::span<const std::string_view> job_keys_for(std::string_view key_of_run) {
  static constexpr std::string_view kAdapters[] = {"lora_rank"}, kTargets[] = {"lora_targets"},
                                    kStack[] = {"stack"}, kBatches[] = {"global_batch", "micro_batch"},
                                    kMemory[] = {"zero", "recompute"};
  if (key_of_run == "lora") return kAdapters;
  if (key_of_run == "lora_layers") return kTargets;
  if (key_of_run == "framework") return kStack;
  if (key_of_run == "batch" || key_of_run == "accumulate") return kBatches;
  if (key_of_run == "offload") return kMemory;
  return {};
}

void set_job(JobRequest& request, std::string_view key, const std::string& value) {
  const JobKey* known = find_key(key);
  if (known == nullptr) {
    std::vector<std::string> names;
    for (const JobKey& one : kKeys) names.emplace_back(one.name);
    const auto instead = job_keys_for(key);
    throw UsageError(fmt::format("{} is no key of a job{}", in_quotes(std::string(key)),
                                 instead.empty() ? did_you_mean(std::string(key), names)
                                                 : fmt::format("; expected {}", fmt::join(instead, " or "))));
  }
  switch (known->group) {
    case layout:
      if (!request.layout) request.layout.emplace();
      set_layout(*request.layout, key, value);
      break;
    case shape:
      set_shape(request.shape, key, value);
      break;
    case stack: {
      Stack tried;
      set_stack(tried, key, value);  // throws for a wrong value; the stack may be named later
      break;
    }
    default:
      set_by_name(kSetters, request, key, value);
  }
  request.said.emplace_back(key, value);
}

std::vector<KeyValue> said_of(const JobRequest& request, JobKeyGroup group) {
  std::vector<KeyValue> said;
  for (const KeyValue& one : request.said) {
    if (find_key(one.first)->group == group) said.push_back(one);
  }
  return said;
}

void read_job(JobRequest& request, const std::filesystem::path& file) {
  const SpecTree tree = read_spec_file(file);
  SpecNode(tree).map([&](SpecMap& m) {
    for (const JobKey& key : kKeys) {
      const auto node = m.find(key.name);
      if (!node) continue;
      try {
        if (!node->is_list()) {
          set_job(request, key.name, node->text());
          continue;
        }
        std::string list;
        for (const SpecNode& item : node->list()) list += (list.empty() ? "" : ",") + item.text();
        set_job(request, key.name, list);
      } catch (const UsageError& wrong) {
        throw SpecError(node->mark(), wrong.what());
      }
    }
  });
}

}  // namespace tbdsim
