// Changes that a framework makes to a training step once its layers are kernels, as data in its file:
// `rewrites: {norms: fused, feature_maps: recomputed}`.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "graphs/rewrites/offload.h"
#include "graphs/training_step.h"

namespace tbdsim {

class SpecNode;

// Batch norms with the sums and ReLUs behind them: fuse_batch_norms.h. fused_in_half: only where activations
// are of half precision; forward_fused_in_half: only there, and only in the forward pass;
// by_half_convolutions: there, by the convolutions before and behind them, too.
enum class Norms { apart, fused, fused_in_half, forward_fused_in_half, by_half_convolutions };
// How activations are kept between forward and backward pass: half_precision_activations.h, recompute.h,
// offload.h.
enum class FeatureMaps { kept, half, recomputed, recomputed_blocks, recomputed_attention, offloaded };
inline constexpr std::array<std::string_view, 5> kNormsNames = {
    "apart", "fused", "fused_in_half", "forward_fused_in_half", "by_half_convolutions"};
inline constexpr std::array<std::string_view, 6> kFeatureMapsNames = {
    "kept", "half", "recomputed", "recomputed_blocks", "recomputed_attention", "offloaded"};

struct Rewrites {
  Norms norms = Norms::apart;
  FeatureMaps feature_maps = FeatureMaps::kept;

  friend bool operator==(const Rewrites&, const Rewrites&) = default;
};

// The keys that `node` has replace those given. Throws SpecError.
[[nodiscard]] Rewrites override_rewrites(const SpecNode& node, Rewrites rewrites);

struct RewrittenStep {
  TrainingStep step;
  std::vector<OffloadedActivation> on_host;
};

// The step with the framework's changes made. Throws UsageError where nothing can be recomputed.
[[nodiscard]] RewrittenStep rewritten(TrainingStep step, const Rewrites& rewrites,
                                      const Precision& precision);

}  // namespace tbdsim
