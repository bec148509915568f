#include "simulate/report/html/target_sections.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/report/target_tables.h"

namespace tbdsim {
namespace {

std::string hover_of(const TargetRun& run) {
  const TimeToTarget& t = run.time;
  return fmt::format("{}, batch {} on each GPU, {:.0f} on all; {:.3g} epochs; {}", duration_text(t.total()),
                     run.prediction.scenario.batch, t.global_batch, t.epochs.epochs, to_text(t.energy.wall));
}

// `value` of every run over `x`, with the interval of its time where it has one.
template <class X, class Value>
Series series_of(const ReportData& data, const std::vector<TargetRun>& runs, X x, Value value,
                 bool interval) {
  Series series{.mark = ChartMark::line,
                .name = title_of(runs.front().prediction),
                .colour = colour_of(data, runs.front().prediction)};
  for (const TargetRun& run : runs) {
    const std::optional<double> at = value(run);
    if (!at) continue;
    series.x.push_back(x(run));
    series.y.push_back(*at);
    series.hover.push_back(hover_of(run));
    if (!interval) continue;
    series.low.push_back(*at / run.time.factor());
    series.high.push_back(*at * run.time.factor());
  }
  return series;
}

double gpus_of(const TargetRun& run) { return static_cast<double>(run.prediction.ranks()); }
double batch_of(const TargetRun& run) { return run.time.global_batch; }

// One chart: a line for each framework.
template <class X, class Value>
Chart chart_of(const ReportData& data, const std::vector<std::vector<TargetRun>>& all,
               const std::string& title, const std::string& x_title, const std::string& y_title, X x,
               Value value, bool interval) {
  Chart chart{.title = title,
              .x = {.title = x_title, .logarithmic = true},
              .y = {.title = y_title, .logarithmic = true}};
  for (const std::vector<TargetRun>& runs : all) {
    if (runs.empty()) continue;
    Series series = series_of(data, runs, x, value, interval);
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

constexpr std::int64_t kGpusOfCurve = 8;  // where no measured run says another number

// Numbers of GPUs on which runs of this GPU were measured; kGpusOfCurve where none was.
std::vector<std::int64_t> gpus_of_curves(const Convergence& to, const std::string& gpu) {
  std::vector<std::int64_t> numbers;
  for (const MeasuredCurve& curve : to.measured) {
    if (curve.gpu == gpu) numbers.push_back(curve.gpus);
  }
  if (numbers.empty()) numbers.push_back(kGpusOfCurve);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

Series predicted_curve(const TargetRun& run, const Convergence& to, int colour, bool dashed) {
  Series series{.mark = ChartMark::line,
                .name = fmt::format("{}, {} GPUs", title_of(run.prediction), run.prediction.ranks()),
                .colour = colour,
                .dashed = dashed};
  for (const CurvePoint& point : to.curve) {
    series.x.push_back(hours_at(run.time, to, point.at));
    series.y.push_back(point.quality);
    series.hover.push_back(fmt::format("after {:.3g} epochs", point.at * run.time.epochs.epochs));
  }
  return series;
}

Series measured_curve(const MeasuredCurve& curve, int colour) {
  Series series{.mark = ChartMark::point, .name = "measured: " + curve.title, .colour = colour};
  for (const CurvePoint& point : curve.points) {
    series.x.push_back(point.at);
    series.y.push_back(point.quality);
    series.hover.push_back(curve.title);
  }
  return series;
}

// Quality over the time of runs, beside runs that were measured on as many of these GPUs: a colour for each
// number of GPUs, dashed lines for frameworks after the first.
Chart curve_chart(const ReportData& data, const Convergence& to) {
  Chart chart{.title = "Quality on the way",
              .x = {.title = "time, h", .logarithmic = true},
              .y = {.title = "quality; the target is " + to.target},
              .wide = true};
  const std::string& gpu = data.predictions.front().gpu->name;
  const std::vector<std::int64_t> numbers = gpus_of_curves(to, gpu);
  for (int colour = 0; colour < static_cast<int>(numbers.size()); ++colour) {
    const std::int64_t gpus = numbers[static_cast<std::size_t>(colour)];
    for (std::size_t i = 0; i < data.to_target.size(); ++i) {
      for (const TargetRun& run : data.to_target[i]) {
        if (run.prediction.ranks() == gpus) chart.series.push_back(predicted_curve(run, to, colour, i > 0));
      }
    }
    for (const MeasuredCurve& curve : to.measured) {
      if (curve.gpu == gpu && curve.gpus == gpus) chart.series.push_back(measured_curve(curve, colour));
    }
  }
  return chart;
}

// The charts of time, cost and energy, and the curve where one is known.
std::vector<Chart> target_charts(const ReportData& data) {
  const auto hours = [](const TargetRun& run) { return std::optional(in_unit(run.time.total(), "h")); };
  const auto cost = [](const TargetRun& run) {
    return run.time.cost ? std::optional(run.time.cost->si()) : std::nullopt;
  };
  const auto energy = [](const TargetRun& run) {
    return std::optional(in_unit(run.time.energy.wall, "kWh"));
  };
  const char* gpus = "GPUs, eight in a machine";
  std::vector<Chart> charts = {
      chart_of(data, data.to_target, "Time", gpus, "time, h", gpus_of, hours, true),
      chart_of(data, data.to_target, "Cost", gpus, "rent, USD", gpus_of, cost, true),
      chart_of(data, data.to_target, "Energy", gpus, "energy at the wall, kWh", gpus_of, energy, false),
      chart_of(data, data.to_target_by_batch, "Time over the batch, on eight GPUs",
               "samples of all GPUs in an iteration", "time, h", batch_of, hours, true)};
  const Convergence& to = *data.predictions.front().convergence;
  if (!to.curve.empty()) charts.push_back(curve_chart(data, to));
  std::erase_if(charts, [](const Chart& chart) { return chart.series.empty(); });
  return charts;
}

}  // namespace

Section target_section(const ReportData& data) {
  Section section{
      .title = "Time, cost and energy to the target",
      .text = {
          "Until the target quality is reached: start-up, epochs at the batch, evaluations and "
          "checkpoints, with the best batch of each number of GPUs. The area holds 80 % of runs: "
          "what is not known of the hardware's rate, and the luck of a run. Energy is an estimate: shares of "
          "the boards' power limits by what limits the iteration, hosts and cooling."}};
  if (data.to_target.empty()) return section;
  section.text.push_back(data.predictions.front().convergence->title + ".");
  for (const std::vector<TargetRun>& runs : data.to_target) {
    if (!runs.empty()) section.text.push_back(title_of(runs.front().prediction) + ": " + paying_text(runs));
  }
  section.views.push_back({.charts = target_charts(data)});
  return section;
}

}  // namespace tbdsim
