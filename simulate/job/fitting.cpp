#include "simulate/job/fitting.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "simulate/layout/layout_reader.h"

namespace tbdsim {
namespace {

// Values of one key, those that change least first.
struct Choices {
  std::string_view key;
  std::vector<std::string> values;
};

// Modules that a Megatron stack may compute again, each with those that cost less before it.
std::vector<std::string> modules_for(const DecoderShape& shape) {
  const std::pair<RecomputeModule, bool> of_shape[] = {
      {RecomputeModule::layernorm, true},
      {RecomputeModule::moe_act, shape.mixture()},
      {RecomputeModule::mla_up_proj, shape.kv_rank > 0},
      {RecomputeModule::mlp, !shape.mixture() || shape.dense_layers > 0}};
  std::vector<std::string> all;
  RecomputeModules modules;
  for (const auto& [module, has] : of_shape) {
    if (!has) continue;
    modules.add(module);
    all.push_back(to_text(modules));
  }
  return all;
}

std::vector<Choices> choices_for(const ParallelLayout& l, const ResolvedJob& job) {
  Choices micro_batch{"micro_batch", {}}, recompute{"recompute", {}}, zero{"zero", {}};
  for (std::int64_t m = l.micro_batch / 2; m >= 1; m /= 2) micro_batch.values.push_back(std::to_string(m));
  for (int stage = l.zero + 1; stage <= 3; ++stage) {
    if (stage == 1 || l.pp == 1) zero.values.push_back(std::to_string(stage));
  }
  std::vector<Choices> all{micro_batch, zero};
  if (job.captured()) return all;
  const Stack& stack = job.inputs.stack;
  if (l.recompute == Recomputation::none) {
    if (!stack.fused_attention) recompute.values.emplace_back("selective");
    if (!stack.joined_products) recompute.values.emplace_back("operators");
    if (stack.joined_products) all.push_back({"recompute_modules", modules_for(job.inputs.shape)});
  }
  if (l.tp > 1 && !l.sequence_parallel) all.push_back({"sequence_parallel", {"true"}});
  if (l.recompute != Recomputation::full) recompute.values.emplace_back("full");
  all.push_back(recompute);
  constexpr std::int64_t kMostTimes = 64;
  for (const auto& [key, now] : {std::pair{"tp", l.tp}, std::pair{"pp", l.pp}, std::pair{"cp", l.cp}}) {
    Choices more{key, {}};
    for (std::int64_t times = 2; times <= std::min(kMostTimes, l.dp); times *= 2)
      more.values.push_back(std::to_string(now * times));
    all.push_back(std::move(more));
  }
  return all;
}

// The layout with the value, and with as many replicas as the GPUs then allow; none where that is not legal.
std::optional<ParallelLayout> with(ParallelLayout layout, std::string_view key, const std::string& value,
                                   const ResolvedJob& job) {
  if (key == "recompute_modules") layout.recompute = Recomputation::selective;
  if (key == "recompute") {
    layout.modules = kDefaultModules;
    layout.recompute_layers = 0;
  }
  set_layout(layout, key, value);
  const std::int64_t gpus = job.inputs.job.gpus;
  if (layout.model_ranks() > gpus) return std::nullopt;
  layout.dp = gpus / layout.model_ranks();
  if (!is_legal(layout, job.inputs.shape, job.inputs.job)) return std::nullopt;
  return layout;
}

class Search {
 public:
  Search(const ResolvedJob& job, PieceTable& table) : job_(job), table_(table) {}

  // Tries one further change of each key from the `first` of the choices on.
  void try_each(const ParallelLayout& layout, const std::vector<Choices>& choices, std::size_t first,
                const std::string& before) {
    for (std::size_t c = first; c < choices.size(); ++c) {
      for (const std::string& value : choices[c].values) {
        const auto changed = with(layout, choices[c].key, value, job_);
        if (!changed) continue;
        LayoutPrediction p = predict_layout(*changed, table_, job_.peak);
        if (p.most.device > job_.usable()) continue;
        found.push_back({fmt::format("{}{} {}", before, choices[c].key, value), std::move(p)});
        break;
      }
    }
  }

  std::vector<Remedy> found;

 private:
  const ResolvedJob& job_;
  PieceTable& table_;
};

}  // namespace

std::vector<Remedy> what_would_fit(const ParallelLayout& layout, const ResolvedJob& job, PieceTable& table) {
  const std::vector<Choices> choices = choices_for(layout, job);
  Search search(job, table);
  search.try_each(layout, choices, 0, "");
  for (std::size_t c = 0; search.found.empty() && c + 1 < choices.size(); ++c) {
    for (const std::string& value : choices[c].values) {
      const auto changed = with(layout, choices[c].key, value, job);
      if (changed) search.try_each(*changed, choices, c + 1, fmt::format("{} {}, ", choices[c].key, value));
    }
  }
  std::stable_sort(search.found.begin(), search.found.end(),
                   [](const Remedy& a, const Remedy& b) { return a.prediction.step < b.prediction.step; });
  return std::move(search.found);
}

std::int64_t largest_micro_batch(ParallelLayout layout, const ResolvedJob& job, PieceTable& table) {
  constexpr std::int64_t kMostTried = 4096;
  const std::int64_t of_replica = job.inputs.job.global_batch / layout.dp;
  std::int64_t largest = 0;
  for (std::int64_t m = 1; m <= std::min(of_replica, kMostTried); ++m) {
    layout.micro_batch = m;
    if (of_replica % m != 0 || !is_legal(layout, job.inputs.shape, job.inputs.job)) continue;
    if (predict_layout(layout, table, job.peak).most.device > job.usable()) break;
    largest = m;
  }
  return largest;
}

}  // namespace tbdsim
