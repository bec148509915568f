#include "calibrate/framework_fit/run_errors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/predict.h"
#include "simulate/validation/runs_table.h"

namespace tbdsim {
namespace {

RunError error_of(const RunColumns& columns, const std::vector<std::string>& row, const std::string& value,
                  const std::string& set, const Resolver& resolve) {
  const auto measured = parse_number(value);
  if (!measured || *measured <= 0) throw UsageError("value is not a positive number");
  const Prediction prediction = predict(scenario_of(columns, row, resolve), resolve);
  const double predicted = predicted_value(columns, row, prediction, resolve).predicted;
  const bool rate = row[columns.metric] == "throughput";
  return {.log_error = rate ? std::log(*measured / predicted) : std::log(predicted / *measured),
          .exposure = exposure_of(prediction),
          .gpu = prediction.gpu->name,
          .version = prediction.framework->name,
          .model = prediction.model->name,
          .set = set,
          .predicted = predicted};
}

bool are_repeats(const RunError& a, const RunError& b) {
  return a.predicted == b.predicted && a.exposure == b.exposure && a.gpu == b.gpu && a.version == b.version &&
         a.model == b.model && a.set == b.set;
}

std::string amount_column(std::string_view effect) { return "amount of " + std::string(effect); }

void add(const RunError& run, std::vector<RunError>& runs) {
  const auto same =
      std::find_if(runs.begin(), runs.end(), [&](const RunError& other) { return are_repeats(run, other); });
  if (same == runs.end()) {
    runs.push_back(run);
    return;
  }
  ++same->repeats;
  same->log_error += (run.log_error - same->log_error) / same->repeats;
}

}  // namespace

void add_run_errors(std::istream& in, const std::string& file, const RunSelection& selection,
                    const Resolver& resolve, const std::function<void()>& progress, RunErrors& errors) {
  CsvReader reader(in, file);
  const RunColumns columns(reader);
  const std::size_t value = reader.column("value");
  const std::size_t use = reader.column("use");
  const std::size_t split = reader.column("split");
  const auto set = reader.find_column("set");
  for (std::vector<std::string> row; reader.next(row);) {
    const bool time = row[columns.metric] == "throughput" || row[columns.metric] == "iteration_time";
    const bool of_split = selection.split.empty() || row[split] == selection.split;
    const bool judged = row[split] == "fit" || row[split] == "score";
    if (row[use] != "time" || !of_split || !judged || !time) continue;
    progress();
    try {
      std::string name = set ? row[*set] : std::filesystem::path(file).stem().string();
      if (selection.development) name += " (development)";
      RunError run = error_of(columns, row, row[value], name, resolve);
      run.development = selection.development;
      add(run, errors.runs);
    } catch (const Error& reason) {  // a model, version or GPU that is not in the catalogue
      ++errors.not_covered[reason.what()];
    }
  }
}

void write_run_errors(std::ostream& out, const std::vector<RunError>& runs) {
  std::vector<std::string> row{"set", "gpu", "version", "model", "log_error", "development"};
  for (const std::string_view effect : kEffectNames) row.push_back(amount_column(effect));
  write_csv_row(out, row);
  for (const RunError& run : runs) {
    row = {run.set,
           run.gpu,
           run.version,
           run.model,
           fmt::format("{:.5f}", run.log_error),
           run.development ? "true" : "false"};
    for (const double amount : run.exposure) row.push_back(fmt::format("{:.5f}", amount));
    write_csv_row(out, row);
  }
}

void read_run_errors(std::istream& in, const std::string& file, std::vector<RunError>& runs) {
  CsvReader reader(in, file);
  const std::size_t set = reader.column("set"), gpu = reader.column("gpu"),
                    version = reader.column("version"), model = reader.column("model"),
                    error = reader.column("log_error");
  const auto development = reader.find_column("development");
  std::array<std::optional<std::size_t>, kEffectNames.size()> amounts;
  for (std::size_t e = 0; e < amounts.size(); ++e)
    amounts[e] = reader.find_column(amount_column(kEffectNames[e]));
  for (std::vector<std::string> row; reader.next(row);) {
    const auto number = [&](std::size_t column, double least) {
      const auto value = parse_number(row[column]);
      if (!value || !std::isfinite(*value) || *value < least) {
        throw SpecError(reader.row_mark(),
                        fmt::format("{} is {}; expected a number{}", reader.columns()[column],
                                    in_quotes(row[column]), least == 0 ? " from 0" : ""));
      }
      return *value;
    };
    RunError run{.log_error = number(error, -std::numeric_limits<double>::infinity()),
                 .gpu = row[gpu],
                 .version = row[version],
                 .model = row[model],
                 .set = row[set]};
    if (development) {
      const std::string& value = row[*development];
      if (value != "true" && value != "false")
        throw SpecError(reader.row_mark(),
                        fmt::format("development is {}; expected true or false", in_quotes(value)));
      run.development = value == "true";
    }
    for (std::size_t e = 0; e < amounts.size(); ++e) {
      if (amounts[e]) run.exposure[e] = number(*amounts[e], 0);
    }
    runs.push_back(std::move(run));
  }
}

}  // namespace tbdsim
