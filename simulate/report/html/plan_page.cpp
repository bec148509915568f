#include "simulate/report/html/plan_page.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/report/pipeline_slices.h"
#include "simulate/report/plan_table.h"

namespace tbdsim {
namespace {

std::string stage_name(std::int64_t stage) { return fmt::format("stage {}", stage); }

// So many micro-batches fill the pipeline, show its steady state and drain it; the step has more of the same.
std::int64_t shown_micro_batches(const ParallelLayout& l, std::int64_t all) {
  constexpr std::int64_t kLeast = 8;
  const std::int64_t wanted = std::max(kLeast, 2 * l.pp);
  if (all <= wanted) return all;
  return l.vp > 1 ? (wanted + l.pp - 1) / l.pp * l.pp : wanted;
}

Section stages_section(const PlanPageData& data) {
  const LayoutPrediction& p = data.shown.layout;
  constexpr std::int64_t kMostStages = 64;
  const std::int64_t all = micro_batches(p.layout, data.job->inputs.job);
  const std::int64_t shown = shown_micro_batches(p.layout, all);
  Section section{.title = "Stages over time",
                  .text = {fmt::format("{}. Gaps are the bubble: {:.1f} % of the step.", to_text(p.layout),
                                       kPercent * (p.parts.bubble / p.step))}};
  if (shown < all)
    section.text.push_back(fmt::format(
        "Drawn with {} of the step's {} micro-batches: the others are more of the same in the middle.", shown,
        all));
  if (p.layout.order == PipelineOrder::zero_bubble || p.layout.pp > kMostStages) {
    section.text.emplace_back("No picture: expected 1f1b or gpipe, of at most 64 stages.");
    return section;
  }
  constexpr std::array<int, kSliceNames.size()> kColours = {0, 2, 1, 4};
  Chart chart{.title = "Passes of micro-batches", .x = {.title = "time, s"}, .wide = true};
  for (std::size_t k = 0; k < kSliceNames.size(); ++k)
    chart.series.push_back(
        {.mark = ChartMark::span, .name = std::string(kSliceNames[k]), .colour = kColours[k]});
  for (const PipelineSlice& slice : pipeline_slices(p, shown)) {
    Series& series = chart.series[static_cast<std::size_t>(slice.kind)];
    series.x.push_back(slice.time.si());
    series.start.push_back(slice.start.si());
    series.categories.push_back(stage_name(slice.stage));
    series.hover.push_back(slice.name);
  }
  section.views.push_back({.charts = {std::move(chart)}});
  return section;
}

// Bars that lie end to end: for each of `rows` the values of `parts`.
template <class Row>
struct Part {
  const char* name;
  double (*value)(const Row&);
};

template <class Row, std::size_t N, class Name>
Chart stacked_chart(const std::string& title, const std::string& axis, const std::vector<Row>& rows,
                    const Part<Row> (&parts)[N], Name name) {
  Chart chart{.title = title, .x = {.title = axis}, .wide = true, .stacked = true};
  for (std::size_t i = 0; i < N; ++i) {
    Series series{.mark = ChartMark::bar, .name = parts[i].name, .colour = static_cast<int>(i)};
    for (const Row& row : rows) {
      series.x.push_back(parts[i].value(row));
      series.categories.push_back(name(row));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Section time_section(const PlanPageData& data) {
  using Row = LayoutPrediction;
  constexpr Part<Row> kParts[] = {
      {"compute", [](const Row& p) { return p.parts.compute.si(); }},
      {"recomputation", [](const Row& p) { return p.parts.again.si(); }},
      {"waiting for launches", [](const Row& p) { return p.parts.launch.si(); }},
      {"collectives within blocks", [](const Row& p) { return p.parts.within.si(); }},
      {"sends between stages", [](const Row& p) { return p.parts.sends.si(); }},
      {"bubble", [](const Row& p) { return p.parts.bubble.si(); }},
      {"exchange between replicas", [](const Row& p) { return p.parts.replicas.si(); }},
      {"update", [](const Row& p) { return p.parts.update.si(); }},
      {"waiting for the slowest rank", [](const Row& p) { return p.parts.slowest.si(); }},
      {"once a step", [](const Row& p) { return p.parts.other.si(); }}};
  const bool searched = !data.plan.best.empty();
  const std::vector<Row> rows = searched ? data.plan.best : std::vector<Row>{data.shown.layout};
  Section section{.title = "Where the time of a step goes",
                  .text = {"On the stage that sets the pace; parts sum to the step."}};
  section.views.push_back(
      {.charts = {stacked_chart(searched ? "The fastest layouts that fit" : "The step", "time, s", rows,
                                kParts, [](const Row& p) { return to_text(p.layout); })}});
  return section;
}

Section communication_section(const PlanPageData& data) {
  struct Row {
    std::string name;
    DimensionTime time;
  };
  constexpr Part<Row> kParts[] = {
      {"exposed", [](const Row& r) { return r.time.exposed.si(); }},
      {"beside kernels", [](const Row& r) { return std::max(0.0, (r.time.busy - r.time.exposed).si()); }}};
  std::vector<Row> rows;
  for (std::size_t d = 0; d < kDimensionNames.size(); ++d) {
    const DimensionTime& time = data.shown.layout.communication[d];
    if (time.busy > Seconds(0)) rows.push_back({std::string(kDimensionNames[d]), time});
  }
  Section section{
      .title = "Communication by dimension",
      .text = {"In a step, on the stage that sets the pace. Exposed is what it adds to the step; also "
               "kernels that take longer beside it."}};
  if (rows.empty()) return section;
  section.views.push_back({.charts = {stacked_chart("Exposed, and beside kernels", "time, s", rows, kParts,
                                                    [](const Row& r) { return r.name; })}});
  return section;
}

Section memory_section(const PlanPageData& data) {
  using Row = RankMemory;
  constexpr Part<Row> kParts[] = {
      {"parameters", [](const Row& m) { return in_unit(m.parameters, "GiB"); }},
      {"gradients", [](const Row& m) { return in_unit(m.gradients, "GiB"); }},
      {"optimizer state", [](const Row& m) { return in_unit(m.optimizer, "GiB"); }},
      {"activations", [](const Row& m) { return in_unit(m.activations, "GiB"); }},
      {"working", [](const Row& m) { return in_unit(m.working, "GiB"); }},
      {"allocator", [](const Row& m) { return in_unit(m.reserved - m.allocated, "GiB"); }},
      {"context, NCCL", [](const Row& m) { return in_unit(m.device - m.reserved, "GiB"); }}};
  Section section{
      .title = "Memory by rank",
      .text = {fmt::format("Of one rank of each stage; a GPU has {}.", to_text(data.job->usable()))}};
  section.views.push_back({.charts = {stacked_chart("By what it holds", "memory, GiB", data.memory, kParts,
                                                    [](const Row& m) { return stage_name(m.stage); })}});
  return section;
}

// Points of layouts: memory of the fullest GPU against the step.
Series points_of(const std::string& name, int colour, ChartMark mark,
                 const std::vector<LayoutPrediction>& layouts) {
  Series series{.mark = mark, .name = name, .colour = colour};
  for (const LayoutPrediction& p : layouts) {
    series.x.push_back(in_unit(p.most.device, "GiB"));
    series.y.push_back(p.step.si());
    series.hover.push_back(to_text(p.layout));
  }
  return series;
}

Section layouts_section(const PlanPageData& data) {
  const bool searched = !data.plan.best.empty();
  Section section{.title = "In numbers"};
  View view;
  if (searched && data.plan.pareto.size() > 1) {
    Chart chart{.title = "Less memory costs time",
                .x = {.title = "memory of the fullest GPU, GiB"},
                .y = {.title = "step, s"},
                .wide = true};
    chart.series = {points_of("the fastest", 1, ChartMark::point, data.plan.best),
                    points_of("no other is as fast with as little", 0, ChartMark::line, data.plan.pareto)};
    view.charts.push_back(std::move(chart));
  }
  view.tables = searched ? plan_tables(data.plan, *data.job) : layout_tables(data.shown);
  section.views.push_back(std::move(view));
  return section;
}

std::vector<std::string> summary_of(const PlanPageData& data) {
  const JobPrediction& p = data.shown;
  std::vector<std::string> lines = {fmt::format(
      "{}: {} a step, {:.0f} {}s/s (80 %: {:.0f} to {:.0f}), MFU {:.1f} %", to_text(p.layout.layout),
      to_text(p.layout.step), p.layout.tokens_per_second, data.job->counted(), p.tokens_interval().low,
      p.tokens_interval().high, kPercent * p.layout.mfu)};
  for (const Assumption& a : data.job->assumed)
    lines.push_back(fmt::format("assumed {}: {} ({})", a.what, a.value, a.why));
  lines.emplace_back("Everything here is predicted by tbd-sim " TBDSIM_VERSION ", nothing measured.");
  return lines;
}

}  // namespace

std::vector<Section> plan_sections(const PlanPageData& data) {
  std::vector<Section> sections;
  for (const auto section :
       {stages_section, time_section, communication_section, memory_section, layouts_section})
    sections.push_back(section(data));
  std::erase_if(sections, [](const Section& s) { return s.views.empty() && s.text.size() < 2; });
  return sections;
}

Page plan_page(const PlanPageData& data) {
  return {.title = title_of(*data.job), .summary = summary_of(data), .sections = plan_sections(data)};
}

}  // namespace tbdsim
