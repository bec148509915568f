#include "simulate/report/html/kernel_sections.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/utilization.h"
#include "simulate/report/kernel_group_tables.h"
#include "simulate/report/kernel_table.h"
#include "simulate/report/spec_table.h"

namespace tbdsim {
namespace {

std::string layer_of(const Kernel& kernel, const TrainingStep& step) {
  return kernel.layer < 0 ? "all layers" : step.layers[static_cast<std::size_t>(kernel.layer)].name;
}

// The text shown for a kernel that is pointed at, and that runs so many times in an iteration.
std::string hover_of(const Iteration& iteration, std::size_t k, std::int64_t times) {
  const Kernel& kernel = iteration.step->kernels[k];
  const KernelCost& cost = iteration.costs[k];
  const std::string alike = times > 1 ? fmt::format(" {} times", times) : "";
  return fmt::format("{}: {} {}{}, {:.2g} % of the time, {} +-{:.0f} %, {}",
                     layer_of(kernel, *iteration.step), kernel.op, phase_name(kernel), alike,
                     kPercent * (cost.total * static_cast<double>(times) / iteration.time()),
                     to_text(cost.total), kPercent * (cost.factor() - 1), name_of(cost.provenance));
}

// The chart's series for a kind of kernel, appended if there is none yet.
Series& series_of(Chart& chart, ChartMark mark, KernelKind kind) {
  const std::string name(name_of(kind));
  const auto found = std::find_if(chart.series.begin(), chart.series.end(),
                                  [&](const Series& series) { return series.name == name; });
  if (found != chart.series.end()) return *found;
  return chart.series.emplace_back(
      Series{.mark = mark, .name = name, .colour = static_cast<int>(index_of(kind))});
}

// Adds the roofs: rate = min(bandwidth * intensity, peak) in flop/s, with one peak for each arithmetic that
// occurs. `from` and `to` are the least and the greatest intensity shown, in flop/B.
void add_roofs(Chart& chart, const Prediction& p, double from, double to) {
  std::map<MathType, FlopsPerSecond> peaks;
  for (const Kernel& kernel : p.typical().step->kernels)
    peaks[kernel.math] = rate_of(*p.gpu, kernel.math).peak;
  const double bandwidth = p.gpu->memory_bandwidth.si();
  constexpr int kColours[] = {8, 11, 12, 10};
  std::size_t roofs = 0;
  double highest = 0;
  for (const auto& [math, peak] : peaks) {
    const double ridge = peak.si() / bandwidth;
    highest = std::max(highest, ridge);
    chart.series.push_back({.name = fmt::format("{} peak, {}", name_of(math), to_text(peak)),
                            .colour = kColours[roofs++ % std::size(kColours)],
                            .x = {ridge, std::max(to, 2 * ridge)},
                            .y = {peak.si(), peak.si()},
                            .dashed = true});
  }
  chart.series.push_back({.name = "memory, " + to_text(p.gpu->memory_bandwidth),
                          .colour = 9,
                          .x = {from, highest},
                          .y = {from * bandwidth, highest * bandwidth},
                          .dashed = true});
}

Chart roofline_chart(const Prediction& p) {
  const Iteration& iteration = p.typical();
  const auto batch = static_cast<double>(iteration.batch);
  Chart chart{.title = "Roofline: a mark for kernels that are alike, its area their share of the time",
              .x = {.title = "intensity, flop/B", .logarithmic = true},
              .y = {.title = "achieved rate, flop/s", .logarithmic = true},
              .wide = true};
  double least = 1;
  double most = 1;
  for (const KernelRuns& alike : iteration.runs) {
    const Kernel& kernel = iteration.step->kernels[alike.kernel];
    const KernelCost& cost = iteration.costs[alike.kernel];
    const double flops = executed_flops(kernel, cost, batch).si();
    const double bytes = kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch);
    if (flops == 0 || bytes == 0 || kernel.kind == KernelKind::transfer) continue;
    Series& series = series_of(chart, ChartMark::point, kernel.kind);
    series.x.push_back(flops / bytes);
    series.y.push_back(flops / cost.total.si());
    series.size.push_back(cost.total * static_cast<double>(alike.times) / iteration.time());
    series.hover.push_back(hover_of(iteration, alike.kernel, alike.times));
    least = std::min(least, flops / bytes);
    most = std::max(most, flops / bytes);
  }
  add_roofs(chart, p, least, most);
  return chart;
}

// Adds the rows of the CPU threads that launch kernels: a span for launches in a row, another for the
// synchronization and the host work that follow.
void add_threads(Chart& chart, const Prediction& p, const Iteration& iteration) {
  Series issues{.mark = ChartMark::span, .name = "issues", .colour = 8};
  Series waits{.mark = ChartMark::span, .name = "waits, then works", .colour = 9};
  const auto add = [](Series& series, int worker, Seconds from, Seconds to) {
    const std::string_view thread = worker == 0 ? "CPU thread" : "second CPU thread";
    constexpr double kShortest = 1e-6;  // ms
    const double start = in_unit(from, "ms");
    const double end = in_unit(to, "ms");
    if (end - start < kShortest) return;
    if (!series.start.empty() && series.categories.back() == thread &&
        start - (series.start.back() + series.x.back()) < kShortest) {
      series.x.back() = end - series.start.back();
      return;
    }
    series.categories.emplace_back(thread);
    series.start.push_back(start);
    series.x.push_back(end - start);
  };
  const std::vector<std::size_t> order = in_launch_order(iteration.timeline);
  for (int worker = 0; worker < p.framework->launch_model.engine_threads; ++worker) {
    for (const std::size_t k : order) {
      const KernelSpan& span = iteration.timeline.kernels[k];
      if (span.engine_thread != worker || !iteration.costs[k].runs()) continue;
      const Kernel& kernel = iteration.step->kernels[k];
      const HostWork work =
          host_work(kernel, static_cast<double>(iteration.batch), p.framework->launch_model);
      const Seconds end =
          std::min(span.launch_end,
                   span.launch_start + (work.pre_launch + work.launch) * static_cast<double>(kernel.repeat));
      add(issues, worker, span.launch_start, end);
      add(waits, worker, end, span.launch_end);
    }
  }
  for (Series& series : {std::ref(issues), std::ref(waits)}) {
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
}

Chart timeline_chart(const Prediction& p) {
  const Iteration& iteration = p.typical();
  Chart chart{.title = "Timeline of an iteration", .x = {.title = "time, ms"}, .wide = true};
  add_threads(chart, p, iteration);
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    const KernelSpan& span = iteration.timeline.kernels[k];
    Series& series = series_of(chart, ChartMark::span, kernel.kind);
    series.categories.emplace_back(kernel.kind == KernelKind::transfer ? "GPU copies"
                                   : span.engine_thread == 0           ? "GPU"
                                                                       : "GPU, second stream");
    series.start.push_back(in_unit(span.start, "ms"));
    series.x.push_back(in_unit(span.end - span.start, "ms"));
    series.hover.push_back(hover_of(iteration, k, iteration.step->kernels[k].repeat));
  }
  return chart;
}

// The 20 groups that take longest.
std::vector<KernelGroup> longest(const Prediction& p, KernelView view) {
  constexpr std::size_t kMost = 20;
  std::vector<KernelGroup> groups = kernel_groups(p, view);
  groups.resize(std::min(groups.size(), kMost));
  return groups;
}

// The predictions whose kernels are shown one by one: all of them, or one a model if that is more than 8,000
// kernels.
std::vector<const Prediction*> shown_in_detail(const ReportData& data) {
  constexpr std::size_t kMostKernels = 8'000;
  std::vector<const Prediction*> all;
  std::size_t kernels = 0;
  for (const Prediction& p : data.predictions) {
    all.push_back(&p);
    kernels += p.typical().costs.size();
  }
  if (kernels <= kMostKernels) return all;
  std::vector<const Prediction*> firsts;
  for (const ModelRange& range : models_of(data)) firsts.push_back(&data.predictions[range.first]);
  return firsts;
}

constexpr const char* kIdle = "GPU idle";
constexpr int kGrey = 8;  // palette index

int colour_of_share(const std::string& name, std::size_t rank) {
  const auto colour = static_cast<int>(rank);
  return name == kIdle ? kGrey : colour < kGrey ? colour : colour + 1;
}

// Stacked bars of shares of the iteration in %: a bar for each prediction, a series for each name.
class Shares {
 public:
  void add(const Prediction& p, const std::string& name, double share) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
    shares_[name][title_of(p)] += kPercent * share;
  }
  // The 11 names with the most time; the others are one series.
  [[nodiscard]] Chart chart(const std::string& title, const ReportData& data) const {
    constexpr std::size_t kMost = 11;
    std::vector<std::string> names = names_;
    if (names.size() > kMost) {
      std::stable_sort(names.begin(), names.end(),
                       [&](const auto& a, const auto& b) { return total(a) > total(b); });
    }
    Chart chart{.title = title,
                .x = {.title = "share of the iteration, %", .from = 0, .to = kPercent},
                .wide = names.size() > 5,
                .stacked = true};
    for (std::size_t n = 0; n < names.size(); ++n) {
      if (n <= kMost) {
        chart.series.push_back({.mark = ChartMark::bar,
                                .name = n < kMost ? names[n] : "others",
                                .colour = colour_of_share(names[n], n)});
      }
      Series& series = chart.series.back();
      for (std::size_t i = 0; i < data.predictions.size(); ++i) {
        const std::string category = title_of(data.predictions[i]);
        if (n <= kMost) {
          series.categories.push_back(category);
          series.x.push_back(0);
        }
        const auto& of_name = shares_.at(names[n]);
        if (const auto found = of_name.find(category); found != of_name.end()) series.x[i] += found->second;
      }
    }
    return chart;
  }

