#include "simulate/analysis/memory_savings.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "costmodel/step_power.h"
#include "graphs/rewrites/half_precision_activations.h"
#include "graphs/rewrites/offload.h"
#include "graphs/rewrites/recompute.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_change.h"
#include "simulate/analysis/memory_breakdown.h"
#include "simulate/analysis/whatif.h"
#include "simulate/prediction/scratch_memory.h"
#include "simulate/timeline/activation_offload.h"
#include "simulate/workload/training_choices.h"

namespace tbdsim {
namespace {

struct Outcome {
  Bytes total;
  Seconds time;
  std::vector<KernelCost> costs;
  Timeline timeline;
};

Outcome outcome_of(const TrainingStep& step, double batch, const Calibration& calibration,
                   const Prediction& p) {
  const Framework& framework = *p.framework;
  Outcome outcome;
  outcome.costs = estimate(step, batch, calibration, p.factors);
  outcome.total = fit_scratch(p, p.largest, {step, memory_outline(step)}, batch, outcome.costs).total();
  limit_by_power(step, batch, calibration, outcome.costs);
  outcome.timeline = simulate_timeline(step, outcome.costs, batch, framework.launch_model);
  outcome.time = outcome.timeline.iteration;
  return outcome;
}

// The iteration that the savings are applied to.
struct Case {
  const Prediction& p;
  const Iteration& iteration;
  double batch;

  [[nodiscard]] Outcome of(const TrainingStep& step, const Calibration& calibration) const {
    Outcome outcome = outcome_of(step, batch, calibration, p);
    outcome.time += iteration.copies;  // of a framework that offloads feature maps by itself
    return outcome;
  }
  [[nodiscard]] Outcome of(const TrainingStep& step) const { return of(step, *p.calibration); }
};

// The training step of the same length for another variant or lowering.
TrainingStep expanded(const Case& c, const Variant& variant, const Lowering& lowering) {
  const Prediction& p = c.p;
  const std::optional<Dataset> dataset = p.dataset == nullptr ? std::nullopt : std::optional(*p.dataset);
  std::vector<LengthStep> steps =
      expand_workload(*p.model, variant, p.scenario.sizes, dataset, lowering, p.framework->rewrites,
                      *p.precision, false, p.scenario.training);
  return std::move(steps[p.largest].step);
}

// Parts of the batch one after another, then one update. Gradients that were transient are now stored.
Outcome accumulated(const Case& c, std::int64_t parts) {
  const double samples = std::ceil(c.batch / static_cast<double>(parts));
  const TrainingStep& step = *c.iteration.step;
  Outcome part = outcome_of(step, samples, *c.p.calibration, c.p);
  Seconds update;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    if (step.kernels[k].phase == Phase::update)
      update += part.costs[k].total * static_cast<double>(step.kernels[k].repeat);
  }
  const auto times = static_cast<double>(parts);
  part.time = part.time * times - update * (times - 1) + c.iteration.copies;
  if (c.p.framework->lowering.weight_gradients == GradientStorage::transient) {
    for (const Tensor& tensor : step.tensors) {
      if (tensor.role == TensorRole::weight_gradients) part.total += Bytes(tensor.bytes.at(samples));
    }
  }
  return part;
}

// The variant with recomputation switched on; none if the model has no parameter for it.
std::optional<Variant> recomputing(const Prediction& p) {
  constexpr const char* kParameter = "recompute";
  if (!p.model->parameters.contains(kParameter)) return std::nullopt;
  Variant variant = *p.variant;
  SpecTree& value = variant.parameters[kParameter];
  value = p.model->parameters.at(kParameter);
  value.text = "true";
  return variant;
}

bool computes_in_place(const Lowering& lowering) {
  return lowering.relu_in_place && lowering.relu_keeps != ReluKeeps::input_and_output;
}

using Changes = std::vector<std::string_view>;  // "recompute=full"

// The saving of the scenario with these options, called by their flags; none where the model or the GPU
// cannot have them.
std::optional<Saving> with_options(const Prediction& p, const Changes& changes, std::string what,
                                   const Resolver& resolve) {
  SpecChanges parsed;
  std::string flags;
  for (const std::string_view change : changes) {
    parsed.push_back(parse_change(std::string(change)));
    const std::size_t sign = change.find('=');
    flags +=
        fmt::format("{}--{} {}", flags.empty() ? "" : " ", change.substr(0, sign), change.substr(sign + 1));
  }
  try {
    const Prediction with = predict_changed(p.scenario, parsed, resolve);
    return Saving{std::move(flags), std::move(what), with.memory.total(), largest_iteration(with).time(),
                  with.fits};
  } catch (const Error&) {  // a model without blocks, a GPU without the arithmetic
    return std::nullopt;
  }
}

}  // namespace

