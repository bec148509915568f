#include "simulate/workload/workload.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "graphs/captured/captured_step.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "simulate/workload/captured_model.h"
#include "simulate/workload/parallel.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostKernels = 2'000'000;  // of all lengths together; what memory holds

// The model's own length as built; 0 for a model without sequences.
std::int64_t built_length(const Model& model) {
  const auto size = model.sizes.find(std::string(kLengthSize));
  return size == model.sizes.end() ? 0 : parse_whole_number(size->second.text).value_or(0);
}

std::vector<LengthBucket> lengths_of(const Variant& variant, const Sizes& sizes,
                                     const std::optional<Dataset>& dataset) {
  const bool asked_for = sizes.contains(std::string(kLengthSize));
  if (asked_for || variant.buckets.empty() || !dataset || dataset->lengths.empty()) return {};
  // A source longer than the bucket's share for sources needs a longer bucket.
  const double room =
      std::min(1.0, variant.source_share / dataset->source_share.value_or(variant.source_share));
  const std::vector<LengthBucket> buckets = buckets_of(dataset->lengths, variant.buckets, room);
  if (buckets.empty()) {
    throw UsageError("no sample of " + dataset->name + " is as short as the longest bucket of variant " +
                     variant.name);
  }
  return buckets;
}

// A captured step has its weights, its optimizer and one batch; what it keeps can be chosen.
void require_choices_of_captured(const ModelFile& file, TrainingChoices choices) {
  choices.feature_maps = {};
  if (choices.empty()) return;
  throw UsageError(
      file.path +
      ": was captured with its optimizer and weights; expected another capture instead of optimizer, "
      "accumulate, lora, freeze, offload or loss");
}

}  // namespace

std::vector<LengthStep> expand_workload(const ModelFile& file, const Variant& variant, const Sizes& sizes,
                                        const std::optional<Dataset>& dataset, const Lowering& lowering,
                                        const Rewrites& rewrites, const Precision& precision,
                                        bool planned_memory, const TrainingChoices& choices) {
  const Rewrites chosen = chosen_rewrites(choices, rewrites);
  std::atomic<std::size_t> kernels = 0;
  const auto step_of = [&](const LengthBucket& bucket, TrainingStep expanded) -> LengthStep {
    RewrittenStep made = rewritten(std::move(expanded), chosen, precision);
    MemoryOutline memory = memory_outline(made.step, planned_memory);
    kernels += made.step.kernels.size();
    if (kernels > kMostKernels) {
      throw ModelError("model " + file.name +
                       ": more than 2000000 kernels over its lengths; expected fewer buckets");
    }
    std::vector<KernelRuns> runs = kernel_runs(made.step.kernels);
    return {bucket, std::move(made.step), std::move(made.on_host), std::move(memory), std::move(runs)};
  };
  std::vector<LengthStep> steps(1);
  if (file.captured) {
    require_choices_of_captured(file, choices);
    const auto length = static_cast<double>(file.captured->length);
    steps[0] = step_of({.length = file.captured->length, .share = 1, .mean_length = length},
                       expand_captured(file, sizes, lowering, precision));
    return steps;
  }
  const Model model = chosen_model(choices, build_model(file, chosen_variant(choices, variant), sizes));
  const Lowering lowered = chosen_lowering(choices, lowering);
  const auto step_at = [&](const LengthBucket& bucket, const Model& padded) {
    return step_of(bucket, expand_training_step(padded, lowered, precision));
  };
  const std::vector<LengthBucket> buckets = lengths_of(variant, sizes, dataset);
  steps.resize(std::max<std::size_t>(1, buckets.size()));
  if (buckets.empty()) {
    const std::int64_t own = built_length(model);
    steps[0] = step_at({.length = own, .share = 1, .mean_length = static_cast<double>(own)}, model);
    return steps;
  }
  for_each_index(buckets.size(), [&](std::size_t i) {
    steps[i] = step_at(buckets[i], resized(model, {{std::string(kLengthSize), buckets[i].length}}));
  });
  if (variant.source_share < 1) {
    // Sources that are long for their targets have a bucket where both have the longest length: too rare to
    // count in time, but memory must hold it.
    LengthBucket longest = buckets.back();
    longest.share = 0;
    Model pair = model;
    pair.variant.source_share = 1;
    steps.push_back(step_at(longest, resized(pair, {{std::string(kLengthSize), longest.length}})));
  }
  return steps;
}

}  // namespace tbdsim
