#include "simulate/prediction/resolve.h"

#include <string>
#include <string_view>

#include "graphs/token_batch.h"
#include "hwspecs/base/error.h"
#include "simulate/memory/driver_memory.h"
#include "simulate/prediction/cluster_machine.h"
#include "simulate/workload/captured_model.h"
#include "simulate/workload/precision_choice.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {
namespace {

void require_range(std::string_view what, std::int64_t value, std::int64_t least) {
  if (value >= least && value <= kMostSamples) return;
  throw UsageError(std::string(what) + " " + std::to_string(value) + " is out of range; expected 1 to " +
                   std::to_string(kMostSamples));
}

// A data set named by the user must have samples of the sort that the model trains on.
void require_same_samples(const Dataset& dataset, const ModelFile& model, bool named) {
  if (!named || dataset.sample == model.sample) return;
  throw UsageError("data set " + dataset.name + " is of " + dataset.sample + "s; " + model.name + " trains " +
                   model.sample + "s");
}

// Samples in an iteration whose samples are padded to `length`.
std::int64_t batch_of(const Scenario& scenario, const Variant& variant, std::int64_t length) {
  if (scenario.tokens == 0) return scenario.batch;
  const std::int64_t shortest = variant.buckets.empty() ? length : variant.buckets.front();
  return token_batch(variant.token_batches, scenario.tokens, length, shortest);
}

// Tensor cores that apply scales of blocks of fp8 numbers came with those of fp4 (compute capability 10).
void require_arithmetic(const GpuSpec& gpu, const Precision& precision) {
  if (precision.scaling != Scaling::blocks || gpu.math[index_of(MathType::fp4)]) return;
  throw UsageError(gpu.title + " has no tensor cores that scale blocks of numbers, which " +
                   std::string(precision.name) + " needs; expected " +
                   (gpu.math[index_of(MathType::fp8)] ? "fp8, fp8_rowwise or bf16" : "bf16 or fp16"));
}

// The scenario's target, with the epochs that the scenario gives it.
std::shared_ptr<const Convergence> target_of(const Scenario& scenario, const std::string& model,
                                             SpecCache& specs) {
  auto target = specs.convergence(model, scenario.target);
  if (scenario.epochs <= 0) return target;
  Convergence given = *target;
  given.given_epochs = scenario.epochs;
  return std::make_shared<const Convergence>(std::move(given));
}

void resolve_model(ResolvedScenario& r, SpecCache& specs) {
  Scenario& scenario = r.scenario;
  r.model = specs.model(scenario.model);
  r.precision = &precision_on(*r.model, scenario.precision, *r.framework, *r.gpu);
  scenario.precision = r.precision->name;
  require_arithmetic(*r.gpu, *r.precision);
  r.variant = &find_variant(*r.model, scenario.variant, r.framework->family);
  scenario.variant = r.variant->name;
  const bool named = !scenario.dataset.empty();
  const std::string& dataset = named ? scenario.dataset : r.variant->dataset;
  if (!dataset.empty()) {
    r.dataset = specs.dataset(dataset);
    require_same_samples(*r.dataset, *r.model, named);
  }
  if (!scenario.target.empty()) r.convergence = target_of(scenario, r.model->name, specs);
  if (scenario.tokens > 0 && !r.model->sizes.contains(std::string(kLengthSize)))
    throw UsageError(r.model->name + " has no sequences to count tokens of");
}

void resolve_batches(ResolvedScenario& r) {
  const std::int64_t most = r.model->largest_batch;
  for (const LengthStep& step : *r.steps) {
    std::int64_t batch = batch_of(r.scenario, *r.variant, step.bucket.length);
    if (most > 0 && batch > most) {
      batch = most;
      r.batch_limited = true;
    }
    require_captured_batch(*r.model, batch);
    r.batches.push_back(batch);
  }
  if (r.batch_limited) r.scenario.batch = most;
}

void resolve_steps(ResolvedScenario& r, SpecCache& specs) {
  const Scenario& scenario = r.scenario;
  const std::string& dataset = scenario.dataset.empty() ? r.variant->dataset : scenario.dataset;
  r.steps = specs.workload(scenario.model, *r.variant, {scenario.framework, r.framework}, *r.precision,
                           dataset, scenario.sizes, scenario.training);
  resolve_batches(r);
  r.factors = factors_on(*r.framework, *r.gpu, r.precision->math);
  for (const LengthStep& step : *r.steps)
    r.fixed_costs.push_back(specs.fixed_costs(step.step, *r.calibration, r.factors));
}

}  // namespace

std::optional<SyncPlan> resolve_sync(Cluster cluster, const GpuSpec& gpu, const Framework& framework,
                                     const Variant& variant, SpecCache& specs) {
  require_cluster(cluster);
  if (cluster.ranks() == 1) return std::nullopt;
  if (cluster.method.empty() && cluster.machines == 1)
    cluster.method = method_within(framework.sync, variant);
  return plan_sync(cluster, gpu, framework, machine_for(cluster, gpu, specs));
}

ResolvedScenario resolve(const Scenario& scenario, SpecCache& specs) {
  require_range("batch", scenario.batch, 1);
  require_range("tokens", scenario.tokens, 0);
  require_cluster(scenario.cluster);
  ResolvedScenario r;
  r.scenario = scenario;
  r.batch_asked = scenario.batch;
  std::string& gpu = r.scenario.gpu;
  if (gpu.empty() && !scenario.cluster.machine.empty()) gpu = specs.machine(scenario.cluster.machine)->gpu;
  r.gpu = specs.gpu(gpu);
  r.device_memory = {driver_page(*r.gpu), cublas_workspace(*r.gpu)};
  r.framework = specs.framework(scenario.framework);
  r.calibration = specs.calibration({gpu, r.gpu}, scenario.profile, {scenario.framework, r.framework});
  r.profile = {r.calibration, r.calibration->profile};
  resolve_model(r, specs);
  r.loader = loader_of(scenario.input, r.framework->launch_model, r.model->name, r.dataset.get());
  r.cores = cores_alone(scenario.cluster, *r.gpu, specs);
  r.sync = resolve_sync(scenario.cluster, *r.gpu, *r.framework, *r.variant, specs);
  resolve_steps(r, specs);
  return r;
}

ResolvedScenario Resolver::operator()(const Scenario& scenario, const SpecChanges& changes) const {
  if (changes.empty()) return resolve(scenario, *specs_);
  SpecCache changed(*specs_, changes);
  return resolve(scenario, changed);
}

std::optional<SyncPlan> Resolver::sync(const Cluster& cluster, const ResolvedScenario& r) const {
  return resolve_sync(cluster, *r.gpu, *r.framework, *r.variant, *specs_);
}

double Resolver::cores_alone(const Cluster& cluster, const GpuSpec& gpu) const {
  return tbdsim::cores_alone(cluster, gpu, *specs_);
}

MachineSpec Resolver::machine(const Cluster& cluster, const GpuSpec& gpu) const {
  return machine_for(cluster, gpu, *specs_);
}

std::shared_ptr<const Framework> Resolver::framework_of_version(const std::string& family,
                                                                const std::string& version) const {
  return specs_->framework_of_version(family, version);
}

const Catalog& Resolver::catalog() const { return specs_->catalog(); }

}  // namespace tbdsim
