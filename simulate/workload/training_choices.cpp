#include "simulate/workload/training_choices.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

std::size_t index_in(std::string_view key, const std::string& name, std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::vector<std::string> known(names.begin(), names.end());
  throw UsageError(fmt::format("{}: {} is unknown; expected one of {}{}", key, in_quotes(name), joined(known),
                               did_you_mean(name, known)));
}

bool has_layer(const Model& model, std::string_view type) {
  return std::ranges::any_of(model.graphs, [&](const auto& named) {
    return std::ranges::any_of(named.second.layers,
                               [&](const GraphLayer& layer) { return layer.spec.type == type; });
  });
}

}  // namespace

std::string key_text(const TrainingChoices& c) {
  if (c.empty()) return "";
  const FineTuning& tuned = c.fine_tuning;
  return fmt::format(
      "{}|{}|{}|{}|{}|{}|{}|{}|{}", c.optimizer, c.accumulate, tuned.rank, fmt::join(tuned.adapted, ","),
      fmt::join(tuned.frozen, ","), c.feature_maps ? static_cast<int>(*c.feature_maps) : -1,
      c.optimizer_state ? static_cast<int>(*c.optimizer_state) : -1, c.loss ? static_cast<int>(*c.loss) : -1,
      c.attention ? static_cast<int>(*c.attention) : -1);
}

void choose_optimizer(TrainingChoices& choices, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Optimizer& optimizer : kOptimizers) names.push_back(optimizer.name);
  (void)index_in("optimizer", name, names);
  choices.optimizer = name;
}

void choose_recompute(TrainingChoices& choices, const std::string& name) {
  constexpr std::array<FeatureMaps, kRecomputeNames.size()> kMaps = {
      FeatureMaps::kept, FeatureMaps::recomputed_blocks, FeatureMaps::recomputed_attention,
      FeatureMaps::recomputed};
  const FeatureMaps maps = kMaps[index_in("recompute", name, kRecomputeNames)];
  if (choices.feature_maps == FeatureMaps::offloaded && maps != FeatureMaps::kept)
    throw UsageError("recompute: activations are offloaded already; expected recompute or offload");
  if (choices.feature_maps != FeatureMaps::offloaded) choices.feature_maps = maps;
}

void choose_offload(TrainingChoices& choices, const std::string& name) {
  const std::size_t what = index_in("offload", name, kOffloadNames);
  choices.optimizer_state = what == 2 ? Variables::host : Variables::device;
  if (what != 1) return;
  if (choices.feature_maps && *choices.feature_maps != FeatureMaps::kept)
    throw UsageError("offload: activations are computed again already; expected recompute or offload");
  choices.feature_maps = FeatureMaps::offloaded;
}

void choose_loss(TrainingChoices& choices, const std::string& name) {
  choices.loss = static_cast<LossKernels>(index_in("loss", name, kLossKernelsNames));
}

void choose_attention(TrainingChoices& choices, const std::string& name) {
  choices.attention = static_cast<AttentionKernels>(index_in("attention", name, kAttentionKernelsNames));
}

Variant chosen_variant(const TrainingChoices& choices, Variant variant) {
  if (choices.optimizer.empty()) return variant;
  variant.optimizer = *std::ranges::find(kOptimizers, choices.optimizer, &Optimizer::name);
  variant.mixed_optimizer = {};
  return variant;
}

Lowering chosen_lowering(const TrainingChoices& choices, Lowering lowering) {
  lowering.optimizer_state = choices.optimizer_state.value_or(lowering.optimizer_state);
  lowering.loss = choices.loss.value_or(lowering.loss);
  lowering.attention = choices.attention.value_or(lowering.attention);
  return lowering;
}

Rewrites chosen_rewrites(const TrainingChoices& choices, Rewrites rewrites) {
  rewrites.feature_maps = choices.feature_maps.value_or(rewrites.feature_maps);
  return rewrites;
}

Model chosen_model(const TrainingChoices& choices, Model model) {
  if (choices.optimizer_state == Variables::host && model.variant.optimizer.orthogonal)
    throw UsageError(
        fmt::format("offload: {} multiplies matrices, which hosts are too slow for; expected an "
                    "element-wise optimizer",
                    model.variant.optimizer.name));
  if (choices.accumulate > 1) {
    if (model.training.size() != 1 || model.training.front().repeat != 1)
      throw UsageError(fmt::format(
          "accumulate: an iteration of {} has several passes; expected a model that trains in one",
          model.name));
    model.training.front().batches = choices.accumulate;
  }
  if (choices.attention && !has_layer(model, "attention"))
    throw UsageError(
        fmt::format("attention: {} has none of queries, keys and values; expected a transformer "
                    "whose file has layers of type attention",
                    model.name));
  if (choices.loss && !has_layer(model, "cross_entropy"))
    throw UsageError(fmt::format("loss: {} has no cross entropy over a vocabulary; expected a language model",
                                 model.name));
  if (choices.fine_tuning == FineTuning{}) return model;
  return fine_tuned(std::move(model), choices.fine_tuning);
}

}  // namespace tbdsim
