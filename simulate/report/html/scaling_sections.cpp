#include "simulate/report/html/scaling_sections.h"

#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/metrics.h"

namespace tbdsim {
namespace {

std::string counted(int count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "4 GPUs", "2 machines x 1 GPU, ethernet_1g".
std::string cluster_text(const Cluster& cluster) {
  const std::string gpus = counted(cluster.gpus, "GPU");
  if (cluster.machines == 1) return gpus;
  return fmt::format("{} x {}, {}", counted(cluster.machines, "machine"), gpus, cluster.network);
}

std::string hover_of(const ScalingPoint& point) {
  const Seconds time = point.prediction.iteration_time();
  std::string text =
      fmt::format("{:.2f} times one GPU, efficiency {:.0f} %; waits {:.1f} % of {}", point.speed_up,
                  kPercent * point.efficiency, kPercent * (point.exposed / time), to_text(time));
  if (point.busiest)
    text += fmt::format("; {} is full {:.0f} % of it", point.busiest->name, kPercent * point.load);
  return text;
}

Series series_of(const ReportData& data, std::size_t i) {
  Series series{.mark = ChartMark::bar,
                .name = data.predictions[i].framework->name,
                .colour = colour_of(data, data.predictions[i])};
  for (const ScalingPoint& point : data.scaling[i]) {
    series.categories.push_back(cluster_text(point.prediction.scenario.cluster));
    series.x.push_back(point.prediction.throughput());
    series.hover.push_back(hover_of(point));
  }
  return series;
}

Series bounds_series(const Prediction& p, const std::vector<UpperBound>& bounds) {
  Series series{.mark = ChartMark::bar, .name = title_of(p), .colour = 0};
  for (const UpperBound& bound : bounds) {
    const double ratio = bound.throughput / p.throughput();
    series.categories.push_back(bound.name);
    series.x.push_back(ratio);
    series.hover.push_back(fmt::format("{:.4g} {} instead of {:.4g}", bound.throughput,
                                       throughput_unit(*p.model), p.throughput()));
  }
  return series;
}

constexpr double kLeastElasticity = 0.0005;  // smaller ones would print as 0.000

Series sensitivity_series(const Prediction& p, const std::vector<Sensitivity>& all) {
  Series series{.mark = ChartMark::bar, .name = title_of(p), .colour = 2};
  for (const Sensitivity& one : all) {
    if (std::abs(one.elasticity) < kLeastElasticity) continue;
    series.categories.push_back(one.key);
    series.x.push_back(one.elasticity);
    series.hover.push_back(fmt::format("now {}; twice as much: {:+.1f} % throughput", one.value,
                                       kPercent * (one.if_doubled - 1)));
  }
  return series;
}

}  // namespace

Section scaling_section(const ReportData& data) {
  Section section{
      .title = "Several GPUs",
      .text = {"Throughput with the batch of each GPU as it is (Figure 9 of the paper). Pointing at a "
               "bar says how much of it waits for gradients, and which link is busiest."}};
  View view;
  for (const ModelRange& range : models_of(data)) {
    const Prediction& first = data.predictions[range.first];
    Chart chart{.title = first.model->title, .x = {.title = "throughput, " + throughput_unit(*first.model)}};
    for (std::size_t i = range.first; i < range.last; ++i) chart.series.push_back(series_of(data, i));
    view.charts.push_back(std::move(chart));
  }
  section.views.push_back(std::move(view));
  return section;
}

Section whatif_section(const ReportData& data) {
  Section section{
      .title = "What would help",
      .text = {"Throughput over what it is if one limit were gone; and what one per cent more of each "
               "number of the hardware and the framework is worth, in per cent of throughput."}};
  for (std::size_t i = 0; i < data.predictions.size(); ++i) {
    const Prediction& p = data.predictions[i];
    View view{.name = fmt::format("{}, batch {}", title_of(p), p.scenario.batch)};
    view.charts.push_back({.title = "If it had ...",
                           .x = {.title = "throughput over what it is"},
                           .series = {bounds_series(p, data.bounds[i])}});
    // No sensitivity is left if the input pipeline limits the throughput.
    if (Series worth = sensitivity_series(p, data.sensitivities[i]); !worth.x.empty())
      view.charts.push_back({.title = "What one per cent more is worth",
                             .x = {.title = "throughput, %"},
                             .series = {std::move(worth)}});
    section.views.push_back(std::move(view));
  }
  return section;
}

}  // namespace tbdsim
