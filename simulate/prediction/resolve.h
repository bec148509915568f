// From names to specs: the only step of a prediction that reads files.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/spec_change.h"
#include "hwspecs/machine_spec.h"
#include "simulate/prediction/resolved_scenario.h"

namespace tbdsim {

class SpecCache;

// The scenario with everything that its names stand for, each file looked up once. A scenario without a GPU
// has that of its cluster's machine. Throws UsageError, SpecError or ModelError.
[[nodiscard]] ResolvedScenario resolve(const Scenario& scenario, SpecCache& specs);

// The plan by which the GPUs of a cluster synchronize gradients; none for one GPU. Throws as
// require_cluster(), machine_for() and plan_sync().
[[nodiscard]] std::optional<SyncPlan> resolve_sync(Cluster cluster, const GpuSpec& gpu,
                                                   const Framework& framework, const Variant& variant,
                                                   SpecCache& specs);

// Resolves names with the files of one cache: all that analyses, validation and reports see of the cache.
class Resolver {
 public:
  Resolver(SpecCache& specs) : specs_(&specs) {}  // a cache is one; it must outlive the resolver

  // resolve() with changed fields of specs.
  [[nodiscard]] ResolvedScenario operator()(const Scenario& scenario, const SpecChanges& changes = {}) const;
  // resolve_sync() of what the scenario trains.
  [[nodiscard]] std::optional<SyncPlan> sync(const Cluster& cluster, const ResolvedScenario& r) const;
  // CPU cores of the machine of a single GPU (cluster_machine.h).
  [[nodiscard]] double cores_alone(const Cluster& cluster, const GpuSpec& gpu) const;
  // The machine of a cluster with `gpu` in its slots. Throws as machine_for().
  [[nodiscard]] MachineSpec machine(const Cluster& cluster, const GpuSpec& gpu) const;
  // SpecCache::framework_of_version().
  [[nodiscard]] std::shared_ptr<const Framework> framework_of_version(const std::string& family,
                                                                      const std::string& version) const;
  [[nodiscard]] const Catalog& catalog() const;

 private:
  SpecCache* specs_;
};

}  // namespace tbdsim
