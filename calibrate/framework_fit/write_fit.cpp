#include "calibrate/framework_fit/write_fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/spec_edit.h"
#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/base/table.h"

namespace tbdsim {
namespace {

std::string value_text(const FitConstant& constant, double value) {
  return constant.time != nullptr ? to_text(Seconds(value)) : fmt::format("{:.3g}", value);
}

template <class Name>
std::string distinct(const std::vector<RunRow>& rows, Name name) {
  std::set<std::string> found;
  for (const RunRow& row : rows) found.insert(name(row));
  found.erase("");
  return joined(std::vector<std::string>(found.begin(), found.end()));
}

std::string sets_of(const std::vector<RunRow>& rows) {
  return distinct(rows, [](const RunRow& row) { return row.set; });
}

std::string remark(const FittedConstant& f) {
  if (!f.determined) return "stays an estimate: the runs do not tell it";
  return f.at_bound ? "at its bound" : "";
}

Table constants_table(const Framework& framework, const RunRows& rows, const FrameworkFit& fit) {
  Table table;
  const std::string sets = sets_of(rows.fit);
  table.preface =
      wrapped(fmt::format("{}: {} {} to fit{}; models {}; GPUs {}", framework.title, rows.fit.size(),
                          runs_text(rows), sets.empty() ? "" : " (" + sets + ")",
                          distinct(rows.fit, [](const RunRow& row) { return row.prediction.scenario.model; }),
                          distinct(rows.fit, [](const RunRow& row) { return row.prediction.scenario.gpu; })),
              kScreenWidth);
  table.preface.emplace_back();
  table.columns = {{"constant", "constant"},
                   {"before", "before", true},
                   {"fitted", "fitted", true},
                   {"standard_error", "standard error", true},
                   {"remark", "remark"}};
  for (const FittedConstant& f : fit.constants) {
    table.rows.push_back({text_cell(f.constant.name), number_cell(f.before, value_text(f.constant, f.before)),
                          number_cell(f.value, value_text(f.constant, f.value)),
                          number_cell(f.sd, fmt::format("{:.0f} %", kPercent * std::expm1(f.sd))),
                          text_cell(remark(f))});
  }
  table.notes = {fmt::format("spread of ln(predicted / measured) that is left: {:.2f}", fit.spread)};
  return table;
}

Table gpus_table(const FrameworkFit& fit) {
  Table table;
  table.preface = {
      "", "time of all kernels over what a GPU's profile says: fitted beside, used in no prediction"};
  table.columns = {{"gpu", "GPU"}, {"factor", "factor", true}};
  for (const auto& [gpu, factor] : fit.gpus) {
    table.rows.push_back({text_cell(gpu), number_cell(factor, fmt::format("{:.2f}", factor))});
  }
  return table;
}

Table errors_table(const FitErrors& errors) {
  Table table;
  table.preface = {"", "mean |predicted / measured - 1| before and after"};
  table.columns = {
      {"rows_are", "rows"}, {"rows", "count", true}, {"before", "before", true}, {"after", "after", true}};
  const auto line = [&](const std::string& name, const std::optional<RowErrors>& of) {
    if (!of) {
      table.rows.push_back({text_cell(name), text_cell("none"), Cell{}, Cell{}});
      return;
    }
    table.rows.push_back({text_cell(name), count_cell(static_cast<double>(of->rows)),
                          percent_cell(of->before), percent_cell(of->after)});
  };
  line("fitted to", errors.fit);
  table.rows.push_back({text_cell("fitted to, with the factor of each GPU"),
                        count_cell(static_cast<double>(errors.fit.rows)), Cell{},
                        percent_cell(errors.with_gpus)});
  line("of a model left out", errors.left_out_model);
  line("of a GPU left out", errors.left_out_gpu);
  line("of a set left out", errors.left_out_set);
  line(fmt::format("batch {} and above, fitted to {} and below", kLargeBatch, kSmallBatch),
       errors.large_batch);
  line("score rows, not used", errors.score);
  return table;
}

// Rows of split score judge the model: they are in the errors' table as one mean, and never one by one.
Table rows_table(const Framework& framework, const RunRows& rows, const FrameworkFit& fit) {
  Table table;
  table.preface = {"", "predicted / measured - 1 of each row of split fit"};
  table.columns = {{"gpu", "GPU"},
                   {"model", "model"},
                   {"precision", "prec."},
                   {"batch", "batch", true},
                   {"measured", "measured", true},
                   {"before", "before", true},
                   {"after", "after", true}};
  for (const RunRow& row : rows.fit) {
    const Scenario& s = row.prediction.scenario;
    table.rows.push_back(
        {text_cell(s.gpu), text_cell(s.model), text_cell(s.precision),
         count_cell(static_cast<double>(s.batch)), number_cell(row.measured.si(), to_text(row.measured)),
         signed_percent_cell(row.error(framework)), signed_percent_cell(row.error(fit.framework))});
  }
  return table;
}

// "fit: 12 single-GPU runs (mxnet_perf), tbd-calibrate fit-framework; leave-one-model-out 5.1 %".
std::string source_of(const RunRows& rows, const FitErrors& errors) {
  const std::string sets = sets_of(rows.fit);
  std::string text = fmt::format("fit: {} {}{}, tbd-calibrate fit-framework", rows.fit.size(),
                                 runs_text(rows), sets.empty() ? "" : " (" + sets + ")");
  const auto error = [&](const std::string& name, const std::optional<RowErrors>& of) {
    if (of) text += fmt::format("; {} {:.1f} %", name, kPercent * of->after);
  };
  error("leave-one-model-out", errors.left_out_model);
  if (!errors.left_out_model) error("leave-one-GPU-out", errors.left_out_gpu);
  return text;
}

// Factors of all kinds share one source. Its present text stays after "others: " where kinds that were not
// fitted have factors.
std::string factors_source(const std::vector<std::string>& fitted, const std::string& source,
                           const Framework& framework) {
  constexpr std::string_view kOthers = "; others: ";
  std::string text = joined(fitted) + " " + source;
  bool others = false;
  for (std::size_t kind = 0; kind < kKernelKindCount; ++kind) {
    const bool named = std::find(fitted.begin(), fitted.end(), kKernelKindNames[kind]) != fitted.end();
    others = others || (!named && framework.factors[kind] != 1);
  }
  const auto old = framework.sources.find("factors");
  if (!others || old == framework.sources.end()) return text;
  const std::size_t at = old->second.find(kOthers);
  return text + std::string(kOthers) +
         (at == std::string::npos ? old->second : old->second.substr(at + kOthers.size()));
}

}  // namespace

void write_fit_report(std::ostream& out, const Framework& framework, const RunRows& rows,
                      const FrameworkFit& fit, const FitErrors& errors, bool details) {
  const auto write = [&](const Table& table) { write_tables(out, std::span(&table, 1), Format::table); };
  write(constants_table(framework, rows, fit));
  write(gpus_table(fit));
  write(errors_table(errors));
  if (details) write(rows_table(framework, rows, fit));
}

std::string with_fitted_constants(std::string yaml, const std::string& file, const RunRows& rows,
                                  const FrameworkFit& fit, const FitErrors& errors) {
  const auto set = [&](const std::vector<std::string>& path, const SpecTree& scalar) {
    yaml = set_spec_value(yaml, file, path, scalar);
  };
  const std::string source = source_of(rows, errors);
  std::vector<std::string> kinds;
  for (const FittedConstant& f : fit.constants) {
    if (!f.determined) continue;
    const SpecTree value = spec_scalar(value_text(f.constant, f.value));
    if (f.constant.time != nullptr) {
      set({"execution", f.constant.name}, value);
      set({"execution", "sources", f.constant.name}, spec_text(source));
    }
    for (const KernelKind kind : f.constant.kinds) {
      kinds.emplace_back(name_of(kind));
      set({"factors", kinds.back()}, value);
    }
    if (f.constant.half_convolution) {
      kinds.emplace_back(kHalfConvolution);
      set({"factors", kinds.back()}, value);
    }
    if (!f.constant.capability.empty()) {
      kinds.push_back("on " + f.constant.capability);
      set({"factors", "on", f.constant.capability}, value);
    }
  }
  if (!kinds.empty()) set({"sources", "factors"}, spec_text(factors_source(kinds, source, fit.framework)));
  return yaml;
}

}  // namespace tbdsim
