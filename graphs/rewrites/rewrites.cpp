#include "graphs/rewrites/rewrites.h"

#include "graphs/rewrites/fuse_batch_norms.h"
#include "graphs/rewrites/half_precision_activations.h"
#include "graphs/rewrites/recompute.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

Rewrites override_rewrites(const SpecNode& node, Rewrites rewrites) {
  node.map([&](SpecMap& m) {
    if (const auto norms = m.find("norms")) rewrites.norms = static_cast<Norms>(norms->one_of(kNormsNames));
    if (const auto maps = m.find("feature_maps"))
      rewrites.feature_maps = static_cast<FeatureMaps>(maps->one_of(kFeatureMapsNames));
  });
  return rewrites;
}

namespace {

Recomputed recomputed_parts(FeatureMaps maps) {
  if (maps == FeatureMaps::recomputed_blocks) return Recomputed::blocks;
  return maps == FeatureMaps::recomputed_attention ? Recomputed::attention : Recomputed::segments;
}

}  // namespace

RewrittenStep rewritten(TrainingStep step, const Rewrites& rewrites, const Precision& precision) {
  const bool half = precision.storage_bytes == 2;
  if (rewrites.norms == Norms::fused || (rewrites.norms == Norms::fused_in_half && half))
    step = with_fused_norms(step);
  if (rewrites.norms == Norms::forward_fused_in_half && half)
    step = with_fused_norms(step, FusedNorms::forward_pass);
  if (rewrites.norms == Norms::by_half_convolutions && half)
    step = with_fused_norms(step, FusedNorms::with_convolutions);
  RewrittenStep made;
  switch (rewrites.feature_maps) {
    case FeatureMaps::kept:
      made.step = std::move(step);
      break;
    case FeatureMaps::half:
      made.step = with_half_precision_activations(step);
      break;
    case FeatureMaps::recomputed:
    case FeatureMaps::recomputed_blocks:
    case FeatureMaps::recomputed_attention: {
      std::optional<TrainingStep> recomputed =
          with_recomputation(step, recomputed_parts(rewrites.feature_maps));
      if (!recomputed)
        throw UsageError(
            "nothing to recompute: no maps are kept, or forward and backward passes alternate; expected "
            "feature_maps: kept");
      made.step = *std::move(recomputed);
      break;
    }
    case FeatureMaps::offloaded:
      made.on_host = offloaded_activations(step);
      made.step = with_offloaded_activations(step);
      break;
  }
  return made;
}

}  // namespace tbdsim