std::vector<Saving> remedies(const Prediction& p) {
  const Iteration& iteration = largest_iteration(p);
  const Case c{p, iteration, static_cast<double>(iteration.batch)};
  std::vector<Saving> all;
  const auto add = [&](std::string name, std::string what, const Outcome& outcome) {
    if (!all.empty() && outcome.total >= all.front().total) return;
    all.push_back(
        {std::move(name), std::move(what), outcome.total, outcome.time, outcome.total <= p.usable_memory()});
  };
  const TrainingStep& step = *iteration.step;
  const Outcome as_it_is = c.of(step);
  add("as it is", "", as_it_is);
  Calibration frugal = *p.calibration;
  for (ConvLimits& limits : frugal.conv_limits)
    limits.workspace = 1;  // less than any algorithm that needs some
  add("workspace", "only algorithms without scratch memory", c.of(step, frugal));
  if (!computes_in_place(p.framework->lowering)) {
    Lowering lowering = p.framework->lowering;
    lowering.relu_in_place = true;
    lowering.relu_keeps = ReluKeeps::output;
    add("in_place", "activations written over their inputs", c.of(expanded(c, *p.variant, lowering)));
  }
  if (chosen_rewrites(p.scenario.training, p.framework->rewrites).feature_maps == FeatureMaps::kept) {
    add("half_maps", "feature maps kept in 2 B a number", c.of(with_half_precision_activations(step)));
    if (const auto recomputed = with_recomputation(step))
      add("recompute", "only ends of sqrt(n) segments kept", c.of(*recomputed));
    if (const auto variant = recomputing(p))
      add("recompute_steps", "attention made again step by step",
          c.of(expanded(c, *variant, p.framework->lowering)));
    Outcome offloaded = c.of(with_offloaded_activations(step));
    offloaded.time = as_it_is.time +
                     offload_stall(offloaded_activations(step), as_it_is.timeline, c.batch, *p.calibration);
    add("offload", "feature maps on the host meanwhile", offloaded);
  }
  for (const std::int64_t parts : {2, 4}) {
    if (iteration.batch < parts) break;
    add(fmt::format("accumulate_{}", parts),
        fmt::format("gradients of {} parts of the batch added up", parts), accumulated(c, parts));
  }
  return all;
}

std::vector<Saving> options_that_save(const Prediction& p, const Resolver& resolve) {
  constexpr std::string_view kRecompute = "recompute=full", kLoss = "loss=fused_linear",
                             kOffload = "offload=optimizer", kPure = "precision=bf16_pure", kLora = "lora=16";
  std::vector<Saving> all;
  const auto saves = [&](std::string what, const Changes& changes) {
    std::optional<Saving> saving = with_options(p, changes, std::move(what), resolve);
    if (!saving || saving->total >= p.memory.total()) return false;
    all.push_back(*std::move(saving));
    return true;
  };
  const bool half = p.precision->name != "fp32" && !p.precision->name.starts_with("tf32");
  Changes full, of_adapters;
  if (saves("activations of blocks made again", {kRecompute})) full.push_back(kRecompute);
  if (saves("scores of words in pieces", {kLoss})) full.push_back(kLoss);
  if (half && saves("weights and optimizer in 16 bits, too", {kPure})) full.push_back(kPure);
  of_adapters = full;
  if (saves("the host keeps the optimizer's state", {kOffload})) full.push_back(kOffload);
  if (full.size() > 1) saves("all of these", full);
  of_adapters.insert(of_adapters.begin(), kLora);
  if (saves("adapters alone are trained", {kLora}) && of_adapters.size() > 1)
    saves("all but the host", of_adapters);
  return all;
}

}  // namespace tbdsim
