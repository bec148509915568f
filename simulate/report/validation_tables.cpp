#include "simulate/report/validation_tables.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace tbdsim {
namespace {

std::vector<Cell> group_row(const GroupErrors& e) {
  std::vector<Cell> row{text_cell(e.section), text_cell(e.group), count_cell(e.rows),
                        count_cell(e.covered_rows), count_cell(e.configurations)};
  const bool none = e.configurations == 0;
  for (const double ratio : {e.mean, e.median, e.p90, e.max})
    row.push_back(none ? none_cell() : percent_cell(ratio));
  row.push_back(none ? none_cell() : signed_percent_cell(e.bias));
  row.push_back(none ? none_cell() : percent_cell(e.coverage));
  row.push_back(e.noise == 0 ? none_cell() : percent_cell(e.noise));
  return row;
}

// A section's mean over its groups, however many rows each has.
void add_section_total(const Validation& validation, const std::string& section, Table& table) {
  double error = 0;
  double coverage = 0;
  int groups = 0;
  int configurations = 0;
  for (const GroupErrors& e : validation.groups) {
    if (e.section != section || e.configurations == 0) continue;
    error += e.mean;
    coverage += e.coverage;
    configurations += e.configurations;
    ++groups;
  }
  if (groups == 0) return;
  table.totals.emplace_back(
      section + "_mean_over_groups",
      number_cell(error / groups, fmt::format("{:.1f} % over {} groups, {} configurations; {:.0f} % "
                                              "within their 80 % interval",
                                              kPercent * error / groups, groups, configurations,
                                              kPercent * coverage / groups)));
}

std::vector<std::string> reasons(const Validation& validation) {
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [reason, rows] : validation.not_covered) sorted.emplace_back(rows, reason);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> lines;
  if (!validation.set_aside.empty()) lines.emplace_back("rows set aside as context, and why:");
  for (const auto& [why, rows] : validation.set_aside) lines.push_back(fmt::format("{:>6}  {}", rows, why));
  if (!sorted.empty()) lines.emplace_back("rows not covered, and why:");
  constexpr std::size_t kMostShown = 12;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostShown); ++i) {
    lines.push_back(fmt::format("{:>6}  {}", sorted[i].first, sorted[i].second));
  }
  if (sorted.size() > kMostShown)
    lines.push_back(fmt::format("        and {} more reasons", sorted.size() - kMostShown));
  return lines;
}

// Four digits, the precision of measurements.
Cell value_cell(double value) { return number_cell(value, fmt::format("{:.4g}", value)); }

// "resnet50 mxnet 1.2.0 k80 fp32 ..." without empty fields.
std::vector<Cell> worst_row(const Configuration& c) {
  std::vector<Cell> row{text_cell(c.group)};
  for (const std::string& text : c.run) row.push_back(text_cell(text));
  row.push_back(value_cell(c.prediction.predicted / (1 + c.error())));
  row.push_back(value_cell(c.prediction.predicted));
  row.push_back(signed_percent_cell(c.error()));
  row.push_back(flag_cell(c.inside_interval()));
  return row;
}

// Mean errors over the groups of a section.
std::string means(const std::vector<HoldoutErrors>& errors, const std::string& section) {
  std::array<double, 3> sums{};
  std::array<int, 3> counts{};
  const auto add = [&](std::size_t i, const GroupErrors& e) {
    sums[i] += e.mean;
    ++counts[i];
  };
  for (const HoldoutErrors& e : errors) {
    if (e.measured.section != section) continue;
    add(0, e.measured);
    if (e.one_product) add(1, *e.one_product);
    add(2, e.data_sheet);
  }
  std::string text;
  constexpr std::array<const char*, 3> kNames = {"as measured", "one product", "data sheet only"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (counts[i] == 0) continue;
    text += fmt::format("{}{}: {:.1f} % over {}", text.empty() ? "" : "; ", kNames[i],
                        kPercent * sums[i] / counts[i], counts[i]);
  }
  return text;
}

}  // namespace

