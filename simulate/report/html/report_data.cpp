#include "simulate/report/html/report_data.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "hwspecs/base/error.h"
#include "simulate/prediction/predict_all.h"
#include "simulate/prediction/repredict.h"
#include "simulate/workload/parallel.h"

namespace tbdsim {
namespace {

constexpr int kDoublings = 10;              // batches from 1 to 2^10
constexpr std::int64_t kFewestTokens = 64;  // of the smallest batch of a scenario that gives tokens

// The scenario at the batches 1, 2, 4, ... up to twice the largest that fits.
std::vector<Scenario> growing(const Scenario& scenario, const Prediction& prediction) {
  const std::int64_t most = 2 * prediction.largest_batch();
  std::vector<Scenario> sizes;
  for (int doubling = 0; doubling <= kDoublings; ++doubling) {
    const std::int64_t size = std::int64_t{1} << doubling;
    Scenario& one = sizes.emplace_back(scenario);
    if (scenario.tokens > 0) {
      one.tokens = kFewestTokens * size;
    } else if (size > most) {
      sizes.pop_back();
    } else {
      one.batch = size;
    }
  }
  return sizes;
}

// Drops predictions from the first that does not fit or whose batch the model limits.
void keep_fitting(std::vector<Prediction>& predictions) {
  const auto too_large =
      std::find_if(predictions.begin(), predictions.end(), [](const Prediction& p) { return !p.fits; });
  predictions.erase(too_large, predictions.end());
  const auto limited = std::find_if(predictions.begin(), predictions.end(),
                                    [](const Prediction& p) { return p.batch_limited; });
  predictions.erase(limited, predictions.end());
}

std::vector<std::vector<Prediction>> growth_of(std::span<const Scenario> scenarios,
                                               const std::vector<Prediction>& predictions,
                                               const Resolver& resolve) {
  std::vector<Scenario> all;
  std::vector<std::ptrdiff_t> counts;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const std::vector<Scenario> sizes = growing(scenarios[i], predictions[i]);
    counts.push_back(static_cast<std::ptrdiff_t>(sizes.size()));
    all.insert(all.end(), sizes.begin(), sizes.end());
  }
  std::vector<Prediction> grown = predict_all(all, resolve);
  std::vector<std::vector<Prediction>> growth;
  auto from = grown.begin();
  for (const std::ptrdiff_t count : counts) {
    growth.emplace_back(std::make_move_iterator(from), std::make_move_iterator(from + count));
    keep_fitting(growth.back());
    from += count;
  }
  return growth;
}

std::vector<Prediction> on_gpu(const std::vector<Prediction>& predictions,
                               std::span<const Scenario> scenarios, const std::string& gpu,
                               const Resolver& resolve) {
  std::vector<Scenario> there;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    Scenario& scenario = there.emplace_back(scenarios[i]);
    scenario.gpu = gpu;
    scenario.batch = predictions[i].scenario.batch;
    scenario.tokens = predictions[i].scenario.tokens;
    scenario.profile.clear();  // the other GPU has its own
  }
  return predict_all(there, resolve);
}

// Scaling on the clusters that the framework can use.
std::vector<ScalingPoint> scaling_of(const Prediction& prediction, std::span<const Cluster> clusters,
                                     const Resolver& resolve) {
  const Prediction one = with_cluster(prediction, {}, std::nullopt);
  std::vector<ScalingPoint> points;
  for (const Cluster& cluster : clusters) {
    try {
      points.push_back(scaling_point(one, cluster, resolve));
    } catch (const UsageError&) {
    }
  }
  return points;
}

constexpr int kGpusOfMachine = 8;
constexpr int kMostMachines = 64;

std::vector<Cluster> target_clusters() {
  std::vector<Cluster> clusters;
  for (int gpus = 1; gpus <= kGpusOfMachine; gpus *= 2) clusters.push_back({.gpus = gpus});
  for (int machines = 2; machines <= kMostMachines; machines *= 2)
    clusters.push_back({.gpus = kGpusOfMachine, .machines = machines, .network = "infiniband_200g"});
  return clusters;
}