 private:
  [[nodiscard]] double total(const std::string& name) const {
    const auto& shares = shares_.at(name);
    return std::accumulate(shares.begin(), shares.end(), 0.0,
                           [](double sum, const auto& share) { return sum + share.second; });
  }

  std::vector<std::string> names_;                               // in the order of add()
  std::map<std::string, std::map<std::string, double>> shares_;  // by name and title_of() the prediction
};

}  // namespace

Section time_section(const ReportData& data) {
  Shares types;
  Shares limits;
  Shares provenances;
  for (const Prediction& p : data.predictions) {
    double busy = 0;
    for (const KernelGroup& group : kernel_groups(p, KernelView::type)) {
      types.add(p, group.name, group.share);
      busy += group.share;
    }
    types.add(p, kIdle, std::max(0.0, 1 - busy));
    for (std::size_t l = 0; l < kLimitNames.size(); ++l)
      limits.add(p, std::string(kLimitNames[l]), p.share(static_cast<Limit>(l)));
    const ProvenanceShares shares = provenance_shares(p.typical());
    for (std::size_t i = 0; i < shares.size(); ++i)
      provenances.add(p, std::string(kProvenanceNames[i]), shares[i]);
  }
  return {
      .title = "Where the time goes",
      .text = {"By the type of the layer; by what limits it (kernels by compute, memory bandwidth or their "
               "overhead; while the GPU is idle the CPU, or input that is not decoded yet); and by where the "
               "times of kernels come from, surest first."},
      .views = {{.name = "",
                 .charts = {types.chart("By layer type", data), limits.chart("By what limits it", data),
                            provenances.chart("By provenance of kernel times", data)}}}};
}

