#include "simulate/commands.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <ostream>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/catalog_report.h"
#include "simulate/distinct_kernels.h"
#include "simulate/model_report.h"
#include "simulate/prediction_report.h"
#include "simulate/runs_table.h"
#include "simulate/validation.h"

namespace tbdsim {
namespace {

// A measuring plan is ordered by predicted time; without --gpu on this one, whose order serves others as
// well.
constexpr const char* kPlanOrderGpu = "a100_sxm_80gb";

// The index of an option's value among the allowed ones; UsageError with "did you mean".
std::size_t choice(std::string_view option, const std::string& value,
                   const std::vector<std::string>& allowed) {
  const auto found = std::find(allowed.begin(), allowed.end(), value);
  if (found != allowed.end()) return static_cast<std::size_t>(found - allowed.begin());
  if (value.empty())
    throw UsageError(fmt::format("{}: says not of what; expected one of {}", option, joined(allowed)));
  throw UsageError(fmt::format("{}: {} is unknown; expected one of {}{}", option, in_quotes(value),
                               joined(allowed), did_you_mean(value, allowed)));
}

Format format_of(const Options& options, Format unless_said = Format::table) {
  if (options.format.empty()) return unless_said;
  return static_cast<Format>(choice("--format", options.format, {"table", "json", "csv"}));
}

// "4,16,64" -> its parts.
std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

std::int64_t batch_of(const std::string& text) {
  const std::string expected = fmt::format("expected a whole number, 1 to {}", kMostSamples);
  if (text.empty()) throw UsageError("--batch is missing; " + expected);
  const auto batch = parse_whole_number(text);
  if (!batch)
    throw UsageError(fmt::format("--batch: {} is not a whole number; {}", in_quotes(text), expected));
  if (*batch < 1 || *batch > kMostSamples) {
    throw UsageError(fmt::format("--batch: {} is out of range; {}", in_quotes(text), expected));
  }
  return *batch;
}

void require_gpu(const Options& options) {
  if (options.gpu.empty())
    throw UsageError("--gpu is missing; expected a name ('tbd-sim list gpus') or a YAML file");
}

// Runs `write` on the output file, which then appears whole, or on `out`.
template <class Write>
void write_output(const Options& options, std::ostream& out, Write write) {
  if (options.output.empty()) {
    write(out);
    return;
  }
  AtomicFile file(options.output);
  write(file.stream());
  file.commit();
}

// The frameworks to predict a model for: the one asked for; else those that train the variant asked for or,
// of no variant in particular, any variant; else all there are.
std::vector<std::string> frameworks_for(const Options& options, const ModelFile& model,
                                        const Library& library) {
  if (!options.framework.empty()) return {options.framework};
  std::vector<std::string> frameworks;
  for (const Variant& variant : model.variants) {
    if (!options.variant.empty() && &variant != &find_variant(model, options.variant, "")) continue;
    frameworks.insert(frameworks.end(), variant.frameworks.begin(), variant.frameworks.end());
  }
  return frameworks.empty() ? library.catalog().names(Kind::framework) : frameworks;
}

std::vector<Scenario> scenarios_for(const Options& options, Library& library) {
  require_gpu(options);
  const bool all = options.model.empty() || options.model == "all";
  const std::vector<std::string> models =
      all ? library.catalog().names(Kind::model) : std::vector<std::string>{options.model};
  std::vector<Scenario> scenarios;
  for (const std::string& model : models) {
    for (const std::string& framework : frameworks_for(options, library.model(model), library)) {
      scenarios.push_back({.model = model,
                           .framework = framework,
                           .gpu = options.gpu,
                           .batch = batch_of(options.batch),
                           .variant = options.variant,
                           .precision = options.precision,
                           .profile = options.profile});
    }
  }
  return scenarios;
}

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

}  // namespace

void predict_command(const Options& options, Library& library, std::ostream& out) {
  std::vector<Prediction> predictions;
  const Format format = format_of(options);
  for (const Scenario& scenario : scenarios_for(options, library))
    predictions.push_back(predict(scenario, library));
  write_output(options, out, [&](std::ostream& to) { write_predictions(to, predictions, format); });
}

void list_command(const Options& options, Library& library, std::ostream& out) {
  std::vector<std::string> names;
  for (const Listing& listing : listings()) names.emplace_back(listing.name);
  Sheet sheet = listings()[choice("list", options.list_of, names)].sheet(library);
  sheet.name = options.list_of;
  const Format format = format_of(options);
  write_output(options, out, [&](std::ostream& to) { write_sheets(to, std::span(&sheet, 1), format); });
}

void show_command(const Options& options, Library& library, std::ostream& out) {
  const ModelFile& file = library.model(options.model);
  const Variant& variant = find_variant(file, options.variant, options.framework);
  const Precision& precision = find_precision(options.precision);
  // Layers do not depend on the framework; their kernels do.
  const Model model = build_model(file, variant);
  const Lowering lowering =
      options.framework.empty() ? Lowering{} : library.framework(options.framework).lowering;
  const Sheet sheet = layer_sheet(model, expand_training_step(model, lowering, precision), precision);
  const Format format = format_of(options);
  write_output(options, out, [&](std::ostream& to) { write_sheets(to, std::span(&sheet, 1), format); });
}

void kernels_command(const Options& options, Library& library, std::ostream& out) {
  const Format format = format_of(options);
  if (options.plan && !options.format.empty())
    throw UsageError("--plan writes CSV; expected no --format beside it");
  std::vector<Prediction> predictions;
  for (const std::string& precision : list_of(options.precision)) {
    for (const std::string& batch : list_of(options.batch)) {
      Options one = options;
      one.precision = precision;
      one.batch = batch;
      if (options.plan && options.gpu.empty()) one.gpu = kPlanOrderGpu;
      for (const Scenario& scenario : scenarios_for(one, library))
        predictions.push_back(predict(scenario, library));
    }
  }
  write_output(options, out, [&](std::ostream& to) {
    if (options.plan) {
      write_measuring_plan(to, distinct_kernels(predictions));
    } else if (options.unique) {
      const Sheet sheet = distinct_kernel_sheet(distinct_kernels(predictions));
      write_sheets(to, std::span(&sheet, 1), format);
    } else {
      std::vector<Sheet> sheets;
      for (const Prediction& prediction : predictions) sheets.push_back(kernel_sheet(prediction));
      write_sheets(to, sheets, format);
    }
  });
}

void scenarios_command(const Options& options, Library& library, std::ostream& out,
                       const Progress& progress) {
  const Format format = format_of(options, Format::csv);
  std::ifstream in = open_input(options.scenarios);
  CsvReader reader(in, options.scenarios);
  const RunColumns columns(reader);
  std::vector<std::string> names = reader.columns();
  for (const char* added : {"predicted", "predicted_low", "predicted_high", "status"}) {
    if (reader.find_column(added)) {
      throw SpecError(reader.row_mark(),
                      fmt::format("column '{}' is there already; expected a table without it", added));
    }
    names.emplace_back(added);
  }
  (void)library.profile(options.profile);  // a wrong profile is no matter of a row
  Sheet sheet;
  sheet.name = "rows";
  for (const std::string& name : names) sheet.columns.push_back({name, name});
  write_output(options, out, [&](std::ostream& to) {
    if (format == Format::csv) write_csv_row(to, names);
    std::size_t rows = 0;
    std::vector<std::string> row;
    while (reader.next(row)) {
      const RowPrediction p = predict_row(columns, row, library, options.profile);
      for (const double number : {p.predicted, p.interval.low, p.interval.high}) {
        row.push_back(p.ok() ? number_text(number) : "");
      }
      row.push_back(p.status);
      progress(++rows);
      if (format == Format::csv) {  // row by row, however long the table is
        write_csv_row(to, row);
      } else {
        std::vector<Cell>& cells = sheet.rows.emplace_back();
        for (const std::string& field : row) cells.push_back(text_cell(field));
      }
    }
    if (format != Format::csv) write_sheets(to, std::span(&sheet, 1), format);
  });
}

void validate_command(const Options& options, Library& library, std::ostream& out, const Progress& progress) {
  (void)choice("--by", options.by, {"group", "set", "gpu", "model", "framework"});
  const Format format = format_of(options);
  const Profile& profile = library.profile(options.profile);
  std::ifstream in = open_input(options.runs);
  const Sheet sheet = validation_sheet(
      validate_runs(in, options.runs, options.by, library, options.profile, progress), options.by, profile);
  write_output(options, out, [&](std::ostream& to) { write_sheets(to, std::span(&sheet, 1), format); });
}

}  // namespace tbdsim
