#include "calibrate/framework_fit/run_errors.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
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

void add_run_errors(std::istream& in, const std::string& file, const std::string& split,
                    const Resolver& resolve, const std::function<void()>& progress, RunErrors& errors) {
  CsvReader reader(in, file);
  const RunColumns columns(reader);
  const std::size_t value = reader.column("value");
  const std::size_t use = reader.column("use");
  const std::size_t of_split = reader.column("split");
  const auto set = reader.find_column("set");
  for (std::vector<std::string> row; reader.next(row);) {
    const bool time = row[columns.metric] == "throughput" || row[columns.metric] == "iteration_time";
    if (row[use] != "time" || row[of_split] != split || !time) continue;
    progress();
    try {
      const std::string name = set ? row[*set] : std::filesystem::path(file).stem().string();
      add(error_of(columns, row, row[value], name, resolve), errors.runs);
    } catch (const Error& reason) {  // a model, version or GPU that is not in the catalogue
      ++errors.not_covered[reason.what()];
    }
  }
}

}  // namespace tbdsim
