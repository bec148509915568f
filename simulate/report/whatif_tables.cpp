#include "simulate/report/whatif_tables.h"

#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/metrics.h"
#include "simulate/report/cells.h"

namespace tbdsim {
namespace {

constexpr double kRounding = 1e-12;  // of the iteration
constexpr std::size_t kWidth = 100;

// All tables have these columns, so that they are one list in CSV and JSON.
Table sheet_of(std::string preface, const char* name, const char* before, const char* after,
               const char* change) {
  Table table;
  table.name = "whatif";
  table.preface = {std::move(preface)};
  table.columns = {{"table", ""},          {"name", name},          {"unit", ""}, {"before", before, true},
                   {"after", after, true}, {"change", change, true}};
  return table;
}

std::string percent_text(double ratio) { return fmt::format("{:+.1f} %", kPercent * (ratio - 1)); }

std::string cluster_text(const Prediction& p) {
  if (!p.sync) return "";
  const Cluster& cluster = p.scenario.cluster;
  return fmt::format(", {} GPUs in each of {} machines{}, {}", cluster.gpus, cluster.machines,
                     cluster.network.empty() ? "" : ", " + cluster.network, p.sync->method->name);
}

std::string scenario_text(const Prediction& p) {
  return fmt::format("{} on {}, {}, batch {}, {}{}", p.model->name, p.framework->name, p.gpu->title,
                     p.scenario.batch, p.scenario.precision, cluster_text(p));
}

}  // namespace

Table before_and_after_table(const Prediction& before, const Prediction& after, const SpecChanges& changes) {
  Table table = sheet_of(scenario_text(before), "metric", "before", "after", "change");
  std::string with = "with";
  for (const SpecChange& change : changes) with += " " + to_text(change);
  for (const std::string& line : wrapped(with, kWidth)) table.preface.push_back(line);
  for (const Metric& metric : metrics()) {
    const std::optional<double> was = metric.value(before);
    const std::optional<double> is = metric.value(after);
    if (!was && !is) continue;
    const std::string unit = unit_of(metric, before);
    const auto cell = [&](const std::optional<double>& value) {
      return value ? number_cell(*value, metric_text(*value, unit)) : Cell{};
    };
    Cell change;
    if (was && is && *was != 0) {
      const double ratio = *is / *was;
      change = number_cell(ratio - 1, *is == *was ? "" : percent_text(ratio));
    }
    table.rows.push_back(
        {text_cell("metrics"), text_cell(metric.name), text_cell(unit), cell(was), cell(is), change});
  }
  if (find_metric("time_to_target").value(before) && !find_metric("cost_to_target").value(before))
    table.notes.push_back("no rent is known of " + before.gpu->title + ", and so no cost");
  if (!after.fits) table.notes.push_back("! after the changes it does not fit into the memory of the GPU");
  return table;
}

Table time_parts_table(const Prediction& before, const Prediction& after) {
  Table table = sheet_of("where the time of an iteration goes", "kernels", "before", "after", "difference");
  const auto add = [&](const std::string& name, Seconds was, Seconds is) {
    const Cell was_cell = number_cell(was.si(), to_text(was));
    const Cell is_cell = number_cell(is.si(), to_text(is));
    const bool same = std::abs((is - was) / before.iteration_time()) < kRounding;
    const double difference = same ? 0 : (is - was).si();
    std::string text;
    if (difference != 0) {
      const char* const sign = difference > 0 ? "+" : "-";
      text = sign + to_text(Seconds(std::abs(difference)));
    }
    table.rows.push_back({text_cell("time"), text_cell(name), text_cell("s"), was_cell, is_cell,
                          number_cell(difference, text)});
  };
  for (const TimePart& part : time_parts(before, after)) add(part.name, part.before, part.after);
  add("all", before.iteration_time(), after.iteration_time());
  return table;
}

Table upper_bounds_table(const Prediction& p, std::span<const UpperBound> bounds) {
  Table table = sheet_of("bounds: what could be had at most", "if it had", "now", "then", "change");
  const std::string unit = throughput_unit(*p.model);
  const double now = p.throughput();
  for (const UpperBound& bound : bounds) {
    const double then = bound.throughput;
    const double ratio = then / now;
    table.rows.push_back({text_cell("bounds"), text_cell(bound.name), text_cell(unit),
                          number_cell(now, metric_text(now, unit)),
                          number_cell(then, metric_text(then, unit)),
                          number_cell(ratio - 1, percent_text(ratio))});
  }
  return table;
}

Table sensitivity_table(const Prediction& p, std::span<const Sensitivity> all) {
  Table table = sheet_of("elasticities: per cent of throughput for each per cent of", "key", "value",
                         "elasticity", "if doubled");
  const std::string unit = throughput_unit(*p.model);
  for (const Sensitivity& one : all) {
    table.rows.push_back({text_cell("elasticities"), text_cell(one.key), text_cell(unit),
                          text_cell(one.value),
                          number_cell(one.elasticity, fmt::format("{:+.3f}", one.elasticity)),
                          number_cell(one.if_doubled - 1, percent_text(one.if_doubled))});
  }
  return table;
}

}  // namespace tbdsim
