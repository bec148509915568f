#include "simulate/serve/live_report.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/scenario_keys.h"
#include "simulate/report/html/report_sections.h"
#include "simulate/report/whatif_tables.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercent = 100;
constexpr std::size_t kMostChanges = 16;
constexpr std::size_t kMostWorkloads = 24;  // in one library
constexpr std::int64_t kMostGpus = 16;
constexpr std::int64_t kMostMachines = 100'000;
constexpr std::array<std::string_view, 6> kScenarioKeys = {"model", "framework", "variant",
                                                           "gpu",   "precision", "batch"};
const std::vector<std::string> kKeys = {"model", "framework", "variant", "gpu",     "precision", "batch",
                                        "gpus",  "machines",  "network", "kernels", "set"};
// Of the metrics those that are shown large.
constexpr std::array<std::string_view, 7> kTiles = {"throughput",       "iteration_time",  "gpu_utilization",
                                                    "fp32_utilization", "cpu_utilization", "memory_total",
                                                    "largest_batch"};

SpecChange hardware_change(const std::string& text) {
  SpecChange change = parse_change(text);
  constexpr std::string_view kNumbersBegin = "0123456789+-x";
  if (change.value.empty() || kNumbersBegin.find(change.value[0]) == std::string_view::npos)
    throw UsageError(in_quotes(text) + ": expected a number with its unit, or one as +50%, x2");
  if (change.spec == "gpu" || change.spec == "link") return change;
  throw UsageError(in_quotes(text) + " changes no hardware; expected a key of the gpu or a link, as " +
                   "gpu.memory_bandwidth=800GB/s");
}

void set(LiveQuery& query, const std::string& key, const std::string& value) {
  Cluster& cluster = query.scenario.cluster;
  if (std::find(kScenarioKeys.begin(), kScenarioKeys.end(), key) != kScenarioKeys.end()) {
    find_scenario_key(key)->set(query.scenario, value);
  } else if (key == "gpus") {
    cluster.gpus = static_cast<int>(count_of(key, value, kMostGpus));
  } else if (key == "machines") {
    cluster.machines = static_cast<int>(count_of(key, value, kMostMachines));
  } else if (key == "network") {
    cluster.network = value;
  } else if (key == "kernels") {
    if (value != "0" && value != "1") throw UsageError("kernels: " + in_quotes(value) + "; expected 0 or 1");
    query.kernels = value == "1";
  } else if (key == "set") {
    query.changes.push_back(hardware_change(value));
  } else {
    throw UsageError("unknown parameter " + in_quotes(key) + did_you_mean(key, kKeys) + "; expected one of " +
                     joined(kKeys));
  }
}

// What is typed to get the same numbers; nothing for several GPUs of changed hardware.
std::string command_of(const LiveQuery& query) {
  const Scenario& s = query.scenario;
  const bool alone = s.cluster.ranks() == 1;
  if (!alone && !query.changes.empty()) return "";
  const char* const what = !alone ? "scaling " : query.changes.empty() ? "--model " : "whatif ";
  std::string command = fmt::format("tbd-sim {}{} --framework {} --gpu {} --batch {}", what, s.model,
                                    s.framework, s.gpu, s.batch);
  if (!s.variant.empty()) command += " --variant " + s.variant;
  if (s.precision != "fp32") command += " --precision " + s.precision;
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
    return (p.fits ? "fits into " : "does not fit into ") + to_text(p.gpu->memory_size);
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

// One machine with more and more GPUs, then more and more machines as they are asked for.
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

// Where the scenario is on the chart.
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

// What takes memory and time, narrow charts first.
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

// What threads freed is given back when a library is: else each thread's heap keeps holes where it was.
std::shared_ptr<SpecCache> new_library(const Catalog& catalog) {
  return {new SpecCache(catalog), [](SpecCache* specs) {
            delete specs;
            ::malloc_trim(0);
          }};
}

}  // namespace

LiveQuery read_query(const QueryParameters& parameters, const Scenario& usual) {
  LiveQuery query{.scenario = usual, .changes = {}};
  std::set<std::string> seen;
  for (const auto& [key, value] : parameters) {
    if (key != "set" && !seen.insert(key).second)
      throw UsageError(in_quotes(key) + " is given twice; expected it once");
    set(query, key, value);
  }
  const Scenario& s = query.scenario;  // a variant is one of its model, for its framework
  if (!seen.contains("variant") && (s.model != usual.model || s.framework != usual.framework))
    query.scenario.variant.clear();
  if (query.changes.size() > kMostChanges)
    throw UsageError(fmt::format("{} changes; expected up to {}", query.changes.size(), kMostChanges));
  return query;
}

std::string live_report(const LiveQuery& query, SpecCache& specs) {
  SpecCache changed(specs, query.changes);
  const ReportData data = data_of(query, changed);
  const Prediction& after = data.predictions[0];
  const Prediction before = query.changes.empty() ? after : predict(query.scenario, specs);
  const SectionText text = text_of(sections_of(data, query.kernels));
  const Json json{{"title", fmt::format("{} on {}", after.model->title, after.gpu->title)},
                  {"tiles", tiles_of(before, after, query.changes)},
                  {"command", command_of(query)},
                  {"kernel_times", calibration_text(*after.profile)},
                  {"html", text.html}};
  std::string answer = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  answer.back() = ',';
  return answer + "\"charts\":" + text.charts + "}\n";
}

SpecPool::SpecPool(Catalog catalog) : catalog_(std::move(catalog)), specs_(new_library(catalog_)) {}

std::shared_ptr<SpecCache> SpecPool::specs_for(const Scenario& s) {
  const std::scoped_lock held(lock_);
  workloads_.insert(s.model + '\n' + s.framework + '\n' + s.variant + '\n' + s.precision + '\n' + s.gpu);
  if (workloads_.size() > kMostWorkloads) {
    workloads_.clear();
    specs_ = new_library(catalog_);
  }
  return specs_;
}

}  // namespace tbdsim
