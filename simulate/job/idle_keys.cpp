#include "simulate/job/idle_keys.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace tbdsim {
namespace {

using Layout = ParallelLayout;

// A key, when it changes nothing, and why.
struct IdleRule {
  std::string_view key;
  bool (*idle)(const Layout& layout, const PlanInputs& inputs);
  std::string_view why;
};

bool without_stages(const Layout& l, const PlanInputs& /*in*/) { return l.pp == 1; }
bool without_shared_experts(const Layout& l, const PlanInputs& /*in*/) { return l.ep == 1; }
bool without_shards(const Layout& l, const PlanInputs& /*in*/) { return l.zero != 3; }
bool without_replicas(const Layout& l, const PlanInputs& /*in*/) { return l.replicas() == 1; }
bool with_scores_in_one_kernel(const Layout& /*l*/, const PlanInputs& in) { return in.stack.fused_attention; }
bool with_scores_kept(const Layout& /*l*/, const PlanInputs& in) { return !in.stack.fused_attention; }
bool within_one_leaf(const Layout& l, const PlanInputs& in) { return l.ranks() <= in.fabric.leaf; }
bool within_one_domain(const Layout& l, const PlanInputs& in) { return l.ranks() <= in.fabric.domain; }

constexpr std::string_view kOneStage = "pp is 1", kWholeExperts = "ep is 1", kNoShards = "zero is not 3",
                           kOneReplica = "there is one replica", kKeptScores = "attention is not one kernel";

constexpr auto kRules = std::to_array<IdleRule>(
    {{"network", within_one_domain, "all GPUs are in one domain of faster links"},
     {"oversubscription", within_one_leaf, "all GPUs are below one leaf switch"},
     {"leaf_gpus", [](const Layout&, const PlanInputs& in) { return in.fabric.oversubscription == 1; },
      "the network is not oversubscribed"},
     {"fp8_attention", with_scores_kept, kKeptScores},
     {"attention_kernel", with_scores_kept, kKeptScores},
     {"lora_targets", [](const Layout&, const PlanInputs& in) { return !in.job.adapters.frozen(); },
      "lora_rank is 0"},
     {"expert_imbalance", without_shared_experts, kWholeExperts},
     {"cp_exchange", [](const Layout& l, const PlanInputs&) { return l.cp == 1; }, "cp is 1"},
     {"shard", [](const Layout& l, const PlanInputs&) { return l.zero == 0; }, "zero is 0"},
     {"reshard", without_shards, kNoShards},
     {"prefetch", without_shards, kNoShards},
     {"schedule", without_stages, kOneStage},
     {"uneven", [](const Layout& l, const PlanInputs& in) { return in.shape.layers % (l.pp * l.vp) == 0; },
      "the layers divide evenly"},
     {"recompute",
      [](const Layout& l, const PlanInputs& in) {
        return l.recompute == Recomputation::selective && l.modules == kDefaultModules &&
               with_scores_in_one_kernel(l, in);
      },
      "attention of this stack is one kernel, which keeps no scores to compute again"},
     {"fp8_activations",
      [](const Layout& l, const PlanInputs& in) {
        return !in.shape.gated || l.recompute == Recomputation::full;
      },
      "the activation is not gated, or computed again"},
     {"operator_fuser",
      [](const Layout& l, const PlanInputs& in) {
        const Adapters& a = in.job.adapters;
        const bool casts = in.stack.fused_pointwise && in.stack.joined_products &&
                           in.precision.math == MathType::fp8 && !in.shape.mixture();
        return a.frozen() ? l.tp > 1 && (!casts || a.up || a.down) : !casts;
      },
      "no feed-forward layer without experts and adapters is in fp8, and no adapter beside a whole matrix"},
     {"early_stop", [](const Layout& l, const PlanInputs&) { return l.recompute != Recomputation::full; },
      "recompute is not full"},
     {"ffn",
      [](const Layout&, const PlanInputs& in) { return in.shape.mixture() && in.shape.dense_layers == 0; },
      "every block has experts; expert_ffn is their size"},
     {"causal", with_scores_kept, "attention that keeps its scores computes the masked ones, too"},
     {"overlap_tensor", [](const Layout& l, const PlanInputs&) { return l.tp == 1; }, "tp is 1"},
     {"overlap_experts", without_shared_experts, kWholeExperts},
     {"dispatch_once", without_shared_experts, kWholeExperts},
     {"overlap_replicas",
      [](const Layout& l, const PlanInputs& in) { return l.zero == 3 || without_replicas(l, in); },
      "with zero 3, or one replica, nothing is exchanged once a step"},
     {"reduce_bytes", without_replicas, kOneReplica}});

}  // namespace

std::vector<std::string> notes_of_idle_keys(const ResolvedJob& job, const ParallelLayout& layout) {
  std::vector<std::string> notes;
  for (const IdleRule& rule : kRules) {
    const auto said = std::find_if(job.said.rbegin(), job.said.rend(),
                                   [&](const KeyValue& one) { return one.first == rule.key; });
    if (said != job.said.rend() && rule.idle(layout, job.inputs))
      notes.push_back(fmt::format("{} {} changes nothing: {}.", rule.key, said->second, rule.why));
  }
  return notes;
}

}  // namespace tbdsim