Table validation_table(const Validation& validation, const std::string& by, const Profile* profile) {
  Table table;
  table.name = "groups";
  table.preface = {
      "kernel times: " + (profile == nullptr
                              ? "the profile of each GPU, of its chip, its architecture's or the generic one"
                              : calibration_text(*profile)),
      "error = |predicted / measured - 1|; a configuration counts once; noise: spread of its repeats", ""};
  table.columns = {{"section", "section"},
                   {by, by},
                   {"rows", "rows", true},
                   {"covered_rows", "covered", true},
                   {"configurations", "configs", true},
                   {"mean", "mean", true},
                   {"median", "median", true},
                   {"p90", "p90", true},
                   {"max", "max", true},
                   {"bias", "bias", true},
                   {"coverage", "in 80 %", true},
                   {"noise", "noise", true}};
  for (const GroupErrors& e : validation.groups) table.rows.push_back(group_row(e));
  for (const char* section : {"score", "fit", "context"}) add_section_total(validation, section, table);
  if (profile != nullptr) table.totals.emplace_back("profile", text_cell(profile->name));
  table.notes = reasons(validation);
  table.counts_name = "not_covered";
  table.counts = validation.not_covered;
  return table;
}

Table worst_table(const Validation& validation, std::size_t most) {
  std::vector<const Configuration*> worst;
  for (const Configuration& c : validation.configurations) {
    if (c.section == "score" && c.prediction.ok()) worst.push_back(&c);
  }
  // An error of -50 % is as far off as one of +100 %.
  std::stable_sort(worst.begin(), worst.end(), [](const Configuration* a, const Configuration* b) {
    return std::abs(std::log1p(a->error())) > std::abs(std::log1p(b->error()));
  });
  Table table;
  table.name = "configurations";
  table.columns = {{"group", "group"}};
  for (const std::string_view name : kRunIdentity) {
    const bool shown = name == "gpu" || name == "model" || name == "framework" || name == "precision" ||
                       name == "batch_per_gpu" || name == "gpus" || name == "metric";
    table.columns.push_back({std::string(name), shown ? std::string(name) : ""});
  }
  for (const char* name : {"measured", "predicted", "error"}) table.columns.push_back({name, name, true});
  table.columns.push_back({"in_interval", "in 80 %"});
  for (std::size_t i = 0; i < std::min(most, worst.size()); ++i) table.rows.push_back(worst_row(*worst[i]));
  return table;
}

Table holdout_table(const std::vector<HoldoutErrors>& errors, const std::string& by) {
  Table table;
  table.name = "groups";
  table.preface = {
      "times on one GPU: with all that was measured on it, with its data sheet and one large matrix product,",
      "and with its data sheet only; - where no product was measured. error = |predicted / measured - 1|",
      ""};
  table.columns = {{"section", "section"},
                   {by, by},
                   {"configurations", "configs", true},
                   {"mean", "measured", true},
                   {"bias", "bias", true},
                   {"one_product_mean", "one product", true},
                   {"one_product_bias", "bias", true},
                   {"data_sheet_mean", "data sheet", true},
                   {"data_sheet_bias", "bias", true}};
  for (const HoldoutErrors& e : errors) {
    table.rows.push_back({text_cell(e.measured.section), text_cell(e.measured.group),
                          count_cell(e.measured.configurations), percent_cell(e.measured.mean),
                          signed_percent_cell(e.measured.bias),
                          e.one_product ? percent_cell(e.one_product->mean) : none_cell(),
                          e.one_product ? signed_percent_cell(e.one_product->bias) : none_cell(),
                          percent_cell(e.data_sheet.mean), signed_percent_cell(e.data_sheet.bias)});
  }
  for (const char* section : {"score", "fit"}) {
    const std::string text = means(errors, section);
    if (!text.empty()) table.totals.emplace_back(std::string(section) + "_mean_over_groups", text_cell(text));
  }
  return table;
}

}  // namespace tbdsim