View kernels_view(const Prediction& p) {
  return {.name = fmt::format("{}, batch {}", title_of(p), p.typical().batch),
          .charts = {roofline_chart(p), timeline_chart(p)},
          .tables = {kernel_group_table(p, KernelView::kernel, longest(p, KernelView::kernel))}};
}

Section kernels_section(const ReportData& data) {
  Section section{.title = "Kernels"};
  section.text.emplace_back(
      "Every kernel of an iteration. Kernels that only move data do no operations and are not on the "
      "roofline; "
      "operations are those that are executed, of Winograd's algorithm fewer than of the direct form. In the "
      "timeline the CPU's threads issue kernels ahead of the GPU, as far as the queue of launches allows.");
  for (const Prediction* p : shown_in_detail(data)) section.views.push_back(kernels_view(*p));
  return section;
}

Section sources_section(const ReportData& data, const Catalog& catalog) {
  Section section{.title = "Where the numbers come from"};
  section.text.emplace_back(
      "Every number of the specifications used, with its source; \"estimate\" says that nobody measured it.");
  const auto add = [&](Kind kind, const std::string& name) {
    section.views.push_back({.name = name, .tables = {spec_table(catalog, kind, name)}});
  };
  add(Kind::gpu, data.predictions[0].scenario.gpu);
  std::vector<std::string> frameworks;
  for (const Prediction& p : data.predictions) {
    if (std::find(frameworks.begin(), frameworks.end(), p.scenario.framework) == frameworks.end())
      frameworks.push_back(p.scenario.framework);
  }
  for (const std::string& framework : frameworks) add(Kind::framework, framework);
  return section;
}

}  // namespace tbdsim
