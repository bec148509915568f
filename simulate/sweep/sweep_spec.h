// The options of a sweep as text, from flags or a YAML file.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "simulate/sweep/run.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

struct SweepOptions {
  std::vector<std::pair<std::string, std::string>> axes;  // key and values, in any order
  std::string metrics;                                    // "throughput,memory_total"; empty: the usual ones
  std::string best;                                       // a metric
  std::string pareto;                                     // metrics
  std::string per;                                        // axes
  std::vector<std::string> where;                         // bounds
};

// A file of `model: resnet50`, `gpu: [titanxp, p4000]`, `batch: 1:200`, `set: {gpu.memory_bandwidth: ...}`,
// `metrics: [...]`, `best:`, `pareto:`, `per:`, `where: [...]`. Throws UsageError or SpecError.
[[nodiscard]] SweepOptions read_sweep(const std::filesystem::path& file);

// The sweep of these options, checked, with all its points. Axes are in the order of scenario_keys(), then
// changes as given. Throws as check().
[[nodiscard]] SweepRun sweep_run(const SweepOptions& options, RowFormat format, SpecCache& specs);

// A text that differs between different sweeps: the program's version, points, format, axes, metrics, and the
// files that rows depend on with their digests, a line each.
[[nodiscard]] std::string description(const SweepRun& run, const Catalog& catalog);

}  // namespace tbdsim
