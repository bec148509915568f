// What a framework does to a training step once its layers are kernels, as data in its file:
// `rewrites: {norms: fused, feature_maps: recomputed}`.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "graphs/training_step.h"

namespace tbdsim {

class SpecNode;

// Batch norms, sums and ReLUs behind them: norm_fusion.h. fused_in_half: where maps are of half precision.
enum class Norms { apart, fused, fused_in_half };
// Between forward and backward pass: memory_rewrites.h.
enum class FeatureMaps { kept, half, recomputed, offloaded };
inline constexpr std::array<std::string_view, 3> kNormsNames = {"apart", "fused", "fused_in_half"};
inline constexpr std::array<std::string_view, 4> kFeatureMapsNames = {"kept", "half", "recomputed",
                                                                      "offloaded"};

struct Rewrites {
  Norms norms = Norms::apart;
  FeatureMaps feature_maps = FeatureMaps::kept;

  friend bool operator==(const Rewrites&, const Rewrites&) = default;
};

// The keys that `node` has replace those given. Throws SpecError.
[[nodiscard]] Rewrites override_rewrites(const SpecNode& node, Rewrites rewrites);

// A map that is on the host meanwhile: copied after kernel `last_forward`, back before kernel `first_again`.
struct OffloadedActivation {
  int last_forward = 0;
  int first_again = 0;
  Size bytes;
};

struct RewrittenStep {
  TrainingStep step;
  std::vector<OffloadedActivation> on_host;
};

// Throws UsageError where nothing can be recomputed.
[[nodiscard]] RewrittenStep rewritten(TrainingStep step, const Rewrites& rewrites,
                                      const Precision& precision);

}  // namespace tbdsim
