#include "simulate/report/html/paper_figures.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/pipe_utilization.h"
#include "simulate/prediction/uncertainty.h"
#include "simulate/prediction/utilization.h"
#include "simulate/report/prediction_label.h"

namespace tbdsim {
namespace {

bool counts_tokens(const Prediction& p) { return p.scenario.tokens > 0; }

double size_of(const Prediction& p) {
  return static_cast<double>(counts_tokens(p) ? p.scenario.tokens : p.scenario.batch);
}

std::string size_title(const Prediction& p) {
  return counts_tokens(p) ? "batch, tokens" : fmt::format("batch, {}s", p.model->sample);
}

// A chart for each model with a line for each framework over the batch; `add(prediction, series)` appends a
// point's y.
template <class Add>
std::vector<Chart> over_batches(const ReportData& data, const Axis& y, Add add) {
  std::vector<Chart> charts;
  for (const ModelRange& range : models_of(data)) {
    const Prediction& first = data.predictions[range.first];
    Chart chart;
    chart.title = first.model->title;
    chart.x.title = size_title(first);
    chart.x.logarithmic = true;
    chart.y = y;
    if (y.title.starts_with("throughput")) chart.y.title = "throughput, " + throughput_unit(*first.model);
    for (std::size_t i = range.first; i < range.last; ++i) {
      if (data.growth[i].empty()) continue;  // a batch of 1 does not fit
      Series series{.name = data.predictions[i].framework->name,
                    .colour = colour_of(data, data.predictions[i])};
      for (const Prediction& p : data.growth[i]) {
        series.x.push_back(size_of(p));
        add(p, series);
      }
      chart.series.push_back(std::move(series));
    }
    if (!chart.series.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

Section figure(const std::string& title, const std::string& text, std::vector<Chart> charts) {
  Section section{.title = title, .text = {text}};
  if (!charts.empty()) section.views.push_back({.name = "", .charts = std::move(charts)});
  return section;
}

Axis percent_axis(const std::string& what) { return {.title = what + ", %", .from = 0, .to = kPercent}; }

double gpu_percent(const Prediction& p) { return kPercent * gpu_utilization(times_of(p)); }
double fp32_percent(const Prediction& p) {
  return kPercent * fp32_utilization(activity_of(p), *p.gpu).value_or(0);
}

// The bars of one GPU: value(prediction, the same scenario's prediction on the first of the other GPUs).
template <class Value>
Series comparison(const std::vector<Prediction>& predictions, const std::vector<Prediction>& base, int colour,
                  Value value) {
  Series series{.mark = ChartMark::bar, .name = predictions[0].gpu->title, .colour = colour};
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& p = predictions[i];
    series.categories.push_back(title_of(p));
    series.x.push_back(value(p, base[i]));
    series.hover.push_back(p.fits ? fmt::format("batch {:.0f}", size_of(p))
                                  : fmt::format("batch {:.0f} does not fit: hypothetical", size_of(p)));
  }
  return series;
}

template <class Value>
Chart comparison_chart(const ReportData& data, const std::string& title, Axis axis, Value value) {
  Chart chart{.title = title, .x = std::move(axis)};
  const std::vector<Prediction>& base = data.on_others[0];
  int colour = 0;
  chart.series.push_back(comparison(data.predictions, base, colour++, value));
  for (const auto& there : data.on_others) chart.series.push_back(comparison(there, base, colour++, value));
  return chart;
}

struct MemoryPart {
  const char* name;
  std::optional<MemoryCategory> category;  // none: the CUDA context
};
constexpr MemoryPart kMemoryParts[] = {
    {"feature maps", MemoryCategory::feature_maps},  {"weights", MemoryCategory::weights},
    {"gradients", MemoryCategory::weight_gradients}, {"dynamic", MemoryCategory::dynamic},
    {"workspace", MemoryCategory::workspace},        {"CUDA context", std::nullopt}};

// For each framework the three largest batches that fit.
std::vector<const Prediction*> largest_batches(const ReportData& data, const ModelRange& range) {
  constexpr std::size_t kMost = 3;
  std::vector<const Prediction*> shown;
  for (std::size_t i = range.first; i < range.last; ++i) {
    const std::size_t count = data.growth[i].size();
    for (std::size_t k = count - std::min(kMost, count); k < count; ++k) shown.push_back(&data.growth[i][k]);
  }
  return shown;
}

Chart memory_chart(const std::vector<const Prediction*>& shown) {
  const Prediction& first = *shown.front();
  Chart chart{.title = fmt::format("{}, of {}", first.model->title, to_text(first.gpu->usable_memory)),
              .x = {.title = "memory, GiB", .from = 0, .to = in_unit(first.gpu->usable_memory, "GiB")},
              .stacked = true};
  int colour = 0;
  for (const MemoryPart& part : kMemoryParts) {
    Series series{.mark = ChartMark::bar, .name = part.name, .colour = colour++};
    for (const Prediction* p : shown) {
      const Bytes bytes = part.category ? p->memory.use[*part.category] : p->memory.context;
      series.categories.push_back(fmt::format("{}, {:.0f}", p->framework->name, size_of(*p)));
      series.x.push_back(in_unit(bytes, "GiB"));
      series.hover.push_back(
          fmt::format("{:.1f} % of {}", kPercent * (bytes / p->memory.total()), to_text(p->memory.total())));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

Section throughput_section(const ReportData& data) {
  return figure(
      "Throughput",
      "Over the batch, as far as it fits into memory; the area is the 80 % interval (Figure 4 of the "
      "paper).",
      over_batches(data, {.title = "throughput", .logarithmic = true},
                   [](const Prediction& p, Series& series) {
                     const Interval interval = p.throughput_interval();
                     series.y.push_back(p.throughput());
                     series.low.push_back(interval.low);
                     series.high.push_back(interval.high);
                   }));
}

Section gpu_section(const ReportData& data) {
  return figure(
      "Compute utilization",
      "The share of the iteration in which the GPU executes kernels (equation 1 and Figure 5 of the paper).",
      over_batches(data, percent_axis("GPU utilization"),
                   [](const Prediction& p, Series& series) { series.y.push_back(gpu_percent(p)); }));
}

Section fp32_section(const ReportData& data) {
  return figure(
      "FP32 utilization",
      "Single-precision operations over the peak while the GPU is active (equation 2 and Figure 6 of the "
      "paper).",
      over_batches(data, percent_axis("FP32 utilization"),
                   [](const Prediction& p, Series& series) { series.y.push_back(fp32_percent(p)); }));
}

Section comparison_section(const ReportData& data) {
  if (data.others.empty()) return {};
  const std::string base = data.on_others[0][0].gpu->title;
  return figure(
      "GPU against GPU",
      fmt::format("The same batches on each; throughput as a multiple of that on {} (Figure 7 of the paper).",
                  base),
      {comparison_chart(
           data, "Throughput over that of " + base, {.title = "relative throughput"},
           [](const Prediction& p, const Prediction& b) { return p.throughput() / b.throughput(); }),
       comparison_chart(data, "GPU utilization", percent_axis("GPU utilization"),
                        [](const Prediction& p, const Prediction&) { return gpu_percent(p); }),
       comparison_chart(data, "FP32 utilization", percent_axis("FP32 utilization"),
                        [](const Prediction& p, const Prediction&) { return fp32_percent(p); })});
}

Section memory_section(const ReportData& data) {
  std::vector<Chart> charts;
  for (const ModelRange& range : models_of(data)) {
    const auto shown = largest_batches(data, range);
    if (!shown.empty()) charts.push_back(memory_chart(shown));
  }
  return figure(
      "Memory",
      "By data structure when most is alive, for the largest powers of two that fit (Figure 8 of the "
      "paper). An axis ends where the card's memory does.",
      std::move(charts));
}

Section overview_section(const ReportData& data) {
  Table table;
  table.columns = {{"model", "model"},
                   {"framework", "framework"},
                   {"batch", "batch", true},
                   {"throughput", "throughput", true},
                   {"unit", ""},
                   {"interval", "80 % interval"},
                   {"interval_parts", "from, %"},
                   {"time", "iteration", true},
                   {"gpu", "GPU %", true},
                   {"fp32", "FP32 %", true},
                   {"fp16", "FP16 and tensor %", true},
                   {"memory", "memory", true},
                   {"largest", "largest batch", true},
                   {"bound", "bound"}};
  const auto rate = [](double value) { return fmt::format("{:.{}f}", value, value >= 100 ? 0 : 1); };
  for (const Prediction& p : data.predictions) {
    const Interval interval = p.throughput_interval();
    const std::string unit = throughput_unit(*p.model);
    const double fp32 = fp32_utilization(activity_of(p), *p.gpu).value_or(0);
    const PipeUse pipes = pipe_use(p).value_or(PipeUse{});
    table.rows.push_back({text_cell(label_among(data.predictions, p)), text_cell(p.framework->name),
                          count_cell(size_of(p)),
                          number_cell(p.throughput(), rate(p.throughput()) + " " + unit), text_cell(unit),
                          text_cell(rate(interval.low) + " to " + rate(interval.high)),
                          text_cell(parts_text(deviations_of(p))),
                          number_cell(p.iteration_time().si(), to_text(p.iteration_time())),
                          bare_percent_cell(gpu_utilization(times_of(p)), 0), bare_percent_cell(fp32, 0),
                          bare_percent_cell(pipes.fp16 + pipes.tensor, 0),
                          number_cell(p.memory.total().si(), to_text(p.memory.total()) + (p.fits ? "" : "!")),
                          count_cell(static_cast<double>(p.largest_batch())), text_cell(name_of(p.bound()))});
  }
  Section section{.title = "At a glance"};
  section.text.emplace_back(
      "From: the parts of the 80 % interval, in % of the throughput, whose squares add up: what nobody "
      "measured of the GPU, the framework's version, the model or its class, the host; times of kernels; "
      "rest: how far runs lie apart that have all of this in common.");
  if (!data.all_fit)
    section.text.emplace_back(
        "Where the batch asked for does not fit it is the largest power of two that does.");
  section.views.push_back({.name = "", .tables = {std::move(table)}});
  return section;
}

}  // namespace tbdsim
