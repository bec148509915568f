// Choices of a training run beside its model, framework and precision: the weights that are trained, how they
// are updated, and the tensors that stay on the GPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graphs/fine_tuning.h"
#include "graphs/lowering.h"
#include "graphs/model.h"
#include "graphs/rewrites/rewrites.h"

namespace tbdsim {

inline constexpr std::int64_t kMostAccumulated = 1'000'000;  // batches of an update
inline constexpr std::int64_t kMostRank = 65'536;            // of an adapter

// Activations that the backward pass has computed again: none; all within every repeated block; those of
// attention; all but the ends of about sqrt(n) segments.
inline constexpr std::array<std::string_view, 4> kRecomputeNames = {"none", "full", "selective", "segments"};
// Tensors that are on the host while the GPU does not use them.
inline constexpr std::array<std::string_view, 3> kOffloadNames = {"none", "activations", "optimizer"};

struct TrainingChoices {
  std::string optimizer{};                      // of kOptimizers; empty: the variant's
  std::int64_t accumulate = 1;                  // batches whose gradients are added up before an update
  FineTuning fine_tuning{};                     // all weights are trained by default
  std::optional<FeatureMaps> feature_maps{};    // none: as the framework keeps them
  std::optional<Variables> optimizer_state{};   // none: where the framework has it
  std::optional<LossKernels> loss{};            // of a cross entropy over a vocabulary; none: the framework's
  std::optional<AttentionKernels> attention{};  // none: the framework's

  // Nothing is chosen.
  [[nodiscard]] bool empty() const { return *this == TrainingChoices{}; }
  friend bool operator==(const TrainingChoices&, const TrainingChoices&) = default;
};

// One text for each value, as a key of a cache.
[[nodiscard]] std::string key_text(const TrainingChoices& choices);

// Set a choice by its text on a command line. Throw UsageError, with "did you mean", for an unknown name.
void choose_optimizer(TrainingChoices& choices, const std::string& name);
void choose_recompute(TrainingChoices& choices, const std::string& name);
void choose_offload(TrainingChoices& choices, const std::string& name);
void choose_loss(TrainingChoices& choices, const std::string& name);
void choose_attention(TrainingChoices& choices, const std::string& name);

// The variant with the chosen optimizer; the framework's lowering and rewrites with what is chosen of them.
[[nodiscard]] Variant chosen_variant(const TrainingChoices& choices, Variant variant);
[[nodiscard]] Lowering chosen_lowering(const TrainingChoices& choices, Lowering lowering);
[[nodiscard]] Rewrites chosen_rewrites(const TrainingChoices& choices, Rewrites rewrites);

// The model with the chosen weights trained, several batches for an update. Throws UsageError as
// fine_tuned(), for accumulation in a model whose iteration has several passes, and for a loss of a
// vocabulary or an attention in a model without one.
[[nodiscard]] Model chosen_model(const TrainingChoices& choices, Model model);

}  // namespace tbdsim