// The runs of the first clusters that the framework can use.
std::vector<TargetRun> runs_to_target(const Scenario& scenario, const Resolver& resolve) {
  std::vector<TargetRun> runs;
  for (const Cluster& cluster : target_clusters()) {
    try {
      runs.push_back(std::move(target_runs(scenario, {}, std::span(&cluster, 1), resolve).front()));
    } catch (const UsageError&) {
      break;
    }
  }
  return runs;
}

std::vector<TargetRun> runs_by_batch(const Scenario& scenario, const std::vector<Prediction>& growth,
                                     const Resolver& resolve) {
  const Cluster eight{.gpus = kGpusOfMachine};
  std::vector<TargetRun> runs;
  for (const Prediction& p : growth) {
    try {
      runs.push_back(std::move(
          target_runs(scenario, {.each = p.scenario.batch, .global = {}}, std::span(&eight, 1), resolve)
              .front()));
    } catch (const UsageError&) {
      break;
    }
  }
  return runs;
}

}  // namespace

std::vector<Cluster> paper_clusters() {
  return {{},
          {.gpus = 2},
          {.gpus = 4},
          {.machines = 2, .network = "ethernet_1g"},
          {.machines = 2, .network = "infiniband_100g"}};
}

ReportData report_data(std::span<const Scenario> scenarios, std::span<const std::string> others,
                       const Resolver& resolve, const ReportScope& scope) {
  ReportData data;
  data.predictions = predict_all(scenarios, resolve);
  data.growth = growth_of(scenarios, data.predictions, resolve);
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (!scope.fitting || data.predictions[i].fits || data.growth[i].empty()) continue;
    data.predictions[i] = data.growth[i].back();
    data.all_fit = false;
  }
  data.others.assign(others.begin(), others.end());
  for (const std::string& gpu : others)
    data.on_others.push_back(on_gpu(data.predictions, scenarios, gpu, resolve));
  data.scaling.resize(scenarios.size());
  data.bounds.resize(scenarios.size());
  data.sensitivities.resize(scenarios.size());
  const bool target = !scenarios.empty() && !scenarios.front().target.empty();
  if (target) {
    data.to_target.resize(scenarios.size());
    data.to_target_by_batch.resize(scenarios.size());
  }
  for_each_index(scenarios.size(), [&](std::size_t i) {
    if (target) {
      data.to_target[i] = runs_to_target(scenarios[i], resolve);
      data.to_target_by_batch[i] = runs_by_batch(scenarios[i], data.growth[i], resolve);
    }
    const Prediction& p = data.predictions[i];
    data.scaling[i] = scaling_of(p, scope.clusters, resolve);
    data.bounds[i] = upper_bounds(p);
    if (scope.sensitivities) data.sensitivities[i] = sensitivities(p.scenario, p, resolve);
  });
  return data;
}

std::string title_of(const Prediction& p) { return p.model->name + ", " + p.framework->name; }

int colour_of(const ReportData& data, const Prediction& prediction) {
  std::vector<std::string_view> frameworks;
  for (const Prediction& p : data.predictions) {
    if (std::find(frameworks.begin(), frameworks.end(), p.framework->name) == frameworks.end())
      frameworks.push_back(p.framework->name);
  }
  return static_cast<int>(std::find(frameworks.begin(), frameworks.end(), prediction.framework->name) -
                          frameworks.begin());
}

std::vector<ModelRange> models_of(const ReportData& data) {
  std::vector<ModelRange> ranges;
  for (std::size_t i = 0; i < data.predictions.size(); ++i) {
    if (i == 0 || data.predictions[i].model != data.predictions[i - 1].model) ranges.push_back({i, i});
    ranges.back().last = i + 1;
  }
  return ranges;
}

}  // namespace tbdsim
