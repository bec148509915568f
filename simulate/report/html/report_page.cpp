#include "simulate/report/html/report_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/predict_all.h"
#include "simulate/prediction/repredict.h"
#include "simulate/report/html/report_sections.h"
#include "simulate/report/kernel_sources.h"

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
                                               const std::vector<Prediction>& predictions, SpecCache& specs) {
  std::vector<Scenario> all;
  std::vector<std::ptrdiff_t> counts;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const std::vector<Scenario> sizes = growing(scenarios[i], predictions[i]);
    counts.push_back(static_cast<std::ptrdiff_t>(sizes.size()));
    all.insert(all.end(), sizes.begin(), sizes.end());
  }
  std::vector<Prediction> grown = predict_all(all, specs);
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
                               SpecCache& specs) {
  std::vector<Scenario> there;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    Scenario& scenario = there.emplace_back(scenarios[i]);
    scenario.gpu = gpu;
    scenario.batch = predictions[i].scenario.batch;
    scenario.tokens = predictions[i].scenario.tokens;
    scenario.profile.clear();  // the other GPU has its own
  }
  return predict_all(there, specs);
}

// Scaling on the clusters that the framework can use.
std::vector<ScalingPoint> scaling_of(const Prediction& prediction, std::span<const Cluster> clusters,
                                     SpecCache& specs) {
  const Prediction one = with_cluster(prediction, {}, std::nullopt);
  std::vector<ScalingPoint> points;
  for (const Cluster& cluster : clusters) {
    try {
      points.push_back(scaling_point(one, cluster, specs));
    } catch (const UsageError&) {
    }
  }
  return points;
}

std::vector<std::string> summary_of(const ReportData& data) {
  const Prediction& first = data.predictions[0];
  const GpuSpec& gpu = *first.gpu;
  return {
      fmt::format("{}: {} SMs, {} in fp32, {} of {} at {}, {}", gpu.title, gpu.sm_count,
                  to_text(rate_of(gpu, MathType::fp32).peak), memory_text(gpu.usable_memory, gpu.memory_size),
                  gpu.memory_type, to_text(gpu.memory_bandwidth), to_text(gpu.tdp)),
      "kernel times: " + kernel_sources(data.predictions),
      "Everything here is predicted by tbd-sim " TBDSIM_VERSION
      ", nothing measured; intervals hold 80 % of what is expected to be measured."};
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
                       SpecCache& specs, const ReportScope& scope) {
  ReportData data;
  data.predictions = predict_all(scenarios, specs);
  data.growth = growth_of(scenarios, data.predictions, specs);
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (!scope.fitting || data.predictions[i].fits || data.growth[i].empty()) continue;
    data.predictions[i] = data.growth[i].back();
    data.all_fit = false;
  }
  data.others.assign(others.begin(), others.end());
  for (const std::string& gpu : others)
    data.on_others.push_back(on_gpu(data.predictions, scenarios, gpu, specs));
  data.scaling.resize(scenarios.size());
  data.bounds.resize(scenarios.size());
  data.sensitivities.resize(scenarios.size());
  for_each_index(scenarios.size(), [&](std::size_t i) {
    const Prediction& p = data.predictions[i];
    data.scaling[i] = scaling_of(p, scope.clusters, specs);
    data.bounds[i] = upper_bounds(p);
    if (scope.sensitivities) data.sensitivities[i] = sensitivities(p.scenario, p, specs);
  });
  return data;
}

Page report_page(const ReportData& data, SpecCache& specs) {
  constexpr Section (*kSections[])(const ReportData&) = {
      overview_section, throughput_section, gpu_section,    fp32_section, comparison_section,
      memory_section,   scaling_section,    whatif_section, time_section, kernels_section};
  const Prediction& first = data.predictions[0];
  Page page;
  page.title = fmt::format("Training on {}, {}", first.gpu->title, first.scenario.precision);
  page.summary = summary_of(data);
  for (const auto section : kSections) {
    Section made = section(data);
    if (!made.views.empty()) page.sections.push_back(std::move(made));
  }
  page.sections.push_back(sources_section(data, specs));
  return page;
}

}  // namespace tbdsim
