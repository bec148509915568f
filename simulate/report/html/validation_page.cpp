#include "simulate/report/html/validation_page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "simulate/report/html/kernel_sections.h"
#include "simulate/report/validation_tables.h"

namespace tbdsim {
namespace {

constexpr double kBand = 0.1;  // shown around measured = predicted, on both sides
constexpr std::string_view kSections[] = {"score", "fit", "context"};

std::string field(const Configuration& c, std::string_view name) {
  const auto found = std::find(kRunIdentity.begin(), kRunIdentity.end(), name);
  return c.run[static_cast<std::size_t>(found - kRunIdentity.begin())];
}

double measured(const Configuration& c) { return c.prediction.predicted / (1 + c.error()); }

std::vector<const Configuration*> predicted_ones(const Validation& validation) {
  std::vector<const Configuration*> all;
  for (const Configuration& c : validation.configurations) {
    if (c.prediction.ok()) all.push_back(&c);
  }
  return all;
}

// "resnet50, mxnet 1.2.0, k80, fp32, batch 16".
std::string run_text(const Configuration& c) {
  std::string text = fmt::format("{}, {} {}, {}, {}", field(c, "model"), field(c, "framework"),
                                 field(c, "version"), field(c, "gpu"), field(c, "precision"));
  if (const std::string batch = field(c, "batch_per_gpu"); !batch.empty()) text += ", batch " + batch;
  if (const std::string gpus = field(c, "gpus"); gpus != "1") text += fmt::format(", {} GPUs", gpus);
  return text;
}

// The distinct values of a field in order, each with its palette index.
using Colours = std::map<std::string, int>;
Colours colours_of(const std::vector<const Configuration*>& all, std::string_view name) {
  Colours colours;
  for (const Configuration* c : all) colours.emplace(field(*c, name), 0);
  int next = 0;
  for (auto& [key, colour] : colours) colour = next++;
  return colours;
}

// The line predicted = measured with its band.
Series band(double least, double most) {
  Series series{.name = "measured +-10 %", .colour = 8, .dashed = true};
  for (const double value : {least, most}) {
    series.x.push_back(value);
    series.y.push_back(value);
    series.low.push_back(value * (1 - kBand));
    series.high.push_back(value * (1 + kBand));
  }
  return series;
}

Chart scatter_chart(const std::string& metric, const std::string& unit,
                    const std::vector<const Configuration*>& shown, std::string_view name,
                    const Colours& colours) {
  Chart chart;
  chart.title = fmt::format("{}, {}", metric, unit);
  chart.x = {.title = "measured, " + unit, .logarithmic = true};
  chart.y = {.title = "predicted, " + unit, .logarithmic = true};
  constexpr std::size_t kMany = 20;
  chart.wide = shown.size() > kMany;
  std::map<std::string, Series> by_name;
  double least = INFINITY;
  double most = 0;
  for (const Configuration* c : shown) {
    Series& series = by_name[field(*c, name)];
    series.x.push_back(measured(*c));
    series.y.push_back(c->prediction.predicted);
    series.low.push_back(c->prediction.interval.low);
    series.high.push_back(c->prediction.interval.high);
    series.hover.push_back(
        fmt::format("{} ({}): {:+.1f} %", run_text(*c), c->section, kPercent * c->error()));
    least = std::min(least, measured(*c));
    most = std::max(most, measured(*c));
  }
  chart.series.push_back(band(least, most));
  for (auto& [key, series] : by_name) {
    series.mark = ChartMark::point;
    series.name = key;
    series.colour = colours.at(key);
    chart.series.push_back(std::move(series));
  }
  return chart;
}

// A chart for each metric and unit, those with the most configurations first.
std::vector<Chart> scatter_charts(const std::vector<const Configuration*>& all, std::string_view name) {
  std::map<std::pair<std::string, std::string>, std::vector<const Configuration*>> by_unit;
  for (const Configuration* c : all) by_unit[{field(*c, "metric"), field(*c, "unit")}].push_back(c);
  std::vector<std::pair<std::size_t, Chart>> charts;
  const Colours colours = colours_of(all, name);
  for (const auto& [unit, shown] : by_unit)
    charts.emplace_back(shown.size(), scatter_chart(unit.first, unit.second, shown, name, colours));
  std::stable_sort(charts.begin(), charts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Chart> sorted;
  for (auto& [size, chart] : charts) sorted.push_back(std::move(chart));
  return sorted;
}

Section scatter_section(const std::vector<const Configuration*>& all) {
  Section section{.title = "Predicted against measured"};
  section.text.emplace_back(
      "A mark for each configuration, with its 80 % interval; the band is a tenth to both sides of what was "
      "measured.");
  for (const char* name : {"gpu", "model", "framework"})
    section.views.push_back({.name = std::string("by ") + name, .charts = scatter_charts(all, name)});
  return section;
}

// The share of configurations with an error below x.
Chart cumulative_chart(const std::vector<const Configuration*>& all) {
  Chart chart;
  chart.title = "How many are closer than";
  chart.x = {.title = "|error|, %", .from = 0, .to = kPercent};
  chart.y = {.title = "share of the configurations, %", .from = 0, .to = kPercent};
  chart.wide = true;
  int colour = 0;
  for (const std::string_view section : kSections) {
    std::vector<double> sizes;
    for (const Configuration* c : all) {
      if (c->section == section) sizes.push_back(kPercent * std::abs(c->error()));
    }
    std::sort(sizes.begin(), sizes.end());
    Series series{.name = std::string(section), .colour = colour++, .x = {0}, .y = {0}};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      series.x.push_back(sizes[i]);
      series.y.push_back(kPercent * static_cast<double>(i + 1) / static_cast<double>(sizes.size()));
    }
    if (!sizes.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart distribution_chart(const std::vector<const Configuration*>& all, std::string_view name) {
  Chart chart;
  chart.title = fmt::format("By {}", name);
  chart.x.title = "error, %";
  int colour = 0;
  for (const std::string_view section : kSections) {
    Series series{.mark = ChartMark::box, .name = std::string(section), .colour = colour++};
    for (const Configuration* c : all) {
      if (c->section != section) continue;
      series.x.push_back(kPercent * c->error());
      series.categories.push_back(field(*c, name));
      series.hover.push_back(run_text(*c));
    }
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

Section distribution_section(const std::vector<const Configuration*>& all) {
  Section section{.title = "How errors are distributed"};
  section.text.emplace_back(
      "Errors are predicted / measured - 1. Score and fit rows judge apart (fit rows may have set a "
      "constant); context "
      "rows are real, but no fair target. A box holds the middle half, its line is the median.");
  View& view = section.views.emplace_back();
  view.charts.push_back(cumulative_chart(all));
  for (const char* name : {"gpu", "model", "framework"}) view.charts.push_back(distribution_chart(all, name));
  return section;
}

Section configurations_section(const std::vector<const Configuration*>& all) {
  Table table;
  table.columns = {{"section", "section"}, {"group", "group"}};
  std::vector<std::string_view> shown;
  for (const std::string_view name : kRunIdentity) {
    const bool says =
        std::any_of(all.begin(), all.end(), [&](const auto* c) { return !field(*c, name).empty(); });
    if (!says) continue;
    shown.push_back(name);
    table.columns.push_back({std::string(name), std::string(name)});
  }
  for (const char* name : {"measured", "predicted", "low", "high", "error %"})
    table.columns.push_back({name, name, true});
  const auto value = [](double number) { return number_cell(number, fmt::format("{:.4g}", number)); };
  for (const Configuration* c : all) {
    std::vector<Cell>& row = table.rows.emplace_back();
    row = {text_cell(c->section), text_cell(c->group)};
    for (const std::string_view name : shown) row.push_back(text_cell(field(*c, name)));
    row.push_back(value(measured(*c)));
    row.push_back(value(c->prediction.predicted));
    row.push_back(value(c->prediction.interval.low));
    row.push_back(value(c->prediction.interval.high));
    row.push_back(number_cell(
        c->error(), fmt::format("{:+.1f}{}", kPercent * c->error(), c->inside_interval() ? "" : "!")));
  }
  table.notes = {"!: outside the 80 % interval."};
  Section section{.title = "Every configuration"};
  section.views.push_back({.name = "", .tables = {std::move(table)}});
  return section;
}

Section farthest_section(std::span<const FarthestRun> farthest) {
  Section section{.title = "The ten farthest off"};
  section.text.emplace_back("Of the rows that judge (score), with the kernels that were predicted.");
  for (const FarthestRun& run : farthest) {
    const Configuration& c = *run.configuration;
    View view;
    if (run.prediction) view = kernels_view(*run.prediction);
    view.name = fmt::format("{:+.0f} %: {}, {}", kPercent * c.error(), run_text(c), field(c, "metric"));
    section.views.push_back(std::move(view));
  }
  return section;
}

}  // namespace

Page validation_page(const Validation& validation, const std::string& by, const Profile* profile,
                     std::span<const FarthestRun> farthest) {
  const std::vector<const Configuration*> all = predicted_ones(validation);
  Table groups = validation_table(validation, by, profile);
  Page page;
  page.title = "Predictions against measured runs";
  for (const auto& [name, cell] : groups.totals) {
    if (name.ends_with("_mean_over_groups"))
      page.summary.push_back(fmt::format("{}: {}", name.substr(0, name.find('_')), cell.text));
  }
  page.sections.push_back({.title = "By " + by, .views = {{.name = "", .tables = {std::move(groups)}}}});
  if (all.empty()) return page;
  page.sections.push_back(scatter_section(all));
  page.sections.push_back(distribution_section(all));
  page.sections.push_back(farthest_section(farthest));
  page.sections.push_back(configurations_section(all));
  return page;
}

}  // namespace tbdsim
