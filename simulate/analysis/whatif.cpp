#include "simulate/analysis/whatif.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "simulate/prediction/scenario_keys.h"
#include "simulate/workload/change_scope.h"

namespace tbdsim {
namespace {

constexpr double kLargestFactor = 1'000'000'000;  // of a rate that limits nothing any more

Seconds time_of_kind(const Prediction& p, std::size_t kind) {
  Seconds sum;
  for (const Iteration& iteration : p.iterations) {
    for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
      if (index_of(iteration.step->kernels[k].kind) == kind)
        sum += busy_time(k, *iteration.step, iteration.costs, iteration.timeline) * iteration.share;
    }
  }
  return sum;
}

Seconds sync_time(const Prediction& p, Seconds SyncTime::*part) {
  Seconds sum;
  for (const Iteration& iteration : p.iterations) sum += iteration.sync.*part * iteration.share;
  return sum;
}

GpuSpec unlimited(GpuSpec gpu, bool bandwidth, bool compute) {
  if (bandwidth) gpu.memory_bandwidth = gpu.memory_bandwidth * kLargestFactor;
  if (!compute) return gpu;
  gpu.tdp = gpu.tdp * kLargestFactor;
  for (auto& rate : gpu.math) {
    if (rate) rate->peak = rate->peak * kLargestFactor;
  }
  return gpu;
}

Framework unlimited(Framework framework) {
  LaunchModel& e = framework.launch_model;
  for (Seconds* time : {&e.launch_overhead, &e.loop_step_overhead, &e.update_overhead, &e.sync_overhead,
                        &e.iteration_overhead, &e.launch_latency, &e.kernel_gap})
    *time = Seconds(0);
  return framework;
}

struct RemovedLimits {
  bool bandwidth = false, compute = false, launches = false, sync = false, input = false;
};

UpperBound bound_without(const Prediction& p, std::string name, const RemovedLimits& removed) {
  const GpuSpec gpu = unlimited(*p.gpu, removed.bandwidth, removed.compute);
  Prediction changed = with_rates(p, std::make_shared<const GpuSpec>(gpu));
  for (Iteration& iteration : changed.iterations) {
    if (removed.sync) iteration.sync = {};
    if (removed.input) iteration.input = iteration.input_copy = Seconds(0);
  }
  const Seconds time =
      removed.launches ? iteration_time_with(unlimited(*p.framework), changed) : changed.iteration_time();
  return {std::move(name), p.throughput() * (p.iteration_time() / time)};
}

// Throws for a change of one file by its name if the scenario names another file.
void require_meant(const SpecChange& change, const Scenario& scenario) {
  if (change.only.empty()) return;
  const auto require = [&](std::string_view spec, const std::string& name) {
    if (change.spec == spec && !name.empty() && change.only != name)
      throw UsageError(in_quotes(key_text(change)) + " is of " + change.only + ", and the " +
                       std::string(spec) + " is " + name + "; expected a change of that");
  };
  require("gpu", scenario.gpu);
  require("framework", scenario.framework);
  require("model", scenario.model);
  require("dataset", scenario.dataset);
  require("machine", scenario.cluster.machine);
}

}  // namespace

Prediction predict_changed(Scenario scenario, const SpecChanges& changes, const Resolver& resolve) {
  SpecChanges of_specs;
  for (const SpecChange& change : changes) {
    const ScenarioKey* key = find_scenario_key(key_text(change));
    if (!change.spec.empty() && key == nullptr) {
      of_specs.push_back(change);
      continue;
    }
    if (key == nullptr) {
      throw UsageError("unknown key " + in_quotes(change.path.front()) +
                       did_you_mean(change.path.front(), scenario_key_names()) + "; expected one of " +
                       joined(scenario_key_names()) + ", or a key of a spec as gpu.sm_count");
    }
    key->set(scenario, change.value);
  }
  of_specs = scoped(std::move(of_specs), resolve.catalog());
  for (const SpecChange& change : of_specs) require_meant(change, scenario);
  return predict(resolve(scenario, of_specs));
}

std::vector<TimePart> time_parts(const Prediction& before, const Prediction& after) {
  std::vector<TimePart> parts;
  const auto idle = [](const Prediction& p, Limit limit) { return p.iteration_time() * p.share(limit); };
  for (std::size_t kind = 0; kind < kKernelKindCount; ++kind) {
    if (static_cast<KernelKind>(kind) == KernelKind::transfer) continue;
    const TimePart part{std::string(kKernelKindNames[kind]), time_of_kind(before, kind),
                        time_of_kind(after, kind)};
    if (part.before > Seconds(0) || part.after > Seconds(0)) parts.push_back(part);
  }
  parts.push_back({"GPU waits for the CPU and copies", idle(before, Limit::cpu), idle(after, Limit::cpu)});
  if (idle(before, Limit::input) > Seconds(0) || idle(after, Limit::input) > Seconds(0))
    parts.push_back({"GPU waits for samples", idle(before, Limit::input), idle(after, Limit::input)});
  if (before.ranks() == 1 && after.ranks() == 1) return parts;
  const auto add = [&](const char* name, Seconds SyncTime::*part) {
    parts.push_back({name, sync_time(before, part), sync_time(after, part)});
  };
  add("GPU waits for gradients", &SyncTime::exposed);
  add("kernels slowed by the exchange", &SyncTime::contention);
  add("GPU waits for the slowest one", &SyncTime::stragglers);
  if (sync_time(before, &SyncTime::host) > Seconds(0) || sync_time(after, &SyncTime::host) > Seconds(0))
    add("GPU waits for the host's work for others", &SyncTime::host);
  return parts;
}

std::vector<UpperBound> upper_bounds(const Prediction& p) {
  std::vector<UpperBound> bounds{bound_without(p, "infinite memory bandwidth", {.bandwidth = true}),
                                 bound_without(p, "infinite compute", {.compute = true}),
                                 bound_without(p, "launches and waits at no cost", {.launches = true})};
  const bool several = p.ranks() > 1;
  if (several) bounds.push_back(bound_without(p, "gradients exchanged at no cost", {.sync = true}));
  const bool input = std::any_of(p.iterations.begin(), p.iterations.end(),
                                 [](const Iteration& i) { return i.input > Seconds(0); });
  if (input) bounds.push_back(bound_without(p, "samples at no cost", {.input = true}));
  constexpr std::string_view kAll[] = {"all three", "all four", "all five"};
  bounds.push_back(
      bound_without(p, std::string(kAll[bounds.size() - 3]), {true, true, true, several, input}));
  return bounds;
}

}  // namespace tbdsim
