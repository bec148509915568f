#include "simulate/serve/live_report.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/html/chart_json.h"
#include "simulate/report/html/kernel_sections.h"
#include "simulate/report/html/paper_figures.h"
#include "simulate/report/html/scaling_sections.h"
#include "simulate/report/kernel_sources.h"
#include "simulate/report/whatif_tables.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

// The metrics on cards, in their order.
constexpr std::array<std::string_view, 7> kTiles = {"throughput",       "iteration_time",  "gpu_utilization",
                                                    "fp32_utilization", "cpu_utilization", "memory_total",
                                                    "largest_batch"};

// The command that prints the same numbers; empty for several GPUs of changed hardware, which no command
// predicts.
std::string command_of(const LiveQuery& query) {
  const Scenario& s = query.scenario;
  const bool alone = s.cluster.ranks() == 1;
  if (!alone && !query.changes.empty()) return "";
  const char* const what = !alone ? "scaling " : query.changes.empty() ? "--model " : "whatif ";
  std::string command = fmt::format("tbd-sim {}{} --framework {} --gpu {} --batch {}", what, s.model,
                                    s.framework, s.gpu, s.batch);
  if (!s.variant.empty()) command += " --variant " + s.variant;
  if (!s.precision.empty() && s.precision != "fp32") command += " --precision " + s.precision;
  if (!alone) command += fmt::format(" --gpus {} --machines {}", s.cluster.gpus, s.cluster.machines);
  if (!alone && !s.cluster.network.empty()) command += fmt::format(" --network '{}'", s.cluster.network);
  for (const SpecChange& change : query.changes) command += fmt::format(" --set '{}'", to_text(change));
  return command;
}

std::string note_of(std::string_view metric, const Prediction& p) {
  if (metric == "throughput") {
    const Interval interval = p.throughput_interval();
    return fmt::format("80 %: {:.4g} to {:.4g}", interval.low, interval.high);
  }
  if (metric == "iteration_time") return "bound by " + std::string(name_of(p.bound()));
  if (metric == "memory_total")
    return (p.fits ? "fits into " : "does not fit into ") + to_text(p.usable_memory());
  return "";
}

Json tiles_of(const Prediction& before, const Prediction& after, const SpecChanges& changes) {
  const Table table = before_and_after_table(before, after, changes);
  Json tiles = Json::array();
  for (const std::string_view name : kTiles) {
    const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                  [&](const std::vector<Cell>& cells) { return cells[1].text == name; });
    if (row == table.rows.end()) continue;
    tiles.push_back({{"name", name},
                     {"text", (*row)[4].text},
                     {"change", (*row)[5].text},
                     {"note", note_of(name, after)},
                     {"wrong", name == "memory_total" && !after.fits}});
  }
  return tiles;
}

// 1 to 8 GPUs in one machine, then 2 to 16 machines of the GPUs and network of `asked`.
std::vector<Cluster> clusters_for(const Cluster& asked) {
  std::vector<Cluster> clusters;
  for (const int gpus : {1, 2, 4, 8}) clusters.push_back({.gpus = gpus});
  const std::string network = asked.network.empty() ? "ethernet_10g" : asked.network;
  for (const int machines : {2, 4, 16})
    clusters.push_back({.gpus = asked.gpus, .machines = machines, .network = network});
  return clusters;
}

Chart first_chart(Section section, const std::string& title) {
  if (section.views.empty() || section.views[0].charts.empty()) return {.title = title};
  Chart chart = std::move(section.views[0].charts[0]);
  chart.title = title;
  return chart;
}

// A vertical line at the scenario's batch.
Series here(const Prediction& p, double from, double to) {
  const auto batch = static_cast<double>(p.scenario.batch);
  return {.name = "this batch", .colour = 3, .x = {batch, batch}, .y = {from, to}, .dashed = true};
}

Section batch_section(const ReportData& data) {
  const Prediction& p = data.predictions[0];
  Chart throughput = first_chart(throughput_section(data), "Throughput");
  if (!throughput.series.empty()) {
    const Series& line = throughput.series[0];
    throughput.series.push_back(here(p, line.low.front(), std::max(line.high.back(), p.throughput())));
  }
  Chart utilization = first_chart(gpu_section(data), "Utilization");
  const Chart fp32 = first_chart(fp32_section(data), "");
  if (!utilization.series.empty()) {
    utilization.series[0].name = "GPU";
    utilization.series.push_back(fp32.series[0]);
    utilization.series[1].name = "FP32";
    utilization.series[1].colour = 1;
    utilization.series.push_back(here(p, 0, kPercent));
    utilization.y.title = "utilization, %";
  }
  Section section{.title = "Over the batch", .text = {"As far as it fits; the area is the 80 % interval."}};
  section.views.push_back({.charts = {std::move(throughput), std::move(utilization)}});
  return section;
}

// Memory and time by category, narrow charts first.
Section parts_section(const ReportData& data) {
  ReportData now;
  now.predictions = data.predictions;
  now.growth = {data.predictions};
  Section section = time_section(data);
  section.title = "Where memory and time go";
  section.text.clear();
  std::vector<Chart>& charts = section.views[0].charts;
  charts.insert(charts.begin(), first_chart(memory_section(now), "Memory of one GPU"));
  std::stable_partition(charts.begin(), charts.end(), [](const Chart& chart) { return !chart.wide; });
  return section;
}

ReportData data_of(const LiveQuery& query, SpecCache& specs) {
  return report_data(std::span(&query.scenario, 1), {}, specs,
                     {.clusters = clusters_for(query.scenario.cluster), .fitting = false});
}

std::vector<Section> sections_of(const ReportData& data, bool kernels) {
  std::vector<Section> sections;
  sections.push_back(batch_section(data));
  sections.push_back(parts_section(data));
  Section more = scaling_section(data);
  more.views[0].charts[0].title = "Throughput of several GPUs";
  more.views[0].charts.push_back(first_chart(whatif_section(data), "If it had ..."));
  more.title = "More GPUs, fewer limits";
  sections.push_back(std::move(more));
  if (kernels) sections.push_back(kernels_section(data));
  return sections;
}

}  // namespace

std::string live_report(const LiveQuery& query, SpecCache& specs) {
  SpecCache changed(specs, query.changes);
  const ReportData data = data_of(query, changed);
  const Prediction& after = data.predictions[0];
  const Prediction before = query.changes.empty() ? after : predict(query.scenario, specs);
  const std::vector<Section> sections = sections_of(data, query.kernels);
  const Json json{{"title", fmt::format("{} on {}", after.model->title, after.gpu->title)},
                  {"tiles", tiles_of(before, after, query.changes)},
                  {"command", command_of(query)},
                  {"kernel_times", kernel_sources(data.predictions)},
                  {"html", sections_html(sections)},
                  {"charts", charts_json(sections)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tbdsim
